// Instrumented copies of optimized code: when they are made and removed, and how their windows are
// judged.
#include "tiering/control/copy_control.h"

#include "tests/support/owners.h"
#include "tests/support/runtime_host.h"

namespace uptier::tiering::copy_control_test {
namespace {

using Actions = std::vector<std::string>;

constexpr const char* kTwoWays = R"(
func @f(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  return v0
b2:
  return v0
}
)";
// Calls of optimized code after which a second body is worth its cost.
const uint64_t kStillHot = Options().copy_after;

// A method with three blocks and two loops, whose optimized version is in service.
struct Copies : test::Owners {
  explicit Copies(const Options& o = {}) : Owners(by_no_clock(o)) {
    describe_loops(0, 2);
    method().shape.own().block_weights.assign(3, 1);
    jit::Module parsed = test::parse_or_die(kTwoWays);
    method().probes.put(ProbeSet(parsed.functions[0], ProbeChoice::from(options)));
    version.code = code_with({});
    method().optimized = &version;
  }
  static Options by_no_clock(Options o) {
    o.measure_rates = false;
    o.slab_budget = o.ring_bytes = 1 << 12;
    return o;
  }
  // Sets the number of calls that are known.
  void call(uint64_t calls) { method().flushed.own().adaptation.gone.calls = calls; }
  std::optional<Plan> wanted() {
    copies.want_optimized_copy(method());
    return requests.pop();
  }
  // Code that counts all blocks and polls at its loops.
  std::unique_ptr<jit::Code> counting() {
    jit::CodeTables tables;
    for (SiteId site : {1, 2, 3}) tables.probes.push_back({.offset = site, .site = site});
    tables.exits.push_back({.polls = LoopId(0)});
    auto span = code.space->allocate(64);
    EXPECT_TRUE(span.ok());
    EXPECT_TRUE(code.space->publish(*span).ok());
    return std::make_unique<jit::Code>(std::move(*span), 0, std::move(tables));
  }
  Version& make(Copy copy, LoopId loop = {}) {
    Version& v = add(0, Tier::kOptimized, copy);
    v.code = counting();
    v.osr_loop = loop;
    v.scope.sites = {false, true, true};
    v.scope.inner = {false, true};
    return v;
  }
  // Puts an instrumented copy for calls into service.
  Version& observe() {
    Version& v = make(Copy::kInstrumented);
    copies.begin_observing_optimized(method(), v);
    return v;
  }
  const Version* copy() { return method().optimizing->copy.load(); }
  // Puts a version for a loop into service.
  Version& enter(uint32_t loop) {
    Version& v = make(Copy::kPlain, LoopId(loop));
    method().shape->osr[loop] = &v;
    return v;
  }
  Version& observe_loop(uint32_t loop) {
    Version& v = make(Copy::kInstrumented, LoopId(loop));
    copies.loops().begin_observing(method(), v);
    return v;
  }
  // A frame at a loop answers the poll.
  std::optional<Plan> answer(uint32_t loop) {
    sampler::Note n;
    n.kind = sampler::NoteKind::kFrame;
    n.loop = loop;
    copies.loops().take_frame(method(), n);
    return requests.pop();
  }
  // A thread hands over 64 calls of a copy, of which `first_way` took the first branch. Returns
  // whether the policy must be asked.
  bool window(const Version& of, uint64_t first_way) {
    samples_ += 64;
    counted_[0] += 64;
    counted_[1] += first_way;
    counted_[2] += 64 - first_way;
    sampler::Note n;
    n.kind = sampler::NoteKind::kOptimized;
    n.copy = of.copy_number;
    n.sampled_calls = samples_;
    n.calls = samples_ * live.optimized_interval;
    uint32_t rung = sampler::Ladder::power_below(static_cast<uint32_t>(live.optimized_interval));
    n.rate = sampler::Rate::sampled(rung, static_cast<uint32_t>(options.burst)).word;
    return copies.take_optimized(method(), 1, n, counted_);
  }

  Version& version = add(0, Tier::kOptimized);
  RateControl rates{
      {options, live, schedule, schedule, fast, methods, threads, observer, reclaimer, requests}};
  NewerCode newer{options, policy, system, observer, requests, frames};
  CopyControl copies{{.options = options,
                      .live = live,
                      .policy = policy,
                      .always_instrumented = options.interval == 1,
                      .methods = methods,
                      .places = places,
                      .observer = observer,
                      .rates = rates,
                      .requests = requests,
                      .reclaimer = reclaimer,
                      .system = system,
                      .frames = frames,
                      .newer = newer,
                      .in_service = in_service}};

