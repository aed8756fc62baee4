#include "tiering/compile/compile_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sampler/gap.h"

namespace uptier::tiering::queue_test {
namespace {

Plan plan(uint32_t method, Tier tier = Tier::kOptimized) {
  return {.method = MethodId(method), .tier = tier};
}

std::vector<uint32_t> drain(CompileQueue& q) {
  std::vector<uint32_t> order;
  while (auto p = q.pop()) order.push_back(p->method.index());
  return order;
}

TEST(CompileQueue, most_urgent_leaves_first) {
  CompileQueue q(10);
  q.push(plan(1), 5);
  q.push(plan(2), 50);
  q.push(plan(3), -7);
  q.push(plan(4), 1e18);
  EXPECT_EQ(q.size(), 4u);
  EXPECT_EQ(drain(q), (std::vector<uint32_t>{4, 2, 1, 3}));
  EXPECT_EQ(q.size(), 0u);
  EXPECT_FALSE(q.pop().has_value());
}

TEST(CompileQueue, equal_priorities_leave_in_the_order_of_arrival) {
  CompileQueue q(100);
  for (uint32_t m = 0; m < 20; ++m) q.push(plan(m), m % 2);
  std::vector<uint32_t> expected;
  for (uint32_t m = 1; m < 20; m += 2) expected.push_back(m);
  for (uint32_t m = 0; m < 20; m += 2) expected.push_back(m);
  EXPECT_EQ(drain(q), expected);
}

TEST(CompileQueue, full_queue_drops_the_least_urgent) {
  CompileQueue q(3);
  EXPECT_FALSE(q.push(plan(1), 10).has_value());
  EXPECT_FALSE(q.push(plan(2), 20).has_value());
  EXPECT_FALSE(q.push(plan(3), 30).has_value());
  EXPECT_EQ(q.push(plan(4), 40), plan(1)) << "the oldest was the least urgent";
  EXPECT_EQ(q.push(plan(5), 1), plan(5)) << "the new one is";
  EXPECT_EQ(q.push(plan(6), 20), plan(6)) << "among equals the last to come";
  EXPECT_EQ(q.size(), 3u);
  EXPECT_EQ(drain(q), (std::vector<uint32_t>{4, 3, 2}));
}

TEST(CompileQueue, plan_comes_out_as_it_went_in) {
  CompileQueue q(3);
  const Plan in{.method = MethodId(9),
                .tier = Tier::kOptimized,
                .copy = Copy::kInstrumented,
                .osr_loop = LoopId(4),
                .use_profile = true};
  q.push(in, 1);
  EXPECT_EQ(q.pop(), in);
}

TEST(CompileQueue, remove_takes_every_request_of_a_method) {
  CompileQueue q(10);
  q.push(plan(1), 1);
  q.push(plan(2), 2);
  q.push(plan(1, Tier::kBaseline), 3);
  q.push(plan(3), 4);
  q.remove(MethodId(1));
  EXPECT_EQ(q.size(), 2u);
  q.remove(MethodId(77));
  EXPECT_EQ(drain(q), (std::vector<uint32_t>{3, 2}));
}

TEST(CompileQueue, agrees_with_a_sorted_list) {
  constexpr size_t kCapacity = 16;
  struct Entry {
    uint32_t method;
    double priority;
  };
  CompileQueue q(kCapacity);
  std::vector<Entry> list;  // most urgent first, equals in order of arrival
  uint64_t random = 6;
  for (uint32_t step = 0; step < 50'000; ++step) {
    if (sampler::next_random(random) % 3 == 0) {
      auto p = q.pop();
      ASSERT_EQ(p.has_value(), !list.empty());
      if (!p) continue;
      ASSERT_EQ(p->method.index(), list.front().method);
      list.erase(list.begin());
      continue;
    }
    auto priority = static_cast<double>(sampler::next_random(random) % 8);
    auto behind = std::find_if(list.begin(), list.end(),
                               [&](const Entry& e) { return e.priority < priority; });
    list.insert(behind, {step, priority});
    auto dropped = q.push(plan(step), priority);
    ASSERT_EQ(dropped.has_value(), list.size() > kCapacity);
    if (!dropped) continue;
    ASSERT_EQ(dropped->method.index(), list.back().method);
    list.pop_back();
  }
}

}  // namespace
}  // namespace uptier::tiering::queue_test
