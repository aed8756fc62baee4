// Deoptimization in a runtime: exits into baseline code and into the host's interpreter, how they
// are counted, and how the runtime reacts to many of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "jit/frontend/builder_access.h"
#include "tests/support/rare_path.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::deopt_runtime_test {
namespace {

size_t optimized_versions(const MethodReport& m) {
  return static_cast<size_t>(std::ranges::count_if(m.versions, [](const VersionReport& v) {
    return v.tier == Tier::kOptimized && v.copy == Copy::kPlain && !v.osr_loop.valid();
  }));
}

std::vector<std::string> actions(const Report& r) {
  std::vector<std::string> all;
  for (const DecisionRecord& d : r.decisions) {
    bool exit = d.reason.find("exit at") == 0;
    if (exit) all.push_back(d.action);
  }
  return all;
}

// A method that was optimized with the profile of many short calls.
struct RareRuntime : IrRuntime {
  explicit RareRuntime(std::initializer_list<std::pair<const char*, const char*>> more = {},
                       jit::Module module = parse_or_die(kRare))
      : IrRuntime(std::move(module), make_options(more)), scope(*runtime) {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(call("sum", {40}).bits, sum_of(40));
  }
  static Options make_options(std::initializer_list<std::pair<const char*, const char*>> more) {
    Options o = options({{"policy", "always"},
                         {"workers", "0"},
                         {"interval", "2"},
                         {"adaptive", "off"},
                         {"deopt_cold", "on"},
                         {"cold_samples", "8"}});
    for (auto [name, value] : more) EXPECT_TRUE(o.set(name, value).ok()) << name;
    return o;
  }

