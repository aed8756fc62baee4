// PlannedHost: a plan is made once from observations and given up after a number of exits; the last
// plan speculates on nothing.
#include "uptier/planned_host.h"

#include <gtest/gtest.h>

#include <thread>

#include "uptier/words.h"

namespace uptier::test::planned_host_test {
namespace {

struct Guess : HostPlan {
  Guess(bool a, uint64_t v) : any(a), value(v) {}
  bool any;
  uint64_t value;
};

// x + 1. Speculates that x is the value that the interpreter saw last.
class Successor : public PlannedHost {
 public:
  explicit Successor(Runtime& r) : PlannedHost(r, {.plans = 3, .exits = 5}) { current = this; }

  uint64_t call(uint64_t x) { return call_words(entry, &x, 1); }
  bool hot() { return loop_is_hot(0); }

  static inline Successor* current = nullptr;
  const void* entry = nullptr;
  LoopCountdown countdown;
  uint32_t index = 0;  // MethodKey::function_index
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
    MethodInfo info{
        .key = {1, function + index}, .name = "successor", .signature = words_signature(1)};
    info.host_entry = host_entry<interpret>(1);
    info.host_resume = resume;
    return info;
  }
  void entry_changed(uint32_t, const void* e) override { entry = e, ++entries; }
  void countdown_changed(uint32_t, LoopCountdown c) override { countdown = c; }
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

// With slots for only two methods, one in service and one being removed, all plans but the first
// get a slot that another method had.
void check_plans(uint64_t places) {
  Options o;
  o.workers = 0;
  o.max_methods = places;
  o.removed_kept = 0;
  o.measure_rates = false;  // the duration of a compilation must not matter
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
  r->reset();  // must be destroyed before its host
}

TEST(PlannedHost, plans_that_are_wrong_are_given_up_until_one_guesses_nothing) {
  check_plans(Options().max_methods);
}

TEST(PlannedHost, what_is_known_of_a_plan_is_not_taken_over_with_its_place) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "SKIPPED: frames of sanitized code hold stale words, which hold the place";
#endif
  check_plans(2);
}

TEST(PlannedHost, a_plan_that_finds_no_place_is_made_after_as_many_more_exits) {
  Options o;
  o.workers = 0;
  o.max_methods = 2;
  o.removed_kept = 0;
  o.measure_rates = false;
  auto r = Runtime::create(o);
  ASSERT_TRUE(r.ok());
  Successor host(**r);
  auto attached = std::make_unique<ThreadScope>(**r);
  ASSERT_TRUE(host.add(1).ok());  // takes the other slot
  ASSERT_TRUE(host.add(0).ok());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(host.call(7), 8u);
  for (uint64_t x = 10; host.left < 5; ++x) ASSERT_EQ(host.call(x), x + 1);
  EXPECT_EQ(host.summary(), "speculation: successor: plans 1, exits 5\n");
  MethodId other[] = {host.method(1)};
  (*r)->retire_methods(other);
  for (uint64_t x = 20; host.left < 9; ++x) ASSERT_EQ(host.call(x), x + 1);
  EXPECT_EQ(host.entries, 2u) << "of two functions, one plan each";
  for (uint64_t x = 40; host.left < 10; ++x) ASSERT_EQ(host.call(x), x + 1);
  EXPECT_EQ(host.entries, 3u);
  attached.reset();
  r->reset();
}

TEST(PlannedHost, function_indices_leave_room_for_the_numbers_of_plans) {
  auto r = Runtime::create({});
  ASSERT_TRUE(r.ok());
  Successor host(**r);
  EXPECT_EQ(host.add(1 << 20).error().code, ErrorCode::kInvalidArgument);
  host.index = 1 << 20;
  Status s = host.add(0);
  EXPECT_EQ(s.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(s.error().message,
            "successor: functions of a PlannedHost, and their function_index, have 20 bits");
  --host.index;
  EXPECT_TRUE(host.add(0).ok());
  r->reset();
}

TEST(PlannedHost, a_new_loop_waits_before_it_gets_a_plan) {
  auto r = Runtime::create({});
  ASSERT_TRUE(r.ok());
  Successor host(**r);
  auto attached = std::make_unique<ThreadScope>(**r);
  ASSERT_TRUE(host.add(0).ok());
  auto countdown = [&] { return &host.countdown.on(Runtime::thread_base()); };
  EXPECT_EQ(*countdown(), PlanLimits().first_look);
  int32_t* patience = countdown();
  *patience = 0;
  host.hot();
  EXPECT_NE(countdown(), patience) << "the runtime's own from now on";
  EXPECT_EQ(countdown(), (*r)->loop_countdown(host.method(0)));
  EXPECT_TRUE(host.hot());
  int32_t *here = countdown(), *there = nullptr;
  std::thread([&] {
    ThreadScope scope(**r);
    there = countdown();
    EXPECT_EQ(there, (*r)->loop_countdown(host.method(0)));
  }).join();
  EXPECT_NE(here, there) << "each thread has its own";
  attached.reset();
  r->reset();
}

// count(n): for (i = 0; i != n; ++i);  return i
class Counter : public PlannedHost {
 public:
  explicit Counter(Runtime& r) : PlannedHost(r, {.first_look = 10}) { current = this; }

  static inline Counter* current = nullptr;
  LoopCountdown countdown;
  uint64_t events = 0;

 private:
  static uint64_t interpret(const uint64_t* words) {
    Counter& host = *current;
    void* thread = Runtime::thread_base();
    uint64_t i = 0;
    for (; i != words[0]; ++i) {
      if (--host.countdown.on(thread) > 0) continue;
      ++host.events;
      if (!host.loop_is_hot(0)) continue;
      if (auto o = host.runtime_.osr_enter(host.method(0), LoopId(0), {words, 1}, &i))
        return o->bits;
    }
    return i;
  }
  MethodInfo info(uint32_t function) override {
    MethodInfo info{.key = {1, function}, .name = "count", .signature = words_signature(1)};
    info.host_entry = host_entry<interpret>(1);
    return info;
  }
  void entry_changed(uint32_t, const void*) override {}
  void countdown_changed(uint32_t, LoopCountdown c) override { countdown = c; }
  std::unique_ptr<HostPlan> make_plan(uint32_t, bool) override {
    return std::make_unique<HostPlan>();
  }
  void describe(HostPlan&, FunctionBuilder& b) override {
    Variable i = b.declare(Type::kI64);
    b.def(i, b.i64(0));
    Block head = b.create_block(), body = b.create_block(), end = b.create_block();
    b.jump(head);
    b.switch_to(head);
    Variable slots[] = {i};
    b.loop_header(0, slots);
    b.branch(b.binary(Opcode::kNe, b.use(i), b.param(0)), body, end);
    b.seal(body);
    b.switch_to(body);
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.jump(head);
    b.seal(head);
    b.seal(end);
    b.switch_to(end);
    b.ret(b.use(i));
  }
};

// Each `invoke` attaches the thread again, with different countdown words.
TEST(PlannedHost, loops_count_down_where_the_thread_has_its_words_now) {
  for (const char* policy : {"never", "always"}) {
    Options o;
    o.workers = 0;
    ASSERT_TRUE(o.set("policy", policy).ok());
    auto r = Runtime::create(o);
    ASSERT_TRUE(r.ok());
    Counter host(**r);
    ASSERT_TRUE(host.add(0).ok());
    for (uint64_t n : {1000, 5000, 100'000, 100'000}) {
      EXPECT_EQ((*r)->invoke(host.method(0), {{n}}).bits, n);
      std::thread([&, n] { EXPECT_EQ((*r)->invoke(host.method(0), {{n}}).bits, n); }).join();
    }
    bool interpreted = o.policy == PolicyMode::kNever;
    EXPECT_GE(host.events, interpreted ? 8u : 1u);
    r->reset();
  }
}

}  // namespace
}  // namespace uptier::test::planned_host_test
