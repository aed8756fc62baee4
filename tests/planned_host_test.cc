// PlannedHost: plans are made once from what was seen, given up after so many exits, and the last
// one guesses nothing.
#include "uptier/planned_host.h"

#include <gtest/gtest.h>

#include "uptier/words.h"

namespace uptier::test {
namespace {

struct Guess : HostPlan {
  Guess(bool a, uint64_t v) : any(a), value(v) {}
  bool any;
  uint64_t value;
};

// x + 1, guessed to be what the interpreter has seen last.
class Successor : public PlannedHost {
 public:
  explicit Successor(Runtime& r) : PlannedHost(r, {.plans = 3, .exits = 5}) { current = this; }

  uint64_t call(uint64_t x) { return call_words(entry, &x, 1); }
  bool hot() { return loop_is_hot(0); }

  static inline Successor* current = nullptr;
  const void* entry = nullptr;
  int32_t* countdown = nullptr;
  uint64_t seen = 0, made = 0, left = 0, entries = 0;

 private:
  static uint64_t interpret(const uint64_t* words) { return (current->seen = words[0]) + 1; }
  static uint64_t resume(const HostFrame* frame) {
    auto* host = static_cast<Successor*>(frame->host);
    ++host->left;
    host->exited(frame->method);
    return interpret(frame->slots);
  }
  MethodInfo info(uint32_t function) override {
    MethodInfo info{.key = {1, function}, .name = "successor", .signature = words_signature(1)};
    info.host_entry = host_entry<interpret>(1);
    info.host_resume = resume;
    return info;
  }
  void entry_changed(uint32_t, const void* e) override { entry = e, ++entries; }
  void countdown_changed(uint32_t, int32_t* c) override { countdown = c; }
  std::unique_ptr<HostPlan> make_plan(uint32_t, bool guess) override {
    ++made;
    return std::make_unique<Guess>(guess, seen);
  }
  void describe(HostPlan& p, FunctionBuilder& b) override {
    auto& plan = static_cast<Guess&>(p);
    if (plan.any) {
      const Value slots[] = {b.param(0)};
      Value known = b.i64(static_cast<int64_t>(plan.value));
      b.frame_state(0, slots);
      b.guard(b.binary(Opcode::kEq, b.param(0), known), GuardReason::kUser);
    }
    b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(1)));
  }
};

TEST(PlannedHost, plans_that_are_wrong_are_given_up_until_one_guesses_nothing) {
  Options o;
  o.workers = 0;
  auto r = Runtime::create(o);
  ASSERT_TRUE(r.ok());
  Successor host(**r);
  auto attached = std::make_unique<ThreadScope>(**r);
  ASSERT_TRUE(host.add(0).ok());
  MethodId first = host.method(0);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(host.call(7), 8u);
  EXPECT_EQ(host.made, 1u) << "once, however often it is described";
  EXPECT_EQ(host.left, 0u);
  EXPECT_EQ(host.summary(), "");
  for (uint64_t x = 0; x < 3000; ++x) ASSERT_EQ(host.call(x), x + 1);
  EXPECT_NE(host.method(0), first);
  EXPECT_EQ(host.made, 3u);
  EXPECT_EQ(host.entries, 3u);
  EXPECT_EQ(host.left, 10u) << "five of each plan that guesses";
  EXPECT_EQ(host.summary(), "speculation: successor: plans 3, exits 10, guesses no more\n");
  attached.reset();
  r->reset();  // before its host
}

TEST(PlannedHost, a_new_loop_waits_before_it_gets_a_plan) {
  auto r = Runtime::create({});
  ASSERT_TRUE(r.ok());
  Successor host(**r);
  auto attached = std::make_unique<ThreadScope>(**r);
  ASSERT_TRUE(host.add(0).ok());
  EXPECT_EQ(*host.countdown, PlanLimits().first_look);
  int32_t* patience = host.countdown;
  *host.countdown = 0;
  host.hot();
  EXPECT_NE(host.countdown, patience) << "the runtime's own from now on";
  EXPECT_EQ(host.countdown, (*r)->loop_countdown(host.method(0)));
  EXPECT_TRUE(host.hot());
  attached.reset();
  r->reset();
}

}  // namespace
}  // namespace uptier::test
