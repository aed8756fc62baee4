// When the estimates of a stream are scaled to the known number of calls.
#include <gtest/gtest.h>

#include "sampler/site_tables.h"
#include "tests/support/runtime_host.h"
#include "tiering/observe/observer.h"

namespace uptier::tiering::observer_estimates_test {
namespace {

constexpr const char* kTwoBlocks = R"(
func @f(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  return v0
b2:
  v1 = const.i32 1
  return v1
}
)";
constexpr const char* kOneBlock = R"(
func @f(i32) -> i32 {
b0(v0: i32):
  return v0
}
)";

// A method that a thread has called 1,000 times, with 10 samples: each of them entered the body,
// and represented 16 calls when it was taken.
struct Sampled {
  explicit Sampled(const Options& o = {}, const char* body = kTwoBlocks) : options(o) {
    jit::Module parsed = test::parse_or_die(body);
    m.probes.put(ProbeSet(parsed.functions[0], ProbeChoice::from(options)));
    m.shape.own().block_weights.assign(parsed.functions[0].block_sites, 1);
    stream.calls = 1000;
    stream.sampled_calls = 10;
    stream.seen.counts.assign(m.probes->schema().words(), 0);
    stream.seen.estimates = stream.seen.counts;
    stream.seen.counts[0] = 10;
    stream.seen.estimates[0] = 160;
  }
  uint64_t entries() { return observer.estimates.profile_of(m).estimates[0]; }

  Host host;
  Method m{MethodId(0), 1, host, {}};
  Options options, live = options;
  sampler::Ladder ladder;
  Events events;
  Threads threads{16};
  TallyWords tally_words{threads};
  Observer observer{options, live, ladder, nullptr, nullptr, events, tally_words};
  Stream& stream = m.flushed.own().streams[1];
};

TEST(ObserverEstimates, are_brought_to_all_calls_of_the_thread) {
  EXPECT_EQ(Sampled().entries(), 1000u);
  Options fixed;
  fixed.adaptive = false;
  EXPECT_EQ(Sampled(fixed).entries(), 1000u) << "before there was a copy none was sampled";
}

TEST(ObserverEstimates, of_exact_counts_stay) {
  Options exact;
  exact.adaptive = false;
  exact.interval = 1;
  EXPECT_EQ(Sampled(exact).entries(), 160u);
}

TEST(ObserverEstimates, of_threads_that_have_gone_were_brought_to_all_before) {
  Sampled s;
  s.stream.ended = true;
  EXPECT_EQ(s.entries(), 160u);
}

TEST(ObserverEstimates, that_share_the_calls_with_optimized_code_stay) {
  Sampled s;
  s.m.flushed.own().streams[1 | kOptimizedStream];
  EXPECT_EQ(s.entries(), 160u);
}

TEST(ObserverEstimates, of_a_body_of_one_block_are_its_calls_as_they_are) {
  Sampled s({}, kOneBlock);
  ASSERT_TRUE(s.m.probes->counts_by_calls());
  EXPECT_EQ(s.entries(), 160u);
}

TEST(ObserverEstimates,
     where_some_calls_ran_code_that_cannot_count_them_are_brought_to_all_as_a_whole) {
  Sampled s;
  s.m.only_baseline = false;
  EXPECT_EQ(s.entries(), 160u) << "nobody knows what the samples covered";
  s.stream.coverage.end_window(10, 16);
  EXPECT_EQ(s.entries(), 1000u) << "160 of 1,000 calls";
}

TEST(ObserverEstimates, of_shared_counters_are_brought_to_the_calls_of_all_threads) {
  Options shared;
  shared.counters = CounterMode::kInterlocked;
  Sampled s(shared);
  ASSERT_TRUE(s.m.probes->shared());
  s.m.flushed.own().streams[2].calls = 500;
  EXPECT_EQ(s.entries(), 1500u);
}

TEST(ObserverEstimates, of_threads_without_a_sample_are_taken_for_those_of_the_others) {
  Sampled s;
  s.m.flushed.own().streams[2].calls = 3000;
  EXPECT_EQ(s.entries(), 4000u);
  const MethodProfile p = s.observer.estimates.profile_of(s.m);
  EXPECT_EQ(p.calls, 4000u);
  EXPECT_EQ(p.estimate(SlotKind::kBlock, 1)->total, 4000);
}

