#include "tiering/policy/replay.h"

#include <gtest/gtest.h>

#include "sampler/gap.h"

namespace uptier::tiering::replay_test {
namespace {

TEST(Replay, inputs_come_back_to_the_last_bit) {
  uint64_t random = 11;
  auto draw = [&](uint64_t below) { return sampler::next_random(random) % below; };
  for (int i = 0; i < 2000; ++i) {
    MethodSnapshot m;
    m.tier = static_cast<Tier>(draw(3));
    m.optimized_requested = draw(4) == 0;
    m.failed = draw(8) == 0;
    m.can_instrument = draw(2) == 0;
    m.instructions = static_cast<uint32_t>(draw(5000));
    m.loops = static_cast<uint32_t>(draw(5));
    if (draw(2) == 0) m.at_loop = LoopId(static_cast<uint32_t>(draw(5)));
    m.drift = draw(2) == 0 ? 0 : static_cast<double>(draw(1000)) / 999.0;
    m.drift_samples = draw(5000);
    m.drift_versions = static_cast<uint32_t>(draw(5));
    m.phase_drift = draw(2) == 0 ? 0 : static_cast<double>(draw(1000)) / 999.0;
    m.phase_drifts = static_cast<uint32_t>(draw(9));
    m.calls = draw(1u << 30);
    m.slower_calls = draw(4) == 0 ? draw(m.calls + 1) : 0;
    m.version_calls = draw(m.calls + 1);
    m.samples = draw(1000);
    m.iterations = draw(uint64_t{1} << 40);
    m.sampled_work = draw(uint64_t{1} << 50);
    m.sampled_share = 1.0 / static_cast<double>(1 + draw(64));
    m.osr_elsewhere = draw(4) == 0;
    m.behind_work = draw(2) == 0 ? 0 : draw(uint64_t{1} << 30);
    SystemSnapshot s{static_cast<uint32_t>(draw(200)), draw(8) == 0,
                     static_cast<double>(draw(100'000)) / 7.0,
                     draw(2) == 0 ? 0 : 1 + static_cast<double>(draw(1000)) / 300.0,
                     draw(2) == 0 ? 0 : static_cast<double>(1 + draw(1000)) / 300.0};
    MethodSnapshot m2;
    SystemSnapshot s2;
    std::string text = inputs_text(m, s);
    ASSERT_TRUE(read_inputs(text, m2, s2).ok()) << text;
    ASSERT_EQ(inputs_text(m2, s2), text);
    ASSERT_EQ(m2.phase_drift, m.phase_drift);
    ASSERT_EQ(m2.phase_drifts, m.phase_drifts);
    Decision a = decide(m, s, {}), b = decide(m2, s2, {});
    ASSERT_EQ(a.action, b.action) << text;
    ASSERT_EQ(a.osr_loop, b.osr_loop) << text;
    ASSERT_EQ(a.priority, b.priority) << text;
    ASSERT_EQ(a.reason, b.reason) << text;
  }
}

TEST(Replay, log_from_before_drift_of_baseline_code_was_asked_about_is_read) {
  MethodSnapshot m;
  m.phase_drift = 0.5;
  m.phase_drifts = 3;
  std::string text = inputs_text(m, {});
  const std::string later = "phase_drift=0.5 phase_drifts=3 ";
  ASSERT_NE(text.find(later), text.npos) << text;
  text.erase(text.find(later), later.size());
  MethodSnapshot read;
  SystemSnapshot s;
  ASSERT_TRUE(read_inputs(text, read, s).ok());
  EXPECT_EQ(read.phase_drift, 0);
  EXPECT_EQ(read.phase_drifts, 0u);
}

TEST(Replay, exits_are_decided_again_too) {
  DecisionRecord r;
  ExitSnapshot e{.exits = 200, .retries = 1, .in_loop = false, .declared = false};
  r.inputs = inputs_text(e);
  r.reason = "exit at block 4: " + decide_exit(e, {}).reason;
  Result<DecisionRecord> again = replay(r, {});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->action, "recompile");
  EXPECT_EQ(again->reason, r.reason);
}

TEST(Replay, trials_are_decided_again_too) {
  DecisionRecord r;
  TrialSnapshot t{64, 63, 1000, 1200, 10.0 / 3, false};
  r.inputs = inputs_text(t);
  r.reason = decide_trial(t, {}).reason;
  Result<DecisionRecord> again = replay(r, {});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->action, "roll_back");
  EXPECT_EQ(again->reason, r.reason);
}

TEST(Replay, another_policy_can_be_tried) {
  DecisionRecord r;
  MethodSnapshot m;
  m.instructions = 100;
  m.calls = 1'000'000;
  m.samples = 10;
  m.sampled_work = 100'000'000;
  r.inputs = inputs_text(m, {});
  EXPECT_EQ(replay(r, {})->action, "specialize");
  EXPECT_EQ(replay(r, {.mode = PolicyMode::kNever})->action, "keep");
  EXPECT_EQ(replay(r, {.min_samples = 11})->action, "keep");
}

TEST(Replay, damaged_inputs_are_rejected_by_name) {
  const std::string good = inputs_text(MethodSnapshot{}, SystemSnapshot{});
  struct Row {
    std::string text;
    const char* what;
  };
  auto with = [&](const char* from, const char* to) {
    std::string s = good;
    return s.replace(s.find(from), std::string(from).size(), to);
  };
  const Row rows[] = {
      {"", "tier: missing"},
      {"tier", "tier: has no value"},
      {with("tier=1", "tier=9"), "tier: no value"},
      {with("failed=0", "failed=2"), "failed: no value"},
      {with("calls=0", "calls=-1"), "calls: no value"},
      {with("calls=0", "kalls=0"), "no such field"},
      {with("loops=0 ", ""), "loops: missing"},
      {with("drift=0", "drift=x"), "drift: no value"},
      {with("at_loop=-", "at_loop=4294967295"), "at_loop: no value"},
      {good + " tier=1", "tier: given twice"},
  };
  for (const Row& row : rows) {
    MethodSnapshot m;
    SystemSnapshot s;
    Status status = read_inputs(row.text, m, s);
    ASSERT_FALSE(status.ok()) << row.text;
    EXPECT_NE(status.error().message.find(row.what), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace uptier::tiering::replay_test
