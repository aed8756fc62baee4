// A host with its own interpreter: loops that switch to compiled code and back, wrong speculation,
// fixed tiers, and when the host is called.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <semaphore>

#include "tests/support/guard_loop.h"

namespace uptier::test::host_tier_test {
namespace {

// ---- Loops that go back and forth -------------------------------------------------------------

TEST(HostTier, exits_whose_interpreter_enters_the_loop_again_nest_no_deeper_than_the_constant) {
  // The limits on exits do not matter here: none is reached.
  for (const char* workers : {"0", "1"}) {
    GuardLoop host(options(
        {{"workers", workers}, {"exit_limit", "16777216"}, {"exit_limit_loop", "16777216"}}));
    const uint64_t n = 3'000'000, every = 10;
    Outcome o = host.run(n, every);
    ASSERT_TRUE(o.ok()) << trap_text(o.trap.code);
    EXPECT_EQ(o.bits, GuardLoop::expected(n, every));
    if (*workers == '1') continue;
    EXPECT_GT(host.entered, 3u) << "it went back and forth";
    EXPECT_EQ(host.deepest, uint64_t{Runtime::kMostExitsToHost});
  }
}

TEST(HostTier, stress_on_guards_does_not_exhaust_the_stack) {
  for (const char* stress : {"guard=every:2", "guard=every:3", "guard=every:7", "guard=all",
                             "osr=all,guard=every:5", "osr=every:3"}) {
    for (const char* tier : {"auto", "baseline", "instrumented", "optimized"}) {
      Options o = options({{"tier", tier}});
      o.stress = stress;
      GuardLoop host(o);
      const uint64_t n = 300'000, every = 1000;
      Outcome out = host.run(n, every);
      ASSERT_TRUE(out.ok()) << stress << " " << tier << ": " << trap_text(out.trap.code);
      EXPECT_EQ(out.bits, GuardLoop::expected(n, every)) << stress << " " << tier;
      EXPECT_LE(host.deepest, uint64_t{Runtime::kMostExitsToHost}) << stress << " " << tier;
    }
  }
}

TEST(HostTier, frames_that_a_trap_drops_do_not_count_as_nested) {
  GuardLoop host(
      options({{"workers", "0"}, {"exit_limit", "16777216"}, {"exit_limit_loop", "16777216"}}));
  const uint64_t n = 20'000, every = 5'000;
  EXPECT_EQ(host.run(n, every).bits, GuardLoop::expected(n, every));
  host.traps_at = n - 5'000;  // in the interpreter, nested in two exits
  for (uint32_t k = 0; k < 2 * Runtime::kMostExitsToHost; ++k) {
    Outcome o = host.run(n, every);
    EXPECT_EQ(o.trap.code, TrapCode::kHost);
    EXPECT_EQ(o.trap.detail, GuardLoop::kTrapDetail);
  }
  host.traps_at = UINT64_MAX;
  uint64_t resumed = host.resumed, entered = host.entered;
  EXPECT_EQ(host.run(n, every).bits, GuardLoop::expected(n, every));
  EXPECT_GT(host.resumed, resumed);
  EXPECT_GT(host.entered, entered) << "loops are still entered";
}

TEST(HostTier, loop_is_not_entered_where_the_stack_has_no_room) {
  EXPECT_EQ(Runtime::stack_left(), UINT64_MAX) << "not attached";
  GuardLoop host(options({{"workers", "0"}, {"max_stack", "262144"}}));
  uint64_t left = Runtime::stack_left();
  EXPECT_LE(left, 270'000u);
  EXPECT_GT(left, 200'000u);
  const uint64_t n = 20'000, every = 1'000'000;
  host.run(n, every);
  ASSERT_GE(host.entered, 1u);
  const uint64_t args[] = {reinterpret_cast<uintptr_t>(&host), n, every}, frame[] = {1, 0};
  auto enters = [&] {
    return host.runtime().osr_enter(host.method(), LoopId(0), args, frame).has_value();
  };
  EXPECT_TRUE(enters());
  // Recurses until little stack is left.
  auto deep = [&](auto& self) -> bool {
    char taken[1024];
    asm volatile("" : : "r"(taken) : "memory");
    bool entered = Runtime::stack_left() < 3000 ? enters() : self(self);
    asm volatile("" : : "r"(taken) : "memory");
    return entered;
  };
  EXPECT_FALSE(deep(deep));
  EXPECT_TRUE(enters());
}

// ---- Recursion --------------------------------------------------------------------------------

// down(n): exits at once; the interpreter then calls the method again. The body is a leaf, which
// does not check the stack.
class Descent : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    b.frame_state(1, {{b.param(1)}});
    b.leave();
    return {};
  }
  static uint64_t resume(const HostFrame* f) {
    auto* self = static_cast<Descent*>(f->host);
    self->deepest = std::max(self->deepest, f->slots[0]);
    return self->entry(self, f->slots[0] + 1) + 1;
  }
  uint64_t (*entry)(Descent*, uint64_t) = nullptr;
  uint64_t deepest = 0;
};

TEST(HostTier, recursion_through_host_resume_alone_traps_stack_exhausted) {
  for (const char* tier : {"auto", "optimized"}) {
    Descent host;
    auto r = Runtime::create(options({{"tier", tier}, {"max_stack", "1000000"}}));
    ASSERT_TRUE(r.ok());
    MethodInfo info{
        .key = {1, 1}, .name = "down", .signature = {{Type::kRef, Type::kI64}, Type::kI64}};
    info.host_resume = &Descent::resume;
    Result<MethodId> m = (*r)->add_method(host, info);
    ASSERT_TRUE(m.ok());
    host.entry = (*r)->entry<uint64_t(Descent*, uint64_t)>(*m);
    ThreadScope scope(**r);
    for (int k = 0; k < 3; ++k) {
      Outcome o = (*r)->invoke(*m, {{reinterpret_cast<uintptr_t>(&host), 0}});
      EXPECT_EQ(o.trap.code, TrapCode::kStackExhausted);
      EXPECT_GT(host.deepest, 100u);
    }
  }
}

// ---- Limits of exits --------------------------------------------------------------------------

// Keeps the worker busy: its `build` ends only when the test is over.
class SlowHost : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    began.release();
    done.acquire();
    b.ret(b.param(0));
    return {};
  }
  static uint64_t same(uint64_t x) { return x; }
  std::binary_semaphore began{0}, done{0};
};

