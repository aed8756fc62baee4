// The choice of the methods to evict when room is needed, and the handling of compilations that
// find none.
#include "tiering/control/eviction.h"

#include "tests/support/owners.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/image/image_code.h"

namespace uptier::tiering::eviction_test {
namespace {

constexpr uint64_t kPage = jit::CodeSpace::kPage;

// A host that compiles its own code, and finds no room for it `refusals` times.
class Own final : public Host {
 public:
  Result<HostCode> compile(const Plan&, const MethodProfile&) override {
    ++asked;
    if (refusals == 0) return HostCode{.entry = this, .bytes = 1};
    --refusals;
    return Error{why, "no"};
  }
  int asked = 0, refusals = 0;
  ErrorCode why = ErrorCode::kResourceExhausted;
};

// Methods 0 to 3 have a page of code each, without frames in it; they were last used in this order.
struct Room : test::Owners {
  explicit Room(const Options& o = {}) : Owners(o) {
    for (uint32_t i = 0; i < kMethods; ++i) put_code(i);
    taken_ = code.space->bytes_in_service();
    fill(1.0);
  }
  void put_code(uint32_t i) {
    Version& v = add(i, Tier::kBaseline);
    auto span = code.space->allocate(static_cast<uint32_t>(kPage));
    EXPECT_TRUE(span.ok());
    EXPECT_TRUE(code.space->publish(*span).ok());
    v.code = std::make_unique<jit::Code>(std::move(*span), 0, jit::CodeTables());
    v.code_bytes = kPage;
    method(i).plain = &v;
    in_service.link_locked(method(i));
    in_service.touch(method(i));
  }
  // Sets the budget so that the code now in service takes `share` of it.
  void fill(double share) {
    live.code_budget = static_cast<uint64_t>(static_cast<double>(taken_) / share);
  }
  // Return the methods that have code in service, and the methods whose cells lead to the slow
  // path.
  std::vector<uint32_t> having() {
    return which([](Method& m) { return !m.versions[0]->retired; });
  }
  std::vector<uint32_t> asking() {
    return which([](Method& m) { return m.unlinked; });
  }
  template <typename Has>
  std::vector<uint32_t> which(Has has) {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < kMethods; ++i) {
      if (has(method(i))) all.push_back(i);
    }
    return all;
  }
  void give_to_host(uint32_t i) {
    MethodInfo info;
    info.own_code = true;
    replace(i, own, std::move(info));
  }
  Result<std::unique_ptr<Version>> make(bool urgent, Plan plan = {}) {
    plan.method = MethodId(3);
    return eviction.make_with_room(method(3), plan, urgent);
  }

  Own own;
  ProbeChoice choice = ProbeChoice::from(options);
  KeptBodies bodies{options};
  Log log{options};
  ImageCode image{{options, log, methods, *code.space, *code.stubs, helpers, false}};
  MethodCompiler compiler{{.options = options,
                           .live = live,
                           .policy = policy,
                           .probe_choice = choice,
                           .samples_calls = true,
                           .always_instrumented = false,
                           .lines = false,
                           .stress = stress,
                           .state_mutex = mutex,
                           .methods = methods,
                           .places = places,
                           .observer = observer,
                           .saved = saved,
                           .bodies = bodies,
                           .events = events,
                           .space = *code.space,
                           .stubs = *code.stubs,
                           .poll_words = poll_words,
                           .tallies = tally_words,
                           .routines = *code.routines,
                           .helpers = helpers,
                           .image = image}};
  Eviction eviction{{.options = options,
                     .live = live,
                     .stress = stress,
                     .state_mutex = mutex,
                     .methods = methods,
                     .space = *code.space,
                     .compiler = compiler,
                     .relay = *relay,
                     .requests = requests,
                     .in_service = in_service}};

