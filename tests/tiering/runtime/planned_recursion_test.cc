// PlannedHost: a function gets a new plan while outer calls of it run, in code that has inlined
// another function.
#include <gtest/gtest.h>

#include "tests/support/runtime_host.h"
#include "uptier/planned_host.h"
#include "uptier/words.h"

namespace uptier::test::planned_recursion_test {
namespace {

int g_plans = 0;  // plans that are alive

struct GuessPlan : HostPlan {
  explicit GuessPlan(bool g) : guess(g) { ++g_plans; }
  ~GuessPlan() override { --g_plans; }
  bool guess;
};

// sum(depth, x):  value = x - 2
//                 below = depth == 0 ? 0 : sum(depth - 1, next)
//                 return below + times(value) + x
// times(v):       return 10 * v
//
// The plans speculate that x is 7, and so that v is 5. All calls share the words `value` and
// `next`.
class Sums : public PlannedHost {
 public:
  Sums(Runtime& r, PlanLimits limits) : PlannedHost(r, limits) { current = this; }
  ~Sums() override { current = nullptr; }

  static inline Sums* current = nullptr;
  const void* entries[2] = {};
  uint64_t value = 0, next = 7;
  uint64_t exits[2] = {};

  // The meaning of the program. The interpreter uses it too, and makes nested calls through the
  // entry.
  static uint64_t sum(uint64_t depth, uint64_t x, bool interpreted) {
    Sums& s = *current;
    s.value = x - 2;
    const uint64_t args[] = {depth - 1, s.next};
    uint64_t below = 0;
    if (depth != 0 && interpreted) below = call_words(s.entries[0], args, 2);
    if (depth != 0 && !interpreted) below = sum(args[0], args[1], false);
    return below + 10 * s.value + x;  // interprets `times` itself, so no exit is reported there
  }

 protected:
  template <bool kTimes>
  static uint64_t interpret(const uint64_t* words) {
    return kTimes ? 10 * words[0] : sum(words[0], words[1], true);
  }
  static uint64_t resume(const HostFrame* f) {
    auto* self = static_cast<Sums*>(f->host);
    bool times = f->slot_count == 1;
    ++self->exits[times];
    self->exited(f->method);
    return times ? interpret<true>(f->slots) : interpret<false>(f->slots);
  }
  MethodInfo info(uint32_t function) override {
    MethodInfo i;
    i.key = {1, function};
    i.name = function == 0 ? "sum" : "times";
    i.signature = words_signature(function == 0 ? 2 : 1);
    i.host_entry = function == 0 ? host_entry<interpret<false>>(2) : host_entry<interpret<true>>(1);
    i.host_resume = resume;
    return i;
  }
  void entry_changed(uint32_t function, const void* entry) override { entries[function] = entry; }
  void countdown_changed(uint32_t, LoopCountdown) override {}
  std::unique_ptr<HostPlan> make_plan(uint32_t, bool guess) override {
    return std::make_unique<GuessPlan>(guess);
  }
  void describe(HostPlan& p, FunctionBuilder& b) override {
    bool guess = static_cast<GuessPlan&>(p).guess;
    b.signature().params.size() == 2 ? describe_sum(b, guess) : describe_times(b, guess);
  }

