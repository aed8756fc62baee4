// Estimates of a method that several threads call, scaled to the calls of all threads, and how
// often the intervals contain the truth. Seeded, without a clock.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "profile/algebra/rake.h"
#include "profile/data/estimate.h"

namespace uptier::profile::stream_sum_test {
namespace {

constexpr uint32_t kLeft = 2;  // the site of one of the two branches

struct Thread {
  uint64_t calls = 0;
  uint64_t samples = 0;
  Coverage coverage;
  Observed seen;
};

struct World {
  explicit World(uint64_t seed) : random(seed) {}

  double draw() { return std::uniform_real_distribution<double>(0, 1)(random); }

  // A thread whose calls go left with probability `p`. Gaps are geometric. From call
  // `sampled_until` on, nothing is sampled (the rate was lowered, or the method is known well
  // enough).
  Thread run(uint64_t calls, double p, uint64_t gap, uint64_t sampled_until, uint64_t window) {
    Thread t;
    t.calls = calls;
    Observed now;
    now.counts = {0, 0, 0};
    for (uint64_t call = 1; call <= calls; ++call) {
      const bool left = draw() < p;
      truth += left ? 1 : 0;
      if (call <= sampled_until && draw() * static_cast<double>(gap) < 1) {
        ++t.samples;
        ++now.counts[0];
        ++now.counts[left ? 1 : 2];
      }
      if (call % window == 0 || call == calls) {
        const uint64_t weight = t.coverage.weigh(t.samples, static_cast<double>(call));
        advance(t.seen, schema, now, weight);
      }
    }
    return t;
  }

  MethodProfile sum(const std::vector<Thread>& threads, bool one_countdown) {
    StreamSum streams(schema, draws, one_countdown);
    MethodProfile m;
    m.schema = schema;
    m.counts.resize(3);
    Observed all;
    all.counts.resize(3);
    all.estimates.resize(3);
    for (const Thread& t : threads) {
      Observed seen = t.seen;
      streams.add({t.calls, 0, t.samples, t.coverage.squares, t.coverage.covered, 32}, seen);
      for (size_t i = 0; i < seen.estimates.size(); ++i) {
        all.counts[i] += seen.counts[i];
        all.estimates[i] += seen.estimates[i];
      }
      m.calls += t.calls;
      m.sampled_calls += t.samples;
    }
    streams.finish(all);
    m.counts = all.counts;
    m.estimates = all.estimates;
    m.weight_squares = streams.squares();
    return m;
  }

  std::mt19937_64 random;
  Schema schema = Schema::block_schema(3, 1);
  std::vector<Draw> draws = {Draw::kCall, Draw::kCall, Draw::kCall};
  double truth = 0;
};

struct Tally {
  int held = 0, all = 0;
  double share() const { return static_cast<double>(held) / all; }

  void take(const World& world, const MethodProfile& m) {
    const std::optional<Estimate> left = m.estimate(SlotKind::kBlock, kLeft);
    if (!left) return;
    EXPECT_NEAR(m.estimate(SlotKind::kBlock, 1)->total, static_cast<double>(m.calls), 2);
    ++all;
    held += left->low <= world.truth && world.truth <= left->high ? 1 : 0;
  }
};

// Late threads find the method known, and take few samples or none.
TEST(StreamSum, intervals_hold_the_truth_where_some_threads_have_no_sample) {
  Tally tally;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    World world(seed);
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t) {
      const uint64_t until = world.random() % 3 == 0 ? 0 : world.random() % 20'000;
      threads.push_back(world.run(20'000, 0.3, 50, until, 2000));
    }
    tally.take(world, world.sum(threads, false));
  }
  EXPECT_GT(tally.all, 350);
  EXPECT_GE(tally.share(), 0.92) << tally.held << " of " << tally.all;
}

// Each thread samples all the time, but at its own rates, so the weights of samples differ widely.
TEST(StreamSum, intervals_hold_the_truth_where_threads_have_other_rates) {
  Tally tally;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    World world(seed + 1000);
    std::vector<Thread> threads;
    for (uint64_t gap : {20, 100, 1000, 5000}) {
      threads.push_back(world.run(20'000, 0.3, gap, 20'000, 5000));
    }
    tally.take(world, world.sum(threads, false));
  }
  EXPECT_GT(tally.all, 350);
  EXPECT_GE(tally.share(), 0.92) << tally.held << " of " << tally.all;
}

// One countdown for all threads: the number of calls attributed to each thread is random.
TEST(StreamSum, one_countdown_is_brought_to_the_calls_of_all_whoever_made_them) {
  Tally tally;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    World world(seed + 2000);
    std::vector<Thread> threads;
    uint64_t calls = 0;
    for (int t = 0; t < 4; ++t) {
      threads.push_back(world.run(10'000, 0.3, 50, 10'000, 10'000));
      calls += threads.back().calls;
    }
    for (size_t t = 0; t + 1 < threads.size(); ++t) {
      threads[t].calls = world.random() % 3 == 0 ? 0 : world.random() % 15'000 % calls;
      calls -= threads[t].calls;
    }
    threads.back().calls = calls;
    const MethodProfile m = world.sum(threads, true);
    EXPECT_EQ(m.calls, 40'000u);
    tally.take(world, m);
  }
  EXPECT_GE(tally.share(), 0.92) << tally.held << " of " << tally.all;
}

}  // namespace
}  // namespace uptier::profile::stream_sum_test
