// Settings that change while threads run, and a host's own policies.
#include <atomic>
#include <set>
#include <thread>

#include "tests/support/runtime_host.h"
#include "uptier/policy.h"

namespace uptier::test::live_test {
namespace {

constexpr const char* kPair = R"(
func @twice(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 1
  v2 = and.i64 v0, v1
  v3 = eq.i64 v1, v2
  branch v3, b1, b2
b1:
  v4 = add.i64 v0, v0
  return v4
b2:
  return v0
}
func @sum(i64) -> i64 {
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
)";

class Live : public testing::Test {
 protected:
  void start(const Options& o, Policy* policy = nullptr) {
    thread_.reset();
    host_ = std::make_unique<IrRuntime>(parse_or_die(kPair), o, nullptr, policy);
    thread_ = std::make_unique<ThreadScope>(*host_->runtime);
  }
  void call(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      ASSERT_EQ(host_->call("twice", {i}).bits, i % 2 == 1 ? 2 * i : i);
    }
  }
  void loop(uint64_t times, uint64_t rounds) {
    for (uint64_t i = 0; i < times; ++i) ASSERT_EQ(host_->call("sum", {rounds}).bits, rounds);
  }
  void set(const char* name, const char* value) {
    Status s = host_->runtime->set(name, value);
    ASSERT_TRUE(s.ok()) << s.error().message;
  }
  void observe(Sampling how) { ASSERT_TRUE(host_->runtime->observe(how).ok()); }
  // Returns the number of sampled calls of `twice` so far.
  uint64_t sampled() {
    host_->runtime->flush();
    return host_->report_of("twice").sampled_calls;
  }
  uint64_t sampled_in(uint64_t calls) {
    uint64_t before = sampled();
    call(calls);
    return sampled() - before;
  }
  ErrorCode refusal(const char* name, const char* value) {
    Status s = host_->runtime->set(name, value);
    return s.ok() ? ErrorCode{} : s.error().code;
  }
  std::vector<std::string> changes() {
    std::vector<std::string> found;
    for (const DecisionRecord& d : host_->runtime->report().decisions) {
      if (d.action == "set") found.push_back(d.reason);
    }
    return found;
  }
  double estimate() {
    host_->runtime->flush();
    Profile p = host_->runtime->profile();
    for (const auto& [key, m] : p.methods) {
      if (m.name == "twice") return m.estimate(SlotKind::kBlock, 1)->total;
    }
    return 0;
  }

