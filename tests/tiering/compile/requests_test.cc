// Requests: a method remembers which code it has requested.
#include "tiering/compile/requests.h"

#include <gtest/gtest.h>

#include "tiering/events/loss_counts.h"

namespace uptier::tiering::requests_test {
namespace {

class RequestsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(methods_.reserve(4));
    for (uint32_t i = 0; i < 4; ++i) {
      auto m = std::make_unique<Method>(MethodId(i), i + 1, host_, MethodInfo());
      m->shape.put(std::make_unique<MethodShape>(1));
      methods_.put(std::move(m));
    }
  }
  Method& method(uint32_t i) { return methods_.at(i); }
  static Plan optimized(uint32_t i) { return {.method = MethodId(i), .tier = Tier::kOptimized}; }
  static Plan for_loop(uint32_t i) {
    Plan p = optimized(i);
    p.osr_loop = LoopId(0);
    return p;
  }

  Host host_;
  MethodTable methods_;
  Events events_;
};

TEST_F(RequestsTest, a_method_knows_what_it_has_asked_for_until_that_is_done) {
  Requests r(8, methods_, events_);
  r.add(method(0), optimized(0), 1);
  r.add(method(0), for_loop(0), 2);
  EXPECT_TRUE(method(0).optimized_requested);
  EXPECT_TRUE(method(0).shape->osr_requested[0]);
  method(0).shape->osr_asked[0] = true;
  r.done(method(0), *r.pop());
  EXPECT_FALSE(method(0).shape->osr_requested[0]);
  EXPECT_FALSE(method(0).shape->osr_asked[0]);
  EXPECT_TRUE(method(0).optimized_requested);
  r.done(method(0), *r.pop());
  EXPECT_FALSE(method(0).optimized_requested);
}

TEST_F(RequestsTest, what_is_dropped_for_want_of_room_is_counted_and_may_be_asked_for_again) {
  LossCounts losses;
  events_.listen(losses, LossCounts::kHears);
  Requests r(1, methods_, events_);
  r.add(method(0), optimized(0), 1);
  r.add(method(1), optimized(1), 2);
  EXPECT_EQ(losses.counts().requests_dropped, 1u);
  EXPECT_FALSE(method(0).optimized_requested);
  EXPECT_TRUE(method(1).optimized_requested);
  EXPECT_EQ(r.size(), 1u);
}

TEST_F(RequestsTest, copies_may_be_asked_for_again_when_they_are_done) {
  Requests r(8, methods_, events_);
  Plan copy{.method = MethodId(0), .copy = Copy::kInstrumented};
  method(0).copy_asked = true;
  r.done(method(0), copy);
  EXPECT_FALSE(method(0).copy_asked);
  copy.tier = Tier::kOptimized;
  method(0).copy_asked = true;
  method(0).optimizing.own().copy_expected = true;
  r.done(method(0), copy);
  EXPECT_FALSE(method(0).optimizing->copy_expected);
  EXPECT_TRUE(method(0).copy_asked);
}

TEST_F(RequestsTest, nothing_is_queued_for_a_method_that_was_removed) {
  Requests r(8, methods_, events_);
  method(0).removed = true;
  r.add(method(0), optimized(0), 1);
  EXPECT_EQ(r.size(), 0u);
  EXPECT_FALSE(method(0).optimized_requested);
}

}  // namespace
}  // namespace uptier::tiering::requests_test
