// Phase changes with the default settings: after how many calls they are noticed, and how a method
// that is well known and rests is handled.
//
// The options are those of Options{}. Only where calls are counted, the thread that flushes does
// the worker's jobs, so that the load of the machine does not matter.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/pick_program.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"
#include "uptier/policy.h"

namespace uptier::test::phase_change_test {
namespace {

constexpr uint64_t kChunk = 4096;
constexpr uint64_t kStep = 1 << 18;

Options defaults() {
  Options o;
  o.workers = 0;
  return o;
}

class Picked {
 public:
  explicit Picked(const Options& o, Policy* policy = nullptr)
      : runtime_(parse_or_die(kPick), o, nullptr, policy),
        thread_(*runtime_.runtime),
        entry_(reinterpret_cast<Entry>(
            const_cast<void*>(runtime_.runtime->entry_address(runtime_.method("pick"))))) {}

  // Calls `pick`, in `ones` of a hundred calls with 1.
  void call(uint64_t calls, uint64_t ones) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < calls; ++i) {
      const int32_t arg = random_.below(100) < ones ? 1 : 0;
      wrong += entry_(arg) != 6 * arg;
    }
    ASSERT_EQ(wrong, 0u);
    calls_ += calls;
  }
  // Calls until there is a new drift record, or until about `most` calls; returns the number of
  // calls.
  uint64_t call_until_drift(uint64_t ones, uint64_t most) {
    const size_t before = drifts().size();
    const uint64_t begin = calls_;
    while (drifts().size() == before && calls_ - begin <= most) call(kChunk, ones);
    return calls_ - begin;
  }
  // Calls with the same `arg` until `done` or `most` calls.
  template <typename Done>
  bool call_until(Done done, int32_t arg, uint64_t most) {
    const uint64_t end = calls_ + most;
    while (!done() && calls_ < end) {
      for (uint64_t i = 0; i < kStep; ++i) entry_(arg);
      calls_ += kStep;
      runtime_.runtime->flush();  // waits for the worker, which ticks
    }
    return done();
  }

  std::vector<DecisionRecord> drifts() const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      if (d.action == "re_instrument") found.push_back(d);
    }
    return found;
  }
  bool has_copy(Tier tier) const {
    const MethodReport m = report();
    return std::any_of(m.versions.begin(), m.versions.end(), [&](const VersionReport& v) {
      return v.tier == tier && v.copy == Copy::kInstrumented && !v.retired;
    });
  }
  MethodReport report() const { return runtime_.report_of("pick"); }
  Runtime& runtime() { return *runtime_.runtime; }
  uint64_t calls() const { return calls_; }

 private:
  using Entry = int32_t (*)(int32_t);
  IrRuntime runtime_;
  ThreadScope thread_;
  Entry entry_;
  Random random_{7};
  uint64_t calls_ = 0;
};

