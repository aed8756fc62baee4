// The treatment of a method by the adaptive schedule, and by fixed rates.
#include "tiering/control/rate_control.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jit/frontend/branch_probes.h"
#include "tests/support/runtime_host.h"

namespace uptier::tiering::rate_control_test {
namespace {

using Phase = Adaptation::Phase;
using sampler::Progress;
using sampler::Rate;
using sampler::RateState;
using sampler::Verdict;

constexpr uint32_t kMethods = 4;

sampler::Schedule schedule_of(const Options& o) {
  auto kind = o.gap == GapMode::kExact ? sampler::GapKind::kFixed : sampler::GapKind::kRandom;
  auto s = sampler::Schedule::make(kind, static_cast<uint32_t>(o.interval),
                                   static_cast<uint32_t>(o.burst));
  if (o.adaptive) s.rate = Rate::off(static_cast<uint32_t>(o.burst));
  return s;
}

Options fixed() {
  Options o;
  o.adaptive = false;
  return o;
}

// Everything that rate control works on; methods 0 to 3 have plain code and counters.
struct Rates {
  explicit Rates(const Options& o = {}) : options(small(o)), live(options) {
    EXPECT_TRUE(methods.reserve(kMethods));
    for (uint32_t i = 0; i < kMethods; ++i) {
      methods.put(std::make_unique<Method>(MethodId(i), i + 1, host, MethodInfo()));
      method(i).shape.own();
      method(i).slab_words = 1;
      method(i).plain = &plain;
      control.add(i, false);
    }
  }
  static Options small(Options o) {
    o.slab_budget = o.ring_bytes = 1 << 12;
    return o;
  }
  Method& method(uint32_t i = 0) { return methods.at(i); }
  Rate rate(uint32_t i = 0) { return fast.rate(i).load(); }
  AttachedThread& attach() {
    auto t = AttachedThread::create(this, options, threads.next_number());
    EXPECT_TRUE(t.ok());
    threads.add(std::move(*t));
    control.thread_came();
    return *threads.all().back();
  }
  // Puts an instrumented copy into service.
  Version& put_copy(uint32_t i = 0) {
    method(i).versions.push_back(std::make_unique<Version>());
    Version& v = *method(i).versions.back();
    v.copy = Copy::kInstrumented;
    method(i).instrumented = &v;
    control.begin_observing(method(i));
    return v;
  }
  std::vector<std::string> logged() const {
    std::vector<std::string> actions;
    observer.decisions.kept().each([&](uint64_t number, const LoggedDecision& d) {
      actions.push_back(record_of(d, number).action);
    });
    return actions;
  }
  void tick() {
    std::this_thread::sleep_for(std::chrono::milliseconds(11));
    control.tick_if_due();
  }