 private:
  uint64_t samples_ = 0;
  std::vector<uint64_t> counted_ = std::vector<uint64_t>(3);
};

// ---- Copies for calls ---------------------------------------------------------------------------

TEST(CopyControl, a_method_that_is_still_called_is_asked_a_copy_for_once) {
  Copies c;
  c.call(kStillHot - 1);
  EXPECT_FALSE(c.wanted());
  c.call(kStillHot);
  std::optional<Plan> plan = c.wanted();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->tier, Tier::kOptimized);
  EXPECT_EQ(plan->copy, Copy::kInstrumented);
  EXPECT_TRUE(plan->use_profile);
  EXPECT_FALSE(plan->osr_loop.valid());
  EXPECT_FALSE(c.wanted());
  // A new optimized version: calls are counted from here on.
  c.copies.retire_optimized_copy(c.method());
  EXPECT_FALSE(c.wanted());
  c.call(2 * kStillHot);
  EXPECT_TRUE(c.wanted());
}

TEST(CopyControl, where_calls_say_all_there_is_no_copy) {
  Copies c;
  c.call(kStillHot);
  c.method().shape.own().block_weights.assign(1, 1);
  c.method().probes.reset();
  EXPECT_FALSE(c.wanted());
  c.version.inlined = 1;
  EXPECT_TRUE(c.wanted()) << "they say nothing of what is inlined";
}

TEST(CopyControl, without_optimized_code_there_is_nothing_to_copy) {
  Copies c;
  c.call(kStillHot);
  c.version.retired = true;
  EXPECT_FALSE(c.wanted());
  c.version.retired = false;
  c.method().optimized = nullptr;
  EXPECT_FALSE(c.wanted());
}

TEST(CopyControl, nothing_is_observed_of_optimized_code_where_that_is_not_wanted) {
  Options fixed, exact, all, off, tier;
  fixed.adaptive = false;
  exact.gap = GapMode::kExact;
  all.interval = 1;
  off.observe_optimized = false;
  tier.tier = TierMode::kOptimized;
  for (const Options& o : {fixed, exact, all, off, tier}) {
    Copies c(o);
    EXPECT_FALSE(c.copies.rules().may_observe(c.method()));
  }
  Copies c;
  EXPECT_TRUE(c.copies.rules().may_observe(c.method()));
  c.method().shape.own().block_weights.clear();
  EXPECT_FALSE(c.copies.rules().may_observe(c.method()));
  MethodInfo own;
  own.own_code = true;
  Method hosts(MethodId(1), 9, c.host, own);
  hosts.shape.own().block_weights.assign(3, 1);
  EXPECT_FALSE(c.copies.rules().may_observe(hosts));
}

TEST(CopyControl, copies_are_numbered_and_none_has_fewer_words_than_one_before) {
  Copies c;
  Version& first = c.observe();
  EXPECT_EQ(c.copy(), &first);
  EXPECT_EQ(first.copy_number, 1u);
  EXPECT_EQ(first.copy_words, 3u);
  c.method().optimizing.own().most_words = 10;
  Version& second = c.observe();
  EXPECT_EQ(c.copy(), &second);
  EXPECT_EQ(second.copy_number, 2u);
  EXPECT_EQ(second.copy_words, 10u);
  EXPECT_EQ(second.newest_method, c.places.methods_seen());
}

TEST(CopyControl, a_copy_that_comes_when_its_method_has_been_evicted_does_not_serve) {
  Copies c;
  c.method().optimized = nullptr;
  Version& late = c.observe();
  EXPECT_EQ(c.copy(), nullptr);
  EXPECT_EQ(late.copy_number, 0u);
}

TEST(CopyControl, the_copy_goes_with_the_version_it_is_of_and_the_next_one_has_one_at_once) {
  Copies c;
  Version &copy = c.observe(), &of_loop = c.make(Copy::kInstrumented, LoopId(0));
  c.copies.retire_optimized_copy(c.method());
  EXPECT_EQ(c.copy(), nullptr);
  EXPECT_TRUE(copy.retired);
  EXPECT_FALSE(of_loop.retired);
  EXPECT_FALSE(c.version.retired);
  EXPECT_TRUE(c.method().optimizing->copy_expected) << "rates stay as they are";
  std::optional<Plan> plan = c.requests.pop();
  ASSERT_TRUE(plan) << "it has shown that it is hot";
  EXPECT_EQ(plan->copy, Copy::kInstrumented);
  c.observe();
  EXPECT_FALSE(c.method().optimizing->copy_expected);
}

