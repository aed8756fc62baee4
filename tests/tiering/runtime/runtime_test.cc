// The complete loop: stubs, samples, flushes, decisions, compilations, installs, OSR, reclamation.
#include "uptier/runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "jit/frontend/builder_access.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::runtime_test {
namespace {

// A recursive fib, and a triangular sum that spends its life in one call.
const std::string kText = std::string(kSumText) + R"(
func @fib(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 2
  v2 = lt_s.i32 v0, v1
  branch v2, b1, b2
b1:
  return v0
b2:
  v3 = const.i32 1
  v4 = sub.i32 v0, v3
  v5 = call @fib(v4)
  v6 = sub.i32 v0, v1
  v7 = call @fib(v6)
  v8 = add.i32 v5, v7
  return v8
}

func @leaf(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 7
  v2 = xor.i32 v0, v1
  return v2
}
)";

uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

TEST(Runtime, flushes_at_calls_32_64_128_to_the_call_and_accounts_for_every_call_at_the_end) {
  CollectingSink sink;
  Options o;
  o.gap = GapMode::kExact;
  o.interval = 1;
  o.policy = PolicyMode::kNever;
  {
    IrRuntime r(parse_or_die(kText), o, &sink);
    ThreadScope scope(*r.runtime);
    for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(r.call("leaf", {i}).bits, i ^ 7u);
  }
  EXPECT_TRUE(sink.finished);
  std::vector<uint64_t> calls;
  for (const FlushEvent& f : sink.all<FlushEvent>()) calls.push_back(f.calls);
  EXPECT_EQ(calls, (std::vector<uint64_t>{32, 64, 128, 256, 512, 1000}));
  EXPECT_EQ(sink.all<FlushEvent>().back().reason, FlushReason::kFinal);
  // The flush happens at the start of the 32nd call, so 31 calls are complete.
  EXPECT_EQ(sink.all<InstrumentationData>().front().data.size(), 8u);
  ProfileBuilder b;
  for (const TraceEvent& e : sink.events) ASSERT_TRUE(b.add(e).ok());
  const Profile p = b.profile();
  ASSERT_EQ(p.methods.size(), 1u);
  EXPECT_EQ(p.methods.begin()->second.calls, 1000u);
  EXPECT_EQ(p.methods.begin()->second.counts, std::vector<uint64_t>{1000});
}

TEST(Runtime, first_flush_and_growth_are_options) {
  CollectingSink sink;
  Options o;
  o.flush_first = 10;
  o.flush_growth = 3;
  o.policy = PolicyMode::kNever;
  {
    IrRuntime r(parse_or_die(kText), o, &sink);
    ThreadScope scope(*r.runtime);
    for (uint32_t i = 0; i < 300; ++i) r.call("leaf", {i});
  }
  std::vector<uint64_t> calls;
  for (const FlushEvent& f : sink.all<FlushEvent>()) calls.push_back(f.calls);
  EXPECT_EQ(calls, (std::vector<uint64_t>{10, 30, 90, 270, 300}));
}

TEST(Runtime, hot_method_is_optimized_and_its_baseline_code_is_freed) {
  Options o;
  o.interval = 4;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  MethodReport m;
  // The worker may have to wait for a processor.
  auto on_trial = [](const VersionReport& v) { return v.tier == Tier::kBaseline && !v.freed; };
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(r.call("fib", {22}).bits, fib(22));
    r.runtime->flush();
    m = r.report_of("fib");
    if (m.tier == Tier::kOptimized && std::ranges::none_of(m.versions, on_trial)) break;
  }
  EXPECT_EQ(r.call("fib", {22}).bits, fib(22));
  m = r.report_of("fib");
  EXPECT_EQ(m.tier, Tier::kOptimized);
  EXPECT_GT(m.calls, 0u);
  EXPECT_GT(m.flushes, 0u);
  for (const VersionReport& v : m.versions) {
    EXPECT_EQ(v.freed, v.tier == Tier::kBaseline) << "copy " << copy_name(v.copy);
  }
  EXPECT_GT(r.runtime->report().code_bytes_freed, 0u);
}