  ThreadScope scope;
};

TEST(Deopt, a_block_that_never_ran_is_left_for_baseline_code) {
  RareRuntime r;
  MethodReport before = r.report_of("sum");
  ASSERT_EQ(before.tier, Tier::kOptimized);
  EXPECT_TRUE(before.exits.empty());
  EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  MethodReport after = r.report_of("sum");
  ASSERT_EQ(after.exits.size(), 1u);
  EXPECT_EQ(after.exits[0].exits, 1u);
  EXPECT_EQ(after.exits[0].guard, 0u);
  EXPECT_EQ(after.exits[0].block, 4u);
  EXPECT_EQ(after.exits[0].reason, GuardReason::kUnreached);
  EXPECT_FALSE(after.exits[0].banned);
  EXPECT_NE(r.runtime->report().text().find("left at block 4 (unreached): 1"), std::string::npos);
}

TEST(Deopt, without_the_option_nothing_is_left_out) {
  RareRuntime r({{"deopt_cold", "off"}});
  ASSERT_EQ(r.report_of("sum").tier, Tier::kOptimized);
  EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  EXPECT_TRUE(r.report_of("sum").exits.empty());
}

TEST(Deopt, too_few_samples_leave_nothing_out) {
  RareRuntime r({{"cold_samples", "1000000"}});
  ASSERT_EQ(r.report_of("sum").tier, Tier::kOptimized);
  EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  EXPECT_TRUE(r.report_of("sum").exits.empty());
}

TEST(Deopt, a_block_that_is_left_for_often_is_in_the_next_version) {
  RareRuntime r;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  r.runtime->flush();
  MethodReport m = r.report_of("sum");
  EXPECT_EQ(optimized_versions(m), 2u);
  EXPECT_EQ(actions(r.runtime->report()), (std::vector<std::string>{"recompile"}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  m = r.report_of("sum");
  ASSERT_EQ(m.exits.size(), 1u);
  EXPECT_EQ(m.exits[0].exits, 5u);  // the second version had none
  EXPECT_EQ(m.exits[0].retries, 1u);
}

TEST(Deopt, the_decision_names_the_site_and_the_limit) {
  RareRuntime r;
  for (int i = 0; i < 5; ++i) r.call("sum", {2000});
  r.runtime->flush();
  std::string reason;
  for (const DecisionRecord& d : r.runtime->report().decisions) {
    if (d.action == "recompile" && d.reason.find("exit at") == 0) reason = d.reason;
  }
  EXPECT_EQ(reason,
            "exit at block 4 (unreached): 5 exits in a loop, the limit is 5 after 0 retries");
}

TEST(Deopt, the_report_and_the_decision_name_the_line) {
  jit::Module module = parse_or_die(kRare);
  jit::Function& f = module.functions[0];
  for (jit::Inst& i : f.insts) i.loc = 33;
  f.positions.add(33, {.file = f.positions.add_file("rare.calc"), .line = 4, .column = 9});
  ASSERT_TRUE(f.positions.finish().ok());
  RareRuntime r({}, std::move(module));
  for (int i = 0; i < 5; ++i) r.call("sum", {2000});
  r.runtime->flush();
  const Report report = r.runtime->report();
  const bool named = std::ranges::any_of(report.decisions, [](const DecisionRecord& d) {
    return d.reason.starts_with("exit at block 4 (unreached, @33, rare.calc:4:9): 5 exits");
  });
  EXPECT_TRUE(named);
  EXPECT_EQ(r.report_of("sum").exits[0].source, (SourcePositions{{"rare.calc", 4, 9, ""}}));
  EXPECT_NE(report.text().find("left at block 4 (unreached, rare.calc:4:9): 5"), std::string::npos)
      << report.text();
}

TEST(Deopt, code_to_leave_for_is_made_once_and_again_after_eviction) {
  RareRuntime r({{"trials", "off"}});  // trials keep baseline code for a while
  auto baseline = [&] {
    MethodReport m = r.report_of("sum");
    return std::ranges::count_if(m.versions, [](const VersionReport& v) {
      return v.tier == Tier::kBaseline && v.copy == Copy::kPlain && !v.retired;
    });
  };
  EXPECT_EQ(baseline(), 0);
  r.call("sum", {2000});
  EXPECT_EQ(baseline(), 1);
  r.call("sum", {2000});
  EXPECT_EQ(baseline(), 1);
}

// ---- Guards declared by the host ----------------------------------------------------------------

// Adds; on overflow it exits to the interpreter.
constexpr const char* kGuarded = R"(
func @add(i32, i32, f64) -> i64 {
b0(v0: i32, v1: i32, v2: f64):
  v3 = const.i64 77
  v4 = add_overflows.i32 v0, v1
  v5 = eqz.i32 v4
  frame_state pc=12 [v0, v3, v2, v1]
  guard v5, overflow @9
  v6 = add.i32 v0, v1
  v7 = extend_s.i64 v6
  return v7
}
)";

// A host whose method can be resumed in the middle.
class ResumingHost : public Host {
 public:
  ResumingHost(Runtime& runtime, jit::Module module, bool resumes = true)
      : module_(std::move(module)) {
    MethodInfo info{.key = {1, 0}, .name = "add", .signature = module_.functions[0].signature()};
    if (resumes) info.host_resume = &ResumingHost::resume;
    Result<MethodId> m = runtime.add_method(*this, std::move(info));
    EXPECT_TRUE(m.ok());
    method = *m;
    frames = 0;
    raises = false;
  }
  Status build(MethodId, FunctionBuilder& b) override {
    BuilderAccess::adopt(b, module_.functions[0]);
    return {};
  }

  // Adds in 64 bits.
  static uint64_t resume(const HostFrame* f) {
    ++frames;
    last = *f;
    slots.assign(f->slots, f->slots + f->slot_count);
    if (raises) Runtime::raise(TrapCode::kHost, 5);
    auto a = static_cast<int32_t>(slots[0]), b = static_cast<int32_t>(slots[3]);
    return static_cast<uint64_t>(int64_t{a} + b);
  }

  MethodId method;
  inline static uint64_t frames = 0;
  inline static HostFrame last;
  inline static std::vector<uint64_t> slots;
  inline static bool raises = false;

 private:
  jit::Module module_;
};

struct GuardRuntime {
  explicit GuardRuntime(std::initializer_list<std::pair<const char*, const char*>> set,
                        bool resumes = true) {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(options(set));
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
    host = std::make_unique<ResumingHost>(*runtime, parse_or_die(kGuarded), resumes);
  }
  ~GuardRuntime() { runtime.reset(); }
  Outcome add(int32_t a, int32_t b, uint64_t f = 0x3ff8000000000000) {
    uint64_t args[] = {static_cast<uint32_t>(a), static_cast<uint32_t>(b), f};
    return runtime->invoke(host->method, args);
  }
  MethodReport report() const { return runtime->report().methods[0]; }

  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<ResumingHost> host;
};

int64_t wide(uint64_t bits) { return static_cast<int64_t>(bits); }

void expect_resumed(GuardRuntime& r) {
  uint64_t before = ResumingHost::frames;
  EXPECT_EQ(wide(r.add(2000000000, 1000000000).bits), 3000000000);
  ASSERT_EQ(ResumingHost::frames, before + 1);
  EXPECT_EQ(ResumingHost::last.method, r.host->method);
  EXPECT_EQ(ResumingHost::last.pc, 12u);
  EXPECT_EQ(ResumingHost::last.reason, GuardReason::kOverflow);
  EXPECT_EQ(ResumingHost::slots,
            (std::vector<uint64_t>{2000000000, 77, 0x3ff8000000000000, 1000000000}));
}

TEST(Deopt, a_guard_that_fails_in_optimized_code_goes_on_in_the_host) {
  GuardRuntime r({{"tier", "optimized"}});
  EXPECT_EQ(r.add(40, 2).bits, 42u);
  EXPECT_EQ(ResumingHost::frames, 0u);
  expect_resumed(r);
  EXPECT_EQ(wide(r.add(-2000000000, -2000000000).bits), -4000000000);
}

TEST(Deopt, a_guard_that_fails_in_baseline_code_goes_on_in_the_host) {
  GuardRuntime r({{"tier", "baseline"}});
  EXPECT_EQ(r.add(40, 2).bits, 42u);
  expect_resumed(r);
}

TEST(Deopt, a_guard_that_fails_in_an_instrumented_copy_goes_on_in_the_host) {
  GuardRuntime r({{"tier", "instrumented"}});
  EXPECT_EQ(r.add(40, 2).bits, 42u);
  expect_resumed(r);
}

TEST(Deopt, a_host_that_is_resumed_may_raise_a_trap) {
  for (const char* tier : {"optimized", "baseline"}) {
    GuardRuntime r({{"tier", tier}});
    ResumingHost::raises = true;
    Outcome o = r.add(2000000000, 1000000000);
    EXPECT_EQ(o.trap.code, TrapCode::kHost);
    EXPECT_EQ(o.trap.detail, 5u);
    ResumingHost::raises = false;
    expect_resumed(r);
  }
}

TEST(Deopt, without_a_host_to_resume_a_guard_that_fails_ends_the_call) {
  for (const char* tier : {"optimized", "baseline"}) {
    GuardRuntime r({{"tier", tier}}, false);
    EXPECT_EQ(r.add(40, 2).bits, 42u);
    Outcome o = r.add(2000000000, 1000000000);
    EXPECT_EQ(o.trap.code, TrapCode::kGuardFailed) << tier;
    EXPECT_EQ(o.trap.location, 9u) << tier;
  }
}

// Each version is given up after 3, 6 and 12 exits; after the fourth, the method is not optimized
// again.
TEST(Deopt, a_guard_of_the_host_s_that_fails_often_keeps_the_method_in_baseline_code) {
  GuardRuntime r({{"policy", "always"}, {"workers", "0"}, {"exit_limit", "3"}});
  for (int i = 0; i < 100; ++i) r.add(i, 2);
  ASSERT_EQ(r.report().tier, Tier::kOptimized);
  for (int i = 0; i < 3 + 6 + 12 + 24; ++i) expect_resumed(r);
  MethodReport m = r.report();
  ASSERT_EQ(m.exits.size(), 1u);
  EXPECT_EQ(m.exits[0].guard, 1u);
  EXPECT_EQ(m.exits[0].exits, 45u);
  EXPECT_EQ(m.exits[0].location, 9u);
  EXPECT_TRUE(m.exits[0].banned);
  EXPECT_EQ(actions(r.runtime->report()),
            (std::vector<std::string>{"keep", "keep", "keep", "ban"}));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(r.add(i, 2).bits, static_cast<uint64_t>(i) + 2);
  r.runtime->flush();
  EXPECT_EQ(r.report().tier, Tier::kBaseline);
  expect_resumed(r);
}

TEST(Deopt, the_exits_that_are_too_many_may_be_others_while_it_runs) {
  GuardRuntime r({{"policy", "always"}, {"workers", "0"}, {"exit_limit", "1000000"}});
  for (int i = 0; i < 100; ++i) r.add(i, 2);
  ASSERT_EQ(r.report().tier, Tier::kOptimized);
  for (int i = 0; i < 10; ++i) expect_resumed(r);
  EXPECT_TRUE(actions(r.runtime->report()).empty());
  ASSERT_TRUE(r.runtime->set("exit_limit", "3").ok());
  ASSERT_TRUE(r.runtime->set("exit_retries", "0").ok());
  expect_resumed(r);
  EXPECT_EQ(actions(r.runtime->report()), (std::vector<std::string>{"ban"}));
  EXPECT_TRUE(r.report().exits[0].banned);
}

// ---- Stress -----------------------------------------------------------------------------------

TEST(Deopt, guards_that_hold_fail_when_stress_says_so) {
  GuardRuntime r({{"tier", "optimized"}, {"stress", "guard=every:2"}});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(wide(r.add(40, i).bits), 40 + i);
  StressCount guards = stress_count(r.runtime->report(), "guard");
  EXPECT_EQ(guards.points, 10u);
  EXPECT_EQ(guards.forced, 5u);
  EXPECT_EQ(ResumingHost::frames, 5u);
  EXPECT_TRUE(r.report().exits.empty()) << "what was forced does not count";
}

TEST(Deopt, exits_work_on_threads_that_are_not_attached) {
  IrRuntime r(parse_or_die(kRare), options({{"tier", "optimized"}, {"stress", "guard=every:3"}}));
  auto* f = reinterpret_cast<uint64_t (*)(int32_t)>(
      const_cast<void*>(r.runtime->entry_address(r.method("sum"))));
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(f(2000), sum_of(2000));
  });
  other.join();
  EXPECT_GT(stress_count(r.runtime->report(), "guard").forced, 0u);
}

