// No loop takes more than the one around it.
#include "profile/data/loop_nest.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace uptier::profile::loop_nest_test {
namespace {

NestedLoop loop(double cycles, double half, double entries, uint32_t within) {
  return {{cycles, cycles - half, cycles + half}, entries, within};
}
constexpr uint32_t kOut = NestedLoop::kOutermost;

// The sums of children, and whether estimates are such.
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

// nbody's kick: 250 cycles around executions that are measured as 69 each, of which there are more.
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

// The body of a function stands behind its loops in lists.
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
