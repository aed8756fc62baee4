// Observation of optimized code: its instrumented copy, its windows, and how the runtime judges
// them.
#include <algorithm>
#include <thread>

#include "tests/support/pick_program.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::observe_optimized_test {
namespace {

const std::string kText = kPick + R"(
func @sum(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 0
  jump b1(v0, v1)
b1(v2: i32, v3: i32):
  loop_header
  branch v2, b2, b3
b2:
  v4 = add.i32 v3, v2
  v5 = const.i32 1
  v6 = sub.i32 v2, v5
  jump b1(v6, v4)
b3:
  return v3
}
func @aims(ref) -> i64 {
b0(v0: ref):
  probe call_target v0
  v1 = const.i64 0
  return v1
}
func @seen(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  probe value v0
  probe range v1
  probe counter v0
  probe hit
  v2 = add.i64 v0, v1
  return v2
}
)";

constexpr uint64_t kInterval = 16;

// Deterministic options: the thread that flushes does the worker's jobs, and nothing is measured.
Options watching() {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kAlways;
  o.optimized_interval = kInterval;
  o.overhead_budget = 0;  // no clock may influence what the test asserts
  o.measure_rates = false;
  return o;
}

// Traces hold only counts of instrumented copies, so they are compared with profiles of these
// alone.
Options watching_copies() {
  Options o = watching();
  o.count_optimized = false;
  return o;
}

class Watched {
 public:
  explicit Watched(const Options& o, TraceSink* sink = nullptr)
      : runtime_(parse_or_die(kText), o, sink), thread_(*runtime_.runtime) {}

