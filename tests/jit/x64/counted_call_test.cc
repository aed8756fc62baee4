// Direct calls that optimized code counts in place of the stub: the same counts, the same events.
#include <gtest/gtest.h>

#include "tests/support/opt_harness.h"

namespace uptier::test::counted_call_test {
namespace {

using Ran = CodeMachine::Ran;

// Method 0 calls itself where most executions go, and method 2 where few do.
constexpr const char* kText = R"(
func @factorial(i64) -> i64 {
b0(v0: i64):
  probe block 1
  v1 = eqz.i64 v0
  branch v1, b1, b2
b1:
  probe block 2
  v2 = call @one(v0)
  return v2
b2:
  probe block 3
  v3 = const.i64 1
  v4 = sub.i64 v0, v3
  v5 = call @factorial(v4)
  v6 = mul.i64 v0, v5
  return v6
}
func @unused(i64) -> i64 {
b0(v0: i64):
  return v0
}
func @one(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 1
  return v1
}
)";

class CountedCall : public testing::Test {
 protected:
  CountedCall()
      : module_(CodeMachine::take(jit::parse_module(kText, {"test", {}}))),
        code_(machine_, module_, [](const jit::Function& f) {
          return f.name == "factorial" ? std::vector<uint64_t>{1000, 90, 910}
                                       : std::vector<uint64_t>{};
        }) {}

  // Calls past the stub: only the calls that the code makes are counted.
  Ran run(uint64_t n) {
    const jit::Function& f = module_.functions[0];
    return machine_.run(code_.codes()[0]->entry(), f.signature(), {n});
  }
  int32_t countdown(uint32_t method) { return machine_.thread.method(method).call_countdown; }
  std::string listing() {
    const jit::Code& c = *code_.codes()[0];
    return disassemble(static_cast<const uint8_t*>(c.entry()), c.size());
  }

  CodeMachine machine_;
  jit::Module module_;
  OptimizedModule code_;
};

TEST_F(CountedCall, counts_as_the_stub_does) {
  const int32_t self = countdown(0), one = countdown(2);
  EXPECT_EQ(run(10), (Ran{.bits = 3628800}));
  EXPECT_EQ(self - countdown(0), 10);
  EXPECT_EQ(one - countdown(2), 1);
}

TEST_F(CountedCall, passes_the_stub_only_where_calls_are_rare) {
  std::string text = listing();
  size_t counts = 0;
  for (size_t at = 0; (at = text.find("dec ", at)) != std::string::npos; ++at) ++counts;
  EXPECT_EQ(counts, 1u) << text;
  EXPECT_NE(text.find("call qword ptr"), std::string::npos) << text;
}

TEST_F(CountedCall, an_event_takes_the_slow_path_and_returns_to_the_caller) {
  int slow = 0;
  machine_.slow = [&](uint32_t method) {
    EXPECT_EQ(method, 0u);
    ++slow;
    machine_.thread.method(0).call_countdown = 2;
    asm volatile("" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    return machine_.stubs->target(MethodId(0));
  };
  machine_.thread.method(0).call_countdown = 0;
  EXPECT_EQ(run(10), (Ran{.bits = 3628800}));
  EXPECT_EQ(slow, 4) << "the calls 1, 4, 7 and 10";
  EXPECT_EQ(countdown(0), 2);
}

TEST_F(CountedCall, both_calls_have_rows_that_name_the_block) {
  const jit::CodeTables& t = code_.codes()[0]->tables();
  std::vector<SiteId> sites;
  for (const jit::CallRow& row : t.calls) {
    if (row.site != t.calls.back().site) continue;
    auto at = std::upper_bound(t.probes.begin(), t.probes.end(), row.offset - 1,
                               [](uint32_t o, const jit::ProbeRow& p) { return o < p.offset; });
    ASSERT_NE(at, t.probes.begin());
    sites.push_back((at - 1)->site);
  }
  EXPECT_EQ(sites, (std::vector<SiteId>{3, 3}));
}

}  // namespace
}  // namespace uptier::test::counted_call_test