TEST(HostTier, exit_that_meets_the_limit_acts_on_it_though_the_worker_is_busy) {
  SlowHost slow;
  {
    GuardLoop host(options({{"workers", "1"}}));
    MethodInfo info{.key = {2, 1}, .name = "slow", .signature = {{Type::kI64}, Type::kI64}};
    info.host_entry = reinterpret_cast<const void*>(&SlowHost::same);
    Result<MethodId> m = host.runtime().add_method(slow, info);
    ASSERT_TRUE(m.ok());
    const uint64_t n = 200'000;
    EXPECT_EQ(host.run(n, 1'000'000).bits, GuardLoop::expected(n, 1'000'000));
    host.runtime().flush();  // makes the loop enterable
    for (uint64_t k = 0; k < 100; ++k) host.runtime().invoke(*m, {{k}});
    slow.began.acquire();
    for (int k = 0; k < 100; ++k) {
      EXPECT_EQ(host.run(n / 10, 10).bits, GuardLoop::expected(n / 10, 10));
    }
    // The limits in a loop are 5, 10, 20 and 40 exits, then the guard is banned.
    EXPECT_GE(host.resumed, 75u);
    EXPECT_LE(host.resumed, 76u) << "one was there before, at i = 0";
    slow.done.release();
    MethodReport r = host.report();
    ASSERT_EQ(r.exits.size(), 1u);
    EXPECT_TRUE(r.exits[0].banned);
    EXPECT_EQ(r.tier, Tier::kHost);
    EXPECT_EQ(r.left_for_host, host.resumed);
  }
}

// ---- Fixed tiers ------------------------------------------------------------------------------