 private:
  static void guess_equal(FunctionBuilder& b, std::span<const Value> slots, Value v, int64_t is) {
    b.frame_state(0, slots);
    b.guard(b.binary(Opcode::kEq, v, b.i64(is)), GuardReason::kUser);
  }
  Value word(FunctionBuilder& b, const void* at) {
    return b.load(Opcode::kLoad, Type::kI64, {.base = b.ref(at)});
  }
  Value call(FunctionBuilder& b, int function, std::span<const Value> args) {
    Value entry = b.load(Opcode::kLoad, Type::kRef, {.base = b.ref(&entries[function])});
    return b.call_indirect(entry, words_signature(args.size()), args);
  }
  void describe_times(FunctionBuilder& b, bool guess) {
    const Value slots[] = {b.param(0)};
    if (guess) guess_equal(b, slots, b.param(0), 5);
    b.ret(b.binary(Opcode::kMul, b.param(0), b.i64(10)));
  }
  void describe_sum(FunctionBuilder& b, bool guess) {
    Value depth = b.param(0), x = b.param(1);
    const Value slots[] = {depth, x};
    if (guess) guess_equal(b, slots, x, 7);
    b.store(Opcode::kStore, b.binary(Opcode::kSub, x, b.i64(2)), {.base = b.ref(&value)});
    Variable below = b.declare(Type::kI64);
    b.def(below, b.i64(0));
    Block more = b.create_block(), end = b.create_block();
    b.branch(b.binary(Opcode::kNe, depth, b.i64(0)), more, end);
    b.seal(more);
    b.switch_to(more);
    const Value args[] = {b.binary(Opcode::kSub, depth, b.i64(1)), word(b, &next)};
    b.def(below, call(b, 0, args));
    b.jump(end);
    b.seal(end);
    b.switch_to(end);
    const Value v[] = {word(b, &value)};
    Value times = call(b, 1, v);
    b.ret(b.binary(Opcode::kAdd, b.binary(Opcode::kAdd, b.use(below), times), x));
  }
};

Options at_once() {
  return options({{"workers", "0"},
                  {"policy", "always"},
                  {"interval", "1"},
                  {"deopt_cold", "off"},
                  {"measure_rates", "off"},
                  {"removed_kept", "0"}});
}

struct World {
  explicit World(PlanLimits limits, const Options& o = at_once()) {
    auto r = Runtime::create(o);
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
    host = std::make_unique<Sums>(*runtime, limits);
    scope = std::make_unique<ThreadScope>(*runtime);
    for (uint32_t f : {0, 1}) EXPECT_TRUE(host->add(f).ok());
  }
  ~World() {
    scope.reset();
    runtime.reset();  // must be destroyed before its host
  }
  void expect(uint64_t depth, uint64_t next) {
    host->next = next;
    uint64_t want = Sums::sum(depth, 7, false);
    Outcome o = runtime->invoke(host->method(0), {{depth, 7}});
    EXPECT_EQ(o.trap.code, TrapCode::kNone) << trap_text(o.trap.code);
    EXPECT_EQ(o.bits, want) << depth << ", " << next;
  }
  // Has both functions optimized: `times` first, so that its body can be inlined.
  void warm_up(uint64_t depth) {
    for (int i = 0; i < 500; ++i) runtime->invoke(host->method(1), {{5}});
    for (int i = 0; i < 1000; ++i) expect(depth, 7);
  }
  bool inlined(MethodId in) {
    for (const MethodReport& m : runtime->report().methods) {
      if (m.method != in) continue;
      for (const VersionReport& v : m.versions) {
        if (v.tier == Tier::kOptimized && v.inlined != 0) return true;
      }
    }
    return false;
  }

  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Sums> host;
  std::unique_ptr<ThreadScope> scope;
};

// The innermost call breaks the speculation, and `sum` gets a new method. Then `times`, inlined
// into the outer frames, breaks it too: those frames go on in baseline code of a method that nobody
// calls any more.
TEST(PlannedRecursion, outer_frames_of_a_function_that_is_planned_anew_run_to_their_end) {
  for (uint64_t depth : {1, 2, 7}) {
    World w({.plans = 3, .exits = 1});
    w.warm_up(depth);
    MethodId first = w.host->method(0);
    ASSERT_TRUE(w.inlined(first));
    ASSERT_EQ(w.host->exits[0] + w.host->exits[1], 0u);
    w.expect(depth, 9);
    EXPECT_NE(w.host->method(0), first);
    EXPECT_GE(w.host->exits[0], 1u);
    EXPECT_GE(w.host->exits[1], 1u);
    for (int i = 0; i < 1000; ++i) w.expect(depth, 7 + i % 3);
    // Only the last plan of each function is left, which speculates on nothing; the code of the
    // others is freed.
    for (int i = 0; i < 2; ++i) w.runtime->quiescent();
    EXPECT_EQ(g_plans, 2) << depth;
    EXPECT_EQ(w.host->summary(),
              "speculation: sum: plans 3, exits 2, guesses no more\n"
              "speculation: times: plans 3, exits 2, guesses no more\n");
  }
  EXPECT_EQ(g_plans, 0);
}

}  // namespace
}  // namespace uptier::test::planned_recursion_test