TEST(Runtime, decisions_say_what_and_why) {
  Options o;
  o.workers = 0;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  for (int i = 0; i < 20; ++i) r.call("fib", {20});
  Report report = r.runtime->report();
  ASSERT_FALSE(report.decisions.empty());
  bool specialized = false;
  for (const DecisionRecord& d : report.decisions) {
    EXPECT_FALSE(d.reason.empty());
    specialized |= d.action == "specialize" && d.method_name == "fib";
  }
  EXPECT_TRUE(specialized);
}

TEST(Runtime, program_that_lives_in_one_call_leaves_the_baseline_by_osr) {
  Options o;
  o.workers = 0;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  uint64_t n = 20'000'000;
  EXPECT_EQ(r.call("sum", {n}).bits, n * (n + 1) / 2);
  MethodReport m = r.report_of("sum");
  EXPECT_EQ(m.osr_entries, 1u);
  r.runtime->flush();
  EXPECT_EQ(r.report_of("sum").calls, 1u);
}

TEST(Runtime, policy_never_never_optimizes_and_always_does) {
  for (PolicyMode mode : {PolicyMode::kNever, PolicyMode::kAlways}) {
    Options o;
    o.policy = mode;
    o.workers = 0;
    IrRuntime r(parse_or_die(kText), o);
    ThreadScope scope(*r.runtime);
    for (uint32_t i = 0; i < 100; ++i) r.call("leaf", {i});
    Tier want = mode == PolicyMode::kAlways ? Tier::kOptimized : Tier::kBaseline;
    EXPECT_EQ(r.report_of("leaf").tier, want);
  }
}

TEST(Runtime, two_threads_count_exactly_in_exact_mode) {
  Options o;
  o.gap = GapMode::kExact;
  o.interval = 1;
  o.policy = PolicyMode::kNever;
  IrRuntime r(parse_or_die(kText), o);
  constexpr uint32_t kCalls = 50'000;
  auto work = [&] {
    ThreadScope scope(*r.runtime);
    auto* leaf = r.runtime->entry<uint32_t(uint32_t)>(r.method("leaf"));
    for (uint32_t i = 0; i < kCalls; ++i) ASSERT_EQ(leaf(i), i ^ 7u);
  };
  std::thread other(work);
  work();
  other.join();
  r.runtime->flush();
  EXPECT_EQ(r.report_of("leaf").calls, 2 * kCalls);
  EXPECT_EQ(r.counts("leaf"), std::vector<uint64_t>{2 * kCalls});
}

std::vector<uint64_t> blocks_of(const IrRuntime& r, const std::string& name) {
  std::vector<uint64_t> counts = r.counts(name);
  counts.resize(r.module.functions[r.module.find(name).index()].block_sites);
  return counts;
}

TEST(Runtime, two_threads_count_exactly_in_counters_of_their_own) {
  Options o;
  o.tier = TierMode::kInstrumented;
  IrRuntime r(parse_or_die(kText), o);
  auto work = [&] {
    ThreadScope scope(*r.runtime);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(r.call("fib", {15}).bits, fib(15));
  };
  std::thread other(work);
  work();
  other.join();
  jit::Interpreter oracle(r.module);
  std::vector<uint64_t> args{15};
  for (int i = 0; i < 100; ++i) oracle.run(r.module.find("fib"), args);
  auto want = oracle.site_counts(r.module.find("fib")).first(3);
  EXPECT_EQ(blocks_of(r, "fib"), std::vector<uint64_t>(want.begin(), want.end()));
}

TEST(Runtime, two_threads_run_while_versions_are_installed_and_freed) {
  Options o;
  o.interval = 3;
  o.policy = PolicyMode::kAlways;
  for (int round = 0; round < 20; ++round) {
    IrRuntime r(parse_or_die(kText), o);
    std::atomic<uint64_t> wrong{0};
    auto work = [&] {
      ThreadScope scope(*r.runtime);
      for (uint32_t i = 0; i < 300; ++i) {
        wrong += r.call("fib", {10}).bits != 55;
        wrong += r.call("sum", {1000}).bits != 500500;
        wrong += r.call("leaf", {i}).bits != (i ^ 7u);
      }
    };
    std::thread other(work);
    work();
    other.join();
    r.runtime->flush();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(r.report_of("leaf").tier, Tier::kOptimized);
    EXPECT_GT(r.runtime->report().code_bytes_freed, 0u);
  }
}