TEST(HostTier, fixed_tiers_compile_as_if_there_were_no_interpreter) {
  for (auto [name, tier] :
       {std::pair{"baseline", Tier::kBaseline}, std::pair{"instrumented", Tier::kBaseline},
        std::pair{"optimized", Tier::kOptimized}}) {
    GuardLoop host(options({{"tier", name}}));
    const uint64_t n = 10'000, every = 100'000;
    EXPECT_EQ(host.run(n, every).bits, GuardLoop::expected(n, every));
    EXPECT_EQ(host.resumed, 1u) << name << ": exits go to the interpreter all the same";
    EXPECT_EQ(host.run(n, every).bits, GuardLoop::expected(n, every));
    MethodReport r = host.report();
    EXPECT_EQ(r.tier, tier) << name;
    EXPECT_GT(host.builds, 0);
    EXPECT_LE(r.loop_iterations, 2 * n + 4) << name;
  }
}

TEST(HostTier, fixed_tiers_interpret_what_is_not_described) {
  for (const char* tier : {"baseline", "instrumented", "optimized"}) {
    GuardLoop host(options({{"tier", tier}}));
    host.refuses = true;
    const uint64_t n = 3'000'000;
    EXPECT_EQ(host.run(n, 7).bits, GuardLoop::expected(n, 7));
    EXPECT_EQ(host.interpreted, n);
    EXPECT_EQ(host.entered, 0u);
    MethodReport r = host.report();
    EXPECT_EQ(r.last_error, "sum: not described");
    EXPECT_GE(r.loop_iterations, n) << tier;
    EXPECT_LE(r.loop_iterations, n + 1) << tier << ": counted, and not below zero";
  }
}

// ---- Stress on guards -------------------------------------------------------------------------

TEST(HostTier, guards_that_are_forced_to_fail_give_their_frames_to_the_host) {
  for (const char* tier : {"auto", "baseline", "instrumented", "optimized"}) {
    Options o = options({{"tier", tier}, {"workers", "0"}});
    o.stress = "guard=all";
    GuardLoop host(o);
    const uint64_t n = 20'000, every = 1'000'000;
    EXPECT_EQ(host.run(n, every).bits, GuardLoop::expected(n, every));
    EXPECT_GT(host.resumed, 0u) << tier;
    MethodReport r = host.report();
    EXPECT_EQ(r.left_for_host, host.resumed) << tier;
    EXPECT_GE(r.left, r.left_for_host);
    EXPECT_NE(host.runtime().report().text().find("frames left: "), std::string::npos);
  }
}

TEST(HostTier, a_frame_with_a_wrong_slot_shows_under_stress_on_guards) {
  for (const char* tier : {"auto", "baseline", "optimized"}) {
    Options o = options({{"tier", tier}, {"workers", "0"}});
    const uint64_t n = 20'000, every = 1'000'000;
    {
      GuardLoop host(o);
      host.wrong_slot = true;
      // Only the frame of i = 0 exits, and there the wrong slot value differs by 1 only.
      EXPECT_EQ(host.run(n, every).bits - GuardLoop::expected(n, every), host.resumed);
    }
    o.stress = "guard=every:3";
    GuardLoop host(o);
    host.wrong_slot = true;
    EXPECT_GT(GuardLoop::expected(n, every) - host.run(n, every).bits, n) << tier;
  }
}

// ---- When the host is asked, and what it is told ----------------------------------------------

