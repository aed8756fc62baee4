// Programs that change their behaviour after the last tier: the policy follows at a bounded pace,
// and its log can be replayed.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/pick_program.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"
#include "tiering/policy/policy.h"
#include "tiering/policy/replay.h"

namespace uptier::test::phase_test {
namespace {

class Phases {
 public:
  explicit Phases(const Options& o)
      : options_(o), runtime_(parse_or_die(kPick), o), thread_(*runtime_.runtime) {}

  // Calls `pick`, in `ones` of a hundred calls with 1.
  void pick(uint64_t calls, uint64_t ones) {
    for (uint64_t i = 0; i < calls; ++i) {
      uint64_t arg = random_.below(100) < ones ? 1 : 0;
      ASSERT_EQ(runtime_.call("pick", {arg}).bits, arg == 1 ? 6u : 0u);
    }
  }
  // Calls until the copy of optimized code has seen a few windows.
  void settle(uint64_t ones) { pick(400'000, ones); }

  MethodReport method() const { return runtime_.report_of("pick"); }
  std::vector<VersionReport> optimized() const {
    std::vector<VersionReport> found;
    for (const VersionReport& v : method().versions) {
      if (v.tier == Tier::kOptimized && v.copy == Copy::kPlain) found.push_back(v);
    }
    return found;
  }
  std::vector<DecisionRecord> decisions(std::string_view action, std::string_view reason) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      if (d.action == action && d.reason.find(reason) != std::string::npos) found.push_back(d);
    }
    return found;
  }
  size_t followed() const { return decisions("specialize", "drift of").size(); }
  // Returns the bytes of the code in service: the stub ends in jmp [cell].
  std::vector<uint8_t> code() const {
    const auto* stub =
        static_cast<const uint8_t*>(runtime_.runtime->entry_address(runtime_.method("pick")));
    for (int i = 0; i < 26; ++i) {
      if (stub[i] != 0xff || stub[i + 1] != 0x25) continue;
      int32_t displacement = 0;
      std::memcpy(&displacement, stub + i + 2, 4);
      const uint8_t* at = nullptr;
      std::memcpy(&at, stub + i + 6 + displacement, 8);
      return {at, at + optimized().back().code_bytes};
    }
    ADD_FAILURE() << "no jump in the stub";
    return {};
  }
  Report report() const { return runtime_.runtime->report(); }
  // Replays the decisions in the log.
  void replay() const {
    PolicyOptions o = PolicyOptions::from(options_);
    size_t decisions = 0;
    for (const DecisionRecord& r : report().decisions) {
      if (r.inputs.empty()) continue;  // a notice, not a decision
      ++decisions;
      Result<DecisionRecord> again = uptier::replay(r, o);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(again->action, r.action) << r.inputs;
      EXPECT_EQ(again->reason, r.reason) << r.inputs;
      EXPECT_EQ(again->priority, r.priority) << r.inputs;
    }
    EXPECT_GT(decisions, 0u);
  }