TEST(Runtime, failed_optimization_is_reported_and_the_method_runs_on) {
  Options o;
  o.policy = PolicyMode::kAlways;
  o.workers = 0;
  o.stress = "compile=from:2";  // the method's first code needs one compilation, which succeeds
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(r.call("leaf", {i}).bits, i ^ 7u);
  Report report = r.runtime->report();
  EXPECT_EQ(r.report_of("leaf").tier, Tier::kBaseline);
  EXPECT_FALSE(r.report_of("leaf").last_error.empty());
  EXPECT_GT(report.losses.compiles_failed, 0u);
  EXPECT_GT(stress_count(report, "compile").forced, 0u);
}

TEST(Runtime, refused_code_memory_leaves_methods_in_the_code_they_have) {
  Options o;
  o.policy = PolicyMode::kAlways;
  o.workers = 0;
  o.stress = "code=from:2";
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(r.call("leaf", {i}).bits, i ^ 7u);
  EXPECT_EQ(r.report_of("leaf").tier, Tier::kBaseline);
  EXPECT_GT(r.runtime->report().losses.code_refused, 0u);
}

TEST(Runtime, unattached_thread_calls_entries_unobserved) {
  Options o;
  IrRuntime r(parse_or_die(kText), o);
  auto* leaf = r.runtime->entry<uint32_t(uint32_t)>(r.method("leaf"));
  auto* sum = r.runtime->entry<uint64_t(uint64_t)>(r.method("sum"));
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(leaf(i), i ^ 7u);
  EXPECT_EQ(sum(100'000), 5'000'050'000u);
  r.runtime->flush();
  EXPECT_EQ(r.report_of("leaf").calls, 0u);
}

TEST(Runtime, shows_the_ir_of_a_method) {
  IrRuntime r(parse_or_die(kText), Options());
  Result<std::string> text = r.runtime->ir(r.method("leaf"));
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("func @leaf(i32) -> i32"), std::string::npos) << *text;
  EXPECT_NE(text->find("xor.i32 v0, v1"), std::string::npos) << *text;
}

uint32_t host_leaf(uint32_t x) { return x ^ 7u; }

class LeafHost : public Host {
 public:
  explicit LeafHost(const jit::Module& m) : module_(m) {}
  Status build(MethodId, FunctionBuilder& b) override {
    BuilderAccess::adopt(b, module_.functions[module_.find("leaf").index()]);
    return {};
  }

 private:
  const jit::Module& module_;
};

TEST(Runtime, method_with_host_code_starts_there_and_leaves_it_when_called_often) {
  jit::Module module = parse_or_die(kText);
  LeafHost host(module);
  Options o;
  o.workers = 0;
  Result<std::unique_ptr<Runtime>> made = Runtime::create(o);
  ASSERT_TRUE(made.ok());
  std::unique_ptr<Runtime> runtime = std::move(*made);
  Signature s = module.functions[module.find("leaf").index()].signature();
  MethodInfo info{{1, 1}, "leaf", s, reinterpret_cast<const void*>(host_leaf)};
  MethodId m = *runtime->add_method(host, info);
  ThreadScope scope(*runtime);
  for (uint32_t i = 0; i < 31; ++i) {
    std::vector<uint64_t> args{i};
    ASSERT_EQ(runtime->invoke(m, args).bits, i ^ 7u);
  }
  EXPECT_TRUE(runtime->report().methods.empty());
  for (uint32_t i = 0; i < 100; ++i) {
    std::vector<uint64_t> args{i};
    ASSERT_EQ(runtime->invoke(m, args).bits, i ^ 7u);
  }
  ASSERT_EQ(runtime->report().methods.size(), 1u);
  EXPECT_EQ(runtime->report().methods[0].tier, Tier::kBaseline);
}

TEST(Runtime, removed_method_is_flushed_and_its_code_freed) {
  CollectingSink sink;
  Options o;
  IrRuntime r(parse_or_die(kText), o, &sink);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 40; ++i) r.call("leaf", {i});
  std::vector<MethodId> gone{r.method("leaf")};
  r.runtime->remove_methods(gone);
  r.runtime->quiescent();
  auto flushes = sink.all<FlushEvent>();
  ASSERT_FALSE(flushes.empty());
  EXPECT_EQ(flushes.back().reason, FlushReason::kFinal);
  EXPECT_EQ(flushes.back().calls, 40u);
  for (const VersionReport& v : r.report_of("leaf").versions) EXPECT_TRUE(v.freed);
}

