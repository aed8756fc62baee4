// A new version is timed against the version it replaces, and removed if it is slower.
#include "tiering/model/trial.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"
#include "tiering/model/method.h"
#include "tiering/policy/rank_sum.h"
#include "tiering/policy/replay.h"
#include "tiering/policy/speedup_rate.h"

namespace uptier::test::trial_test {
namespace {

using tiering::RankSum;

// Compares all pairs, one by one.
double slow_u(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  double u = 0;
  for (uint64_t x : a) {
    for (uint64_t y : b) u += x > y ? 1 : x == y ? 0.5 : 0;
  }
  return u;
}

TEST(RankSums, are_those_of_counting_all_pairs) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<uint64_t> a(1 + random.below(40)), b(1 + random.below(40));
    for (uint64_t& v : a) v = random.below(100'000);
    for (uint64_t& v : b) v = random.below(100'000);
    auto na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
    double u = slow_u(a, b);
    double without_ties = (u - na * nb / 2) / std::sqrt(na * nb * (na + nb + 1) / 12);
    EXPECT_NEAR(tiering::rank_sum(a, b).z, without_ties, 0.01 + std::abs(without_ties) * 0.01);
    EXPECT_NEAR(tiering::rank_sum(a, b).z, -tiering::rank_sum(b, a).z, 1e-9);
  }
  EXPECT_EQ(tiering::rank_sum({}, {}).z, 0);
  std::vector<uint64_t> same(20, 7);
  EXPECT_EQ(tiering::rank_sum(same, same).z, 0);
  EXPECT_EQ(tiering::rank_sum(same, same).median_a, 7u);
}

// 2,000 comparisons of equal versions: z exceeds 3.1 in one of a thousand, so more than ten times
// is practically impossible. A version that is a twentieth slower is found nearly always, although
// the noise is a tenth.
TEST(RankSums, find_what_is_slower_and_nothing_else) {
  Random random(5);
  auto draw = [&](double scale) {
    double noise = 0;
    for (int i = 0; i < 12; ++i) noise += static_cast<double>(random.below(10'000)) / 1e4;
    double tail = random.below(50) == 0 ? 20'000 : 0;  // an interrupt
    return static_cast<uint64_t>(scale * (1000 + 30 * (noise - 6)) + tail);
  };
  int wrong = 0, found = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint64_t> a, b, slower;
    for (int n = 0; n < 64; ++n) {
      a.push_back(draw(1));
      b.push_back(draw(1));
      slower.push_back(draw(1.05));
    }
    wrong += tiering::rank_sum(a, b).z >= 3.1;
    found += tiering::rank_sum(slower, a).z >= 3.1;
  }
  EXPECT_LE(wrong, 10);
  EXPECT_GE(found, 1990);
}

TEST(Trials, give_each_version_as_many_calls_in_no_pattern) {
  tiering::Version before, now;
  before.entry = "before";
  now.entry = "now";
  tiering::Trial trial(before, now, 64, UINT64_MAX, false);
  std::vector<bool> order;
  uint64_t calls = 0;
  while (!trial.tell()) {
    ASSERT_LT(++calls, 5000u);
    jit::TrialCall c = trial.begin_call();
    if (c.cycles == nullptr) {
      EXPECT_EQ(c.entry, now.entry);
      continue;
    }
    order.push_back(c.entry == now.entry);
    *c.cycles = c.entry == now.entry ? 300 : 200;
  }
  EXPECT_FALSE(trial.tell());
  EXPECT_EQ(trial.begin_call().entry, now.entry);
  ASSERT_EQ(order.size(), 128u);
  EXPECT_EQ(std::count(order.begin(), order.end(), true), 64);
  // Both orders of a pair are about as frequent, so a method that is called in turns is not
  // misjudged.
  int first = 0;
  for (size_t n = 0; n < order.size(); n += 2) first += order[n];
  EXPECT_GE(first, 20);
  EXPECT_LE(first, 44);
  tiering::TrialSnapshot s = trial.snapshot();
  EXPECT_EQ(s.before_cycles, 200u);
  EXPECT_EQ(s.now_cycles, 300u);
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kRollBack);
}

TEST(Trials, end_when_their_time_is_spent) {
  tiering::Version before, now;
  tiering::Trial trial(before, now, 64, 1000, false);
  uint64_t timed = 0;
  while (!trial.tell()) {
    jit::TrialCall c = trial.begin_call();
    timed += c.cycles != nullptr;
    if (c.cycles != nullptr) *c.cycles = 1'000'000;
  }
  EXPECT_EQ(timed, 32u);
}

TEST(Trials, are_decided_by_rank_and_by_size) {
  tiering::TrialSnapshot s{64, 64, 1000, 1100, 5, false};
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kRollBack);
  s.z = 3;
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kKeep);
  s.z = 5;
  s.now_cycles = 1040;
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kKeep);
}