TEST(ObserverEstimates, of_threads_that_went_without_a_sample_are_not_lost) {
  for (const uint32_t first : {1u, 2u}) {
    Sampled s;
    s.m.flushed.own().streams[2].calls = 3000;
    s.observer.streams.end(s.m, first);
    EXPECT_EQ(s.entries(), 4000u);
    s.observer.streams.end(s.m, 3 - first);
    EXPECT_EQ(s.entries(), 4000u);
    EXPECT_EQ(s.m.flushed.own().streams.size(), 1u);
  }
}

TEST(ObserverEstimates, of_no_sample_at_all_are_not_made_up) {
  Sampled s;
  s.stream.sampled_calls = 0;
  s.stream.seen = {};
  s.m.flushed.own().streams[2].calls = 3000;
  EXPECT_EQ(s.entries(), 0u);
  EXPECT_EQ(s.observer.estimates.profile_of(s.m).estimate(SlotKind::kBlock, 1), std::nullopt);
}

// With one countdown for all threads, the calls of each thread are unknown: the calls attributed to
// a thread may be fewer than its samples represent, or zero.
TEST(ObserverEstimates, of_one_countdown_for_all_threads_are_brought_to_the_calls_of_all) {
  Options exact;
  exact.gap = GapMode::kExact;
  exact.adaptive = false;
  for (const uint64_t attributed : {0u, 100u, 1000u, 5000u}) {
    Sampled s(exact);
    s.stream.calls = attributed;
    Stream& other = s.m.flushed.own().streams[2];
    other = s.stream;
    other.calls = 5000 - attributed;
    EXPECT_EQ(s.entries(), 5000u) << attributed;
    s.observer.streams.end(s.m, 2);
    EXPECT_EQ(s.entries(), 5000u) << attributed;
    s.observer.streams.end(s.m, 1);
    EXPECT_EQ(s.entries(), 5000u) << attributed;
  }
}

// Counts that a table moves to `other` are not taken for calls of other callees.
TEST(ObserverEstimates, of_targets_stay_when_a_table_forgets) {
  jit::Module parsed = test::parse_or_die(R"(
func @f(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call_indirect.(i32)->i32 v0(v1)
  return v2
}
)");
  Options options;
  options.adaptive = false;
  options.recent = true;
  Host host;
  Method m(MethodId(0), 1, host, {});
  sampler::Ladder ladder;
  Events events;
  Threads threads(16);
  TallyWords tally_words(threads);
  Observer observer(options, options, ladder, nullptr, nullptr, events, tally_words);
  observer.directory.set_method_at([](uint64_t stub) {
    return MethodKey{1, static_cast<uint32_t>(stub)};
  });
  m.shape.own().block_weights = {1};
  m.probes.put(ProbeSet(parsed.functions[0], ProbeChoice::from(options)));
  TargetTable t = m.probes->target_tables(false).at(0);
  ASSERT_TRUE(t.shape.recent);
  constexpr uint64_t kOften = 7, kLater = 8;
  std::vector<uint64_t> slab(m.probes->slab_words());
  sampler::Note n;
  n.kind = sampler::NoteKind::kFlushCalls;
  n.ages = 1;
  auto flush = [&](uint64_t often, uint64_t later, uint32_t interval) {
    sampler::count_in_table(&slab[t.word], t.shape, kOften);
    slab[t.word + t.shape.entries_at() + 1] += often - 1;  // as compiled code does with the table's
                                                           // first entry
    for (uint64_t i = 0; i < later; ++i) sampler::count_in_table(&slab[t.word], t.shape, kLater);
    n.calls = n.sampled_calls += often + later;
    n.rate = sampler::Rate::sampled(sampler::Ladder::power_below(interval), 1).word;
    observer.streams.take(m, 1, n, slab);
    sampler::age_table(&slab[t.word], t.shape);
  };
  flush(100, 0, 16);
  flush(20, 40, 1);
  const profile::Observed& seen = m.flushed->streams.at(1).seen;
  const Table& table = seen.tables.at({SlotKind::kCallTarget, t.site});
  uint32_t other = m.probes->schema().find(SlotKind::kCallTarget, t.site)->word;
  // Half of the first window was forgotten; the second is too short for that.
  EXPECT_EQ(table.at({1, kOften}).estimate, 100u * 16 / 2 + 20);
  EXPECT_EQ(table.at({1, kLater}).estimate, 40u);
  EXPECT_EQ(seen.estimates[other], 100u * 16 / 2);
}

}  // namespace
}  // namespace uptier::tiering::observer_estimates_test
