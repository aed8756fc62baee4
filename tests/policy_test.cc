#include "tiering/policy.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sampler/gap.h"

namespace uptier::tiering {
namespace {

// 100 instructions: a compilation costs 250 us, and with a speedup of 3 it pays from 375 us on,
// which are 3,750 calls that run every instruction once.
MethodSnapshot method() {
  MethodSnapshot m;
  m.instructions = 100;
  m.loops = 1;
  m.calls = 3751;
  m.samples = 0;
  return m;
}
// The same work as seen by samples.
MethodSnapshot sampled(uint64_t work, uint64_t samples = 10) {
  MethodSnapshot m = method();
  m.calls = 1000;
  m.samples = samples;
  m.sampled_share = 1.0 / 16;
  m.sampled_work = work / 16;
  return m;
}
Decision ask(const MethodSnapshot& m, const SystemSnapshot& s = {}, const PolicyOptions& o = {}) {
  return decide(m, s, o);
}

// In optimized code that has run for long since, and of which 30 % are laid out wrongly.
void drifted(MethodSnapshot& m) {
  m.tier = Tier::kOptimized;
  m.optimized_versions = 1;
  m.sampled_work = 1'000'000;
  m.version_calls = 900;
  m.drift = 0.3;
  m.drift_samples = 256;
}

struct Row {
  const char* what;
  std::function<void(MethodSnapshot&, SystemSnapshot&, PolicyOptions&)> change;
  Action action;
  LoopId osr_loop;
  const char* reason;  // a part of it
};

// Each row changes one thing in a method that is worth 480 us by ten samples.
const Row kRows[] = {
    {"worth it", [](auto&, auto&, auto&) {}, Action::kSpecialize, {}, "10 samples"},
    {"too little work",
     [](auto& m, auto&, auto&) { m.sampled_work = 20'000; },
     Action::kKeep,
     {},
     "worth it from"},
    {"samples missing",
     [](auto& m, auto&, auto&) { m.samples = 1; },
     Action::kKeep,
     {},
     "1 samples, 2 needed"},
    {"more samples wanted",
     [](auto&, auto&, auto& o) { o.min_samples = 11; },
     Action::kKeep,
     {},
     "10 samples, 11 needed"},
    {"no samples to come",
     [](auto& m, auto&, auto&) {
       m.samples = 0;
       m.calls = 5000;
       m.can_instrument = false;
     },
     Action::kRecompile,
     {},
     "0 samples"},
    {"samples and no more to come",
     [](auto& m, auto&, auto&) { m.can_instrument = false; },
     Action::kSpecialize,
     {},
     "10 samples"},
    {"already optimized",
     [](auto& m, auto&, auto&) { m.tier = Tier::kOptimized; },
     Action::kKeep,
     {},
     "already optimized"},
    {"optimized for another phase",
     [](auto& m, auto&, auto&) { drifted(m); },
     Action::kSpecialize,
     {},
     "drift of 30.0 %"},
    {"optimized for nearly the same",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift = 0.019;
     },
     Action::kKeep,
     {},
     "already optimized"},
    {"drift, but few samples of the version",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift_samples = 255;
     },
     Action::kKeep,
     {},
     "255 samples of the version, 256 needed"},
    {"drift again",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift_versions = 3;
     },
     Action::kKeep,
     {},
     "2048 needed"},
    {"drift again, long after",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift_versions = 3;
       m.drift_samples = 2048;
     },
     Action::kSpecialize,
     {},
     "3 times before"},
    {"drift that costs less than a compilation",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.version_calls = 10;
     },
     Action::kKeep,
     {},
     "a compilation"},
    {"drift once too often",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.optimized_versions = 8;
     },
     Action::kKeep,
     {},
     "too often"},
    {"drift, another on its way",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.optimized_requested = true;
     },
     Action::kKeep,
     {},
     "on its way"},
    {"drift, always, but too early",
     [](auto& m, auto&, auto& o) {
       drifted(m);
       m.drift_samples = 0;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "0 samples of the version"},
    {"drift, always",
     [](auto& m, auto&, auto& o) {
       drifted(m);
       m.version_calls = 0;
       o.mode = PolicyMode::kAlways;
     },
     Action::kSpecialize,
     {},
     "policy always; drift"},
    {"compiler measured to be slow",
     [](auto&, auto& s, auto&) { s.compile_ns = 3500; },
     Action::kKeep,
     {},
     "worth it from"},
    {"compiler measured to be quick",
     [](auto& m, auto& s, auto&) {
       m.sampled_work = 20'000;
       s.compile_ns = 200;
     },
     Action::kSpecialize,
     {},
     "compile 20 us"},
    {"on its way",
     [](auto& m, auto&, auto&) { m.optimized_requested = true; },
     Action::kKeep,
     {},
     "on its way"},
    {"recompiled too often",
     [](auto& m, auto&, auto&) { m.optimized_versions = 8; },
     Action::kKeep,
     {},
     "too often"},
    {"recompiled less often",
     [](auto& m, auto&, auto&) { m.optimized_versions = 7; },
     Action::kSpecialize,
     {},
     ""},
    {"may not be recompiled",
     [](auto&, auto&, auto& o) { o.max_recompiles = 0; },
     Action::kKeep,
     {},
     "too often"},
    {"failed before", [](auto& m, auto&, auto&) { m.failed = true; }, Action::kKeep, {}, "failed"},
    {"budget spent",
     [](auto&, auto& s, auto&) { s.code_budget_spent = true; },
     Action::kKeep,
     {},
     "budget"},
    {"queue short",
     [](auto&, auto& s, auto&) { s.queue_length = 16; },
     Action::kSpecialize,
     {},
     ""},
    {"queue long",
     [](auto&, auto& s, auto&) { s.queue_length = 32; },
     Action::kKeep,
     {},
     "worth it from"},
    {"no gain", [](auto&, auto&, auto& o) { o.speedup = 1; }, Action::kKeep, {}, "worth it from"},
    {"free compiler", [](auto&, auto&, auto& o) { o.compile_ns = 0; }, Action::kSpecialize, {}, ""},
    {"free running",
     [](auto&, auto&, auto& o) { o.baseline_ns = 0; },
     Action::kKeep,
     {},
     "worth it from"},
    {"slow running",
     [](auto& m, auto&, auto& o) {
       m.sampled_work = 20'000;
       o.baseline_ns = 2;
     },
     Action::kSpecialize,
     {},
     ""},
    {"in a loop, calls short",
     [](auto& m, auto&, auto&) { m.at_loop = LoopId(0); },
     Action::kSpecialize,
     {},
     ""},
    {"in a loop, one call long",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
     },
     Action::kSpecialize, LoopId(0), "one call"},
    {"in a loop, before the first call was seen to end",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(3);
       m.calls = 0;
     },
     Action::kSpecialize, LoopId(3), "one call"},
    {"calls long, but at the entry",
     [](auto& m, auto&, auto&) { m.calls = 1; },
     Action::kSpecialize,
     {},
     ""},
    {"OSR version on its way",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.osr_requested = true;
     },
     Action::kKeep,
     {},
     "on its way"},
    {"OSR version ready",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.osr_ready = true;
     },
     Action::kKeep,
     {},
     "already"},
    {"optimized, but left behind in a long loop",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.tier = Tier::kOptimized;
       m.optimized_versions = 100;
     },
     Action::kSpecialize, LoopId(0), "one call"},
    {"in a long loop without samples to come",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.samples = 0;
       m.can_instrument = false;
       m.iterations = 20'000;
     },
     Action::kRecompile, LoopId(0), "one call"},
    {"never",
     [](auto&, auto&, auto& o) { o.mode = PolicyMode::kNever; },
     Action::kKeep,
     {},
     "policy never"},
    {"always, little work",
     [](auto& m, auto&, auto& o) {
       m.sampled_work = 1;
       o.mode = PolicyMode::kAlways;
     },
     Action::kSpecialize,
     {},
     "policy always"},
    {"always, without samples",
     [](auto& m, auto&, auto& o) {
       m.samples = 0;
       m.calls = 1;
       o.mode = PolicyMode::kAlways;
     },
     Action::kRecompile,
     {},
     "policy always"},
    {"always, in any loop",
     [](auto& m, auto&, auto& o) {
       m.at_loop = LoopId(2);
       o.mode = PolicyMode::kAlways;
     },
     Action::kSpecialize, LoopId(2), "policy always"},
    {"always, but optimized",
     [](auto& m, auto&, auto& o) {
       m.tier = Tier::kOptimized;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "already optimized"},
    {"always, but failed",
     [](auto& m, auto&, auto& o) {
       m.failed = true;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "failed"},
    {"always, but no budget",
     [](auto&, auto& s, auto& o) {
       s.code_budget_spent = true;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "budget"},
    {"host code",
     [](auto& m, auto&, auto&) {
       m.tier = Tier::kHost;
       m.calls = 32;
       m.samples = 0;
     },
     Action::kRecompile,
     {},
     "host code, 32 calls"},
    {"host code on its way out",
     [](auto& m, auto&, auto&) {
       m.tier = Tier::kHost;
       m.optimized_requested = true;
     },
     Action::kKeep,
     {},
     "on its way"},
    {"host code for ever",
     [](auto& m, auto&, auto& o) {
       m.tier = Tier::kHost;
       o.mode = PolicyMode::kNever;
     },
     Action::kKeep,
     {},
     "policy never"},
    {"host code that cannot be compiled",
     [](auto& m, auto&, auto&) {
       m.tier = Tier::kHost;
       m.failed = true;
     },
     Action::kKeep,
     {},
     "failed"},
};

TEST(Policy, answers_as_its_table_says) {
  for (const Row& row : kRows) {
    MethodSnapshot m = sampled(480'000);
    SystemSnapshot s;
    PolicyOptions o;
    row.change(m, s, o);
    Decision d = decide(m, s, o);
    EXPECT_STREQ(action_name(d.action), action_name(row.action)) << row.what << ": " << d.reason;
    EXPECT_EQ(d.osr_loop, row.osr_loop) << row.what << ": " << d.reason;
    EXPECT_NE(d.reason.find(row.reason), std::string::npos) << row.what << ": " << d.reason;
    EXPECT_FALSE(d.reason.empty()) << row.what;
  }
}

TEST(Policy, break_even_is_where_the_formula_puts_it) {
  // cost + past / speedup < past, in ns; computed here from scratch.
  for (double speedup : {1.5, 3.0, 10.0}) {
    for (uint32_t queue : {0u, 10u, 64u, 640u}) {
      PolicyOptions o;
      o.speedup = speedup;
      double cost = 100 * o.compile_ns * (1 + queue / 64.0);
      for (uint64_t calls = 100; calls < 200'000; calls += 97) {
        MethodSnapshot m = method();
        m.calls = calls;
        m.can_instrument = false;
        double past = static_cast<double>(calls) * 100 * o.baseline_ns;
        bool worth = cost + past / speedup < past;
        SystemSnapshot s;
        s.queue_length = queue;
        ASSERT_EQ(decide(m, s, o).action, worth ? Action::kRecompile : Action::kKeep)
            << calls << " calls, speedup " << speedup << ", queue " << queue;
      }
    }
  }
}

TEST(Policy, unsampled_work_counts_calls_and_iterations) {
  MethodSnapshot m = method();
  m.can_instrument = false;
  m.calls = 3749;
  m.iterations = 1;  // of half the instructions
  EXPECT_EQ(ask(m).action, Action::kKeep) << "just not worth it";
  m.iterations = 3;
  EXPECT_EQ(ask(m).action, Action::kRecompile);
  m.calls = 1;
  m.loops = 3;  // an iteration is taken to run a quarter of the instructions
  m.iterations = 4 * 3748;
  EXPECT_EQ(ask(m).action, Action::kKeep);
  m.iterations = 4 * 3750;
  EXPECT_EQ(ask(m).action, Action::kRecompile);
}

TEST(Policy, sampled_work_is_scaled_by_the_share_that_is_sampled) {
  MethodSnapshot m = sampled(0);
  m.sampled_work = 23'000;  // times 16: 368 us
  EXPECT_EQ(ask(m).action, Action::kKeep);
  m.sampled_work = 24'000;  // 384 us
  EXPECT_EQ(ask(m).action, Action::kSpecialize);
  m.sampled_share = 1.0 / 8;
  EXPECT_EQ(ask(m).action, Action::kKeep);
}

TEST(Policy, samples_that_counted_little_outweigh_many_calls) {
  MethodSnapshot m = sampled(16'000);
  m.calls = 1'000'000;  // they return at once
  EXPECT_EQ(ask(m).action, Action::kKeep);
}

TEST(Policy, priority_is_the_gain_that_is_expected) {
  EXPECT_NEAR(ask(sampled(480'000)).priority, 480'000 * 2.0 / 3 - 250'000, 1);
  EXPECT_NEAR(ask(sampled(960'000)).priority, 960'000 * 2.0 / 3 - 250'000, 1);
  MethodSnapshot m = sampled(960'000);
  m.at_loop = LoopId(0);
  m.calls = 2;
  EXPECT_NEAR(ask(m).priority, 480'000 * 2.0 / 3 - 250'000, 1) << "of one call";
  EXPECT_EQ(ask(sampled(1)).priority, 0) << "of keeping what there is";
}

MethodSnapshot random_method(uint64_t& random) {
  auto draw = [&](uint64_t below) { return sampler::next_random(random) % below; };
  MethodSnapshot m;
  m.tier = static_cast<Tier>(draw(3));
  m.optimized_requested = draw(8) == 0;
  m.osr_requested = draw(8) == 0;
  m.osr_ready = draw(8) == 0;
  m.can_instrument = draw(4) != 0;
  m.failed = draw(16) == 0;
  m.instructions = static_cast<uint32_t>(draw(2000));
  m.loops = static_cast<uint32_t>(draw(4));
  m.optimized_versions = static_cast<uint32_t>(draw(10));
  if (m.loops > 0 && draw(2) == 0) m.at_loop = LoopId(static_cast<uint32_t>(draw(m.loops)));
  m.calls = draw(uint64_t{1} << draw(24));
  m.samples = draw(uint64_t{1} << draw(10));
  m.iterations = draw(uint64_t{1} << draw(30));
  m.sampled_work = m.samples == 0 ? 0 : draw(uint64_t{1} << draw(30));
  m.sampled_share = 1.0 / static_cast<double>(1 + draw(64));
  return m;
}

TEST(Policy, same_input_gives_the_same_decision_to_the_letter) {
  uint64_t random = 4;
  std::set<Action> seen;
  for (int i = 0; i < 20'000; ++i) {
    const MethodSnapshot m = random_method(random);
    SystemSnapshot s;
    s.queue_length = static_cast<uint32_t>(sampler::next_random(random) % 200);
    s.code_budget_spent = sampler::next_random(random) % 16 == 0;
    PolicyOptions o;
    o.mode = static_cast<PolicyMode>(sampler::next_random(random) % 3);
    Decision first = decide(m, s, o);
    decide(random_method(random), {}, {});
    Decision again = decide(m, s, o);
    ASSERT_EQ(first.action, again.action);
    ASSERT_EQ(first.osr_loop, again.osr_loop);
    ASSERT_EQ(first.priority, again.priority);
    ASSERT_EQ(first.reason, again.reason);
    seen.insert(first.action);
  }
  EXPECT_EQ(seen, (std::set<Action>{Action::kKeep, Action::kRecompile, Action::kSpecialize}));
}

TEST(Policy, more_work_is_never_less_of_a_reason) {
  uint64_t random = 5;
  int turned = 0;
  for (int i = 0; i < 5000; ++i) {
    MethodSnapshot m = random_method(random);
    m.osr_ready = m.osr_requested = false;  // else a call that has grown long waits for its loop
    double priority = 0;
    bool compiled = false;
    for (int step = 0; step < 12; ++step) {
      Decision d = ask(m);
      bool compiles = d.action != Action::kKeep;
      ASSERT_GE(compiles, compiled) << d.reason;
      if (compiles && compiled && m.tier != Tier::kHost && !m.at_loop.valid()) {
        ASSERT_GE(d.priority, priority);
      }
      turned += compiles && !compiled && step > 0;
      compiled = compiles;
      priority = d.priority;
      m.iterations = 3 * m.iterations + 1;
      m.sampled_work = m.samples == 0 ? 0 : 3 * m.sampled_work + 1;
    }
  }
  EXPECT_GT(turned, 100);
}

TEST(Policy, extremes_do_not_overflow) {
  MethodSnapshot m = method();
  m.calls = m.iterations = m.samples = m.sampled_work = UINT64_MAX;
  m.instructions = m.loops = UINT32_MAX;
  m.sampled_share = 1.0 / (1u << 30);
  EXPECT_EQ(ask(m).action, Action::kSpecialize);
  SystemSnapshot s;
  s.queue_length = UINT32_MAX;
  EXPECT_FALSE(ask(m, s).reason.empty());
  MethodSnapshot nothing;
  EXPECT_EQ(ask(nothing).action, Action::kKeep);
}

TEST(Policy, options_are_taken_from_the_table) {
  Options o;
  o.policy = PolicyMode::kNever;
  o.min_samples = 17;
  o.speedup = 4.5;
  o.compile_ns = 11;
  o.baseline_ns = 12;
  o.max_recompiles = 13;
  PolicyOptions p = PolicyOptions::from(o);
  EXPECT_EQ(p.mode, PolicyMode::kNever);
  EXPECT_EQ(p.min_samples, 17u);
  EXPECT_EQ(p.speedup, 4.5);
  EXPECT_EQ(p.compile_ns, 11);
  EXPECT_EQ(p.baseline_ns, 12);
  EXPECT_EQ(p.max_recompiles, 13u);

  PolicyOptions defaults, of_defaults = PolicyOptions::from(Options());
  EXPECT_EQ(defaults.mode, of_defaults.mode);
  EXPECT_EQ(defaults.min_samples, of_defaults.min_samples);
  EXPECT_EQ(defaults.speedup, of_defaults.speedup);
  EXPECT_EQ(defaults.compile_ns, of_defaults.compile_ns);
  EXPECT_EQ(defaults.baseline_ns, of_defaults.baseline_ns);
  EXPECT_EQ(defaults.max_recompiles, of_defaults.max_recompiles);
}

TEST(Policy, every_action_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (int a = 0; a <= static_cast<int>(Action::kBan); ++a) {
    names.insert(action_name(static_cast<Action>(a)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Action::kBan) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace uptier::tiering