  // Calls `pick`, in `ones` of a hundred calls with 1.
  void pick(uint64_t calls, uint64_t ones) {
    for (uint64_t i = 0; i < calls; ++i) {
      uint64_t arg = random_.below(100) < ones ? 1 : 0;
      ASSERT_EQ(runtime_.call("pick", {arg}).bits, arg == 1 ? 6u : 0u);
    }
  }
  void sum(uint64_t calls, uint64_t n) {
    for (uint64_t i = 0; i < calls; ++i) {
      ASSERT_EQ(runtime_.call("sum", {n}).bits, n * (n + 1) / 2);
    }
  }
  // Passes `seldom` in one call of four, otherwise 2; the other argument takes all numbers in turn.
  void see(uint64_t calls, uint64_t seldom = 5) {
    for (uint64_t i = 0; i < calls; ++i, ++seen_) {
      uint64_t v = random_.below(4) == 0 ? seldom : 2;
      ASSERT_EQ(runtime_.call("seen", {v, seen_}).bits, v + seen_);
    }
  }
  void aim(uint64_t calls, std::string_view target) {
    auto to = reinterpret_cast<uint64_t>(entry(target));
    for (uint64_t i = 0; i < calls; ++i) ASSERT_EQ(runtime_.call("aims", {to}).bits, 0u);
  }
  // Calls until the copy is in service and a few windows are known.
  void settle(uint64_t ones) {
    pick(400'000, ones);
    // A worker may have to wait for a processor.
    for (int i = 0; i < 100 && !has_copy("pick"); ++i) {
      runtime_.runtime->flush();
      pick(100'000, ones);
    }
    ASSERT_TRUE(has_copy("pick"));
  }
  bool has_copy(std::string_view name) const {
    MethodReport m = runtime_.report_of(name);
    return std::any_of(m.versions.begin(), m.versions.end(), [](const VersionReport& v) {
      return v.tier == Tier::kOptimized && v.copy == Copy::kInstrumented && !v.retired;
    });
  }
  std::vector<std::string> drifts() const {
    std::vector<std::string> reasons;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      if (d.action == "re_instrument") reasons.push_back(d.reason);
    }
    return reasons;
  }
  MethodProfile profile(std::string_view name) const {
    for (const auto& [key, m] : runtime_.runtime->profile().methods) {
      if (m.name == name) return m;
    }
    return {};
  }
  const void* entry(std::string_view name) const {
    return runtime_.runtime->entry_address(runtime_.method(name));
  }
  Runtime& runtime() { return *runtime_.runtime; }

 private:
  IrRuntime runtime_;
  ThreadScope thread_;
  Random random_{7};
  uint64_t seen_ = 0;
};

TEST(ObserveOptimized, a_change_of_phase_after_the_last_tier_is_seen) {
  Watched w(watching());
  w.settle(80);
  ASSERT_EQ(w.drifts(), std::vector<std::string>{});
  uint64_t calls = 0;
  for (; w.drifts().empty() && calls < 100'000; calls += 100) w.pick(100, 20);
  ASSERT_EQ(w.drifts().size(), 1u);
  // A window holds 256 samples; the first one may have begun in the phase before.
  EXPECT_LE(calls, (2 * 256 + 64) * kInterval * 5 / 4);
  EXPECT_NE(w.drifts()[0].find("drift from earlier windows"), std::string::npos) << w.drifts()[0];
  // Back to the first phase.
  w.pick(100'000, 20);
  ASSERT_EQ(w.drifts().size(), 1u);
  for (calls = 0; w.drifts().size() < 2 && calls < 100'000; calls += 100) w.pick(100, 80);
  EXPECT_EQ(w.drifts().size(), 2u);
}

TEST(ObserveOptimized, the_same_phase_is_no_drift) {
  Watched w(watching());
  w.settle(50);
  w.pick(2'000'000, 50);
  EXPECT_EQ(w.drifts(), std::vector<std::string>{});
}

// The phase changes between the profile that the code was made from and the first window: no window
// differs from the others, but all differ from the profile.
TEST(ObserveOptimized, code_made_from_another_phase_is_noticed) {
  Options o = watching();
  o.policy = PolicyMode::kAuto;
  o.compile_ns = 1e4;  // gives the method time to learn
  o.speedup = 1.5;
  o.measure_rates = false;
  Watched w(o);
  bool optimized = false;
  for (int i = 0; i < 10'000 && !optimized; ++i) {
    w.pick(100, 95);
    for (const DecisionRecord& d : w.runtime().report().decisions) {
      optimized |= d.action == "specialize";
    }
  }
  ASSERT_TRUE(optimized);
  w.pick(1'000'000, 5);
  ASSERT_TRUE(w.has_copy("pick"));
  ASSERT_EQ(w.drifts().size(), 1u);
  EXPECT_NE(w.drifts()[0].find("drift from the profile it was made from"), std::string::npos)
      << w.drifts()[0];
}

TEST(ObserveOptimized, estimates_stand_for_all_calls_and_loops_count_to_their_end) {
  Watched w(watching());
  w.sum(1'500'000, 3);
  ASSERT_TRUE(w.has_copy("sum"));
  w.runtime().flush();
  MethodProfile before = w.profile("sum");
  w.sum(1'000'000, 3);
  w.runtime().flush();
  MethodProfile after = w.profile("sum");
  const double per_call[] = {1, 4, 3, 1};
  for (SiteId s = 1; s <= 4; ++s) {
    auto came = static_cast<double>(after.estimates[s - 1] - before.estimates[s - 1]);
    // 62,500 samples: a standard deviation is 0.4 %.
    EXPECT_NEAR(came / 1e6, per_call[s - 1], 0.02 * per_call[s - 1]) << s;
    auto counted = after.counts[s - 1] - before.counts[s - 1];
    auto samples = after.sampled_calls - before.sampled_calls;
    EXPECT_EQ(counted, samples * static_cast<uint64_t>(per_call[s - 1])) << s;
  }
  EXPECT_EQ(after.calls, 2'500'000u);
}

// The copy's counts of a method's own probes represent all calls, like its block counts.
TEST(ObserveOptimized, probes_of_the_host_observe_optimized_code_too) {
  CollectingSink sink;
  Watched w(watching_copies(), &sink);
  w.see(600'000);
  ASSERT_TRUE(w.has_copy("seen"));
  w.runtime().flush();
  MethodProfile before = w.profile("seen");
  w.see(1'000'000);
  w.runtime().flush();
  MethodProfile after = w.profile("seen");
  auto came = [&](SlotKind kind, SiteId site, uint32_t word) {
    const Slot* slot = after.schema.find(kind, site);
    uint64_t counts = after.counts[slot->word + word] - before.counts[slot->word + word];
    uint64_t estimate = after.estimates[slot->word + word] - before.estimates[slot->word + word];
    return std::pair(counts, static_cast<double>(estimate));
  };
  uint64_t samples = after.sampled_calls - before.sampled_calls;
  EXPECT_NEAR(static_cast<double>(samples), 1e6 / kInterval, 1e4 / kInterval);
  auto [hits, all] = came(SlotKind::kCounter, 5, 0);
  EXPECT_EQ(hits, samples);
  EXPECT_NEAR(all, 1e6, 1e4);
  // 62,500 samples, a quarter of them with 5: a standard deviation is 0.7 %.
  auto [fives, sum] = came(SlotKind::kCounter, 4, 0);
  EXPECT_NEAR(sum, 2.75e6, 0.02 * 2.75e6);
  EXPECT_EQ((fives - 2 * samples) % 3, 0u);
  auto entry = [](const MethodProfile& m, uint64_t value) {
    return m.tables.at({SlotKind::kValue, 2}).at({0, value});
  };
  uint64_t counted_fives = entry(after, 5).count - entry(before, 5).count;
  uint64_t counted_twos = entry(after, 2).count - entry(before, 2).count;
  EXPECT_EQ(counted_fives, (fives - 2 * samples) / 3) << "probes of one copy see the same calls";
  EXPECT_EQ(counted_fives + counted_twos, samples);
  auto share = static_cast<double>(entry(after, 5).estimate - entry(before, 5).estimate);
  EXPECT_NEAR(share, 2.5e5, 0.03 * 2.5e5);
  const Slot* range = after.schema.find(SlotKind::kRange, 3);
  EXPECT_GT(after.counts[range->word + slot_word::kMax], 1'590'000u);
  EXPECT_EQ(after.counts[range->word + slot_word::kMin], 0u);
  EXPECT_TRUE(w.drifts().empty());
  ProfileBuilder builder;
  for (const TraceEvent& e : sink.events) ASSERT_TRUE(builder.add(e).ok());
  const Profile all_traced = builder.profile();
  const MethodProfile* traced = all_traced.find(after.key);
  ASSERT_NE(traced, nullptr);
  EXPECT_EQ(traced->counts, after.counts);
  EXPECT_EQ(traced->estimates, after.estimates);
  EXPECT_EQ(traced->tables, after.tables);
}

// Values may change freely: the code is not laid out for them.
TEST(ObserveOptimized, what_probes_see_is_no_drift) {
  Watched w(watching());
  w.see(1'000'000);
  ASSERT_TRUE(w.has_copy("seen"));
  w.see(1'000'000, 9);
  for (const char* target : {"pick", "sum"}) w.aim(1'000'000, target);
  ASSERT_TRUE(w.has_copy("aims"));
  w.runtime().flush();
  EXPECT_EQ(w.drifts(), std::vector<std::string>{});
}

TEST(ObserveOptimized, the_trace_holds_what_the_profile_does) {
  CollectingSink sink;
  Watched w(watching_copies(), &sink);
  w.settle(30);
  w.runtime().flush();
  ProfileBuilder builder;
  for (const TraceEvent& e : sink.events) ASSERT_TRUE(builder.add(e).ok());
  Profile traced = builder.profile();
  MethodProfile mine = w.profile("pick");
  const MethodProfile* other = traced.find(mine.key);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->counts, mine.counts);
  EXPECT_EQ(other->estimates, mine.estimates);
  EXPECT_EQ(other->sampled_calls, mine.sampled_calls);
  EXPECT_TRUE(mine.check().ok());
}

TEST(ObserveOptimized, what_was_counted_is_handed_over_at_the_end) {
  CollectingSink sink;
  uint64_t last = 0;
  {
    Watched w(watching(), &sink);
    w.settle(50);
    w.pick(1'000, 50);  // less than a window
  }
  for (const FlushEvent& e : sink.all<FlushEvent>()) {
    bool optimized = (e.thread >> 31) != 0;
    if (!optimized) continue;
    EXPECT_GE(e.interval, 1u);
    EXPECT_GE(e.sampled_calls, last);
    last = e.sampled_calls;
  }
  EXPECT_NE(last % 64, 0u);
}

// With a background worker. The counts of the threads add up.
TEST(ObserveOptimized, threads_count_in_slabs_of_their_own) {
  Options o = watching();
  o.workers = 1;
  Watched w(o);
  w.settle(50);
  w.runtime().flush();
  MethodProfile before = w.profile("pick");
  auto entry = reinterpret_cast<int32_t (*)(int32_t)>(const_cast<void*>(w.entry("pick")));
  constexpr int kCalls = 500'000;
  // Each thread passes half of either value, so nothing drifts while one of them runs alone.
  auto run = [&](uint64_t seed) {
    ThreadScope scope(w.runtime());
    Random random{seed};
    for (int i = 0; i < kCalls; ++i) entry(static_cast<int32_t>(random.below(2)));
  };
  std::thread one(run, 1), other(run, 2);
  one.join();
  other.join();
  w.runtime().flush();
  MethodProfile after = w.profile("pick");
  auto came = [&](SiteId s) { return after.counts[s - 1] - before.counts[s - 1]; };
  EXPECT_EQ(came(1), after.sampled_calls - before.sampled_calls);
  EXPECT_EQ(came(1), came(4));
  EXPECT_EQ(came(2) + came(3), came(1));
  // 31,250 each; a standard deviation is 170.
  EXPECT_NEAR(static_cast<double>(came(2)), kCalls / kInterval, 1000);
  EXPECT_NEAR(static_cast<double>(came(3)), kCalls / kInterval, 1000);
}

TEST(ObserveOptimized, can_be_left_out) {
  Options o = watching();
  o.observe_optimized = false;
  Watched w(o);
  w.pick(400'000, 50);
  EXPECT_FALSE(w.has_copy("pick"));
  o = watching();
  o.adaptive = false;
  Watched fixed(o);
  fixed.pick(400'000, 50);
  EXPECT_FALSE(fixed.has_copy("pick"));
}

}  // namespace
}  // namespace uptier::test::observe_optimized_test
