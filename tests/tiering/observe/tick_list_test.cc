// TickList: which methods a tick looks at.
#include "tiering/control/tick_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace uptier::tiering::tick_list_test {
namespace {

constexpr auto kMany = static_cast<uint32_t>(TickList::kFew) + 100;

TickList list_of(uint32_t methods) {
  TickList list;
  for (uint32_t m = 0; m < methods; ++m) list.add(m);
  return list;
}

// Ticks once; methods in `busy` have been active. Returns the methods that were looked at, in
// order.
std::vector<uint32_t> tick(TickList& list, const std::set<uint32_t>& busy) {
  std::vector<uint32_t> seen;
  list.tick([&](uint32_t m) {
    seen.push_back(m);
    return busy.contains(m);
  });
  return seen;
}

void let_sleep(TickList& list, const std::set<uint32_t>& busy) {
  for (uint32_t n = 0; n < TickList::kBusy; ++n) tick(list, busy);
}

TEST(TickList, few_methods_are_all_looked_at_each_time) {
  TickList list = list_of(TickList::kFew);
  let_sleep(list, {});
  for (int n = 0; n < 40; ++n) EXPECT_EQ(tick(list, {}).size(), TickList::kFew);
}

TEST(TickList, busy_methods_of_many_are_looked_at_each_time) {
  TickList list = list_of(kMany);
  let_sleep(list, {3, 300});
  for (int n = 0; n < 40; ++n) {
    std::vector<uint32_t> seen = tick(list, {3, 300});
    EXPECT_TRUE(std::ranges::binary_search(seen, 3u) && std::ranges::binary_search(seen, 300u));
  }
}

TEST(TickList, method_stays_busy_for_some_looks_that_find_nothing) {
  TickList list = list_of(kMany);
  for (uint32_t n = 0; n < TickList::kBusy; ++n) EXPECT_EQ(tick(list, {}).size(), kMany);
  EXPECT_LT(tick(list, {}).size(), kMany / 8);
}

TEST(TickList, idle_methods_of_many_take_turns) {
  TickList list = list_of(kMany);
  let_sleep(list, {});
  std::vector<uint32_t> looks(kMany);
  for (uint32_t n = 0; n < TickList::kTurns; ++n) {
    for (uint32_t m : tick(list, {})) ++looks[m];
  }
  EXPECT_EQ(looks, std::vector<uint32_t>(kMany, 1));
}

TEST(TickList, method_that_wakes_up_is_seen_within_a_round_and_busy_from_then_on) {
  TickList list = list_of(kMany);
  let_sleep(list, {});
  uint32_t ticks = 1;
  while (ticks < 100 && !std::ranges::binary_search(tick(list, {200}), 200u)) ++ticks;
  EXPECT_LE(ticks, TickList::kTurns);
  for (uint32_t n = 0; n < TickList::kBusy; ++n) {
    EXPECT_TRUE(std::ranges::binary_search(tick(list, {}), 200u));
  }
}

TEST(TickList, erased_method_is_looked_at_no_more) {
  TickList list = list_of(5);
  list.erase(2);
  EXPECT_EQ(tick(list, {}), (std::vector<uint32_t>{0, 1, 3, 4}));
  list.add(2);
  EXPECT_EQ(tick(list, {}), (std::vector<uint32_t>{0, 1, 3, 4, 2}));
}

}  // namespace
}  // namespace uptier::tiering::tick_list_test