// Threads exit while their code is replaced, evicted and compiled again.
TEST(Deopt, threads_leave_while_code_comes_and_goes) {
  IrRuntime r(parse_or_die(kRare), options({{"policy", "always"},
                                            {"flush_first", "2"},
                                            {"interval", "2"},
                                            {"stress", "guard=random:0.02:5,flip=every:3"},
                                            {"deopt_cold", "on"},
                                            {"cold_samples", "1"},
                                            {"pack_code", "off"},
                                            {"code_budget", "65536"}}));
  {
    ThreadScope scope(*r.runtime);
    for (int i = 0; i < 2000 && r.report_of("sum").tier != Tier::kOptimized; ++i) {
      ASSERT_EQ(r.call("sum", {40}).bits, sum_of(40));
      if (i > 100) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  auto run = [&](uint64_t seed) {
    ThreadScope scope(*r.runtime);
    for (uint64_t i = 0; i < 20'000; ++i) {
      uint64_t n = (i * seed) % 97 == 0 ? 1200 : i % 60;
      ASSERT_EQ(r.call("sum", {n}).bits, n == 0 ? 0 : sum_of(n));
    }
  };
  // On a busy machine the worker may come too late for the first rounds.
  for (int round = 0; round < 100 && stress_count(r.runtime->report(), "guard").forced == 0;
       ++round) {
    std::vector<std::thread> threads;
    for (uint64_t t = 1; t <= 4; ++t) threads.emplace_back(run, t);
    for (auto& t : threads) t.join();
  }
  EXPECT_GT(stress_count(r.runtime->report(), "guard").forced, 0u);
}

// ---- Frames that are called back --------------------------------------------------------------

// Stores the number of its round in the second word, and runs until the first word is set; a guard
// in the loop fails for one argument value only.
constexpr const char* kSpin = R"(
func @nothing() {
b0:
  return
}

func @spin(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.i32 0
  jump b1(v2)
b1(v3: i32):
  loop_header 0 pc=1 []
  v4 = const.i32 7
  v5 = ne.i32 v1, v4
  frame_state pc=2 []
  guard v5, value
  call @nothing()
  v7 = const.i32 1
  v8 = add.i32 v3, v7
  store.i32 v8, v0+4
  v6 = load.i32 v0
  branch v6, b2, b1(v8)
b2:
  return v8
}
)";

// One thread loops in optimized code. Calls on another one fail the guard until it is banned.
TEST(Deopt, a_frame_that_loops_in_code_that_is_given_up_is_called_back) {
  IrRuntime r(parse_or_die(kSpin), options({{"policy", "always"},
                                            {"flush_first", "1"},
                                            {"osr_out", "on"},
                                            {"trials", "off"},
                                            {"exit_limit_loop", "1"},
                                            {"exit_retries", "0"}}));
  std::atomic<int32_t> words[2] = {1, 0};
  std::atomic<int32_t>&stop = words[0], &round = words[1];
  auto word = reinterpret_cast<uint64_t>(words);
  auto wait = [&](auto done) {
    for (int i = 0; i < 2000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return done();
  };
  for (int i = 0; i < 50; ++i) EXPECT_EQ(r.call("spin", {word, 1}).bits, 1u);
  ASSERT_TRUE(wait([&] { return r.report_of("spin").tier == Tier::kOptimized; }));
  stop = round = 0;
  std::thread other([&] {
    ThreadScope scope(*r.runtime);
    r.call("spin", {word, 1});
  });
  EXPECT_TRUE(wait([&] { return round != 0; }));
  uint64_t left = r.report_of("spin").left;
  // If the worker is busy at an exit, the next exit bans the guard.
  auto banned = [&] { return !actions(r.runtime->report()).empty(); };
  for (int i = 0; i < 1000 && !banned(); ++i) {
    EXPECT_EQ(r.call("spin", {word, 7}).trap.code, TrapCode::kGuardFailed);
  }
  // The failing calls have exited; the other thread is called back.
  auto failed = [&] { return r.report_of("spin").exits.at(0).exits; };
  EXPECT_TRUE(wait([&] { return r.report_of("spin").left >= left + failed() + 1; }));
  stop = 1;
  other.join();
  MethodReport m = r.report_of("spin");
  EXPECT_EQ(m.exits.size(), 1u) << "to be called back is no exit of a site";
  EXPECT_EQ(actions(r.runtime->report()), (std::vector<std::string>{"ban"}));
  EXPECT_EQ(optimized_versions(m), 1u);
}

}  // namespace
}  // namespace uptier::test::deopt_runtime_test
