// Code-cache compaction: when code is moved together, as tables of snapshots.
#include "tiering/policy/compaction_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace uptier::tiering::relay_plan_test {
namespace {

constexpr uint32_t kLines = 64;  // per page

// `count` bodies of `lines` lines, each at the start of its own page.
RelaySnapshot one_a_page(uint32_t count, uint32_t lines) {
  RelaySnapshot s;
  s.most_bytes = 1 << 20;
  for (uint32_t n = 0; n < count; ++n) {
    s.bodies.push_back({.hot_line = n * kLines, .hot_lines = lines});
    s.lines_used.push_back(static_cast<uint8_t>(lines));
  }
  return s;
}

std::vector<uint32_t> sorted(std::vector<uint32_t> v) {
  std::ranges::sort(v);
  return v;
}

TEST(RelayPlan, what_lies_between_holes_is_joined) {
  RelaySnapshot s = one_a_page(32, 16);
  RelayPlan p = plan_relay(s, {.holes = 0.5});
  EXPECT_EQ(p.why, RelayWhy::kHoles);
  EXPECT_EQ(p.order.size(), 32u);
  EXPECT_EQ(p.hot_lines, 32u * 16);
  EXPECT_EQ(p.cold_lines, 0u);
  EXPECT_EQ(p.pages_before, 32u);
  EXPECT_EQ(p.pages_after, 8u);
  EXPECT_DOUBLE_EQ(p.holes, 0.75);
  EXPECT_EQ(p.text().rfind("holes: 32 bodies, 32768 bytes; pages with code 32 -> 8 ", 0), 0u)
      << p.text();
}

TEST(RelayPlan, fewer_holes_than_asked_for_stay) {
  EXPECT_EQ(plan_relay(one_a_page(32, 16), {.holes = 0.76}).why, RelayWhy::kNone);
  EXPECT_EQ(plan_relay(one_a_page(32, 31), {.holes = 0.5}).why, RelayWhy::kHoles);
  EXPECT_EQ(plan_relay(one_a_page(32, 33), {.holes = 0.5}).why, RelayWhy::kNone);
  EXPECT_EQ(plan_relay(one_a_page(kLeastPages - 1, 8), {.holes = 0.5}).why, RelayWhy::kNone)
      << "few pages are not worth it";
}

TEST(RelayPlan, full_pages_are_left_alone) {
  RelaySnapshot s = one_a_page(32, 8);
  s.bodies[3].hot_lines = s.lines_used[3] = 60;
  RelayPlan p = plan_relay(s, {.holes = 0.5});
  EXPECT_EQ(p.why, RelayWhy::kHoles);
  EXPECT_EQ(p.order.size(), 31u);
  EXPECT_EQ(std::ranges::count(p.order, 3u), 0);
  EXPECT_EQ(p.pages_after, 1u + 4) << "248 lines fill four pages";
}

TEST(RelayPlan, pages_with_code_that_stays_are_not_counted_as_freed) {
  // Half of the used lines of each page belong to code that cannot move.
  RelaySnapshot s = one_a_page(32, 8);
  std::ranges::fill(s.lines_used, uint8_t{16});
  EXPECT_EQ(plan_relay(s, {.holes = 0.5}).why, RelayWhy::kNone) << "it would free nothing";
}

TEST(RelayPlan, cold_parts_count_and_move_as_well) {
  RelaySnapshot s = one_a_page(32, 8);
  for (uint32_t n = 0; n < 32; ++n) {
    s.bodies[n].cold_line = (32 + n) * kLines + 60;
    s.bodies[n].cold_lines = 4;
    s.lines_used.push_back(4);
  }
  RelayPlan p = plan_relay(s, {.holes = 0.5});
  EXPECT_EQ(p.pages_before, 64u);
  EXPECT_EQ(p.pages_after, 4u + 2);
  EXPECT_EQ(p.cold_lines, 32u * 4);
}

TEST(RelayPlan, no_more_moves_than_may_and_the_emptiest_pages_go_first) {
  RelaySnapshot s = one_a_page(64, 16);
  for (uint32_t n = 40; n < 64; ++n) s.bodies[n].hot_lines = s.lines_used[n] = 4;
  s.most_bytes = 24 * 4 * 64 + 3 * 16 * 64 + 63;
  RelayPlan p = plan_relay(s, {.holes = 0.5});
  std::vector<uint32_t> wanted(24);
  std::iota(wanted.begin(), wanted.end(), 40u);
  wanted.insert(wanted.begin(), {0, 1, 2});
  EXPECT_EQ(sorted(p.order), wanted);
  s.most_bytes = 0;
  EXPECT_EQ(plan_relay(s, {.holes = 0.5}).why, RelayWhy::kNone);
}

TEST(RelayPlan, when_room_is_wanting_fewer_pages_and_holes_will_do) {
  RelaySnapshot s = one_a_page(8, 24);
  EXPECT_EQ(plan_relay(s, {.holes = 0.9}).why, RelayWhy::kNone);
  s.room_wanted = true;
  RelayPlan p = plan_relay(s, {.holes = 0.9});
  EXPECT_EQ(p.why, RelayWhy::kRoom);
  EXPECT_EQ(p.pages_after, 3u);
  s = one_a_page(8, 47);
  s.room_wanted = true;
  EXPECT_EQ(plan_relay(s, {.holes = 0.9}).why, RelayWhy::kNone) << "8 pages would become 6";
}

// Code that one plan has moved together is not moved by the next.
TEST(RelayPlan, moved_code_is_not_moved_again) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    RelaySnapshot s = one_a_page(60, 1 + random() % 16);
    RelayPlan p = plan_relay(s, {.holes = 0.5});
    ASSERT_EQ(p.why, RelayWhy::kHoles);
    uint32_t line = 0;
    std::vector<uint8_t> used((p.hot_lines + kLines - 1) / kLines);
    for (uint32_t n : p.order) {
      s.bodies[n].hot_line = line;
      for (uint32_t i = 0; i < s.bodies[n].hot_lines; ++i) ++used[line++ / kLines];
    }
    s.lines_used = used;
    EXPECT_EQ(plan_relay(s, {.holes = 0.5}).why, RelayWhy::kNone) << "round " << round;
  }
}

TEST(RelayPlan, orders_are_permutations_and_the_same_each_time) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    RelaySnapshot s = one_a_page(1 + random() % 80, 1 + random() % 40);
    RelayPlan all = relay_all(s);
    std::vector<uint32_t> wanted(s.bodies.size());
    std::iota(wanted.begin(), wanted.end(), 0u);
    EXPECT_EQ(sorted(all.order), wanted);
    EXPECT_EQ(all.order, relay_all(s).order);
    RelayPlan p = plan_relay(s, {.holes = 0.3});
    auto moved = sorted(p.order);
    EXPECT_EQ(std::ranges::adjacent_find(moved), moved.end());
    EXPECT_EQ(p.text(), plan_relay(s, {.holes = 0.3}).text());
  }
  EXPECT_TRUE(relay_all({}).order.empty());
  EXPECT_EQ(plan_relay({}, {}).why, RelayWhy::kNone);
}

}  // namespace
}  // namespace uptier::tiering::relay_plan_test