TEST(CopyControl, a_version_that_was_not_observed_has_no_copy_at_once) {
  Copies c;
  c.copies.retire_optimized_copy(c.method());
  EXPECT_FALSE(c.method().optimizing->copy_expected);
  EXPECT_FALSE(c.requests.pop());
}

// ---- Copies for loops ---------------------------------------------------------------------------

TEST(CopyControl, frames_of_code_that_asks_are_watched) {
  Copies c;
  c.copies.loops().watch_frames_of(c.method(), c.version);
  EXPECT_FALSE(c.frames.wait()) << "it does not ask";
  c.copies.loops().watch_frames_of(c.method(), c.make(Copy::kPlain));
  EXPECT_TRUE(c.frames.wait());
}

TEST(CopyControl, what_is_called_often_is_observed_by_calls) {
  Copies c;
  c.call(9);
  c.copies.loops().watch_frames_of(c.method(), c.make(Copy::kPlain));
  EXPECT_FALSE(c.frames.wait());
  c.copies.loops().watch_frames_of(c.method(), c.make(Copy::kPlain, LoopId(0)));
  EXPECT_TRUE(c.frames.wait());
}

TEST(CopyControl, frames_that_are_due_are_called_unless_sampling_is_off) {
  Copies c;
  Version& loop = c.enter(0);
  c.rates.observe(Sampling::kOff);
  c.copies.loops().watch_all_frames();
  c.copies.loops().call_watched_if_due();
  EXPECT_EQ(Copies::words(loop), (std::vector<uint32_t>{0, 0}));
  c.rates.observe(Sampling::kByOptions);
  c.method().removed = true;
  c.copies.loops().watch_all_frames();
  EXPECT_FALSE(c.frames.wait());
  c.method().removed = false;
  c.copies.loops().watch_all_frames();
  c.copies.loops().call_watched_if_due();
  EXPECT_EQ(Copies::words(loop), (std::vector<uint32_t>{1, 1}));
  EXPECT_FALSE(c.frames.wait()) << "once";
}

TEST(CopyControl, a_frame_that_answers_has_the_code_of_its_loop_made_and_then_the_copy_of_that) {
  Copies c;
  std::optional<Plan> plan = c.answer(1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->osr_loop, LoopId(1));
  EXPECT_EQ(plan->copy, Copy::kPlain);
  EXPECT_FALSE(c.answer(1)) << "it is on its way";
  c.requests.done(c.method(), *plan);
  c.enter(1);
  plan = c.answer(1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->osr_loop, LoopId(1));
  EXPECT_EQ(plan->copy, Copy::kInstrumented);
  EXPECT_FALSE(c.answer(1)) << "once";
  c.observe_loop(1);
  c.frames.forget(c.method());
  EXPECT_FALSE(c.answer(1));
  EXPECT_TRUE(c.frames.wait()) << "its next turn comes";
}

TEST(CopyControl, what_is_compiled_to_observe_takes_a_small_part_of_the_time) {
  Copies c;
  own_loop_copy(c.method(), LoopId(1));
  c.method().optimizing->loop_copies.made()->compile_ns = 3'600'000'000'000;
  EXPECT_FALSE(c.answer(1));
  EXPECT_TRUE(c.frames.wait());
}

TEST(CopyControl, answers_of_a_method_that_was_removed_are_not_heard) {
  Copies c;
  c.enter(1);
  c.observe_loop(1);
  c.frames.forget(c.method());
  c.method().removed = true;
  EXPECT_FALSE(c.answer(1));
  EXPECT_FALSE(c.frames.wait());
}

TEST(CopyControl, the_copy_of_a_loop_serves_beside_the_code_of_that_loop_only) {
  Copies c;
  EXPECT_TRUE(c.observe_loop(1).retired) << "there would be no way back";
  EXPECT_EQ(loop_copy(c.method(), LoopId(1)), nullptr);
  c.enter(1);
  Version& copy = c.observe_loop(1);
  EXPECT_FALSE(copy.retired);
  EXPECT_EQ(loop_copy(c.method(), LoopId(1))->version.load(), &copy);
  EXPECT_EQ(loop_copy(c.method(), LoopId(0))->version.load(), nullptr);
  EXPECT_EQ(copy.copy_number, 1u);
  EXPECT_EQ(Copies::words(copy), (std::vector<uint32_t>{1, 0}))
      << "a round ends at the loop, not at one in it";
  Version& next = c.observe_loop(1);
  EXPECT_TRUE(copy.retired);
  EXPECT_EQ(loop_copy(c.method(), LoopId(1))->version.load(), &next);
}

