// When newer code is made for frames of old code.
#include "tiering/control/newer_code.h"
#include "tiering/base/clock.h"

#include "tests/support/owners.h"

namespace uptier::tiering::newer_code_test {
namespace {

struct Newer : test::Owners {
  explicit Newer(const Options& o) : Owners(o) { describe_loops(0, 2); }
  static Options by_no_clock() {
    Options o;
    o.measure_rates = false;
    return o;
  }
  // A frame of old code is at the second loop and has answered the poll.
  void want() {
    method().shape->osr_asked[1] = true;
    newer.want(method(), 1);
  }

  NewerCode newer{options, policy, system, observer, requests, frames};
};

TEST(NewerCode, is_asked_for_at_once_where_no_clock_decides) {
  Newer n(Newer::by_no_clock());
  n.want();
  ASSERT_EQ(n.requests.size(), 1u);
  Plan plan = *n.requests.pop();
  EXPECT_EQ(plan.tier, Tier::kOptimized);
  EXPECT_EQ(plan.osr_loop, LoopId(1));
  EXPECT_FALSE(plan.use_profile) << "nothing was seen";
  EXPECT_TRUE(n.method().shape->osr_asked[1]) << "until it is done";
  EXPECT_EQ(n.logged(), std::vector<std::string>{"osr_out"});
}

TEST(NewerCode, waits_while_other_code_is_made_for_a_loop_of_the_method) {
  Newer n(Newer::by_no_clock());
  n.method().shape.own().osr_requested[0] = true;
  n.want();
  EXPECT_EQ(n.requests.size(), 0u);
  EXPECT_TRUE(n.frames.wait());
  n.newer.want_if_due();
  EXPECT_EQ(n.requests.size(), 0u);
  n.method().shape.own().osr_requested[0] = false;
  n.newer.want_if_due();
  EXPECT_EQ(n.requests.size(), 1u);
  EXPECT_FALSE(n.frames.wait());
}

TEST(NewerCode, waits_until_the_newest_has_been_there_for_ten_times_as_long_as_it_took_to_compile) {
  Newer n{Options()};
  Version &calls = n.add(0, Tier::kOptimized), &loop = n.add(0, Tier::kOptimized);
  n.method().optimized = &calls;
  n.method().shape->osr[0] = &loop;
  loop.installed_ns = now_ns();
  loop.compile_ns = 3'600'000'000'000;
  n.want();
  EXPECT_EQ(n.requests.size(), 0u);
  EXPECT_TRUE(n.frames.wait());
  loop.compile_ns = 0;
  n.newer.want(n.method(), 1);
  EXPECT_EQ(n.requests.size(), 1u);
}

TEST(NewerCode, does_not_wait_for_a_time_where_no_clock_decides) {
  Newer n(Newer::by_no_clock());
  Version& calls = n.add(0, Tier::kOptimized);
  n.method().optimized = &calls;
  calls.installed_ns = now_ns();
  calls.compile_ns = 3'600'000'000'000;
  n.want();
  EXPECT_EQ(n.requests.size(), 1u);
}

TEST(NewerCode, is_not_made_for_frames_that_have_found_another_way) {
  Newer n(Newer::by_no_clock());
  n.method().shape.own().osr_requested[0] = true;
  n.want();
  n.method().shape.own().osr_requested[0] = false;
  n.method().shape.own().osr_outs = 1;
  n.newer.want_if_due();
  EXPECT_EQ(n.requests.size(), 0u);
  EXPECT_FALSE(n.method().shape->osr_asked[1]) << "who comes there later asks again";
}

TEST(NewerCode, is_not_made_of_what_cannot_be_optimized_or_has_been_made_too_often) {
  Newer n(Newer::by_no_clock());
  Method& m = n.method();
  auto refused = [&] {
    n.want();
    bool none = n.requests.size() == 0 && !n.frames.wait() && !m.shape->osr_asked[1];
    return none;
  };
  for (bool* why : {&m.removed, &m.guard_banned, &m.optimize_failed}) {
    *why = true;
    EXPECT_TRUE(refused());
    *why = false;
  }
  m.shape.own().osr_versions[1] = n.policy.max_recompiles;
  EXPECT_TRUE(refused());
  m.shape.own().osr_versions[1] = 0;
  n.live.code_budget = 0;
  EXPECT_TRUE(refused());
}

}  // namespace
}  // namespace uptier::tiering::newer_code_test
