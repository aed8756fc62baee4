// No loop takes more time than the loop around it.
#include "profile/data/loop_nest.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "uptier/profile.h"

namespace uptier::profile::loop_nest_test {
namespace {

NestedLoop loop(double cycles, double half, double entries, uint32_t within) {
  return {{cycles, cycles - half, cycles + half}, entries, within};
}
constexpr uint32_t kOut = NestedLoop::kOutermost;

// Checks that no loop takes less than the sum of its children, and that estimates lie within their
// bounds.
void expect_lawful(const std::vector<NestedLoop>& loops) {
  std::vector<double> inside(loops.size());
  for (const NestedLoop& l : loops) {
    if (l.within != kOut) inside[l.within] += l.cycles.total;
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    const Estimate& c = loops[i].cycles;
    EXPECT_LE(inside[i], c.total * (1 + 1e-12)) << i;
    EXPECT_LE(0, c.low);
    EXPECT_LE(c.low, c.total);
    EXPECT_LE(c.total, c.high);
  }
}

// nbody's kick: 250 cycles around more executions, which are measured as 69 cycles each.
TEST(LoopNest, short_loops_inside_give_way_to_the_one_around_them) {
  std::vector<NestedLoop> loops = {loop(250e6, 5e6, 1e6, kOut), loop(430e6, 9e6, 6e6, 0)};
  settle_nest(loops);
  expect_lawful(loops);
  EXPECT_NEAR(loops[0].cycles.total, 250e6, 10e6) << "it has a sixth of the executions";
  EXPECT_GE(loops[0].cycles.total, 250e6);
  EXPECT_GE(loops[1].cycles.high, 439e6) << "what was measured is still in the interval";
  EXPECT_LE(loops[1].cycles.low, 250e6);
}

TEST(LoopNest, what_obeys_the_law_is_left_alone) {
  std::vector<NestedLoop> loops = {loop(100, 5, 1, kOut), loop(60, 5, 10, 0), loop(40, 1, 9, 0),
                                   loop(0, 0, 0, 2)};
  const std::vector<NestedLoop> before = loops;
  settle_nest(loops);
  for (size_t i = 0; i < loops.size(); ++i) EXPECT_EQ(loops[i].cycles, before[i].cycles);
}

TEST(LoopNest, who_is_known_better_moves_less) {
  std::vector<NestedLoop> loops = {loop(1000, 500, 1, kOut), loop(1400, 1, 1, 0)};
  settle_nest(loops, 0);
  expect_lawful(loops);
  EXPECT_NEAR(loops[1].cycles.total, 1400, 1);
}

// Random words of loops as in a profile; executions take `each` cycles or more.
MethodProfile timed_loops(std::mt19937_64& random, uint32_t loops, uint64_t each) {
  MethodProfile m;
  for (SiteId site = 1; site <= loops; ++site) m.schema.add(SlotKind::kLoop, site);
  m.counts.resize(m.schema.words());
  for (const Slot& slot : m.schema.slots) {
    uint64_t* w = &m.counts[slot.word];
    const uint64_t timed = 1 + random() % 50;
    w[slot_word::kLoopTimed] = timed;
    w[slot_word::kLoopEntries] = timed * (1 + random() % 4);
    w[slot_word::kLoopTimedIterations] = timed * 5;
    w[slot_word::kLoopIterations] = w[slot_word::kLoopEntries] * 5;
    for (uint64_t n = 0; n < timed; ++n) {
      const uint64_t cycles = each + random() % 1000;
      w[slot_word::kLoopCycles] += cycles;
      w[slot_word::kLoopSquares] += cycles * cycles;
    }
    w[slot_word::kLoopExclusiveCycles] = w[slot_word::kLoopCycles];
  }
  m.weigh(1 + random() % 9);
  m.calls = m.sampled_calls = 100;
  return m;
}

// Profiles that leave the process have the settled numbers, and so do their sums.
TEST(LoopNest, words_of_a_profile_obey_the_law_and_so_does_a_merge) {
  std::mt19937_64 random(3);
  const std::vector<LoopPlace> places = {{1, kOut}, {2, 0}, {3, 0}, {4, 2}};
  const auto expect_lawful_words = [](const MethodProfile& m) {
    const auto cycles = [&](SiteId site) { return m.loop_cycles(site)->total; };
    EXPECT_LE(cycles(2) + cycles(3), cycles(1) * (1 + 1e-12));
    EXPECT_LE(cycles(4), cycles(3));
    const auto word = [&](SiteId site, uint32_t w) {
      return m.estimates[m.schema.find(SlotKind::kLoop, site)->word + w];
    };
    for (SiteId site = 1; site <= 4; ++site) {
      EXPECT_EQ(word(site, slot_word::kLoopTimed), word(site, slot_word::kLoopEntries));
    }
    EXPECT_EQ(word(1, slot_word::kLoopExclusiveCycles), word(1, slot_word::kLoopCycles) -
                                                            word(2, slot_word::kLoopCycles) -
                                                            word(3, slot_word::kLoopCycles));
    EXPECT_TRUE(m.check().ok());
  };
  size_t moved = 0;
  for (int round = 0; round < 300; ++round) {
    Profile sum;
    for (int part = 0; part < 3; ++part) {
      MethodProfile m = timed_loops(random, 4, 1 + random() % 2000);
      std::vector<NestedLoop> expected;
      for (const LoopPlace& p : places) {
        const Slot* slot = m.schema.find(SlotKind::kLoop, p.site);
        expected.push_back(
            {*m.loop_cycles(p.site), static_cast<double>(m.estimates[slot->word]), p.within});
      }
      const std::vector<NestedLoop> measured = expected;
      settle_nest(expected);
      settle_loops(m, places);
      for (size_t i = 0; i < places.size(); ++i) {
        const Estimate e = *m.loop_cycles(places[i].site);
        EXPECT_NEAR(e.total, expected[i].cycles.total, 1);
        moved += expected[i].cycles != measured[i].cycles ? 1 : 0;
        EXPECT_GE(e.high + 1, expected[i].cycles.total);
      }
      expect_lawful_words(m);
      const MethodProfile once = m;
      settle_loops(m, places);
      EXPECT_NEAR(m.loop_cycles(2)->total, once.loop_cycles(2)->total, 1) << "it stays settled";
      Profile one;
      one.methods.emplace(m.key, std::move(m));
      merge(sum, one);
    }
    expect_lawful_words(sum.methods.begin()->second);
  }
  EXPECT_GT(moved, 300u);
}

// Settling a loop must not narrow its interval.
TEST(LoopNest, intervals_of_words_hold_what_was_measured) {
  std::mt19937_64 random(5);
  MethodProfile m = timed_loops(random, 2, 1000);
  for (uint32_t w : {slot_word::kLoopEntries, slot_word::kLoopTimed}) {
    EXPECT_GT(m.counts[w], 0u);
  }
  m.estimates[slot_word::kLoopCycles] /= 2;  // so the outer one takes less than the inner one
  m.estimates[m.schema.slots[1].word + slot_word::kLoopEntries] *= 4;
  const Estimate before = *m.loop_cycles(2);
  settle_loops(m, std::vector<LoopPlace>{{1, kOut}, {2, 0}});
  const Estimate after = *m.loop_cycles(2);
  ASSERT_LT(after.total, before.total);
  EXPECT_GE(after.high, before.high * 0.999);
}

TEST(LoopNest, any_nest_is_settled_and_stays_so) {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    std::vector<NestedLoop> loops;
    const size_t count = 1 + below(12);
    for (size_t i = 0; i < count; ++i) {
      const auto cycles = static_cast<double>(below(4) == 0 ? 0 : random() >> below(64));
      const uint32_t within = i == 0 || below(4) == 0 ? kOut : static_cast<uint32_t>(below(i));
      loops.push_back(loop(cycles, cycles * static_cast<double>(below(100)) / 100,
                           static_cast<double>(below(1000)), within));
    }
    settle_nest(loops);
    expect_lawful(loops);
    std::vector<NestedLoop> again = loops;
    settle_nest(again);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(again[i].cycles.total, loops[i].cycles.total, 1e-6 * (1 + loops[i].cycles.total));
    }
  }
}

// In lists, the body of a function comes after its loops.
TEST(LoopNest, order_of_the_list_does_not_matter) {
  std::vector<NestedLoop> loops = {loop(80, 1, 1, 2), loop(70, 1, 1, 0), loop(50, 1, 1, kOut)};
  settle_nest(loops);
  expect_lawful(loops);
}

TEST(LoopNest, a_circle_ends) {
  std::vector<NestedLoop> loops = {loop(80, 1, 1, 1), loop(70, 1, 1, 0)};
  settle_nest(loops);
}

}  // namespace
}  // namespace uptier::profile::loop_nest_test
