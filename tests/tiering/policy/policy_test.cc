#include "tiering/policy/policy.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sampler/gap.h"
#include "tests/support/policy_methods.h"

namespace uptier::tiering::policy_test {
namespace {

TEST(Policy, break_even_is_where_the_formula_puts_it) {
  // The condition cost + past / speedup < past, in ns, computed independently.
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

// A measured speedup replaces the assumed one.
TEST(Policy, a_measured_speedup_moves_the_break_even) {
  MethodSnapshot m = sampled(480'000);
  PolicyOptions o;
  ASSERT_EQ(decide(m, {}, o).action, Action::kSpecialize);
  SystemSnapshot slight;
  slight.speedup = 1.2;
  EXPECT_EQ(decide(m, slight, o).action, Action::kKeep);
  o.speedup = 1.2;
  EXPECT_EQ(decide(m, {}, o).action, Action::kKeep);
  slight.speedup = 3;
  EXPECT_EQ(decide(m, slight, o).action, Action::kSpecialize);
}

TEST(Policy, unsampled_work_counts_calls_and_iterations) {
  MethodSnapshot m = method();
  m.can_instrument = false;
  m.calls = 3749;
  m.iterations = 1;  // which runs half of the instructions
  EXPECT_EQ(ask(m).action, Action::kKeep) << "just not worth it";
  m.iterations = 3;
  EXPECT_EQ(ask(m).action, Action::kRecompile);
  m.calls = 1;
  m.loops = 3;  // an iteration is assumed to run a quarter of the instructions
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
  m.calls = 1'000'000;  // calls that return at once
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
    m.osr_ready = m.osr_requested = false;  // otherwise a call that has become long would wait for
                                            // its loop
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
}  // namespace uptier::tiering::policy_test
