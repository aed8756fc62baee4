// Programs that spend their life in one call of optimized code: rounds of the loop are observed, a
// change of phase is noticed, and the loop is recompiled.
//
// The time at which a frame is called back varies, so a run goes on until enough rounds have been
// observed; nothing is asserted about how long that takes.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "tests/support/runtime_host.h"

namespace uptier::test::observe_loops_test {
namespace {

// Does what `next` returns until it is 2; returns how often it was 1.
constexpr const char* kText = R"(
func @live(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 0
  v2 = const.i64 1
  jump b1(v1)
b1(v3: i64):
  loop_header 0 pc=1 []
  v4 = call_host @next.()->i32 ()
  v5 = const.i32 2
  v6 = eq.i32 v4, v5
  branch v6, b5, b2
b2:
  branch v4, b3, b4(v3)
b3:
  v7 = add.i64 v3, v2
  jump b4(v7)
b4(v8: i64):
  jump b1(v8)
b5:
  return v3
}
)";

// Decides what the loop does next, and queries the runtime in between.
struct World {
  Runtime* runtime = nullptr;
  uint64_t asks = 256;                               // rounds between two checks
  bool flushes = true;                               // a check also does the worker's jobs
  uint64_t patience = 4'000'000;                     // checks before the run is given up
  std::function<bool()> done = [] { return true; };  // ends the phase; called at checks
  uint64_t rounds = 0, ones = 0, percent = 0;
  std::chrono::nanoseconds pause{0};          // in each round
  std::vector<std::function<void()>> phases;  // each begins a phase; the loop ends after the last
  size_t phase = 0;
};
World* world = nullptr;

extern "C" int32_t next() noexcept {
  World& w = *world;
  if (w.rounds++ % w.asks == 0) {
    if (w.flushes) w.runtime->flush();
    if (w.patience-- == 0) return 2;
    if (w.done()) {
      if (w.phase == w.phases.size()) return 2;
      w.phases[w.phase++]();
    }
  }
  if (w.pause.count() != 0) {
    auto end = std::chrono::steady_clock::now() + w.pause;
    while (std::chrono::steady_clock::now() < end) {}
  }
  bool one = w.rounds * 7919 % 100 < w.percent;
  w.ones += one;
  return one ? 1 : 0;
}

Options living() {
  return options({{"policy", "always"},
                  {"workers", "0"},
                  {"measure_rates", "off"},
                  {"loop_flush_first", "8"}});
}

class Living {
 public:
  explicit Living(const Options& o)
      : hosts_{{"next", reinterpret_cast<const void*>(&next), signature_of(&next)}},
        runtime_(parse_or_die(kText, hosts_), o),
        thread_(*runtime_.runtime) {
    world_.runtime = runtime_.runtime.get();
    if (o.workers == 0) return;
    // Frequent checks would keep the worker from its work.
    world_.asks = 1 << 22;
    world_.flushes = false;
    world_.patience = 4'000;
  }

  // A phase in which `percent` of 100 rounds are ones, until `done`.
  void phase(uint64_t percent, std::function<bool()> done) {
    world_.phases.push_back([this, percent, done = std::move(done)] {
      world_.percent = percent;
      world_.done = done;
    });
  }
  // The same until `samples` more samples have been taken.
  void phase(uint64_t percent, uint64_t samples) {
    world_.phases.push_back([this, percent, samples] {
      world_.percent = percent;
      world_.done = [this, end = this->samples() + samples] { return this->samples() >= end; };
    });
  }
  void then(std::function<void()> f) {
    world_.phases.push_back([this, f = std::move(f)] {
      f();
      world_.done = [] { return true; };
    });
  }
  void run() {
    world = &world_;
    uint64_t got = runtime_.call("live", {0}).bits;
    EXPECT_EQ(got, world_.ones);
    ASSERT_EQ(world_.phase, world_.phases.size()) << "given up";
  }

  MethodReport report() const { return runtime_.report_of("live"); }
  MethodProfile profile() const {
    Profile all = runtime_.runtime->profile();
    return all.methods.empty() ? MethodProfile() : all.methods.begin()->second;
  }
  uint64_t samples() const { return profile().sampled_calls; }
  uint64_t rounds() const { return world_.rounds; }
  uint64_t ones() const { return world_.ones; }
  void pause(std::chrono::nanoseconds in_each_round) { world_.pause = in_each_round; }
  Runtime& runtime() { return *runtime_.runtime; }
  size_t versions(Copy copy) const {
    MethodReport m = report();
    return static_cast<size_t>(std::ranges::count_if(m.versions, [&](const VersionReport& v) {
      return v.tier == Tier::kOptimized && v.osr_loop.valid() && v.copy == copy;
    }));
  }
  std::vector<std::string> drifts() const {
    std::vector<std::string> reasons;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      if (d.action == "re_instrument") reasons.push_back(d.reason);
    }
    return reasons;
  }

 private:
  std::vector<HostFunction> hosts_;
  World world_;
  IrRuntime runtime_;
  ThreadScope thread_;
};

// kKnown: enough samples for the loop to be known. kNoticed: the limit to find a change; two
// windows of 256 samples, the first of which may have begun before, handed over 64 at a time.
constexpr uint64_t kKnown = 1500;
constexpr uint64_t kNoticed = 2 * 256 + 64;