  Host host;
  Version plain;
  Options options, live;
  sampler::Schedule schedule = schedule_of(options), counting = schedule;
  sampler::FastSampling fast{this, kMethods, schedule};
  MethodTable methods;
  Threads threads{options.log_records};
  Events events;
  TallyWords tally_words{threads};
  Observer observer{options, live, schedule.ladder, nullptr, nullptr, events, tally_words};
  Reclaimer reclaimer{events};
  Requests requests{8, methods, events};
  RateControl control{
      {options, live, schedule, counting, fast, methods, threads, observer, reclaimer, requests}};
};

// Adds equal windows, as a method that always does the same produces them.
void learn(Method& m, int windows) {
  for (int i = 0; i < windows; ++i) m.flushed.own().convergence.add({{600, 400}, 1024, 1});
}

// ---- Whether rates adapt ------------------------------------------------------------------------

TEST(RateControl, there_are_no_rates_where_all_is_seen_or_nothing_is_or_turns_decide) {
  EXPECT_TRUE(Rates().control.has_rates());
  EXPECT_TRUE(Rates(fixed()).control.has_rates());
  Options all = fixed(), turns = fixed();
  all.interval = 1;
  turns.gap = GapMode::kExact;
  EXPECT_FALSE(Rates(all).control.has_rates());
  EXPECT_FALSE(Rates(turns).control.has_rates());
  Rates nothing;
  nothing.schedule.sample_calls = false;
  EXPECT_FALSE(nothing.control.has_rates());
}

TEST(RateControl, a_method_begins_without_samples_or_at_the_one_rate) {
  EXPECT_EQ(Rates().rate().state(), RateState::kOff);
  Rates one(fixed());
  EXPECT_EQ(one.rate().state(), RateState::kSampled);
  EXPECT_EQ(one.schedule.ladder.interval(one.rate().rung()), one.options.interval);
}

// ---- Copies -------------------------------------------------------------------------------------

TEST(RateControl, a_copy_is_asked_for_once) {
  Rates r;
  r.control.want_copy(r.method());
  r.control.want_copy(r.method());
  EXPECT_EQ(r.requests.size(), 1u);
  auto plan = r.requests.pop();
  EXPECT_EQ(plan->tier, Tier::kBaseline);
  EXPECT_EQ(plan->copy, Copy::kInstrumented);
}

TEST(RateControl, no_copy_is_asked_for_that_is_there_or_could_not_be_used) {
  Rates r;
  Version optimized;
  r.put_copy(0);
  r.method(1).shape.reset();
  r.method(2).slab_words = 0;
  r.method(3).optimized = &optimized;
  for (uint32_t i = 0; i < kMethods; ++i) r.control.want_copy(r.method(i));
  r.method(3).optimized = nullptr;
  r.method(3).plain = nullptr;
  r.control.want_copy(r.method(3));
  EXPECT_EQ(r.requests.size(), 0u);
}

TEST(RateControl, a_method_is_observed_from_every_call_on_in_short_bursts_if_it_is_called_often) {
  Rates r;
  r.method(0).flushed.own().streams[1].calls = 31;
  r.method(1).flushed.own().streams[1].calls = 30;
  r.method(1).flushed.own().streams[2].calls = 2;
  r.put_copy(0);
  r.put_copy(1);
  EXPECT_EQ(r.rate(0).state(), RateState::kEvery);
  EXPECT_TRUE(r.rate(0).decays());
  EXPECT_EQ(r.schedule.ladder.interval(r.rate(0).target()), r.options.interval);
  EXPECT_EQ(r.rate(0).burst(), r.options.burst);
  EXPECT_EQ(r.rate(1).burst(), 8u);
  r.method(0).flushed.own().streams[1].calls = 1000;
  r.control.begin_observing(r.method(0));
  EXPECT_EQ(r.rate(0).burst(), r.options.burst) << "the measure of its samples stays";
  r.control.switch_off(r.method(0));
  EXPECT_EQ(r.rate(0).state(), RateState::kOff);
}

// ---- Learning, known, resting, looking ----------------------------------------------------------

TEST(RateControl, what_has_converged_is_known_and_sampled_on) {
  Rates r;
  r.put_copy();
  r.control.heed(r.method(), Verdict::kMore);
  EXPECT_EQ(r.method().flushed.own().adaptation.phase, Phase::kLearning);
  r.control.heed(r.method(), Verdict::kConverged);
  EXPECT_EQ(r.method().flushed.own().adaptation.phase, Phase::kKnown);
  EXPECT_FALSE(r.method().flushed.own().adaptation.resting);
  EXPECT_TRUE(r.rate().samples());
  r.control.heed(r.method(), Verdict::kConverged);
  EXPECT_EQ(r.logged(), std::vector<std::string>{"keep"});
}

TEST(RateControl, drift_has_a_method_learnt_anew) {
  Rates r;
  Adaptation& a = r.method().flushed.own().adaptation;
  for (Phase phase : {Phase::kKnown, Phase::kLooking}) {
    a.phase = phase;
    a.resting = phase == Phase::kLooking;
    r.control.heed(r.method(), Verdict::kDrifted);
    EXPECT_EQ(a.phase, Phase::kLearning);
    EXPECT_FALSE(a.resting);
  }
  EXPECT_EQ(r.logged(), (std::vector<std::string>{"re_instrument", "re_instrument"}));
}

TEST(RateControl, of_what_changes_all_the_time_the_log_tells_ever_more_rarely) {
  Rates r;
  Method& m = r.method();
  for (uint32_t turn = 0; m.flushed.own().convergence.drifts() < 3 && turn < 100; ++turn) {
    std::vector<uint64_t> counts = {turn % 2 == 0 ? 1000u : 0u, turn % 2 == 0 ? 0u : 1000u};
    for (int n = 0; n < 32 && m.flushed.own().convergence.drifts() < 3; ++n) {
      m.flushed.own().convergence.add({counts, 2048, 1});
    }
  }
  ASSERT_EQ(m.flushed.own().convergence.drifts(), 3u);
  r.control.heed(m, Verdict::kDrifted);
  r.control.heed(m, Verdict::kConverged);
  EXPECT_EQ(m.flushed.own().adaptation.phase, Phase::kKnown);
  EXPECT_TRUE(r.logged().empty());
}

TEST(RateControl, a_look_ends_with_the_first_window_that_is_compared) {
  Rates r;
  Version& copy = r.put_copy();
  Method& m = r.method();
  learn(m, 8);
  m.flushed.own().adaptation.phase = Phase::kLooking;
  m.flushed.own().adaptation.windows = m.flushed.own().convergence.compared();
  r.control.begin_observing(m);
  EXPECT_EQ(r.schedule.ladder.interval(r.rate().rung()), 64u);
  EXPECT_FALSE(r.rate().decays());
  r.control.heed(m, Verdict::kConverged);
  EXPECT_EQ(m.flushed.own().adaptation.phase, Phase::kLooking);
  learn(m, 1);
  m.copy_asked = true;
  r.control.heed(m, Verdict::kConverged);
  EXPECT_EQ(m.flushed.own().adaptation.phase, Phase::kKnown);
  EXPECT_TRUE(m.flushed.own().adaptation.resting);
  EXPECT_EQ(r.rate().state(), RateState::kOff);
  EXPECT_TRUE(copy.retired);
  EXPECT_FALSE(m.copy_asked) << "it may be asked for again";
}

// ---- Ticks --------------------------------------------------------------------------------------

// A method that has done the same for 2^28 calls.
struct LongKnown : Rates {
  LongKnown() {
    put_copy();
    learn(method(), 8);
    method().flushed.own().adaptation.phase = Phase::kKnown;
    control.note_flushed(method());
    state().calls = 1 << 28;
  }
  sampler::MethodState& state() { return thread.state(MethodId(0)); }