TEST(HostTier, is_described_when_a_compilation_is_due_and_not_before) {
  GuardLoop host(options({{"workers", "0"}}));
  host.run(4'000, 7);
  EXPECT_EQ(host.builds, 0);
  host.run(200, 7);
  EXPECT_GT(host.builds, 0);
  EXPECT_GE(host.iterations_at_build, 4'000u);
}

TEST(HostTier, is_not_described_where_nothing_is_compiled) {
  GuardLoop host(options({{"workers", "0"}, {"policy", "never"}}));
  host.run(100'000, 7);
  EXPECT_EQ(host.builds, 0);
  EXPECT_LE(host.report().loop_iterations, 100'001u);
}

TEST(HostTier, loop_that_the_description_does_not_have_is_named) {
  GuardLoop host(options({{"workers", "0"}}));
  host.loop = 7;
  const uint64_t n = 100'000;
  EXPECT_EQ(host.run(n, 7).bits, GuardLoop::expected(n, 7));
  MethodReport r = host.report();
  EXPECT_NE(r.last_error.find("loop 7 of 1"), std::string::npos) << r.last_error;
  EXPECT_EQ(host.entered, 0u);
  EXPECT_LE(r.loop_iterations, n + 1);
}

TEST(HostTier, saved_profile_is_enough_only_for_a_host_that_says_so) {
  char dir[] = "/tmp/uptier-host-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  Options o = options({{"workers", "0"}, {"policy", "never"}, {"tier", "instrumented"}});
  o.profile = std::string(dir) + "/p.upf";
  const uint64_t every = 1u << 30;
  {
    GuardLoop host(o);
    for (int k = 0; k < 200'000; ++k) host.run(2, every);
    ASSERT_TRUE(host.runtime().save_profile().ok());
  }
  o.policy = PolicyMode::kAuto;
  o.tier = TierMode::kAuto;
  for (bool at_once : {false, true}) {
    GuardLoop host(o, at_once);
    EXPECT_EQ(host.run(10, every).bits, GuardLoop::expected(10, every));
    EXPECT_EQ(host.runtime().report().saved.compiled, at_once ? 1u : 0u);
    // Compiled code exits at i = 0, and the interpreter goes on from there.
    EXPECT_EQ(host.resumed, at_once ? 1u : 0u);
  }
  std::filesystem::remove_all(dir);
}

TEST(HostTier, calls_that_cannot_be_made_are_traps) {
  GuardLoop host(Options{});
  for (size_t count : {0, 2, 4}) {
    std::vector<uint64_t> args(count);
    Outcome o = host.runtime().invoke(host.method(), args);
    EXPECT_EQ(o.trap.code, TrapCode::kBadCall) << count;
    EXPECT_EQ(o.trap.method, host.method());
  }
  for (MethodId m : {MethodId(1), MethodId(1000), MethodId(1u << 30), MethodId::none()}) {
    EXPECT_EQ(host.runtime().invoke(m, {}).trap.code, TrapCode::kBadCall);
    EXPECT_EQ(host.runtime().entry_address(m), nullptr);
  }
}

// ---- Every call is seen -----------------------------------------------------------------------

uint64_t interpret_least(uint64_t x) { return x < 10 ? x : 10; }

class Least : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    Block small = b.create_block(), great = b.create_block();
    b.branch(b.binary(Opcode::kLtU, b.param(0), b.i64(10)), small, great);
    for (Block block : {small, great}) b.seal(block);
    b.switch_to(small);
    b.ret(b.param(0));
    b.switch_to(great);
    b.ret(b.i64(10));
    return {};
  }
};

// Interpreted calls are not counted, but calls between those and optimized code are.
TEST(HostTier, interval_1_counts_what_was_interpreted_first) {
  for (const char* workers : {"0", "1"}) {
    Least host;
    auto runtime = std::move(
        *Runtime::create(options({{"workers", workers}, {"interval", "1"}, {"adaptive", "off"}})));
    MethodInfo info{{1, 1}, "least", {{Type::kI64}, Type::kI64}};
    info.host_entry = reinterpret_cast<const void*>(&interpret_least);
    MethodId least = *runtime->add_method(host, info);
    ThreadScope scope(*runtime);
    const uint64_t args[] = {3};
    for (int k = 0; k < 200'000; ++k) {
      if (k == 1000) runtime->flush();  // a worker may have to wait for a processor
      ASSERT_EQ(runtime->invoke(least, args).bits, 3u);
    }
    runtime->flush();
    Profile all = runtime->profile();
    const MethodProfile& m = all.methods.begin()->second;
    EXPECT_GT(m.counts[m.schema.find(SlotKind::kBlock, 2)->word], 100u) << workers;
  }
}

}  // namespace
}  // namespace uptier::test::host_tier_test
