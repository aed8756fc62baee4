// The trust in a saved profile: code made from it is watched for drift, a drifted run is not saved
// as if it had been like the earlier ones, and observed values are speculated on in the next
// process.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/digits.h"
#include "tests/support/pick_program.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::test::upf_trust_test {
namespace {

const std::string kText = kPick + kDigits + kLoadDigits;

// A process: a runtime that reads the file when it starts.
class Process {
 public:
  explicit Process(const Options& o)
      : runtime_(parse_or_die(kText), o), scope_(*runtime_.runtime) {}

  // Calls `pick`, in `ones` of a hundred calls with 1.
  void pick(uint64_t calls, uint64_t ones) {
    for (uint64_t i = 0; i < calls; ++i) {
      const uint64_t arg = random_.below(100) < ones ? 1 : 0;
      ASSERT_EQ(runtime_.call("pick", {arg}).bits, arg == 1 ? 6u : 0u);
    }
  }
  void run_digits(uint32_t calls, uint32_t d) {
    for (uint32_t i = 0; i < calls; ++i) {
      const uint32_t n = 40 + i % 50;
      ASSERT_EQ(runtime_.call("digits", {n, d}).bits, digits(n, d)) << n << " / " << d;
    }
  }
  void load_digits(uint32_t calls, uint32_t d) {
    for (uint32_t i = 0; i < calls; ++i) {
      const uint32_t n = 40 + i % 50;
      const Outcome got = runtime_.call("load_digits", {reinterpret_cast<uint64_t>(&d), n});
      ASSERT_EQ(got.bits, digits(n, d)) << n << " / " << d;
    }
  }
  void flush() { runtime_.runtime->flush(); }
  void save() { ASSERT_TRUE(runtime_.runtime->save_profile().ok()); }

  std::vector<std::string> reasons(std::string_view action, std::string_view start = "") const {
    std::vector<std::string> found;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      if (d.action == action && d.reason.starts_with(start)) found.push_back(d.reason);
    }
    return found;
  }
  MethodReport report_of(std::string_view name) const { return runtime_.report_of(name); }
  std::string report() const { return runtime_.runtime->report().text(); }

 private:
  IrRuntime runtime_;
  ThreadScope scope_;
  Random random_{7};
};