  std::unique_ptr<IrRuntime> host_;
  std::unique_ptr<ThreadScope> thread_;
};

Options fixed_rates() {
  return options({{"adaptive", "off"},
                  {"interval", "4"},
                  {"policy", "never"},
                  {"flow", "blocks"},
                  {"workers", "0"}});
}
Options adaptive_rates() { return options({{"policy", "never"}, {"workers", "0"}}); }

// A thread notices the change at the latest when its calls have grown by a quarter.
TEST_F(Live, interval_changes_for_all_methods) {
  start(fixed_rates());
  EXPECT_NEAR(static_cast<double>(sampled_in(100'000)), 25'000, 1'000);
  set("interval", "100");
  call(50'000);
  EXPECT_NEAR(static_cast<double>(sampled_in(100'000)), 1'000, 200);
  EXPECT_EQ(host_->report_of("twice").interval, 100u);
  set("interval", "1");
  call(100'000);
  EXPECT_EQ(sampled_in(10'000), 10'000u);
  EXPECT_EQ(changes(), (std::vector<std::string>{"interval=100", "interval=1"}));
  EXPECT_NEAR(estimate(), 360'000, 15'000) << "each window by its own rate";
}

TEST_F(Live, sampling_goes_off_and_on_again_with_fixed_rates) {
  start(fixed_rates());
  call(10'000);
  observe(Sampling::kOff);
  call(5'000);
  EXPECT_EQ(sampled_in(50'000), 0u);
  EXPECT_EQ(host_->report_of("twice").interval, 0u);
  observe(Sampling::kEvery);
  call(50'000);
  EXPECT_EQ(sampled_in(20'000), 20'000u);
  observe(Sampling::kByOptions);
  call(50'000);
  EXPECT_NEAR(static_cast<double>(sampled_in(100'000)), 25'000, 1'000);
}

TEST_F(Live, sampling_goes_off_and_on_again_with_rates_that_adapt) {
  start(adaptive_rates());
  call(10'000);
  observe(Sampling::kOff);
  call(5'000);
  EXPECT_EQ(sampled_in(200'000), 0u);
  observe(Sampling::kEvery);
  call(200'000);
  EXPECT_EQ(sampled_in(200'000), 200'000u);
  observe(Sampling::kByOptions);
  call(400'000);
  uint64_t thin = sampled_in(400'000);
  EXPECT_LT(thin, 100'000u);
  EXPECT_NEAR(estimate() / 1'415'000, 1, 0.1) << "what ran unsampled is given to what follows";
}

TEST_F(Live, methods_that_come_later_go_by_it_too) {
  start(fixed_rates());
  observe(Sampling::kOff);
  call(5'000);
  EXPECT_EQ(sampled(), 0u);
}

TEST_F(Live, what_a_runtime_has_for_life_is_refused) {
  start(adaptive_rates());
  EXPECT_EQ(refusal("workers", "1"), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("overhead_budget", "0"), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("overhead_budget", "7"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal("interval", "0"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal("intervall", "1"), ErrorCode::kNotFound);
  EXPECT_TRUE(changes().empty());
  set("overhead_budget", "0.05");
  EXPECT_EQ(changes().size(), 1u);
  for (auto one : {std::pair{"interval", "1"}, {"gap", "exact"}, {"tier", "baseline"}}) {
    start(options({one}));
    EXPECT_EQ(refusal("interval", "8"), ErrorCode::kUnsupported) << one.first;
    EXPECT_FALSE(host_->runtime->observe(Sampling::kOff).ok()) << one.first;
  }
}

TEST_F(Live, the_policy_changes_its_mind_and_the_log_replays_on_either_side) {
  Options o = adaptive_rates();
  start(o);
  call(100'000);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kBaseline);
  set("policy", "always");
  call(100'000);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kOptimized);
  size_t answers = 0;
  for (const DecisionRecord& d : host_->runtime->report().decisions) {
    if (d.action == "set") { ASSERT_TRUE(o.set(d.reason).ok()); }
    if (d.inputs.empty()) continue;
    ++answers;
    Result<DecisionRecord> again = replay(d, PolicyOptions::from(o));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->action, d.action) << d.inputs;
    EXPECT_EQ(again->reason, d.reason) << d.inputs;
  }
  EXPECT_GT(answers, 2u);
}

TEST_F(Live, threads_go_on_while_everything_changes) {
  Options o;
  o.workers = 1;
  start(o);
  std::atomic<bool> stop{false}, wrong{false};
  auto run = [&] {
    ThreadScope scope(*host_->runtime);
    for (uint64_t i = 0; !stop; ++i) {
      wrong = wrong || host_->call("twice", {i}).bits != (i % 2 == 1 ? 2 * i : i);
      wrong = wrong || host_->call("sum", {i % 200 + 1}).bits != i % 200 + 1;
    }
  };
  std::thread one(run), two(run);
  const char* intervals[] = {"1", "7", "64", "1000", "16"};
  for (int i = 0; i < 300; ++i) {
    set("interval", intervals[i % 5]);
    set("policy", i % 2 == 0 ? "never" : "auto");
    set("overhead_budget", i % 3 == 0 ? "0.001" : "0.1");
    set("flush_first", i % 2 == 0 ? "8" : "1000");
    set("flush_growth", i % 5 == 0 ? "1" : "3");
    set("loop_flush_first", i % 2 == 0 ? "64" : "100000");
    set("burst", i % 3 == 0 ? "1" : "128");
    set("optimized_interval", i % 2 == 0 ? "16" : "1024");
    set("exit_limit", i % 2 == 0 ? "1" : "1000");
    set("deopt_cold", i % 4 == 0 ? "on" : "off");
    observe(static_cast<Sampling>(i % 3));
    std::this_thread::yield();
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_FALSE(wrong);
}

// ---- A host's own policy
// -------------------------------------------------------------------------

class Chosen : public Policy {
 public:
  Decision decide(const MethodSnapshot& m, const SystemSnapshot&, const PolicyOptions&) override {
    ++asked;
    Decision d = next;
    if (d.osr_loop.valid() && here) d.osr_loop = m.at_loop;
    d.reason = "chosen";
    return d;
  }
  Decision next;
  bool here = false;
  int asked = 0;
};

TEST_F(Live, a_policy_of_the_hosts_decides) {
  Chosen policy;
  start(options({{"workers", "0"}}), &policy);
  call(100'000);
  EXPECT_GT(policy.asked, 5);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kBaseline);
  policy.next.action = Action::kSpecialize;
  call(100'000);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kOptimized);
  for (const DecisionRecord& d : host_->runtime->report().decisions) {
    bool asked = d.inputs.starts_with("tier=");  // not a trial of the chosen code
    if (!asked) continue;
    EXPECT_TRUE(d.reason.ends_with("chosen")) << d.reason;
    // The inputs lead to the decision that the library itself would have made.
    ASSERT_TRUE(replay(d, {}).ok());
    EXPECT_NE(replay(d, {})->reason, d.reason);
  }
}

class Patient : public uptier::Policy {
 public:
  uptier::Decision decide(const uptier::MethodSnapshot& m, const uptier::SystemSnapshot& s,
                          const uptier::PolicyOptions& o) override {
    if (m.samples < 1000) return {uptier::Action::kKeep, {}, 0, "fewer than 1000 samples"};
    return uptier::decide(m, s, o);
  }
};

TEST_F(Live, a_policy_of_the_hosts_may_leave_the_rest_to_the_librarys) {
  Patient policy;
  start(options({{"workers", "0"}, {"adaptive", "off"}, {"interval", "16"}}), &policy);
  call(10'000);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kBaseline);
  call(100'000);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kOptimized);
}

TEST_F(Live, what_cannot_be_followed_is_a_keep_that_says_why) {
  Chosen policy;
  start(options({{"workers", "0"}}), &policy);
  policy.next.action = Action::kBan;
  call(1'000);
  policy.next.action = Action::kRecompile;
  policy.next.osr_loop = LoopId(7);
  call(10'000);
  std::set<std::string> reasons;
  for (const DecisionRecord& d : host_->runtime->report().decisions) {
    if (d.inputs.empty()) continue;
    EXPECT_EQ(d.action, "keep");
    reasons.insert(d.reason);
  }
  EXPECT_TRUE(reasons.contains("not for a policy: chosen"));
  EXPECT_TRUE(reasons.contains("the thread is not at that loop: chosen"));
  policy.next.osr_loop = LoopId::none();
  call(100'000);
  EXPECT_EQ(host_->report_of("twice").tier, Tier::kOptimized);
  call(400'000);
  const Report r = host_->runtime->report();
  const DecisionRecord* last = nullptr;
  for (const DecisionRecord& d : r.decisions) {
    if (!d.inputs.empty()) last = &d;
  }
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->reason, "already optimized: chosen");
}

TEST_F(Live, a_policy_chooses_osr) {
  Chosen policy;
  start(options({{"workers", "0"}}), &policy);
  policy.next.action = Action::kRecompile;
  policy.next.osr_loop = LoopId(0);
  policy.here = true;
  loop(1, 3'000'000);
  EXPECT_GE(host_->report_of("sum").osr_entries, 1u);
}

}  // namespace
}  // namespace uptier::test::live_test