TEST(Trials, of_optimized_and_baseline_code_are_decided_where_calls_are_long_enough_to_time) {
  tiering::TrialSnapshot s{16, 16, 500, 9000, 4.8, true};
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kRollBack);
  s.before_cycles = 499;
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kKeep);
  s.tiers = false;
  EXPECT_EQ(tiering::decide_trial(s, {}).action, Action::kRollBack);
  EXPECT_EQ(tiering::decide_trial({16, 16, 5000, 1000, -4.8, true}, {}).action, Action::kKeep);
}

TEST(SpeedupRates, approach_what_was_found) {
  tiering::SpeedupRate rate(3, true);
  EXPECT_NEAR(rate.factor(), 3, 1e-9);
  for (int i = 0; i < 200; ++i) rate.add(1.5);
  EXPECT_NEAR(rate.factor(), 1.5, 0.1);
  tiering::SpeedupRate held(3, false);
  held.add(1.5);
  EXPECT_NEAR(held.factor(), 3, 1e-9);
  EXPECT_FALSE(held.begin());
}

// The two branches of `pick` swap their frequencies, so the code is recompiled.
constexpr const char* kPick = R"(
func @pick(i32, i32, f64) -> f64 {
b0(v0: i32, v1: i32, v2: f64):
  branch v0, b1(v1, v2), b2(v1, v2)
b1(v3: i32, v4: f64):
  loop_header 0 pc=0 []
  v5 = fadd.f64 v4, v4
  v6 = const.i32 1
  v7 = sub.i32 v3, v6
  branch v7, b1(v7, v5), b3(v5)
b2(v8: i32, v9: f64):
  loop_header 1 pc=0 []
  v10 = fmul.f64 v9, v9
  v11 = const.i32 1
  v12 = sub.i32 v8, v11
  branch v12, b2(v12, v10), b3(v10)
b3(v13: f64):
  return v13
}
)";

Options on_trial(const std::string& stress) {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kAlways;
  o.optimized_interval = 16;
  o.copy_after = 1 << 16;
  o.overhead_budget = 0;
  o.stress = stress;
  return o;
}

class TrialRuns {
 public:
  explicit TrialRuns(const Options& o)
      : options_(o), runtime_(parse_or_die(kPick), o), thread_(*runtime_.runtime) {}

  Runtime& runtime() { return *runtime_.runtime; }
  void pick(uint64_t calls, uint64_t ones) { pick_with(random_, calls, ones); }
  // Calls `pick`, in `ones` of a hundred calls with 1.
  void pick_with(Random& random, uint64_t calls, uint64_t ones, uint64_t rounds = 4) {
    const double one = 1;
    uint64_t bits = 0;
    std::memcpy(&bits, &one, 8);
    for (uint64_t i = 0; i < calls; ++i) {
      uint64_t arg = random.below(100) < ones ? 1 : 0;
      double want = arg == 1 ? std::exp2(static_cast<double>(rounds)) : 1, got = 0;
      uint64_t out = runtime_.call("pick", {arg, rounds, bits}).bits;
      std::memcpy(&got, &out, 8);
      ASSERT_EQ(got, want);
    }
  }

  std::vector<VersionReport> optimized() const {
    std::vector<VersionReport> found;
    for (const VersionReport& v : runtime_.report_of("pick").versions) {
      bool normal = v.tier == Tier::kOptimized && v.copy == Copy::kPlain && !v.osr_loop.valid();
      if (normal) found.push_back(v);
    }
    return found;
  }
  std::vector<DecisionRecord> decisions(std::string_view part) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      if (d.reason.find(part) != std::string::npos) found.push_back(d);
    }
    return found;
  }
  void replay() const {
    PolicyOptions o = PolicyOptions::from(options_);
    size_t replayed = 0;
    for (const DecisionRecord& r : runtime_.runtime->report().decisions) {
      if (r.inputs.empty()) continue;
      ++replayed;
      Result<DecisionRecord> again = uptier::replay(r, o);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(again->action, r.action) << r.inputs;
      EXPECT_EQ(again->reason, r.reason) << r.inputs;
    }
    EXPECT_GT(replayed, 0u);
  }

 private:
  Options options_;
  IrRuntime runtime_;
  ThreadScope thread_;
  Random random_{7};
};

