// Options that can change while threads run, and that each change has its effect.
#include <cstdio>
#include <set>

#include "test_paths.h"
#include "tests/support/runtime_host.h"
#include "tests/support/workshop.h"
#include "uptier/policy.h"

namespace uptier::test::live_settings_test {
namespace {

// The same list as in docs/embedding.md.
const std::set<std::string> kSettable = {"interval",         "burst",
                                         "overhead_budget",  "optimized_interval",
                                         "flush_first",      "flush_growth",
                                         "loop_flush_first", "policy",
                                         "epsilon",          "min_samples",
                                         "speedup",          "compile_ns",
                                         "baseline_ns",      "drift_samples",
                                         "exit_limit",       "exit_limit_loop",
                                         "exit_retries",     "value_share",
                                         "value_samples",    "miss_share",
                                         "max_recompiles",   "observe_optimized",
                                         "value_versions",   "trials",
                                         "deopt_cold",       "cold_samples",
                                         "removed_kept",     "decisions_kept",
                                         "max_queue",        "profile_decay",
                                         "profile_sync",     "code_budget",
                                         "sample_hz",        "find"};

TEST(LiveSettings, an_option_is_settable_or_for_life) {
  Result<std::unique_ptr<Runtime>> r = Runtime::create(Options());
  ASSERT_TRUE(r.ok());
  std::set<std::string> names;
  std::string lines = Options().table();
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    if (lines[at] != ' ' && lines[at] != '-')
      names.insert(lines.substr(at, lines.find(' ', at) - at));
  }
  ASSERT_GT(names.size(), 50u);
  for (const std::string& name : kSettable) EXPECT_TRUE(names.contains(name)) << name;
  // Sets each option to a value that it accepts.
  for (const std::string& name : names) {
    Status done{};
    for (const char* value :
         {"0.5", "1", "65536", "auto", "blocks", "random", "dual", "task_clock", "counts", ""}) {
      Options o;
      if (!o.set(name, value).ok()) continue;
      done = (*r)->set(name, value);
      break;
    }
    if (kSettable.contains(name)) {
      EXPECT_TRUE(done.ok()) << name << ": " << done.error().message;
    } else {
      ASSERT_FALSE(done.ok()) << name;
      EXPECT_EQ(done.error().code, ErrorCode::kUnsupported) << name;
    }
  }
}

TEST(LiveSettings, docs_name_every_one) {
  FILE* f = std::fopen(UPTIER_SOURCE_DIR "/docs/embedding.md", "rb");
  ASSERT_NE(f, nullptr);
  std::string text(1 << 20, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), f));
  std::fclose(f);
  for (const std::string& name : kSettable) {
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(LiveSettings, what_this_runtime_cannot_change_is_refused) {
  struct Case {
    std::pair<const char*, const char*> made_with;
    const char* name;
    const char* value;
  };
  for (const Case& c :
       {Case{{"interval", "1"}, "burst", "64"}, Case{{"gap", "exact"}, "burst", "64"},
        Case{{"adaptive", "off"}, "optimized_interval", "64"},
        Case{{"adaptive", "off"}, "observe_optimized", "on"},
        Case{{"value_versions", "off"}, "value_versions", "on"},
        Case{{"code_budget", "1000000"}, "code_budget", "1000001"}}) {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(options({c.made_with}));
    ASSERT_TRUE(r.ok());
    Status s = (*r)->set(c.name, c.value);
    ASSERT_FALSE(s.ok()) << c.name;
    EXPECT_EQ(s.error().code, ErrorCode::kUnsupported) << c.name;
    EXPECT_TRUE((*r)->report().decisions.empty()) << c.name;
  }
}

// ---- Flushes and bursts -----------------------------------------------------------------------

struct Sums {
  explicit Sums(const Options& o) : host(parse_or_die(kSumText), o, &sink), thread(*host.runtime) {}

  void call(uint64_t times, uint64_t rounds) {
    for (uint64_t i = 0; i < times; ++i) {
      ASSERT_EQ(host.call("sum", {rounds}).bits, rounds * (rounds + 1) / 2);
    }
  }
  void set(const char* name, const char* value) {
    Status s = host.runtime->set(name, value);
    ASSERT_TRUE(s.ok()) << s.error().message;
  }
  // Returns the number of flushes in the trace so far.
  size_t flushes(FlushReason why) const {
    size_t n = 0;
    for (const FlushEvent& f : sink.all<FlushEvent>()) n += f.reason == why;
    return n;
  }

  CollectingSink sink;
  IrRuntime host;
  ThreadScope thread;
};

Options baseline_rates(const char* adaptive) {
  return options({{"adaptive", adaptive},
                  {"interval", "4"},
                  {"policy", "never"},
                  {"flow", "blocks"},
                  {"overhead_budget", "0"},
                  {"workers", "0"}});
}

// The next flush was planned after 131,072 calls. A thread notices the new setting at its next
// sample.
TEST(LiveSettings, flushes_by_calls_come_sooner_at_once) {
  for (const char* adaptive : {"off", "on"}) {
    Sums s(baseline_rates(adaptive));
    s.call(100'000, 2);
    size_t before = s.flushes(FlushReason::kCalls);
    s.set("flush_growth", "1");
    s.set("flush_first", "1000");
    s.call(26'000, 2);
    size_t came = s.flushes(FlushReason::kCalls) - before;
    // The first flush comes at the latest when the calls have grown by a quarter, which is 25,000
    // here. At fixed rates samples are dense, so it comes much earlier.
    EXPECT_GE(came, adaptive[1] == 'f' ? 20u : 1u) << adaptive;
    before = s.flushes(FlushReason::kCalls);
    s.call(100'000, 2);
    came = s.flushes(FlushReason::kCalls) - before;
    EXPECT_GE(came, 95u) << adaptive;
    EXPECT_LE(came, 110u) << adaptive;
  }
}

// ---- When a profile is known --------------------------------------------------------------------

// Calls with differing profiles: one call does not show the average share of the loop's body.
void call_unlike(Sums& s, uint64_t times) {
  for (uint64_t i = 0; i < times; ++i) s.call(1, 1 + (i * i + i / 7) % 5);
}

Options known_at(const char* epsilon) {
  Options o = baseline_rates("on");
  o.flush_first = 500;
  o.flush_growth = 1;
  EXPECT_TRUE(o.set("epsilon", epsilon).ok());
  return o;
}

TEST(LiveSettings, epsilon_says_when_a_profile_is_known) {
  Sums wide(known_at("0.5")), fine(known_at("0.0005"));
  call_unlike(wide, 3'000);
  EXPECT_EQ(wide.host.report_of("sum").observing, Observing::kKnown);
  call_unlike(fine, 100'000);
  EXPECT_EQ(fine.host.report_of("sum").observing, Observing::kLearning);
  EXPECT_LT(fine.host.report_of("sum").error_bound.value_or(1), 0.02)
      << "which is known by default";
}

TEST(LiveSettings, a_narrower_epsilon_has_a_known_profile_learnt_on) {
  Sums s(known_at("0.5"));
  call_unlike(s, 3'000);
  ASSERT_EQ(s.host.report_of("sum").observing, Observing::kKnown);
  double before = s.host.report_of("sum").error_bound.value_or(0);
  s.set("epsilon", "0.0005");
  EXPECT_EQ(s.host.report_of("sum").observing, Observing::kLearning);
  call_unlike(s, 100'000);
  EXPECT_EQ(s.host.report_of("sum").observing, Observing::kLearning);
  EXPECT_LT(s.host.report_of("sum").error_bound.value_or(1), before) << "it was learnt from";
  s.set("epsilon", "0.5");
  call_unlike(s, 3'000);
  EXPECT_EQ(s.host.report_of("sum").observing, Observing::kKnown);
}

// The flush that was planned before still happens; later ones are rare.
TEST(LiveSettings, flushes_become_seldom) {
  Sums s(options({{"adaptive", "off"},
                  {"policy", "never"},
                  {"flush_growth", "1"},
                  {"flush_first", "1000"},
                  {"workers", "0"}}));
  s.call(50'000, 2);
  EXPECT_GE(s.flushes(FlushReason::kCalls), 49u);
  s.set("flush_first", "1000000");
  s.call(2'000, 2);
  size_t before = s.flushes(FlushReason::kCalls);
  s.call(100'000, 2);
  EXPECT_LE(s.flushes(FlushReason::kCalls), before + 1);
}

TEST(LiveSettings, flushes_by_iterations_come_sooner) {
  Sums s(baseline_rates("off"));
  s.call(10, 1'000'000);
  size_t before = s.flushes(FlushReason::kLoops);
  s.set("flush_growth", "1");
  s.set("loop_flush_first", "10000");
  s.call(1, 1'000'000);
  size_t came = s.flushes(FlushReason::kLoops) - before;
  EXPECT_GE(came, 85u);
  EXPECT_LE(came, 110u);
}

TEST(LiveSettings, bursts_get_another_length_at_fixed_rates) {
  Sums s(baseline_rates("off"));
  s.call(10, 1'000'000);
  s.host.runtime->flush();
  MethodReport before = s.host.report_of("sum");
  EXPECT_NEAR(static_cast<double>(before.bursts), 1e7 / (4 * 32), 4'000);
  s.set("burst", "320");
  s.call(1, 1'000'000);
  s.host.runtime->flush();
  uint64_t from = s.host.report_of("sum").bursts;
  s.call(10, 1'000'000);
  s.host.runtime->flush();
  MethodReport m = s.host.report_of("sum");
  EXPECT_NEAR(static_cast<double>(m.bursts - from), 1e7 / (4 * 320), 1'000);
  // Each burst stands for the iterations it was sampled from.
  Profile p = s.host.runtime->profile();
  const MethodProfile& sum = p.methods.begin()->second;
  EXPECT_NEAR(sum.estimate(SlotKind::kBlock, 2)->total / 21e6, 1, 0.05);
}

// Streams that are already observed keep the burst length that their weights are based on.
TEST(LiveSettings, bursts_of_rates_that_adapt_are_those_of_what_is_observed_later) {
  Sums s(baseline_rates("on"));
  s.set("burst", "1000");
  s.call(1, 3'000'000);
  s.host.runtime->flush();
  MethodReport m = s.host.report_of("sum");
  ASSERT_GT(m.bursts, 0u);
  Profile p = s.host.runtime->profile();
  EXPECT_NEAR(p.methods.begin()->second.estimate(SlotKind::kBlock, 2)->total / 3e6, 1, 0.1);
  EXPECT_GE(p.methods.begin()->second.counts[1] / m.bursts, 500u) << "long ones";
}

// ---- Settings of the policy, and limits on kept records
// -------------------------------------------

TEST(LiveSettings, a_log_replays_with_what_was_set) {
  Options o = options({{"workers", "0"}, {"measure_rates", "off"}, {"value_samples", "1000000"}});
  Sums s(o);
  s.call(3'000, 40);
  s.set("min_samples", "1000000000");
  s.call(3'000, 40);
  s.set("min_samples", "2");
  s.set("max_recompiles", "1000");
  s.set("exit_limit", "7");
  s.set("value_samples", "16");
  s.set("value_share", "0.6");
  s.set("miss_share", "0.4");
  s.call(20'000, 40);
  size_t answers = 0, sets = 0;
  for (const DecisionRecord& d : s.host.runtime->report().decisions) {
    if (d.action == "set") {
      ASSERT_TRUE(o.set(d.reason).ok());
      ++sets;
    }
    if (d.inputs.empty()) continue;
    ++answers;
    Result<DecisionRecord> again = replay(d, PolicyOptions::from(o));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->action, d.action) << d.inputs;
    EXPECT_EQ(again->reason, d.reason) << d.inputs;
  }
  EXPECT_EQ(sets, 7u);
  EXPECT_GT(answers, 5u);
}

TEST(LiveSettings, decisions_that_are_too_many_go_at_once) {
  Sums s(options({{"workers", "0"}, {"policy", "never"}, {"adaptive", "off"}}));
  s.call(100'000, 3);
  ASSERT_GT(s.host.runtime->report().decisions.size(), 5u);
  s.set("decisions_kept", "3");
  Report r = s.host.runtime->report();
  ASSERT_EQ(r.decisions.size(), 3u);
  EXPECT_EQ(r.decisions.back().reason, "decisions_kept=3");
  EXPECT_EQ(r.losses.decisions_forgotten, r.decisions.front().sequence - 1);
}

TEST(LiveSettings, removed_methods_are_kept_as_long_as_is_said_now) {
  Workshop w(options({{"workers", "0"}, {"removed_kept", "1000"}}));
  ThreadScope scope(*w.runtime);
  auto come_and_go = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) w.remove(w.adder(i));
  };
  come_and_go(200);
  EXPECT_EQ(w.runtime->report().losses.methods_forgotten, 0u);
  ASSERT_TRUE(w.runtime->set("removed_kept", "0").ok());
  come_and_go(200);
  EXPECT_GE(w.runtime->report().losses.methods_forgotten, 150u);
}

}  // namespace
}  // namespace uptier::test::live_settings_test