// A window of optimized code is 4 * 64 samples at one call in 16,384. The first window that differs
// may have begun in the phase before; it hands its samples over 64 at a time.
constexpr uint64_t kOptimizedBound = (2 * 256 + 64) * uint64_t{16'384} * 5 / 4;
static_assert(kOptimizedBound < 12'000'000);

TEST(PhaseChange, optimized_code_is_known_to_have_drifted_after_12_million_calls) {
  Picked p(defaults());
  p.call(40'000'000, 80);
  ASSERT_TRUE(p.has_copy(Tier::kOptimized));
  ASSERT_EQ(p.drifts().size(), 0u);
  EXPECT_LE(p.call_until_drift(20, kOptimizedBound), kOptimizedBound);
  ASSERT_EQ(p.drifts().size(), 1u);
  EXPECT_TRUE(p.drifts()[0].reason.starts_with("drift from")) << p.drifts()[0].reason;
}

// A window ends at a flush, and the distances of flushes double. So a change after N calls is seen
// at 2 N, or at 4 N if the window that ends at 2 N holds too few samples.
TEST(PhaseChange, baseline_code_is_known_to_have_drifted_when_its_calls_have_doubled_twice) {
  constexpr uint64_t kBefore = (uint64_t{1} << 25) + kChunk;
  Options o = defaults();
  o.policy = PolicyMode::kNever;
  Picked p(o);
  p.call(kBefore, 80);
  ASSERT_TRUE(p.has_copy(Tier::kBaseline));
  ASSERT_EQ(p.drifts().size(), 0u);
  EXPECT_LE(p.call_until_drift(20, 3 * kBefore), 3 * kBefore);
  ASSERT_EQ(p.drifts().size(), 1u);
  EXPECT_TRUE(p.drifts()[0].reason.starts_with("drift: a window lies")) << p.drifts()[0].reason;
}

// Records the questions about baseline code that has drifted, and keeps the code.
class Asked : public Policy {
 public:
  Decision decide(const MethodSnapshot& m, const SystemSnapshot&, const PolicyOptions&) override {
    if (m.phase_drift != 0) of_drift.push_back(m);
    return {Action::kKeep, {}, 0, m.phase_drift != 0 ? "another phase" : "as it was"};
  }
  std::vector<MethodSnapshot> of_drift;
};

TEST(PhaseChange, policy_is_asked_about_baseline_code_that_has_drifted) {
  Asked policy;
  Options o = defaults();
  o.overhead_budget = 0;  // a clock spends the budget
  Picked p(o, &policy);
  p.call(300'000, 80);
  ASSERT_EQ(policy.of_drift.size(), 0u);
  p.call_until_drift(20, 900'000);
  ASSERT_EQ(policy.of_drift.size(), 1u);
  EXPECT_GT(policy.of_drift[0].phase_drift, Options{}.epsilon);
  EXPECT_LE(policy.of_drift[0].phase_drift, 1);
  EXPECT_EQ(policy.of_drift[0].phase_drifts, 1u);
  EXPECT_EQ(policy.of_drift[0].tier, Tier::kBaseline);
  size_t told = 0;
  for (const DecisionRecord& d : p.runtime().report().decisions) {
    if (d.reason != "another phase") continue;
    ++told;
    // The replay asks the same question again.
    Asked again;
    ASSERT_TRUE(replay(d, {}, &again).ok());
    ASSERT_EQ(again.of_drift.size(), 1u);
    EXPECT_EQ(again.of_drift[0].phase_drift, policy.of_drift[0].phase_drift);
    EXPECT_EQ(again.of_drift[0].phase_drifts, 1u);
  }
  EXPECT_EQ(told, 1u);
}

// When a method's sampling rate is down to one of 2^16 opportunities, it rests until its
// opportunities have grown by a 64th.
TEST(PhaseChange, method_that_is_known_rests_is_looked_at_again_and_learnt_anew) {
  Options o;
  o.policy = PolicyMode::kNever;
  Picked p(o);
  auto rests = [&] { return !p.has_copy(Tier::kBaseline); };
  auto looked_at = [&] { return p.has_copy(Tier::kBaseline); };
  ASSERT_TRUE(p.call_until(looked_at, 1, 1 << 20));
  ASSERT_TRUE(p.call_until(rests, 1, uint64_t{1} << 30));
  EXPECT_GE(p.calls(), uint64_t{2048} << 16);
  const uint64_t slept_at = p.calls();
  auto never = [] { return false; };
  p.call_until(never, 1, kStep);  // by then the thread has noticed that sampling is off
  const uint64_t samples = p.report().sampled_calls;
  p.call_until(never, 1, kStep);
  EXPECT_EQ(p.report().sampled_calls, samples);
  ASSERT_TRUE(p.call_until(looked_at, 1, slept_at / 4));
  // The worker knows a thread's progress to 2^20 calls.
  EXPECT_GE(p.calls() + (1 << 20) + kStep, slept_at + slept_at / 64);
  ASSERT_TRUE(p.call_until(rests, 1, slept_at));
  EXPECT_GT(p.report().sampled_calls, samples);
  ASSERT_EQ(p.drifts().size(), 0u);
  EXPECT_TRUE(p.call_until([&] { return !p.drifts().empty(); }, 0, p.calls() / 4));
  EXPECT_TRUE(p.has_copy(Tier::kBaseline));
}

}  // namespace
}  // namespace uptier::test::phase_change_test