 private:
  uint64_t taken_ = 0;
};

using Which = std::vector<uint32_t>;
const Which kAll{0, 1, 2, 3};

// ---- Victims ------------------------------------------------------------------------------------

TEST(Eviction, while_there_is_room_nothing_is_done) {
  Room r;
  r.fill(0.89);
  r.eviction.make_room_locked(0, true);
  EXPECT_EQ(r.having(), kAll);
  EXPECT_EQ(r.asking(), Which());
  r.eviction.make_room_locked(UINT32_MAX, false);
  EXPECT_EQ(r.asking(), Which{0}) << "but for what is wanted";
}

TEST(Eviction, the_coldest_quarter_is_asked_first_whether_it_is_called) {
  Room r;
  r.eviction.make_room_locked(0, false);
  EXPECT_EQ(r.having(), kAll);
  EXPECT_EQ(r.asking(), Which{0});
  EXPECT_EQ(r.in_service.current_entry(r.method(0)), nullptr);
}

TEST(Eviction, what_has_not_been_called_since_goes_and_the_next_quarter_is_asked) {
  Room r;
  r.eviction.make_room_locked(0, false);
  r.eviction.make_room_locked(0, false);
  EXPECT_EQ(r.having(), (Which{1, 2, 3}));
  EXPECT_TRUE(r.method(0).versions[0]->freed);
  EXPECT_EQ(r.asking(), Which{1});
  EXPECT_EQ(r.losses.evictions, 1u);
}

TEST(Eviction, what_has_been_called_since_stays_and_is_the_warmest) {
  Room r;
  r.eviction.make_room_locked(0, false);
  EXPECT_TRUE(r.in_service.relink(r.method(0)));
  r.eviction.make_room_locked(0, false);
  EXPECT_EQ(r.having(), kAll);
  EXPECT_EQ(r.asking(), Which{1});
}

TEST(Eviction, it_ends_when_a_quarter_of_the_budget_is_free) {
  Room r;
  r.fill(0.91);
  for (uint32_t i : {0, 1, 2, 3}) r.in_service.unlink_locked(r.method(i));
  uint64_t taken = r.code.space->bytes_in_service();
  r.eviction.make_room_locked(0, false);
  uint64_t left = r.code.space->bytes_in_service();
  EXPECT_LT(left, taken);
  EXPECT_LE(static_cast<double>(left), 0.75 * static_cast<double>(r.live.code_budget));
  EXPECT_GT(static_cast<double>(left + kPage), 0.75 * static_cast<double>(r.live.code_budget));
}

TEST(Eviction, what_has_lost_its_link_goes_first_however_warm_it_was) {
  Room r;
  r.in_service.unlink_locked(r.method(3));
  r.eviction.make_room_locked(0, false);
  EXPECT_EQ(r.having(), (Which{0, 1, 2}));
}

TEST(Eviction, who_cannot_wait_takes_what_has_been_quiet_longest) {
  Room r;
  r.in_service.touch(r.method(0));
  r.live.code_budget = 12 * kPage;
  uint64_t taken = r.code.space->bytes_in_service();
  ASSERT_LE(taken, 11 * kPage);
  r.eviction.make_room_locked(11 * kPage - taken, true);  // three quarters of the budget are 9
                                                          // pages
  EXPECT_EQ(r.having(), (Which{0, 3}));
  EXPECT_EQ(r.asking(), Which{3});
}

TEST(Eviction, all_that_nobody_runs_goes_for_one_that_finds_no_room_otherwise) {
  Room r;
  r.eviction.make_room_locked(UINT64_MAX, true);
  EXPECT_EQ(r.having(), Which());
}

TEST(Eviction, code_of_hosts_and_of_removed_methods_is_left_alone) {
  Room r;
  r.give_to_host(0);
  r.put_code(0);
  r.method(1).removed = true;
  r.eviction.make_room_locked(UINT64_MAX, true);
  EXPECT_EQ(r.having(), (Which{0, 1}));
}

// ---- Return to service --------------------------------------------------------------------------

TEST(Eviction, what_was_optimized_when_it_went_is_asked_for_when_it_is_called_again) {
  Room r;
  Method& m = r.method();
  r.eviction.ask_again_after_eviction(m);
  EXPECT_EQ(r.requests.size(), 0u);
  m.wants_optimized = true;
  r.eviction.ask_again_after_eviction(m);
  std::optional<Plan> plan = r.requests.pop();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->tier, Tier::kOptimized);
  EXPECT_EQ(plan->copy, Copy::kPlain);
  EXPECT_TRUE(plan->use_profile);
  EXPECT_TRUE(m.wake_after_call);
  m.optimized_requested = false;
  r.eviction.ask_again_after_eviction(m);
  EXPECT_EQ(r.requests.size(), 0u) << "once";
  Options baseline;
  baseline.tier = TierMode::kBaseline;
  Room fixed(baseline);
  fixed.method().wants_optimized = true;
  fixed.eviction.ask_again_after_eviction(fixed.method());
  EXPECT_EQ(fixed.requests.size(), 0u);
}

// ---- A compilation that finds no room -----------------------------------------------------------

struct Compiles : Room {
  explicit Compiles(const Options& o = {}) : Room(o) { give_to_host(3); }
};

TEST(Eviction, a_compilation_that_finds_room_takes_none_from_others) {
  Compiles c;
  EXPECT_TRUE(c.make(true).ok());
  EXPECT_EQ(c.own.asked, 1);
  EXPECT_EQ(c.losses.evictions, 0u);
}

TEST(Eviction, one_that_finds_none_is_tried_again_when_some_was_made) {
  Compiles c;
  c.own.refusals = 1;
  EXPECT_TRUE(c.make(true).ok());
  EXPECT_EQ(c.own.asked, 2);
  EXPECT_GE(c.losses.evictions, 1u);
}

TEST(Eviction, only_a_caller_that_cannot_go_on_without_takes_all) {
  Plan copy, optimized;
  copy.copy = Copy::kInstrumented;
  optimized.tier = Tier::kOptimized;
  auto tries = [](bool urgent, const Plan& plan) {
    Compiles c;
    c.fill(0.5);
    c.own.refusals = 9;
    EXPECT_FALSE(c.make(urgent, plan).ok());
    EXPECT_EQ(c.losses.evictions, c.own.asked == 3 ? 3u : 0u);
    return c.own.asked;
  };
  EXPECT_EQ(tries(true, {}), 3);
  EXPECT_EQ(tries(false, {}), 2);
  EXPECT_EQ(tries(true, copy), 2);
  EXPECT_EQ(tries(true, optimized), 2);
}

TEST(Eviction, what_fails_for_another_reason_is_not_tried_again) {
  Compiles c;
  c.own.refusals = 1;
  c.own.why = ErrorCode::kUnsupported;
  EXPECT_FALSE(c.make(true).ok());
  EXPECT_EQ(c.own.asked, 1);
  EXPECT_EQ(c.losses.evictions, 0u);
}

TEST(Eviction, refusals_that_a_stress_plan_forces_stand) {
  Options stressed;
  stressed.stress = "code=all";
  Compiles c(stressed);
  c.own.refusals = 1;
  EXPECT_FALSE(c.make(true).ok());
  EXPECT_EQ(c.own.asked, 1);
}

}  // namespace
}  // namespace uptier::tiering::eviction_test