// Both copies exist before the first call runs.
TEST(Runtime, interval_1_misses_no_call_with_a_worker) {
  Options o;
  o.interval = 1;
  o.adaptive = false;
  o.policy = PolicyMode::kNever;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(r.call("fib", {1}).bits, 1u);
  r.runtime->flush();
  EXPECT_EQ(r.counts("fib")[0], 50u);
}

// With rates that may pause, and without counters.
TEST(Runtime, body_of_one_block_counts_by_its_calls) {
  Options o;
  o.policy = PolicyMode::kNever;
  o.workers = 0;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(r.call("leaf", {i}).bits, i ^ 7u);
  r.runtime->flush();
  EXPECT_EQ(r.counts("leaf"), std::vector<uint64_t>{1000});
}

// Each call comes from a new thread, which never reaches a flush point.
TEST(Runtime, method_that_only_short_lived_threads_call_gets_hot) {
  Options o;
  o.policy = PolicyMode::kAlways;
  IrRuntime r(parse_or_die("func @f(i64) -> i64 {\nb0(v0: i64):\n  return v0\n}\n"), o);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(r.runtime->invoke(r.host->method(MethodId(0)), {{i}}).bits, i);
  }
  r.runtime->flush();
  Report report = r.runtime->report();
  EXPECT_EQ(report.methods[0].tier, Tier::kOptimized);
  EXPECT_LT(report.decisions.size(), 50u) << "threads that change nothing leave no record";
}

// Nor does any of them take a sample, for which the policy would wait in vain.
TEST(Runtime, loop_that_only_short_lived_threads_run_gets_hot) {
  Options o;
  o.workers = 1;
  o.measure_rates = false;  // the decision does not depend on the machine
  IrRuntime r(parse_or_die(R"(
func @f(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 0
  jump b1(v1)
b1(v2: i64):
  loop_header 0 pc=0 []
  v3 = const.i64 1
  v4 = add.i64 v2, v3
  v5 = lt_u.i64 v4, v0
  branch v5, b1(v4), b2
b2:
  return v4
}
)"),
              o);
  for (uint64_t i = 0; i < 400; ++i) {
    ASSERT_EQ(r.runtime->invoke(r.host->method(MethodId(0)), {{1000}}).bits, 1000u);
  }
  r.runtime->flush();
  Report report = r.runtime->report();
  EXPECT_EQ(report.methods[0].tier, Tier::kOptimized);
  EXPECT_LT(report.decisions.size(), 50u);
}

TEST(Runtime, opt_range_says_what_may_be_optimized) {
  jit::Module m = parse_or_die(
      "func @f(i64) -> i64 {\nb0(v0: i64):\n  return v0\n}\n"
      "func @g(i64) -> i64 {\nb0(v0: i64):\n  return v0\n}\n");
  auto run = [&](const std::string& range, TierMode tier) {
    Options o;
    o.tier = tier;
    o.policy = PolicyMode::kAlways;
    o.workers = 0;
    EXPECT_TRUE(o.set("opt_range", range).ok()) << range;
    IrRuntime r(m, o);
    ThreadScope scope(*r.runtime);
    for (uint64_t i = 0; i < 100; ++i) {
      for (uint32_t k : {0u, 1u}) r.runtime->invoke(r.host->method(MethodId(k)), {{i}});
    }
    return r.runtime->report().methods;
  };
  std::vector<MethodReport> all = run("", TierMode::kAuto);
  ASSERT_EQ(all.size(), 2u);
  ASSERT_NE(all[0].hash, all[1].hash);
  char range[40];
  std::snprintf(range, sizeof range, "%llx..%llx", static_cast<unsigned long long>(all[0].hash),
                static_cast<unsigned long long>(all[0].hash));
  for (TierMode tier : {TierMode::kAuto, TierMode::kOptimized}) {
    for (const MethodReport& method : run(range, tier)) {
      EXPECT_EQ(method.tier, method.hash == all[0].hash ? Tier::kOptimized : Tier::kBaseline);
    }
  }
  Options o;
  for (const char* wrong : {"1", "1..", "..1", "2..1", "x..y", "1...2", "0..10000000000000000"}) {
    EXPECT_EQ(o.set("opt_range", wrong).error().code, ErrorCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace uptier::test::runtime_test