TEST(ObserveLoops, a_phase_that_changes_inside_of_one_call_is_noticed_and_followed) {
  Living l(living());
  size_t before = 0;
  l.phase(90, kKnown);
  l.then([&] {
    EXPECT_EQ(l.drifts(), std::vector<std::string>{});
    EXPECT_GE(l.versions(Copy::kInstrumented), 1u);
    before = l.versions(Copy::kPlain);
  });
  l.phase(10, kNoticed);
  l.then([&] { EXPECT_GE(l.drifts().size(), 1u); });
  l.phase(10, [&] { return l.versions(Copy::kPlain) > before; });
  l.phase(10, kKnown);
  l.run();
  EXPECT_NE(l.drifts()[0].find("drift from earlier windows"), std::string::npos) << l.drifts()[0];
  EXPECT_LE(l.versions(Copy::kPlain), before + 2) << "what is made from what runs now stays";
  EXPECT_EQ(l.report().osr_entries, 1u) << "by the frame that was there";
  EXPECT_GE(l.report().osr_outs, 1u);
  EXPECT_EQ(l.report().left, 0u);
}

// With short rounds, a burst reaches its number of rounds long before its time limit; bursts are at
// least 10 ms apart.
TEST(ObserveLoops, a_burst_ends_by_the_number_of_its_rounds) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kRounds = 16, kSamples = 400;
  Living l(living());
  uint64_t before = 0;
  Clock::time_point start;
  l.phase(50, [&] { return l.versions(Copy::kInstrumented) != 0; });
  l.then([&] {
    before = l.samples();
    start = Clock::now();
  });
  l.phase(50, kSamples);
  l.run();
  uint64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
  EXPECT_LE(l.samples() - before, (kRounds + 1) * (ms / 10 + 2));
}

TEST(ObserveLoops, what_always_does_the_same_stays_as_it_is) {
  Living l(living());
  l.phase(50, 4 * kKnown);
  l.run();
  EXPECT_EQ(l.drifts(), std::vector<std::string>{});
  // The first version is made after eight rounds and may differ from a version made later.
  EXPECT_LE(l.versions(Copy::kPlain), 2u);
  EXPECT_LE(l.versions(Copy::kInstrumented), l.versions(Copy::kPlain));
  // No round was seen twice.
  MethodProfile p = l.profile();
  EXPECT_GE(p.counts[1], 4 * kKnown);
  EXPECT_LE(p.counts[1], l.rounds());
}

// Bursts are spread over time, so both phases get the same number of samples.
TEST(ObserveLoops, samples_of_short_rounds_stand_for_more_of_them) {
  constexpr uint64_t kSamples = 640;
  Living l(living());
  l.phase(50, kKnown);
  l.phase(100, kSamples);
  l.then([&] { l.pause(std::chrono::microseconds(20)); });
  l.phase(0, kSamples);
  l.run();
  MethodProfile p = l.profile();
  const Slot* header = p.schema.find(SlotKind::kBlock, 2);
  const Slot* one = p.schema.find(SlotKind::kBlock, 4);
  ASSERT_TRUE(header != nullptr && one != nullptr);
  auto share = [](uint64_t part, uint64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  double seen = share(p.counts[one->word], p.counts[header->word]);
  double estimated = share(p.estimates[one->word], p.estimates[header->word]);
  double truth = share(l.ones(), l.rounds());
  EXPECT_GT(std::abs(seen - truth), 0.05) << "phases are too much alike";
  EXPECT_NEAR(estimated, truth, 0.05);
}

TEST(ObserveLoops, observing_ends_and_begins_again_as_it_is_set) {
  Living l(living());
  uint64_t off = 0;
  uint64_t rounds = 0;
  l.phase(50, kKnown);
  l.then([&] { ASSERT_TRUE(l.runtime().observe(Sampling::kOff).ok()); });
  // A burst under way runs to its end.
  l.phase(50, [&] { return rounds++ > 100; });
  l.then([&] { off = l.samples(); });
  l.phase(50, [&] { return rounds++ > 10'000; });
  l.then([&] {
    EXPECT_EQ(l.samples(), off);
    ASSERT_TRUE(l.runtime().observe(Sampling::kByOptions).ok());
  });
  l.phase(50, 100);
  l.then([&] { ASSERT_TRUE(l.runtime().set("observe_optimized", "off").ok()); });
  l.phase(50, [&] { return rounds++ > 10'100; });
  l.then([&] { off = l.samples(); });
  l.phase(50, [&] { return rounds++ > 20'000; });
  l.then([&] {
    EXPECT_EQ(l.samples(), off);
    ASSERT_TRUE(l.runtime().set("observe_optimized", "on").ok());
  });
  l.phase(50, 100);
  l.run();
}

TEST(ObserveLoops, without_polls_or_copies_no_frame_is_observed) {
  for (const char* what : {"osr_out", "observe_optimized", "adaptive"}) {
    Options o = living();
    ASSERT_TRUE(o.set(what, "off").ok());
    Living l(o);
    uint64_t flushes = 0;
    l.phase(50, [&] { return flushes++ > 20'000; });
    l.run();
    EXPECT_EQ(l.versions(Copy::kInstrumented), 0u) << what;
  }
}

TEST(ObserveLoops, a_worker_in_the_background_observes_too) {
  Living l(options({{"measure_rates", "off"}, {"compile_ns", "1"}, {"baseline_ns", "1000"}}));
  size_t before = 0;
  l.phase(90, kKnown);
  l.then([&] { before = l.versions(Copy::kPlain); });
  l.phase(10, [&] { return l.versions(Copy::kPlain) > before; });
  l.run();
  EXPECT_GE(l.drifts().size(), 1u);
}

}  // namespace
}  // namespace uptier::test::observe_loops_test