TEST(CopyControl, windows_of_a_loop_leave_out_what_lies_outside_of_it) {
  Copies c;
  c.enter(1);
  Version& copy = c.observe_loop(1);
  EXPECT_EQ(loop_copy(c.method(), LoopId(1))->windows.observed,
            (std::vector<bool>{false, true, true}));
  EXPECT_FALSE(c.window(copy, 40));
  EXPECT_EQ(loop_copy(c.method(), LoopId(1))->windows.known, (std::vector<double>{0, 40, 24}));
  c.in_service.retire_loop_copy(c.method(), LoopId(1));
  c.window(copy, 40);
  EXPECT_EQ(loop_copy(c.method(), LoopId(1))->windows.samples, 0u) << "it came late";
}

// ---- Windows ------------------------------------------------------------------------------------

TEST(CopyControl, windows_that_are_like_those_before_say_nothing) {
  Copies c;
  Version& copy = c.observe();
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(c.window(copy, 40));
  EXPECT_EQ(c.logged(), Actions());
  EXPECT_EQ(c.method().optimizing->windows.samples, 64u * 64);
}

TEST(CopyControl, a_window_that_is_not_is_said_to_be_drift_and_all_is_learnt_anew) {
  Copies c;
  c.method().saved = std::make_unique<SavedMethod>();
  Version& copy = c.observe();
  for (int i = 0; i < 64; ++i) c.window(copy, 40);
  for (int i = 0; i < 8 && c.logged().empty(); ++i) c.window(copy, 4);
  EXPECT_EQ(c.logged(), Actions{"re_instrument"});
  EXPECT_TRUE(c.method().saved->drifted);
  EXPECT_TRUE(c.method().optimizing->windows.known.empty());
}

TEST(CopyControl, code_that_was_made_from_another_profile_has_the_policy_asked) {
  Copies c;
  c.method().saved = std::make_unique<SavedMethod>();
  c.version.made_from = {64, 4, 60};
  c.version.made_error = 0;
  Version& copy = c.observe();
  bool asked = false;
  for (uint64_t i = 0; i < 64; ++i) asked |= c.window(copy, 38 + i % 5);
  EXPECT_TRUE(asked) << "when a window is whole";
  EXPECT_EQ(c.logged(), Actions{"re_instrument"}) << "once";
  EXPECT_TRUE(c.method().saved->drifted);
  // (4 to 40 of 64) / 2: each call executes two blocks.
  EXPECT_LE(c.method().optimizing->windows.drift, 36.0 / 128) << "less what noise explains";
  EXPECT_GT(c.method().optimizing->windows.drift, 0.2);
  Copies same;
  same.version.made_from = {64, 40, 24};
  same.version.made_error = 0;
  Version& other = same.observe();
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(same.window(other, 40));
  EXPECT_EQ(same.logged(), Actions());
}

TEST(CopyControl, the_next_version_is_made_from_what_windows_saw_and_its_loops_anew) {
  Copies c;
  Version& loop = c.enter(0);
  Version& copy = c.observe();
  for (int i = 0; i < 16; ++i) c.window(copy, 48);
  c.method().optimizing.own().windows.drift = 0.5;
  c.copies.follow_drift(c.method());
  const SeenPhase& phase = *c.method().flushed->seen_phase;
  ASSERT_EQ(phase.blocks.size(), 3u);
  EXPECT_NEAR(static_cast<double>(phase.blocks[1]) / static_cast<double>(phase.blocks[0]), 0.75,
              0.01);
  EXPECT_LT(phase.error, 1);
  EXPECT_EQ(c.method().optimizing->drift_versions, 1u);
  EXPECT_EQ(c.method().optimizing->windows.drift, 0);
  EXPECT_TRUE(loop.retired);
  EXPECT_EQ(c.method().shape->osr[0].load(), nullptr);
}

TEST(CopyControl, what_comes_late_of_a_copy_that_has_gone_is_in_no_window) {
  Copies c;
  Version& gone = c.observe();
  c.observe();
  EXPECT_FALSE(c.window(gone, 40));
  EXPECT_EQ(c.method().optimizing->windows.samples, 0u);
  c.copies.retire_optimized_copy(c.method());
  EXPECT_FALSE(c.window(gone, 40));
  EXPECT_EQ(c.method().optimizing->windows.samples, 0u);
}

}  // namespace
}  // namespace uptier::tiering::copy_control_test
