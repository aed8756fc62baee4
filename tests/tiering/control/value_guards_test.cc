// Versions specialized on values: when they are made, how they come into service, and when they are
// removed.
#include "tiering/control/value_guards.h"

#include "tests/support/owners.h"
#include "tiering/policy/value_policy.h"

namespace uptier::tiering::value_guards_test {
namespace {

using Actions = std::vector<std::string>;

// A method with three parameters, whose optimized version is in service.
struct Guarded : test::Owners {
  explicit Guarded(const Options& o = {}) : Owners(o) {
    live.trials = false;
    MethodShape& shape = method().shape.own();
    shape.block_weights = {100};
    shape.instructions = 100;
    for (Version* v : {&general, &guarded}) v->code = code_with({});
    guarded.general = &general;
    guarded.values = {{0, 7}};
    guarded.guard.counted = &counted_entry;
    method().optimized = &general;
    in_service.link_locked(method());
  }
  // Gives the method its parameters and its first version.
  Version& add_general() {
    MethodInfo info;
    info.signature.params = {Type::kI32, Type::kI64, Type::kI32};
    replace(0, host, std::move(info));
    return add(0, Tier::kOptimized);
  }
  // Records observations of an earlier process: in `seen` of 1,000 calls the parameter had the
  // value, in the others a different one. The body ran `executions` times.
  void was_seen(uint32_t param, int64_t value, uint64_t seen, uint64_t executions = 1'000'000) {
    ValueVersions& known = method().value_versions.own();
    SiteId site = param + 2;
    known.sites.push_back({param, site});
    if (method().saved == nullptr) {
      method().saved = std::make_unique<SavedMethod>();
      method().saved->profile.schema.add(SlotKind::kBlock, 1);
      method().saved->profile.counts = {executions};
    }
    MethodProfile& p = method().saved->profile;
    p.schema.add(SlotKind::kValue, site, Slot::kDefaultTop);
    p.counts.resize(p.schema.words());
    std::span words = std::span(p.counts).last(slot_words(SlotKind::kValue));
    words[slot_word::kCount] = 1000;
    words[slot_word::kMax] = static_cast<uint64_t>(std::max(value, value + 1));
    p.estimates = p.counts;
    Table& table = p.tables[{SlotKind::kValue, site}];
    auto put = [&](int64_t v, uint64_t n) { table[{0, static_cast<uint64_t>(v)}] = {n, n}; };
    put(value, seen);
    if (seen < 1000) put(value + 1, 1000 - seen);
  }
  // Tests whether a version is requested, and withdraws the request.
  bool asks() {
    values.consider_values(method());
    bool asked = requests.pop().has_value();
    method().optimized_requested = false;
    return asked;
  }
  void install() { values.install(method(), guarded); }
  // Ends the guard's window, in which `misses` calls have missed.
  void end_window(int32_t misses) {
    exchange_word(guarded.guard_words.misses, INT32_MAX - misses);
    values.consider_guard(method());
  }
  const ValueVersions& known() { return *method().value_versions; }
  const void* called() { return in_service.current_entry(method()); }

