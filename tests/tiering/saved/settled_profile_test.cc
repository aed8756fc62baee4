// Saved profiles of optimized methods hold all executions, not only the sampled ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "profile/algebra/fold_inlined.h"
#include "tests/support/program_runs.h"
#include "tests/support/runtime_host.h"
#include "uptier/profile_file.h"

namespace uptier::test::settled_profile_test {
namespace {

// `sum` runs n rounds; `both` calls it twice. Blocks of `sum`: 1 entry, 2 header, 3 body, 4 exit.
constexpr const char* kText = R"(
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
func @both(i32) -> i32 {
b0(v0: i32):
  v1 = call @sum(v0)
  v2 = call @sum(v0)
  v3 = add.i32 v1, v2
  branch v0, b1, b2
b1:
  return v3
b2:
  return v0
}
func @pick(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  v1 = const.i32 7
  jump b3(v1)
b2:
  jump b3(v0)
b3(v2: i32):
  return v2
}
)";

constexpr uint64_t kCalls = 30'000, kRounds = 20;

class SettledProfile : public testing::Test {
 protected:
  SettledProfile() {
    char name[] = "/tmp/uptier-settled-XXXXXX";
    dir_ = mkdtemp(name);
    options_.profile = dir_ + "/p.upf";
    options_.workers = 0;
    options_.policy = PolicyMode::kAlways;
    options_.measure_rates = false;
    options_.overhead_budget = 0;  // nothing depends on a clock
  }
  ~SettledProfile() override { std::filesystem::remove_all(dir_); }

  void run(const char* function, uint64_t calls) {
    IrRuntime r(parse_or_die(kText), options_);
    {
      ThreadScope scope(*r.runtime);
      for (uint64_t i = 0; i < calls; ++i) ASSERT_TRUE(r.call(function, {i % 2}).ok());
    }
    ASSERT_TRUE(r.runtime->save_profile());
  }
  void sum_up(const char* function, uint64_t per_call) {
    IrRuntime r(parse_or_die(kText), options_);
    {
      ThreadScope scope(*r.runtime);
      for (uint64_t i = 0; i < kCalls; ++i) {
        ASSERT_EQ(r.call(function, {kRounds}).bits, per_call * kRounds * (kRounds + 1) / 2);
      }
    }
    Status s = r.runtime->save_profile();
    ASSERT_TRUE(s) << s.error().message;
  }
  void never_sample() {
    options_.policy = PolicyMode::kAuto;
    options_.gap = GapMode::kFixed;
    options_.adaptive = false;
    options_.interval = 1 << 20;
  }
  // Returns the saved profile of `sum`, inlined or not.
  MethodProfile sum() const { return profile_of("sum"); }
  MethodProfile profile_of(const std::string& name) const {
    const std::string bytes = slurp(options_.profile);
    Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(file.ok());
    if (!file.ok()) return {};
    Profile p = std::move(file->profile);
    for (auto& [key, m] : profile::fold_inlined(p).methods) p.methods[key] = m;
    for (const auto& [key, m] : p.methods) {
      if (m.name == name) return m;
    }
    ADD_FAILURE() << name << " is not in the profile";
    return {};
  }
  static double estimate(const MethodProfile& m, SlotKind kind, SiteId site) {
    const Slot* slot = m.schema.find(kind, site);
    return slot == nullptr ? -1 : static_cast<double>(m.estimates[slot->word]);
  }

  Options options_;
  std::string dir_;
};

TEST_F(SettledProfile, loops_of_optimized_code_are_counted) {
  sum_up("sum", 1);
  MethodProfile m = sum();
  EXPECT_EQ(m.calls, kCalls);
  EXPECT_FALSE(m.behind);
  EXPECT_EQ(estimate(m, SlotKind::kBlock, 1), kCalls);
  double headers = kCalls * (kRounds + 1), bodies = kCalls * kRounds;
  EXPECT_NEAR(estimate(m, SlotKind::kBlock, 2), headers, 0.02 * headers);
  EXPECT_NEAR(estimate(m, SlotKind::kBlock, 3), bodies, 0.02 * bodies);
  // Edges 2 and 3 leave the header.
  EXPECT_NEAR(estimate(m, SlotKind::kEdge, 2), bodies, 0.02 * bodies);
  EXPECT_NEAR(estimate(m, SlotKind::kEdge, 3), kCalls, 0.02 * kCalls);
}

TEST_F(SettledProfile, so_are_those_of_bodies_that_are_inlined) {
  sum_up("both", 2);
  MethodProfile m = sum();
  EXPECT_FALSE(m.behind);
  double entries = 2 * kCalls, headers = entries * (kRounds + 1);
  EXPECT_NEAR(estimate(m, SlotKind::kBlock, 1), entries, 0.02 * entries);
  EXPECT_NEAR(estimate(m, SlotKind::kBlock, 2), headers, 0.02 * headers);
}

TEST_F(SettledProfile, calls_from_optimized_code_are_exact) {
  options_.inlining = false;
  sum_up("both", 2);
  EXPECT_EQ(sum().calls, 2 * kCalls);
}

// In so few calls no sample is due. With a worker, probes are planned only when a copy is made.
TEST_F(SettledProfile, blocks_that_nothing_observed_are_guessed_from_calls) {
  never_sample();
  for (uint64_t workers : {0, 1}) {
    options_.workers = workers;
    std::filesystem::remove(options_.profile);
    run("pick", 6);
    MethodProfile m = profile_of("pick");
    EXPECT_EQ(m.calls, 6u);
    EXPECT_EQ(m.sampled_calls + m.bursts, 0u);
    EXPECT_EQ(m.guessed_calls, 6u);
    EXPECT_EQ(estimate(m, SlotKind::kBlock, 1), 6);
    EXPECT_NEAR(estimate(m, SlotKind::kBlock, 2) + estimate(m, SlotKind::kBlock, 3), 6, 1);
    EXPECT_EQ(estimate(m, SlotKind::kBlock, 4), 6);
    std::optional<Estimate> e = m.estimate(SlotKind::kBlock, 2);
    ASSERT_TRUE(e.has_value());
    EXPECT_EQ(e->low, 0);
  }
}

TEST_F(SettledProfile, what_was_guessed_does_not_guide_the_next_run) {
  never_sample();
  run("pick", 6);
  ASSERT_EQ(profile_of("pick").guessed_calls, 6u);
  IrRuntime again(parse_or_die(kText), options_);
  ThreadScope scope(*again.runtime);
  ASSERT_TRUE(again.call("pick", {1}).ok());
  EXPECT_EQ(again.runtime->report().saved.methods, 0u);
}

TEST_F(SettledProfile, without_tallies_it_is_behind_and_says_so) {
  options_.count_optimized = false;
  options_.observe_optimized = false;
  sum_up("sum", 1);
  MethodProfile m = sum();
  EXPECT_TRUE(m.behind);
  EXPECT_LT(estimate(m, SlotKind::kBlock, 3), 0.9 * kCalls * kRounds);
}

}  // namespace
}  // namespace uptier::test::settled_profile_test
