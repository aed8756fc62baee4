// Helpers for hosts of dynamic languages: entries and calls with any number of words, and
// signatures of C functions.
#include "uptier/words.h"

#include <gtest/gtest.h>

#include "tests/support/runtime_host.h"

namespace uptier::test::words_test {
namespace {

std::vector<uint64_t> seen;
size_t expected = 0;

// Weights each argument by its position.
uint64_t interpret(const uint64_t* words) {
  seen.assign(words, words + expected);
  uint64_t sum = 0;
  for (size_t i = 0; i < expected; ++i) sum += (i + 1) * words[i];
  return sum;
}

TEST(Words, entries_and_calls_pass_every_word_in_its_place) {
  const uint64_t words[kMaxWords] = {1, 20, 300, 4000, 50000, 600000, 7000000, uint64_t{1} << 63};
  for (expected = 0; expected <= kMaxWords; ++expected) {
    seen.clear();
    uint64_t sum = call_words(host_entry<interpret>(expected), words, expected);
    EXPECT_EQ(seen, std::vector<uint64_t>(words, words + expected));
    EXPECT_EQ(sum, interpret(words)) << expected;
  }
  EXPECT_EQ(host_entry<interpret>(kMaxWords + 1), nullptr);
}

// A host whose methods of n words are first interpreted, then described: the sum of positions times
// words.
class WordHost : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    Value sum = b.i64(0);
    for (unsigned i = 0; i < b.signature().params.size(); ++i) {
      Value product = b.binary(Opcode::kMul, b.param(i), b.i64(i + 1));
      sum = b.binary(Opcode::kAdd, sum, product);
    }
    b.ret(sum);
    return {};
  }
};

TEST(Words, methods_of_any_number_of_words_are_interpreted_and_then_compiled) {
  WordHost host;
  Options o;
  o.workers = 0;
  auto r = Runtime::create(o);
  ASSERT_TRUE(r.ok());
  ThreadScope attached(**r);
  const uint64_t words[kMaxWords] = {9, 8, 7, 6, 5, 4, 3, 2};
  for (expected = 0; expected <= kMaxWords; ++expected) {
    auto key = static_cast<uint32_t>(expected);
    MethodInfo info{.key = {1, key}, .name = "f", .signature = words_signature(expected)};
    info.host_entry = host_entry<interpret>(expected);
    Result<MethodId> m = (*r)->add_method(host, std::move(info));
    ASSERT_TRUE(m.ok());
    uint64_t sum = interpret(words);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(call_words((*r)->entry_address(*m), words, expected), sum) << expected << " " << i;
    }
  }
  for (const MethodReport& m : (*r)->report().methods) EXPECT_NE(m.tier, Tier::kHost) << m.name;
}

extern "C" double mixed(const char*, int32_t, uint64_t, float, double) noexcept { return 0; }
extern "C" void nothing() {}
extern "C" int32_t less(double a, double b) { return a < b; }

TEST(Words, signatures_follow_from_c_functions) {
  Signature s{{Type::kRef, Type::kI32, Type::kI64, Type::kF32, Type::kF64}, Type::kF64};
  EXPECT_EQ(signature_of(mixed), s);
  EXPECT_EQ(signature_of(nothing), Signature{});
  HostFunction f = host_function("less", less);
  EXPECT_STREQ(f.name, "less");
  EXPECT_EQ(f.signature, (Signature{{Type::kF64, Type::kF64}, Type::kI32}));
  EXPECT_EQ(reinterpret_cast<int32_t (*)(double, double)>(const_cast<void*>(f.address))(1, 2), 1);
}

}  // namespace
}  // namespace uptier::test::words_test