 private:
  Options options_;
  IrRuntime runtime_;
  ThreadScope thread_;
  Random random_{7};
};

TEST(Phases, code_follows_a_flip_and_the_log_says_why) {
  Phases p(following());
  p.settle(90);
  size_t before = p.followed();
  size_t versions = p.optimized().size();
  p.pick(100'000, 10);
  ASSERT_EQ(p.followed(), before + 1);
  ASSERT_EQ(p.optimized().size(), versions + 1);
  EXPECT_TRUE(p.optimized()[versions - 1].retired);
  EXPECT_FALSE(p.optimized().back().retired);
  EXPECT_EQ(p.decisions("re_instrument", "drift from earlier windows").size(), 1u);
  std::string reason = p.decisions("specialize", "drift of").back().reason;
  EXPECT_NE(reason.find("times before"), std::string::npos) << reason;
  // The code was made from the new phase alone, so it causes no further decision.
  p.pick(1'000'000, 10);
  EXPECT_EQ(p.followed(), before + 1);
  EXPECT_EQ(p.optimized().size(), versions + 1);
  p.replay();
}

size_t differing(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  size_t n = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) n += a[i] != b[i];
  return n;
}

// After the flip, the code is the same, except for addresses, as code made in the new phase only;
// and it differs from the code of the phase before.
TEST(Phases, code_after_a_flip_is_laid_out_for_the_new_phase) {
  std::vector<uint8_t> wanted;
  {
    Phases fresh(following());
    fresh.settle(5);
    wanted = fresh.code();
  }
  Phases p(following());
  p.settle(95);
  std::vector<uint8_t> before = p.code();
  p.pick(200'000, 5);
  std::vector<uint8_t> after = p.code();
  constexpr size_t kAddress = 4;
  EXPECT_LE(differing(after, wanted), 2 * kAddress);
  EXPECT_GT(differing(after, before), 2 * kAddress);
  EXPECT_GT(differing(wanted, before), 2 * kAddress);
}

TEST(Phases, a_storm_of_flips_is_followed_ever_more_slowly) {
  Options o = following();
  o.max_recompiles = 1000;
  Phases p(o);
  p.settle(90);
  for (int flip = 0; flip < 60; ++flip) p.pick(20'000, flip % 2 == 0 ? 10 : 90);
  // Recompilation k took 256 * 2^k samples of the version before.
  auto samples = static_cast<double>(p.method().sampled_calls);
  auto most = static_cast<size_t>(std::log2(samples / 256 + 1));
  EXPECT_GE(p.followed(), 3u);
  EXPECT_LE(p.followed(), most);
  EXPECT_LT(p.followed(), p.decisions("re_instrument", "drift from").size());
  p.replay();
}

TEST(Phases, the_limit_of_recompilations_ends_it) {
  Options o = following();
  o.max_recompiles = 2;
  Phases p(o);
  p.settle(90);
  for (int flip = 0; flip < 20; ++flip) p.pick(50'000, flip % 2 == 0 ? 10 : 90);
  EXPECT_LE(p.optimized().size(), 2u);
  EXPECT_FALSE(p.optimized().back().retired);
  EXPECT_NE(p.decisions("keep", "recompiled too often").size(), 0u);
}

TEST(Phases, what_a_compilation_costs_is_weighed_against_the_drift) {
  Options o = following();
  o.policy = PolicyMode::kAuto;
  o.compile_ns = 4e4;
  o.speedup = 1.5;
  Phases p(o);
  for (int i = 0; i < 3; ++i) p.settle(90);
  ASSERT_EQ(p.optimized().size(), 1u);
  // A compilation of 10 instructions costs 400 us; a call takes about 5 ns, of which recompilation
  // can save at most 8 %.
  p.pick(100'000, 10);
  EXPECT_EQ(p.followed(), 0u);
  EXPECT_EQ(p.decisions("re_instrument", "drift from").size(), 1u);
  EXPECT_NE(p.decisions("keep", "a compilation").size(), 0u);
  p.pick(3'000'000, 10);
  EXPECT_EQ(p.followed(), 1u);
  p.replay();
}

// Two threads run a method while its versions change: old code is freed, but never under a frame.
TEST(Phases, old_versions_go_while_threads_run) {
  Options o = following();
  o.workers = 1;
  o.max_recompiles = 1000;
  o.drift_samples = 1;
  Phases p(o);
  p.settle(90);
  for (int flip = 0; flip < 60; ++flip) p.pick(20'000, flip % 2 == 0 ? 10 : 90);
  std::vector<VersionReport> all = p.optimized();
  ASSERT_FALSE(all.empty());
  EXPECT_FALSE(all.back().retired);
  for (size_t i = 0; i + 1 < all.size(); ++i) EXPECT_TRUE(all[i].retired) << i;
  p.replay();
}

}  // namespace
}  // namespace uptier::test::phase_test
