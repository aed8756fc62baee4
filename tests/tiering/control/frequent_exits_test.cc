// A method with an exit that is taken too often, and the methods that have inlined its body.
#include "tiering/control/frequent_exits.h"

#include "tests/support/owners.h"
#include "tests/support/runtime_host.h"

namespace uptier::tiering::frequent_exits_test {
namespace {

// A guard, which is exit 0, and two blocks, which are exits 1 and 2.
constexpr const char* kBody = R"(
func @f(i32) -> i32 {
b0(v0: i32):
  frame_state pc=1 [v0]
  guard v0, type @11
  branch v0, b1, b1
b1:
  return v0
}
)";

constexpr uint32_t kGuard = 0, kBlock = 2;

struct Exits : test::Owners {
  Exits() {
    jit::Function f = test::parse_or_die(kBody).functions[0];
    for (uint32_t i = 0; i < kMethods; ++i) describe_loops(i, 1);
    for (uint32_t i : {0, 1}) {
      method(i).shape.own().exits = MethodExits(f, jit::find_loop_forest(f), policy);
      put_optimized(i);
    }
  }
  Version& put_optimized(uint32_t i) {
    Version& v = add(i, Tier::kOptimized);
    method(i).optimized = &v;
    in_service.link_locked(method(i));
    return v;
  }
  // Counts an exit until its limit is reached, and reports it.
  void meet(uint32_t exit, uint32_t of = 0) {
    while (!method(of).shape.own().exits.count(exit)) {}
    frequent.consider(method(of), exit);
  }
  std::vector<uint32_t> requested() {
    std::vector<uint32_t> methods;
    while (auto plan = requests.pop()) {
      EXPECT_EQ(plan->tier, Tier::kOptimized);
      EXPECT_TRUE(plan->use_profile);
      methods.push_back(plan->method.index());
    }
    std::ranges::sort(methods);
    return methods;
  }

  FrequentExits frequent{policy, methods, observer, requests, in_service};
};

using Indices = std::vector<uint32_t>;

TEST(FrequentExits, of_a_block_have_the_method_made_anew) {
  Exits e;
  Version& loop = e.add(0, Tier::kOptimized);
  loop.osr_loop = LoopId(0);
  e.in_service.replace_osr(e.method(), loop);
  e.meet(kBlock);
  EXPECT_EQ(e.requested(), Indices{0});
  EXPECT_TRUE(loop.retired) << "it has the block left out, too";
  EXPECT_EQ(e.method().shape->osr[0].load(), nullptr);
  EXPECT_NE(e.in_service.current_entry(e.method()), nullptr) << "calls stay where they are";
  EXPECT_EQ(e.logged(), std::vector<std::string>{"recompile"});
}

TEST(FrequentExits, are_waited_for_up_to_their_limit) {
  Exits e;
  e.frequent.consider(e.method(), kBlock);
  EXPECT_EQ(e.requested(), Indices());
  EXPECT_TRUE(e.logged().empty());
}

TEST(FrequentExits, ask_for_nothing_that_has_been_asked_for_or_made_too_often_or_is_not_there) {
  Exits e;
  e.method().optimized_requested = true;
  e.meet(kBlock);
  e.method().optimized_requested = false;
  e.method().optimizing.own().versions = e.policy.max_recompiles;
  e.meet(kBlock);
  e.method().optimizing.own().versions = 0;
  e.method().optimized = nullptr;
  e.meet(kBlock);
  EXPECT_EQ(e.requested(), Indices());
}

TEST(FrequentExits, of_a_method_that_was_removed_change_nothing) {
  Exits e;
  e.method().removed = true;
  e.meet(kBlock);
  EXPECT_EQ(e.requested(), Indices());
  EXPECT_TRUE(e.logged().empty());
}

TEST(FrequentExits, of_a_guard_that_is_banned_take_all_optimized_code_out_of_service) {
  Exits e;
  Version& v = *e.method().versions.front();
  for (uint32_t n = 0; n < e.policy.exit_retries; ++n) {
    e.meet(kGuard);
    ASSERT_FALSE(e.method().guard_banned);
    ASSERT_FALSE(v.retired);
  }
  e.requests.add(e.method(), {.method = MethodId(0), .tier = Tier::kOptimized}, 1);
  e.meet(kGuard);
  EXPECT_TRUE(e.method().guard_banned);
  EXPECT_TRUE(v.retired);
  EXPECT_EQ(test::Owners::words(v), std::vector<uint32_t>{3}) << "its frames leave";
  EXPECT_EQ(e.in_service.current_entry(e.method()), nullptr);
  EXPECT_FALSE(e.method().wants_optimized);
  EXPECT_FALSE(e.method().optimized_requested);
  EXPECT_EQ(e.requested(), Indices()) << "what was asked for is not made";
}

TEST(FrequentExits, have_callers_made_anew_that_have_the_body_in_them) {
  for (uint32_t exit : {kGuard, kBlock}) {
    Exits e;
    e.put_optimized(2).code = e.code_with({MethodId(0)});
    e.put_optimized(3).code = e.code_with({MethodId(1)});
    e.method(2).optimized_requested = true;
    bool guard = exit == kGuard;
    for (uint32_t n = 0; n <= (guard ? e.policy.exit_retries : 0); ++n) e.meet(exit);
    EXPECT_EQ(e.requested(), guard ? Indices{2} : (Indices{0, 2}))
        << "what was asked for may have it in it, too";
  }
}

TEST(FrequentExits, leave_callers_alone_that_have_it_only_in_code_that_is_out_of_service) {
  Exits e;
  Version& caller = e.put_optimized(2);
  caller.code = e.code_with({MethodId(0)});
  caller.retired = true;
  Version& before = e.put_optimized(3);
  before.code = e.code_with({MethodId(0)});
  before.retired = true;
  e.put_optimized(3).code = e.code_with({});
  e.meet(kBlock);
  EXPECT_EQ(e.requested(), Indices{0});
}

}  // namespace
}  // namespace uptier::tiering::frequent_exits_test
