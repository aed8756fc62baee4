// The inequality of sample weights: the runtime and a reader of its trace compute the same sums,
// because a trace holds the weight of each flush.
#include "tests/support/pick_program.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::observe_weights_test {
namespace {

MethodProfile pick_of(const Profile& profile) {
  for (const auto& [key, m] : profile.methods) {
    if (m.name == "pick") return m;
  }
  return {};
}

struct Both {
  MethodProfile runtime, trace;
};

// Calls a method from `threads` threads, attached one after the other.
Both observe(const Options& o, int threads, uint64_t calls) {
  CollectingSink sink;
  Both both;
  {
    IrRuntime r(parse_or_die(kPick), o, &sink);
    for (int thread = 0; thread < threads; ++thread) {
      ThreadScope scope(*r.runtime);
      for (uint64_t i = 0; i < calls; ++i) EXPECT_TRUE(r.call("pick", {i % 3 == 0}).ok());
      r.runtime->flush();
    }
    both.runtime = pick_of(r.runtime->profile());
  }
  ProfileBuilder builder;
  for (const TraceEvent& e : sink.events) EXPECT_TRUE(builder.add(e).ok());
  both.trace = pick_of(builder.profile());
  return both;
}

Options in_baseline() {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kNever;
  return o;
}

TEST(ObserveWeights, squares_of_rates_that_adapt_are_those_of_the_trace) {
  const Both both = observe(in_baseline(), 1, 100'000);
  const MethodProfile& seen = both.runtime;
  ASSERT_GT(seen.sampled_calls, 0u);
  ASSERT_LT(seen.sampled_calls, seen.calls);
  // Cauchy-Schwarz: the sum of squares is at least as large as with equal weights. Half is enough
  // because the last calls are not flushed.
  const auto calls = static_cast<double>(seen.calls);
  const auto samples = static_cast<double>(seen.sampled_calls + seen.bursts);
  EXPECT_GE(static_cast<double>(seen.weight_squares), 0.5 * calls * calls / samples);
  EXPECT_EQ(both.trace.weight_squares, seen.weight_squares);
}

TEST(ObserveWeights, squares_of_threads_that_have_gone_stay) {
  Options o = in_baseline();
  o.adaptive = false;
  o.interval = 16;
  const Both both = observe(o, 3, 3000);
  const MethodProfile& seen = both.runtime;
  ASSERT_EQ(seen.calls, 9000u);
  ASSERT_GT(seen.sampled_calls, 0u);
  // Samples of each thread represent that thread's calls.
  const auto samples = static_cast<double>(seen.sampled_calls);
  EXPECT_NEAR(static_cast<double>(seen.weight_squares), 9000.0 * 9000 / samples,
              0.1 * 9000 * 9000 / samples);
  EXPECT_EQ(both.trace.weight_squares, seen.weight_squares);
}

TEST(ObserveWeights, samples_of_optimized_code_have_squares_too) {
  const Both both = observe(following(), 1, 300'000);
  const MethodProfile& seen = both.runtime;
  ASSERT_GT(seen.sampled_calls, 0u);
  // Each sample represents about as many calls as there are between two samples.
  const uint64_t least = (seen.calls - 100'000) / kPickInterval * kPickInterval * kPickInterval / 2;
  EXPECT_GT(seen.weight_squares, least);
  EXPECT_EQ(both.trace.weight_squares, seen.weight_squares);
}

}  // namespace
}  // namespace uptier::test::observe_weights_test
