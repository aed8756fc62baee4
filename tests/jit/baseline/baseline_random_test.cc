// Random programs: the baseline compiler against the reference interpreter. Compares results, traps
// and their locations, memory, the order of side effects, and block counts.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/baseline_module.h"
#include "tests/support/hardened.h"
#include "tests/support/random_ir.h"

namespace uptier::test::baseline_random_test {
namespace {

using Use = BaselineModule::Use;

// UPTIER_SEED is the first seed and UPTIER_SEEDS their number, for longer runs by hand.
uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

struct Found {
  Answer answer;
  uint32_t location = 0;
  uint64_t notes = 0;
  std::string memory;
};

class Differential {
 public:
  explicit Differential(uint64_t seed, const RandomOptions& options)
      : seed_(seed), module_(random_module(seed, options)), last_(module_.functions.size() - 1) {
    corpus_raise = raise_in_context;
  }

  void compare(Use use) {
    CodeMachine machine;
    BaselineModule compiled(machine, module_, use);
    jit::Interpreter interpreter(module_, interpret_options(scratch_));
    for (uint64_t round = 0; round < 3; ++round) {
      Found expected = observe(round, [&](const std::vector<uint64_t>& args, Found& f) {
        auto o = interpreter.run(MethodId(last_), args);
        if (o.kind == jit::InterpretOutcome::Kind::kStopped) throw std::runtime_error(o.why);
        f.answer = {o.bits, o.trap};
        f.location = o.location;
      });
      Found got = observe(round, [&](const std::vector<uint64_t>& args, Found& f) {
        auto ran = compiled.run(MethodId(last_), args);
        f.answer = {ran.bits, ran.trap};
        f.location = ran.location;
      });
      check(expected, got);
      traps += expected.answer.trap != TrapCode::kNone;
      ++runs;
    }
    if (use == Use::kInstrumented) check_counts(compiled, interpreter);
    transfers += compiled.transfers();
  }

  static inline int runs = 0, traps = 0;
  static inline uint64_t transfers = 0;

 private:
  template <typename Execute>
  Found observe(uint64_t round, Execute execute) {
    Random r(seed_ * 1000 + round);
    scratch_.fill();
    corpus_notes = 0;
    Found f;
    execute(random_arguments(signature(), scratch_, r), f);
    f.notes = corpus_notes;
    f.memory = scratch_.bytes();
    return f;
  }
  const Signature& signature() const { return module_.functions.back().signature(); }

  void check(const Found& expected, const Found& got) {
    ASSERT_EQ(expected.answer.trap, got.answer.trap) << "seed " << seed_;
    // A trap that a host function raised has no instruction of its own in compiled code.
    if (expected.answer.trap == TrapCode::kNone) {
      ASSERT_TRUE(same_value(signature().result, expected.answer.bits, got.answer.bits))
          << "seed " << seed_ << ": " << answer_text(signature().result, expected.answer)
          << ", but " << answer_text(signature().result, got.answer);
    } else if (expected.answer.trap != TrapCode::kHost) {
      ASSERT_EQ(expected.location, got.location) << "seed " << seed_;
    }
    ASSERT_EQ(expected.notes, got.notes) << "seed " << seed_;
    ASSERT_EQ(expected.memory, got.memory) << "seed " << seed_;
  }

  void check_counts(const BaselineModule& compiled, const jit::Interpreter& interpreter) {
    for (uint32_t m = 0; m <= last_; ++m) {
      auto expected = interpreter.site_counts(MethodId(m));
      if (expected.empty()) continue;
      for (size_t s = 0; s < compiled.counts(m).size(); ++s) {
        ASSERT_EQ(expected[s], compiled.counts(m)[s])
            << "seed " << seed_ << " method " << m << " site " << s + 1;
      }
    }
  }

  uint64_t seed_;
  jit::Module module_;
  uint32_t last_;
  Scratch scratch_;
};

void compare_all(Use use, uint64_t seeds, const RandomOptions& options) {
  uint64_t first = from_environment("UPTIER_SEED", 0);
  uint64_t count = from_environment("UPTIER_SEEDS", seeds);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Differential(seed, options).compare(use);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BaselineRandom, plain_copies_agree_with_the_interpreter) {
  compare_all(Use::kPlain, 200, {.guards = true});
  EXPECT_GT(Differential::traps, 0);
}

TEST(BaselineRandom, instrumented_copies_agree_and_count_alike) {
  compare_all(Use::kInstrumented, 120, {.guards = true});
}

// Blinds every constant that takes four bytes in an instruction.
TEST(BaselineRandom, blinded_copies_agree) {
  Hardened on({.blind_constants = true, .blind_above = 127, .landing_pads = true});
  compare_all(Use::kPlain, 40, {.guards = true});
  compare_all(Use::kInstrumented, 40, {});
  compare_all(Use::kToAndFro, 40, {});
}

TEST(BaselineRandom, copies_agree_when_every_loop_header_changes_them) {
  Differential::transfers = 0;
  compare_all(Use::kToAndFro, 120, {});
  EXPECT_GT(Differential::transfers, 1000u);
}

TEST(BaselineRandom, copies_of_odd_programs_agree_with_the_interpreter) {
  compare_all(Use::kPlain, 120, {.guards = true, .odd = true});
  compare_all(Use::kInstrumented, 60, {.guards = true, .odd = true});
  compare_all(Use::kToAndFro, 60, {.odd = true});
}

// All variables and values live in the frame's memory: the answers and the counts are the same.
TEST(BaselineRandom, plain_bodies_agree_with_the_interpreter) {
  compare_all(Use::kPlain, 120, {.guards = true, .plain = true});
  compare_all(Use::kInstrumented, 60, {.guards = true, .odd = true, .plain = true});
  compare_all(Use::kToAndFro, 60, {.odd = true, .plain = true});
}

// More values than registers, in every block.
TEST(BaselineRandom, large_functions_agree_with_the_interpreter) {
  compare_all(Use::kPlain, 8, {.functions = 2, .statements = 400, .variables = 80, .depth = 5});
  compare_all(Use::kToAndFro, 8, {.functions = 2, .statements = 400, .variables = 80, .depth = 5});
}

}  // namespace
}  // namespace uptier::test::baseline_random_test
