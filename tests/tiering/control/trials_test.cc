// Trials: which versions are timed against each other, and how the times decide.
#include "tiering/control/trials.h"

#include "tests/support/owners.h"
#include "tests/support/runtime_host.h"

namespace uptier::tiering::trials_test {
namespace {

using Stays = Trials::Stays;

constexpr const char* kBodies = R"(
func @calls_nothing(i32) -> i32 {
b0(v0: i32):
  return v0
}
func @calls(i32) -> i32 {
b0(v0: i32):
  v1 = call @calls_nothing(v0)
  return v1
}
)";

struct Timed : test::Owners {
  explicit Timed(const Options& o = {})
      : Owners(o),
        trials({.options = options,
                .live = live,
                .policy = policy,
                .always_instrumented = options.interval == 1,
                .stress = stress,
                .observer = observer,
                .machine = machine,
                .in_service = in_service}) {
    describe_loops(0, 1);
    for (Version* v : {&before, &now}) v->code = code_with({});
    give_body(0);
  }
  void give_body(uint32_t which) {
    jit::Module m = test::parse_or_die(kBodies);
    method().body = std::make_unique<jit::Function>(std::move(m.functions[which]));
  }
  // Puts the second version into service in place of the first.
  bool begin() {
    method().optimized = &now;
    trials.begin(method(), &before, now);
    in_service.link_locked(method());
    return method().optimizing->trial.load() != nullptr;
  }
  // Runs calls that take these numbers of cycles, until the trial has timed enough.
  Stays end(uint64_t old_cycles, uint64_t new_cycles) {
    Trial& t = *method().optimizing->trial.load();
    while (!t.tell()) {
      jit::TrialCall call = t.begin_call();
      if (call.cycles != nullptr) {
        *call.cycles = call.entry == now.entry ? new_cycles : old_cycles;
      }
    }
    return trials.end(method());
  }

  Version &before = add(0, Tier::kOptimized), &now = add(0, Tier::kOptimized);
  Trials trials;
};

TEST(Trials, the_faster_version_stays) {
  Timed t;
  ASSERT_TRUE(t.begin());
  EXPECT_EQ(t.end(2000, 1000), Stays::kNew);
  EXPECT_EQ(t.method().optimizing->trial.load(), nullptr);
  EXPECT_EQ(t.method().optimized.load(), &t.now);
  EXPECT_TRUE(t.before.retired);
  EXPECT_FALSE(t.now.retired);
  EXPECT_EQ(t.logged().size(), 1u);
}

TEST(Trials, the_slower_version_goes_and_calls_the_old_one_again) {
  Timed t;
  ASSERT_TRUE(t.begin());
  EXPECT_EQ(t.end(1000, 2000), Stays::kOld);
  EXPECT_EQ(t.method().optimizing->trial.load(), nullptr);
  EXPECT_EQ(t.in_service.current_entry(t.method()), t.before.entry);
  EXPECT_TRUE(t.now.retired);
  EXPECT_FALSE(t.before.retired);
  EXPECT_EQ(t.logged(), std::vector<std::string>{"roll_back"});
}

TEST(Trials, a_version_with_a_guard_leads_to_the_general_one_whoever_is_faster) {
  for (bool faster : {true, false}) {
    Timed t;
    t.now.general = &t.before;
    ASSERT_TRUE(t.begin());
    EXPECT_EQ(t.end(1000, faster ? 500 : 2000), faster ? Stays::kGuarded : Stays::kGeneral);
    EXPECT_EQ(t.method().optimizing->trial.load(), nullptr);
    EXPECT_FALSE(t.before.retired);
    EXPECT_FALSE(t.now.retired);
  }
}

TEST(Trials, of_baseline_code_say_how_much_faster_optimized_code_is) {
  Timed t;
  t.before.tier = Tier::kBaseline;
  ASSERT_TRUE(t.begin());
  EXPECT_EQ(t.end(6000, 1000), Stays::kNew);
  EXPECT_TRUE(t.before.retired);
  SpeedupRate expected(t.options.speedup, true);
  expected.add(6);
  EXPECT_EQ(t.system.snapshot(t.method()).speedup, expected.factor());
}

TEST(Trials, times_that_are_too_short_to_be_compared_say_nothing_of_other_code) {
  Timed t;
  t.before.tier = Tier::kBaseline;
  ASSERT_TRUE(t.begin());
  t.end(6 * (kLeastTrialCycles - 1), kLeastTrialCycles - 1);
  EXPECT_EQ(t.system.snapshot(t.method()).speedup, SystemSnapshot().speedup);
}

TEST(Trials, a_first_version_that_is_slower_goes_back_to_baseline_code) {
  Timed t;
  t.before.tier = Tier::kBaseline;
  ASSERT_TRUE(t.begin());
  EXPECT_EQ(t.end(1000, 3000), Stays::kBaseline);
}

TEST(Trials, of_baseline_code_are_of_methods_that_call_nothing_and_only_of_the_first) {
  Timed calls;
  calls.before.tier = Tier::kBaseline;
  calls.give_body(1);
  EXPECT_FALSE(calls.begin());
  calls.method().body.reset();
  EXPECT_FALSE(calls.begin()) << "nobody knows";
  Timed late;
  late.before.tier = Tier::kBaseline;
  for (uint32_t n = 0; n < SpeedupRate::kMostTrials; ++n) EXPECT_TRUE(late.machine.begin_trial());
  EXPECT_FALSE(late.begin());
}

TEST(Trials, are_not_begun_where_nothing_is_to_be_timed) {
  EXPECT_TRUE(Timed().begin());
  Options off, no_rates, fixed_tier, turns, all;
  off.trials = false;
  no_rates.measure_rates = false;
  fixed_tier.tier = TierMode::kBaseline;
  turns.gap = GapMode::kExact;
  all.interval = 1;
  for (const Options* o : {&off, &no_rates, &fixed_tier, &turns, &all})
    EXPECT_FALSE(Timed(*o).begin());
}

TEST(Trials, are_of_code_of_our_own_that_is_in_service) {
  Timed gone, of_host, made_by_host;
  gone.before.retired = true;
  EXPECT_FALSE(gone.begin());
  of_host.before.code.reset();
  EXPECT_FALSE(of_host.begin());
  made_by_host.now.code.reset();
  EXPECT_FALSE(made_by_host.begin());
}

TEST(Trials, that_are_abandoned_leave_the_new_version_in_service) {
  Timed t;
  ASSERT_TRUE(t.begin());
  t.trials.abandon(t.method());
  EXPECT_EQ(t.method().optimizing->trial.load(), nullptr);
  EXPECT_TRUE(t.before.retired);
  EXPECT_EQ(t.trials.end(t.method()), Stays::kUnknown);
  t.trials.abandon(t.method());  // has no further effect
  EXPECT_FALSE(t.now.retired);
}

}  // namespace
}  // namespace uptier::tiering::trials_test