class Trust : public testing::Test {
 protected:
  Trust() {
    char name[] = "/tmp/uptier-trust-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~Trust() override { std::filesystem::remove_all(dir_); }

  Options with_profile(Options o) const {
    o.profile = dir_ + "/p.upf";
    return o;
  }
  // Stays in baseline code, each call of which is counted.
  Options exact() const {
    Options o = with_profile(following());
    o.policy = PolicyMode::kNever;
    o.interval = 1;
    o.adaptive = false;
    return o;
  }
  MethodProfile saved(std::string_view name) const {
    std::ifstream file(dir_ + "/p.upf", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto read = profile_from_file(std::as_bytes(std::span(text)));
    EXPECT_TRUE(read.ok());
    if (!read.ok()) return {};
    for (const auto& [key, m] : read->profile.methods) {
      if (m.name == name) return m;
    }
    ADD_FAILURE() << "the file has no " << name;
    return {};
  }

  std::string dir_;
};

// ---- Drift ------------------------------------------------------------------------------------

constexpr uint64_t kBefore = 200'000;
constexpr SiteId kOnes = 2, kZeros = 3;  // blocks of pick

class Drift : public Trust {
 protected:
  Drift() {
    Process first(exact());
    first.pick(kBefore, 95);
    first.save();
    before_ = saved("pick");
  }

  uint64_t count_of(const MethodProfile& m, SiteId block) const {
    return m.count(SlotKind::kBlock, block).value_or(0);
  }

  MethodProfile before_;
};

TEST_F(Drift, a_warm_run_that_is_like_the_saved_one_is_taken_on_trust) {
  ASSERT_EQ(count_of(before_, 1), kBefore);
  {
    Process again(with_profile(following()));
    again.pick(1'000'000, 95);
    EXPECT_EQ(again.reasons("re_instrument"), std::vector<std::string>{});
    again.save();
    // The run is counted; the numbers per run stay the same.
    EXPECT_EQ(saved("pick"), before_);
    again.save();
  }
  // Merged: half of the saved counts plus one more run like it; nothing observed in this run.
  const MethodProfile after = saved("pick");
  for (size_t i = 0; i < before_.counts.size(); ++i) {
    EXPECT_EQ(after.counts[i], before_.counts[i] + before_.counts[i] / 2) << i;
  }
}

TEST_F(Drift, code_made_from_a_saved_profile_of_another_phase_is_noticed_and_not_trusted) {
  {
    Process other(with_profile(following()));
    other.pick(1, 5);
    const MethodReport m = other.report_of("pick");
    ASSERT_EQ(m.tier, Tier::kOptimized);
    ASSERT_EQ(m.versions.size(), 1u) << "it has never been in baseline code";
    other.pick(1'000'000, 5);
    EXPECT_EQ(other.reasons("re_instrument", "drift from the profile it was made from").size(), 1u)
        << other.report();
    EXPECT_EQ(other.reasons("re_instrument", "drift from earlier windows").size(), 0u)
        << other.report();
    other.save();
  }
  // Half of the saved counts plus the observed ones. On trust, both would be one and a half times
  // the saved ones.
  const MethodProfile after = saved("pick");
  EXPECT_GT(count_of(after, kZeros), 3 * count_of(before_, kZeros));
  EXPECT_LT(count_of(after, kOnes), count_of(before_, kOnes));
}

TEST_F(Drift, a_phase_that_ends_in_a_warm_run_is_noticed_and_not_trusted) {
  {
    Process other(with_profile(following()));
    other.pick(400'000, 95);
    ASSERT_EQ(other.reasons("re_instrument"), std::vector<std::string>{});
    other.pick(600'000, 5);
    const std::vector<std::string> drifts = other.reasons("re_instrument");
    ASSERT_FALSE(drifts.empty()) << other.report();
    EXPECT_TRUE(drifts[0].starts_with("drift from earlier windows")) << drifts[0];
    other.save();
  }
  const MethodProfile after = saved("pick");
  EXPECT_GT(count_of(after, kZeros), 3 * count_of(before_, kZeros));
  EXPECT_LT(count_of(after, kOnes), count_of(before_, kOnes));
}

// ---- Values -----------------------------------------------------------------------------------

// In so few calls nothing is observed: all knowledge comes from the saved profile.
constexpr uint32_t kFew = 20;

class SavedValues : public Trust {
 protected:
  Options blind() const {
    Options o = following();
    o.interval = o.optimized_interval = 1 << 20;
    o.adaptive = false;
    o.value_samples = kSeen;
    return o;
  }
  // Returns the text with which decisions about values name their observations.
  std::string all_of(SlotKind kind, const MethodProfile& m, uint64_t value) const {
    for (const Slot& slot : m.schema.slots) {
      if (slot.kind != kind) continue;
      const auto answer = query(m, kind, slot.site);
      const auto* values = answer ? std::get_if<ValuesAnswer>(&answer->what) : nullptr;
      if (values == nullptr || values->values.size() != 1) continue;
      if (values->values[0].value != static_cast<int64_t>(value)) continue;
      return " is " + std::to_string(value) + " in 100.0 % of " +
             std::to_string(values->range.count) + " samples";
    }
    ADD_FAILURE() << "no site has seen nothing but " << value;
    return {};
  }

  static constexpr uint32_t kSeen = 500;
};

TEST_F(SavedValues, of_a_parameter_lead_to_a_version_in_the_next_run) {
  {
    Process first(exact());
    first.run_digits(2 * kSeen, 10);
    first.save();
  }
  const std::string seen = all_of(SlotKind::kValue, saved("digits"), 10);
  {
    Process cold(blind());
    cold.run_digits(kFew, 10);
    EXPECT_EQ(cold.report_of("digits").tier, Tier::kBaseline);
    EXPECT_EQ(cold.reasons("specialize"), std::vector<std::string>{}) << "it has seen nothing";
  }
  Process warm(with_profile(blind()));
  warm.run_digits(kFew, 10);
  const auto made = warm.reasons("specialize", "policy always; parameter 2" + seen);
  EXPECT_EQ(made.size(), 1u) << warm.report();
  warm.flush();  // compiles the requested version
  EXPECT_EQ(warm.report_of("digits").versions.size(), 2u) << warm.report();
  warm.run_digits(kFew, 10);
  warm.run_digits(kFew, 7);
}

TEST_F(SavedValues, of_a_probe_of_the_hosts_are_constants_in_the_first_code_of_the_next_run) {
  {
    Process first(exact());
    first.load_digits(2 * kSeen, 10);
    first.save();
  }
  const std::string seen = all_of(SlotKind::kValue, saved("load_digits"), 10);
  Process warm(with_profile(blind()));
  warm.load_digits(kFew, 10);
  const auto all = warm.reasons("specialize", "site ");
  EXPECT_EQ(
      std::ranges::count_if(
          all, [&](const auto& r) { return r.find(seen + ", all from") != std::string::npos; }),
      1)
      << warm.report();
  EXPECT_TRUE(warm.report_of("load_digits").exits.empty());
  // The code has the speculated value as a constant: another value exits.
  warm.load_digits(kFew, 7);
  ASSERT_EQ(warm.report_of("load_digits").exits.size(), 1u) << warm.report();
  EXPECT_EQ(warm.report_of("load_digits").exits[0].reason, GuardReason::kValue);
}

}  // namespace
}  // namespace uptier::test::upf_trust_test