TEST(Trials, a_slower_version_is_taken_back) {
  TrialRuns p(on_trial("slow=at:2"));
  p.pick(400'000, 90);
  ASSERT_EQ(p.optimized().size(), 1u);
  p.pick(200'000, 10);
  std::vector<VersionReport> versions = p.optimized();
  ASSERT_GE(versions.size(), 2u);
  std::vector<DecisionRecord> trials = p.decisions("the version before");
  ASSERT_FALSE(trials.empty());
  EXPECT_EQ(trials[0].action, "roll_back") << trials[0].reason;
  EXPECT_TRUE(versions[1].retired);
  // The old version, or a third one compiled since.
  size_t in_service = 0;
  for (const VersionReport& v : versions) in_service += v.retired ? 0 : 1;
  EXPECT_EQ(in_service, 1u);
  p.replay();
}

TEST(Trials, a_version_that_is_as_fast_stays) {
  // Cycles are measured, so bad luck decides one of a few thousand trials; three in a row do not
  // fail by chance.
  std::optional<TrialRuns> runs;
  for (int tries = 0; tries < 3; ++tries) {
    runs.emplace(on_trial(""));
    runs->pick(400'000, 90);
    runs->pick(200'000, 10);
    std::vector<DecisionRecord> trials = runs->decisions("the version before");
    auto kept = [](const DecisionRecord& d) { return d.action == "keep"; };
    if (std::all_of(trials.begin(), trials.end(), kept)) break;
  }
  TrialRuns& p = *runs;
  std::vector<VersionReport> versions = p.optimized();
  ASSERT_GE(versions.size(), 2u);
  std::vector<DecisionRecord> trials = p.decisions("the version before");
  ASSERT_FALSE(trials.empty());
  for (const DecisionRecord& d : trials) EXPECT_EQ(d.action, "keep") << d.reason;
  EXPECT_TRUE(versions[0].retired);
  EXPECT_FALSE(versions.back().retired);
  p.replay();
}

TEST(Trials, need_a_clock) {
  Options o = on_trial("slow=at:2");
  o.measure_rates = false;
  TrialRuns p(o);
  p.pick(400'000, 90);
  p.pick(200'000, 10);
  EXPECT_TRUE(p.decisions("cycles").empty());
  EXPECT_GE(p.optimized().size(), 2u);
}

TEST(Trials, the_first_optimized_version_tells_the_speedup) {
  TrialRuns p(on_trial(""));
  p.pick(50'000, 50);
  std::vector<DecisionRecord> trials = p.decisions("baseline code took");
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].action, "keep");
  // No version is rolled back.
  for (const VersionReport& v : p.optimized()) EXPECT_FALSE(v.retired);
  p.replay();
}

// The stress plan adds a call of C to each block, 200 in all: far more than the rest of the code.
TEST(Trials, a_first_version_that_is_slower_than_baseline_code_is_taken_back) {
  TrialRuns p(on_trial("slow=at:1"));
  Random random(13);
  p.pick_with(random, 20'000, 100, 200);
  std::vector<DecisionRecord> trials = p.decisions("baseline code took");
  ASSERT_FALSE(trials.empty());
  EXPECT_EQ(trials[0].action, "roll_back") << trials[0].reason;
  ASSERT_FALSE(p.optimized().empty());
  EXPECT_TRUE(p.optimized()[0].retired);
  // It is not compiled again at the next flush, but much later.
  EXPECT_FALSE(p.decisions("optimized code was slower").empty());
  p.pick_with(random, 33 * trials[0].calls, 100, 200);
  EXPECT_GE(p.optimized().size(), 2u);
  EXPECT_FALSE(p.optimized().back().retired);
  p.replay();
}

TEST(Trials, a_first_version_that_is_slower_stays_without_a_clock) {
  Options o = on_trial("slow=at:1");
  o.trials = false;
  TrialRuns p(o);
  Random random(13);
  p.pick_with(random, 20'000, 100, 200);
  EXPECT_TRUE(p.decisions("baseline code took").empty());
  ASSERT_EQ(p.optimized().size(), 1u);
  EXPECT_FALSE(p.optimized()[0].retired);
}

// After the calibration, only trials change the rate of baseline code.
TEST(Trials, tell_how_long_baseline_code_takes) {
  for (bool trials : {true, false}) {
    Options o = on_trial("");
    o.policy = PolicyMode::kAuto;
    o.trials = trials;
    o.workers = 1;  // the worker calibrates
    TrialRuns p(o);
    Random random(13);
    std::vector<double> rates;
    auto told = [&] { return rates.size() >= 2 && (!trials || rates.front() != rates.back()); };
    for (auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
         !told() && std::chrono::steady_clock::now() < end;) {
      p.pick_with(random, 16'000, 100, 1'000);  // long enough to be timed, even when it is
                                                // optimized
      rates.clear();
      for (const DecisionRecord& d : p.decisions("")) {
        MethodSnapshot m;
        SystemSnapshot s;
        if (tiering::read_inputs(d.inputs, m, s).ok()) rates.push_back(s.baseline_ns);
      }
    }
    ASSERT_GE(rates.size(), 2u);
    EXPECT_GT(rates.front(), 0);
    EXPECT_EQ(rates.front() != rates.back(), trials);
    p.replay();
  }
}

// Two threads run both versions while versions are installed and removed.
TEST(Trials, old_versions_go_while_threads_run) {
  Options o = on_trial("slow=every:2");
  o.workers = 1;
  o.max_recompiles = 1000;
  o.drift_samples = 1;
  TrialRuns p(o);
  p.pick(400'000, 90);
  std::atomic<bool> done{false};
  std::thread other([&] {
    ThreadScope scope(p.runtime());
    Random random(11);
    while (!done.load()) p.pick_with(random, 1000, 50);
  });
  for (int flip = 0; flip < 20; ++flip) p.pick(20'000, flip % 2 == 0 ? 10 : 90);
  done.store(true);
  other.join();
  EXPECT_FALSE(p.optimized().empty());
  p.replay();
}

}  // namespace
}  // namespace uptier::test::trial_test