  AttachedThread& thread = attach();
};

TEST(RateControl, what_is_known_rests_when_its_samples_are_thin_until_a_look_is_due) {
  LongKnown r;
  r.tick();
  EXPECT_TRUE(r.method().flushed.own().adaptation.resting);
  EXPECT_EQ(r.rate().state(), RateState::kOff);
  r.state().calls += (1 << 28) / 64 - 1;
  r.tick();
  EXPECT_EQ(r.method().flushed.own().adaptation.phase, Phase::kKnown);
  EXPECT_EQ(r.requests.size(), 0u);
  r.state().calls += 1;
  r.tick();
  EXPECT_EQ(r.method().flushed.own().adaptation.phase, Phase::kLooking);
  EXPECT_EQ(r.requests.size(), 1u);
}

TEST(RateControl, what_is_still_learnt_or_not_thin_yet_does_not_rest) {
  LongKnown learnt, dense;
  learnt.method().flushed.own().adaptation.phase = Phase::kLearning;
  dense.state().calls = 1 << 20;
  learnt.tick();
  dense.tick();
  EXPECT_FALSE(learnt.method().flushed.own().adaptation.resting);
  EXPECT_FALSE(dense.method().flushed.own().adaptation.resting);
}

TEST(RateControl, nothing_rests_while_every_call_is_to_be_seen) {
  LongKnown r;
  r.control.observe(Sampling::kEvery);
  r.tick();
  EXPECT_FALSE(r.method().flushed.own().adaptation.resting);
  EXPECT_EQ(r.rate().state(), RateState::kEvery);
}

TEST(RateControl, only_methods_that_have_flushed_are_looked_at_and_only_what_they_did) {
  Rates r;
  AttachedThread& t = r.attach();
  r.put_copy(0);
  r.put_copy(1);
  t.state(MethodId(0)).calls = t.state(MethodId(1)).calls = 100;
  r.control.note_flushed(r.method(0));
  r.tick();
  EXPECT_EQ(r.method(0).flushed.own().adaptation.at_tick.calls, 100u);
  EXPECT_EQ(r.method(1).flushed.own().adaptation.at_tick.calls, 0u);
  EXPECT_TRUE(r.control.active());
  r.tick();
  EXPECT_FALSE(r.control.active()) << "nothing has run since";
}

TEST(RateControl, between_two_ticks_ten_milliseconds_pass) {
  LongKnown r;
  r.tick();
  r.state().calls += 1;
  r.control.tick_if_due();
  EXPECT_EQ(r.method().flushed.own().adaptation.at_tick.calls, 1u << 28);
}

TEST(RateControl, a_method_that_takes_a_place_is_not_the_one_before) {
  Rates r;
  AttachedThread& t = r.attach();
  t.state(MethodId(0)).calls = 100;
  r.control.note_flushed(r.method());
  r.control.add(0, true);
  r.tick();
  EXPECT_EQ(r.method().flushed.own().adaptation.at_tick.calls, 0u);
}

TEST(RateControl, progress_is_that_of_threads_that_are_there_and_of_those_that_were) {
  Rates r;
  r.attach().state(MethodId(0)).calls = 10;
  r.attach().state(MethodId(0)).calls = 200;
  r.method().flushed.own().adaptation.gone = {
      .calls = 3000, .iterations = 1, .sampled_calls = 2, .bursts = 3};
  Progress p = r.control.progress_of(r.method());
  EXPECT_EQ(p.calls, 3210u);
  EXPECT_EQ(p.iterations + p.sampled_calls + p.bursts, 6u);
}

// ---- Costs --------------------------------------------------------------------------------------

TEST(RateControl, threads_share_what_may_be_taken_until_the_next_tick) {
  Rates r;
  AttachedThread& one = r.attach();
  uint64_t all = one.context().sample_limit;
  EXPECT_GT(all, 1u);
  one.context().samples_taken = 5;
  AttachedThread& two = r.attach();
  EXPECT_EQ(two.context().sample_limit, all / 2);
  EXPECT_EQ(one.context().sample_limit, 5 + all / 2);
  r.control.observe(Sampling::kEvery);
  EXPECT_EQ(one.context().sample_limit, UINT64_MAX);
}

TEST(RateControl, without_a_budget_nothing_limits_threads) {
  Options o;
  o.overhead_budget = 0;
  Rates r(o);
  EXPECT_EQ(r.attach().context().sample_limit, 0u);
  EXPECT_FALSE(r.control.spent_share().has_value());
  EXPECT_FALSE(r.control.ticks());
}

// A body with a short branch whose outcomes are observed.
constexpr const char* kTurns = R"(
func @count(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = const.i32 1
  v3 = const.i32 0
  jump b1(v0, v3)
b1(v4: i32, v5: i32):
  loop_header
  v6 = and.i32 v4, v1
  branch v6, b2, b3(v5)
b2:
  v7 = add.i32 v5, v2
  jump b3(v7)
b3(v8: i32):
  v9 = sub.i32 v4, v2
  branch v9, b1(v9, v8), b4
b4:
  return v8
}
)";

TEST(RateControl, each_thing_that_copies_count_is_in_the_account) {
  jit::Module body = test::parse_or_die(kTurns);
  jit::Function& f = body.functions[0];
  jit::place_branch_probes(f, jit::find_loop_forest(f));
  SiteId turns = f.site_count;
  Rates r;
  Method& m = r.method();
  m.probes.put(ProbeSet(f, ProbeChoice::from(r.options)));
  ASSERT_TRUE(m.probes->counts_turns(turns));
  m.shape.own().block_weights.assign(1, 1);
  Progress all{.sampled_calls = 80, .bursts = 20}, since{.sampled_calls = 8, .bursts = 2};
  profile::Observed& seen = m.flushed.own().streams[1].seen;
  auto spent = [&] { return r.control.spent_ns(m, all, since); };
  const sampler::CostModel model;
  double samples = spent();
  EXPECT_DOUBLE_EQ(samples, model.spent_ns(8, 2, 0, 0, 0));
  // Of 1,000 executions a tenth is new; each costs half a counter's increment.
  seen.counts = {1000};
  double blocks = spent() - samples;
  EXPECT_NEAR(blocks, 0.5 * 100 * model.count_ns, 1e-9);
  // Two increments for each pair of conditions.
  seen.tables[{SlotKind::kValue, turns}][{0, 3}].count = 1000;
  double pairs = spent() - samples - blocks;
  EXPECT_NEAR(pairs, 2 * 100 * model.count_ns, 1e-9);
  seen.tables[{SlotKind::kValue, turns - 1}][{0, 3}].count = 1000;
  EXPECT_NEAR(spent() - samples - blocks - pairs, 0, 1e-9) << "a value of the host's";
  // A table update for each indirect call.
  seen.tables[{SlotKind::kCallTarget, 1}][{0, 3}].count = 1000;
  double targets = spent() - samples - blocks - pairs;
  EXPECT_NEAR(targets, 100 * model.value_ns, 1e-9);
  // And one for each parameter at each sampled call.
  m.value_versions.own().sites.resize(3);
  EXPECT_NEAR(spent() - samples - blocks - pairs - targets, 3 * 8 * model.value_ns, 1e-9);
}

// ---- Settings -----------------------------------------------------------------------------------

TEST(RateControl, what_stands_above_all_rates_stands_until_it_is_taken_back) {
  Rates r;
  r.put_copy(0);
  r.method(2).removed = true;
  r.control.observe(Sampling::kOff);
  EXPECT_EQ(r.rate(0).state(), RateState::kOff);
  r.put_copy(1);
  EXPECT_EQ(r.rate(1).state(), RateState::kOff);
  r.control.observe(Sampling::kEvery);
  EXPECT_EQ(r.rate(0).state(), RateState::kEvery);
  EXPECT_FALSE(r.rate(0).decays());
  EXPECT_EQ(r.requests.size(), 1u) << "a copy of the fourth";
  EXPECT_FALSE(r.method(2).copy_asked) << "it has gone";
  EXPECT_EQ(r.requests.pop()->method, MethodId(3));
  r.control.observe(Sampling::kByOptions);
  EXPECT_TRUE(r.rate(0).decays());
}

TEST(RateControl, one_rate_of_all_methods_is_changed_for_all) {
  Rates r(fixed());
  r.live.interval = 96;
  r.control.change_interval();
  EXPECT_EQ(r.schedule.ladder.interval(r.rate(3).rung()), 96u);
  r.live.burst = 7;
  r.control.change_burst();
  EXPECT_EQ(r.rate(3).burst(), 7u);
  EXPECT_EQ(r.schedule.ladder.interval(r.rate(3).rung()), 96u);
}

TEST(RateControl, rates_that_adapt_are_changed_for_methods_that_are_observed_later) {
  Rates r;
  r.put_copy(0);
  Rate before = r.rate(0);
  r.live.interval = 96;
  r.live.burst = 7;
  r.control.change_interval();
  r.control.change_burst();
  EXPECT_EQ(r.rate(0), before);
  r.put_copy(1);
  EXPECT_EQ(r.schedule.ladder.interval(r.rate(1).target()), 96u);
  EXPECT_EQ(r.rate(1).burst(), 7u);
}

TEST(RateControl, flushes_are_planned_anew_by_all_threads) {
  Rates r;
  r.put_copy(0);
  uint32_t epoch = r.rate(0).epoch();
  r.live.flush_first = 11;
  r.live.flush_growth = 3;
  r.live.loop_flush_first = 12;
  r.control.change_flushes();
  for (const sampler::Schedule* s : {&r.schedule, &r.counting}) {
    EXPECT_EQ(s->flush_first, 11u);
    EXPECT_EQ(s->flush_growth, 3);
    EXPECT_EQ(s->loop_flush_first, 12u);
  }
  EXPECT_EQ(r.rate(0).epoch(), epoch + 1);
}

TEST(RateControl, with_a_narrower_epsilon_what_is_not_near_enough_is_learnt_on) {
  Rates r;
  for (uint32_t i : {0, 1}) {
    learn(r.method(i), 8);
    r.method(i).flushed.own().adaptation.phase = Phase::kKnown;
    r.method(i).flushed.own().adaptation.resting = true;
  }
  ASSERT_TRUE(r.method(0).flushed.own().convergence.converged());
  r.method(1).flushed.own().convergence.set_epsilon(1e-6);
  r.control.learn_on(r.method(0));
  r.control.learn_on(r.method(1));
  EXPECT_EQ(r.method(0).flushed.own().adaptation.phase, Phase::kKnown);
  EXPECT_TRUE(r.method(0).flushed.own().adaptation.resting);
  EXPECT_EQ(r.method(1).flushed.own().adaptation.phase, Phase::kLearning);
  EXPECT_FALSE(r.method(1).flushed.own().adaptation.resting);
  ASSERT_EQ(r.requests.size(), 1u);
  EXPECT_EQ(r.requests.pop()->method, MethodId(1));
}

}  // namespace
}  // namespace uptier::tiering::rate_control_test