  char counted_entry = 0;
  Version &general = add_general(), &guarded = add(0, Tier::kOptimized);
  Trials trials{{.options = options,
                 .live = live,
                 .policy = policy,
                 .always_instrumented = false,
                 .stress = stress,
                 .observer = observer,
                 .machine = machine,
                 .in_service = in_service}};
  ValueGuards values{{.options = options,
                      .live = live,
                      .policy = policy,
                      .stress = stress,
                      .observer = observer,
                      .requests = requests,
                      .system = system,
                      .trials = trials,
                      .in_service = in_service}};
};

constexpr int32_t kTooMany = ValueVersions::kWindow;

// ---- Values that are worth a version ------------------------------------------------------------

TEST(ValueGuards, a_stable_value_is_asked_a_version_for) {
  Guarded g;
  g.was_seen(0, -1, 1000);
  g.values.consider_values(g.method());
  std::optional<Plan> plan = g.requests.pop();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->for_values);
  EXPECT_TRUE(plan->use_profile);
  EXPECT_EQ(plan->tier, Tier::kOptimized);
  EXPECT_EQ(g.known().wanted, (std::vector<jit::ParamValue>{{0, 0xffffffff}})) << "32 bits of it";
  EXPECT_EQ(g.logged(), Actions{"specialize"});
}

// A file may claim this: its words and its tables are read at different times.
TEST(ValueGuards, a_value_seen_more_often_than_there_were_calls_was_seen_in_all_of_them) {
  Guarded g;
  g.was_seen(0, 7, 1500);
  EXPECT_TRUE(g.asks());
  ASSERT_EQ(g.logged(), Actions{"specialize"});
  std::string reason;
  g.observer.decisions.kept().each([&](uint64_t number, const tiering::LoggedDecision& d) {
    reason = record_of(d, number).reason;
  });
  EXPECT_NE(reason.find("is 7 in 100.0 % of 1000 samples"), std::string::npos) << reason;
}

TEST(ValueGuards, a_value_that_changes_or_saves_too_little_is_not_and_nothing_is_said) {
  Guarded changes, rare;
  changes.was_seen(0, 7, 500);
  rare.was_seen(0, 7, 1000, 1);
  for (Guarded* g : {&changes, &rare}) {
    EXPECT_FALSE(g->asks());
    EXPECT_EQ(g->logged(), Actions());
  }
}

TEST(ValueGuards, one_guard_compares_two_parameters_at_most) {
  Guarded g;
  for (uint32_t param : {0, 1, 2}) g.was_seen(param, 7, 1000);
  EXPECT_TRUE(g.asks());
  EXPECT_EQ(g.known().wanted, (std::vector<jit::ParamValue>{{0, 7}, {1, 7}}));
}

TEST(ValueGuards, what_was_taken_back_is_not_tried_again_but_another_value_is) {
  Guarded g;
  g.was_seen(0, 7, 1000);
  g.was_seen(1, 7, 1000);
  g.method().value_versions.own().refused = {{0, 7}};
  EXPECT_TRUE(g.asks());
  EXPECT_EQ(g.known().wanted, (std::vector<jit::ParamValue>{{1, 7}}));
}

TEST(ValueGuards, after_so_many_that_were_taken_back_no_value_is_tried) {
  Guarded g;
  g.was_seen(0, 7, 1000);
  g.method().value_versions.own().retries = g.policy.exit_retries;
  EXPECT_FALSE(g.asks());
  EXPECT_EQ(g.logged(), Actions{"ban"});
  EXPECT_TRUE(g.known().banned);
  EXPECT_FALSE(g.asks());
  EXPECT_EQ(g.logged(), Actions{"ban"}) << "once";
}

TEST(ValueGuards, nothing_is_asked_where_no_version_could_come_into_service) {
  Guarded g;
  g.was_seen(0, 7, 1000);
  EXPECT_TRUE(g.asks());
  Method& m = g.method();
  for (bool* why : {&m.optimized_requested, &m.removed, &m.guard_banned}) {
    *why = true;
    EXPECT_FALSE(g.asks());
    *why = false;
  }
  Trial trial(g.general, g.guarded, 4, 1, false);
  m.optimizing.own().trial = &trial;
  EXPECT_FALSE(g.asks()) << "its version may go";
  m.optimizing.own().trial = nullptr;
  m.optimized = &g.guarded;
  EXPECT_FALSE(g.asks()) << "there is one";
  m.optimized = nullptr;
  EXPECT_FALSE(g.asks());
  m.optimized = &g.general;
  g.general.retired = true;
  EXPECT_FALSE(g.asks());
  g.general.retired = false;
  std::unique_ptr<jit::Code> ours = std::move(g.general.code);
  EXPECT_FALSE(g.asks()) << "its code is the host's";
  g.general.code = std::move(ours);
  EXPECT_TRUE(g.asks());
}

TEST(ValueGuards, nothing_is_asked_where_it_is_not_wanted) {
  Guarded g;
  g.was_seen(0, 7, 1000);
  g.live.value_versions = false;
  EXPECT_FALSE(g.asks());
  g.live.value_versions = true;
  g.policy.mode = PolicyMode::kNever;
  EXPECT_FALSE(g.asks());
  g.policy.mode = PolicyMode::kAuto;
  g.live.code_budget = 0;
  EXPECT_FALSE(g.asks());
  Options baseline;
  baseline.tier = TierMode::kBaseline;
  Guarded fixed(baseline);
  fixed.was_seen(0, 7, 1000);
  EXPECT_FALSE(fixed.asks());
}

// ---- In service ---------------------------------------------------------------------------------

TEST(ValueGuards, calls_go_to_the_guard_which_counts_a_window) {
  Guarded g;
  g.install();
  EXPECT_EQ(g.method().optimized.load(), &g.guarded);
  EXPECT_EQ(g.called(), &g.counted_entry);
  EXPECT_EQ(g.guarded.guard_words.calls, ValueVersions::kWindow);
  EXPECT_EQ(g.guarded.guard_words.misses, INT32_MAX);
  EXPECT_FALSE(g.general.retired) << "misses go there";
}

TEST(ValueGuards, a_version_whose_general_one_serves_no_more_goes) {
  Guarded g;
  Version& newer = g.add(0, Tier::kOptimized);
  g.method().optimized = &newer;
  g.install();
  EXPECT_TRUE(g.guarded.retired);
  EXPECT_EQ(g.method().optimized.load(), &newer);
  EXPECT_FALSE(newer.retired);
}

TEST(ValueGuards, while_both_are_timed_nothing_is_counted) {
  Guarded g;
  g.live.trials = true;
  g.method().value_versions.own().in_window = true;  // left over from the previous version
  g.guarded.guard_words.misses = 1;
  g.install();
  ASSERT_NE(g.method().optimizing->trial.load(), nullptr);
  EXPECT_EQ(g.called(), g.code.stubs->trial(MethodId(0)));
  EXPECT_FALSE(g.known().in_window);
  EXPECT_EQ(g.guarded.guard_words.misses, INT32_MAX);
  g.end_window(kTooMany);
  EXPECT_EQ(g.method().optimized.load(), &g.guarded) << "the trial decides";
}

TEST(ValueGuards, another_trial_is_over_when_it_comes) {
  Guarded g;
  Trial trial(g.general, g.general, 4, 1, false);
  g.method().optimizing.own().trial = &trial;
  g.install();
  EXPECT_EQ(g.method().optimizing->trial.load(), nullptr);
}

TEST(ValueGuards, a_guard_that_holds_is_trusted_with_twice_as_many_misses_each_time) {
  Guarded g;
  g.install();
  g.end_window(1);
  EXPECT_EQ(g.called(), g.guarded.entry) << "nothing is counted but misses";
  EXPECT_EQ(g.guarded.guard_words.misses, ValueVersions::kFirstLimit);
  // The limit of misses is reached, so another window begins.
  g.values.consider_guard(g.method());
  EXPECT_EQ(g.called(), &g.counted_entry);
  EXPECT_EQ(g.guarded.guard_words.misses, INT32_MAX);
  EXPECT_EQ(g.guarded.guard_words.calls, ValueVersions::kWindow);
  EXPECT_EQ(g.known().missed, 1u + ValueVersions::kFirstLimit);
  g.end_window(0);
  EXPECT_EQ(g.guarded.guard_words.misses, 2 * ValueVersions::kFirstLimit);
  EXPECT_EQ(g.logged(), Actions());
  g.method().value_versions.own().limit = ValueVersions::kMostLimit;
  g.values.begin_window(g.method());
  g.end_window(0);
  EXPECT_EQ(g.known().limit, ValueVersions::kMostLimit);
  // The next version starts with the first limit again.
  g.method().optimized = &g.general;
  g.install();
  EXPECT_EQ(g.known().limit, ValueVersions::kFirstLimit);
}

TEST(ValueGuards, one_that_fails_too_often_gives_calls_back_and_its_values_are_refused) {
  Guarded g;
  g.install();
  g.end_window(kTooMany);
  EXPECT_EQ(g.method().optimized.load(), &g.general);
  EXPECT_EQ(g.called(), g.general.entry);
  EXPECT_TRUE(g.guarded.retired);
  EXPECT_FALSE(g.general.retired);
  EXPECT_EQ(g.known().refused, (std::vector<jit::ParamValue>{{0, 7}}));
  EXPECT_EQ(g.known().retries, 1u);
  EXPECT_EQ(g.known().missed, uint64_t{kTooMany});
  EXPECT_FALSE(g.known().in_window);
  EXPECT_FALSE(g.known().banned);
  EXPECT_EQ(g.logged(), Actions{"roll_back"});
}

TEST(ValueGuards, the_last_one_that_fails_too_often_bans_all) {
  Guarded g;
  g.install();
  g.method().value_versions.own().retries = g.policy.exit_retries;
  g.end_window(kTooMany);
  EXPECT_TRUE(g.known().banned);
  EXPECT_EQ(g.logged(), Actions{"ban"});
}

TEST(ValueGuards, what_a_guard_tells_when_it_serves_no_more_is_not_heard) {
  Guarded g;
  g.values.consider_guard(g.method());
  g.install();
  g.guarded.retired = true;
  g.end_window(kTooMany);
  g.guarded.retired = false;
  g.method().removed = true;
  g.end_window(kTooMany);
  EXPECT_EQ(g.method().optimized.load(), &g.guarded);
  EXPECT_EQ(g.known().missed, 0u);
  EXPECT_EQ(g.logged(), Actions());
}

TEST(ValueGuards, under_stress_a_version_is_forced_once_and_stays_whatever_it_misses) {
  Options stressed;
  stressed.stress = "values=all";
  Guarded g(stressed);
  g.was_seen(0, 7, 1);
  EXPECT_TRUE(g.asks());
  EXPECT_TRUE(g.method().wake_after_call);
  EXPECT_FALSE(g.known().wanted.empty());
  EXPECT_FALSE(g.asks()) << "once for each general version";
  g.install();
  g.end_window(kTooMany);
  EXPECT_EQ(g.method().optimized.load(), &g.guarded);
  EXPECT_FALSE(g.guarded.retired);
}

}  // namespace
}  // namespace uptier::tiering::value_guards_test
