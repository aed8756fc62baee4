// The rates of compilation and of execution: the assumed, the set and the measured ones.
#include "tiering/compile/machine_rates.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/code_machine.h"

namespace uptier::tiering::machine_rates_test {
namespace {

constexpr double kAssumed = 2000, kBaseline = 2, kSpeedup = 3;

Options assumed() {
  Options o;
  o.compile_ns = kAssumed;
  o.baseline_ns = kBaseline;
  o.speedup = kSpeedup;
  return o;
}

// The rates of a runtime with two methods, of 1,000 and 30 instructions.
class Machine {
 public:
  explicit Machine(const Options& o = assumed())
      : options(o), live(o), rates(options, live, methods) {
    EXPECT_TRUE(methods.reserve(2));
    for (uint32_t i : {0, 1}) {
      methods.put(std::make_unique<Method>(MethodId(i), i + 1, host_, MethodInfo()));
      methods.at(i).shape.own().instructions = i == 0 ? 1000 : 30;
    }
  }
  std::unique_ptr<Version> version(Tier tier, uint64_t cpu_ns, std::vector<MethodId> inlined = {}) {
    auto v = std::make_unique<Version>();
    v->tier = tier;
    v->compile_ns = 2 * cpu_ns;
    v->compile_cpu_ns = cpu_ns;
    jit::CodeTables tables;
    for (MethodId m : inlined) tables.inlined.push_back({.method = m});
    auto span = code.space->allocate(64);
    EXPECT_TRUE(span.ok());
    EXPECT_TRUE(code.space->publish(*span).ok());
    v->code = std::make_unique<jit::Code>(std::move(*span), 0, std::move(tables));
    return v;
  }
  void note(const std::unique_ptr<Version>& v) { rates.note_compiled(methods.at(0), *v); }
  // Returns the rates for decisions on a method of this size; -1 where MachineRates sets nothing.
  SystemSnapshot tell(uint64_t instructions = 1) const {
    SystemSnapshot s;
    s.compile_ns = s.speedup = s.baseline_ns = -1;
    rates.tell(instructions, s);
    return s;
  }
  void calibrate(sampler::CycleClock clock = {.ns_per_cycle = 0.5}) {
    jit::Helpers helpers;
    helpers.trap_exit = code.routines->trap_exit();
    rates.calibrate(helpers, *code.space, mutex_, clock);
  }

  test::CodeMachine code;
  Options options, live;
  MethodTable methods;
  MachineRates rates;

 private:
  Host host_;
  WaitedMutex mutex_;
};

TEST(MachineRates, begin_at_what_is_assumed) {
  Machine m;
  EXPECT_EQ(m.rates.compile_ns(), kAssumed);
  SystemSnapshot s = m.tell();
  EXPECT_EQ(s.compile_ns, kAssumed);
  EXPECT_EQ(s.speedup, -1) << "the policy's own";
  EXPECT_EQ(s.baseline_ns, -1);
}

TEST(MachineRates, learn_from_optimized_code_of_our_own_alone) {
  Machine m;
  m.note(m.version(Tier::kBaseline, 1'000'000));
  auto of_host = m.version(Tier::kOptimized, 1'000'000);
  of_host->code.reset();
  m.note(of_host);
  EXPECT_EQ(m.rates.compile_ns(), kAssumed);
  EXPECT_EQ(m.rates.compile_ns_total(), 4'000'000u) << "spent it was";
  m.note(m.version(Tier::kOptimized, 1'000'000));
  CompileRate expected(kAssumed, true);
  expected.add(1000, 0, 1'000'000);
  EXPECT_EQ(m.rates.compile_ns(), expected.ns());
  EXPECT_EQ(m.tell(50).compile_ns, expected.ns_of(50));
}

TEST(MachineRates, bodies_that_were_inlined_are_compiled_too_as_long_as_they_are_known) {
  Machine m;
  MethodId another(1, 1);  // not the second method: it has the same slot, but another generation
  m.note(m.version(Tier::kOptimized, 1'000'000, {MethodId(1), MethodId(1), another}));
  CompileRate expected(kAssumed, true);
  expected.add(1000, 60, 1'000'000);
  EXPECT_EQ(m.rates.compile_ns(), expected.ns());
}

TEST(MachineRates, speedup_is_told_once_a_trial_has_ended) {
  Machine m;
  m.rates.note_speedup(6);
  SpeedupRate expected(kSpeedup, true);
  expected.add(6);
  EXPECT_EQ(m.tell().speedup, expected.factor());
}

TEST(MachineRates, baseline_code_is_timed_in_cycles_of_a_clock_that_is_known) {
  Machine m{Options()};
  double before = m.tell().baseline_ns;
  m.rates.note_baseline(100, 1000);
  EXPECT_EQ(m.tell().baseline_ns, before) << "nobody knows what a cycle is";
  m.calibrate();
  double begun = m.tell().baseline_ns;
  ASSERT_GT(begun, 0);
  BaselineRate expected(m.options.baseline_ns, true);
  expected.begin(begun);
  m.rates.note_baseline(100, 1000);
  expected.add(100, 500);
  EXPECT_DOUBLE_EQ(m.tell().baseline_ns, expected.ns());
}

TEST(MachineRates, before_anything_is_measured_baseline_code_takes_what_it_takes_in_programs) {
  Machine m{Options()};
  double assumed_ns = m.tell().baseline_ns;
  EXPECT_GT(assumed_ns, 0.05);
  EXPECT_LT(assumed_ns, 0.5) << "the option's default is for runs that measure nothing";
  m.calibrate();
  EXPECT_NE(m.tell().baseline_ns, assumed_ns);
}

TEST(MachineRates, nothing_is_assumed_where_nothing_is_measured_or_where_the_option_is_set) {
  Options repeatable, held, never;
  repeatable.workers = 0;
  held.measure_rates = false;
  never.policy = PolicyMode::kNever;
  for (const Options& o : {assumed(), repeatable, held, never}) {
    EXPECT_EQ(Machine(o).tell().baseline_ns, -1);
  }
}

TEST(MachineRates, what_was_set_since_stands) {
  Machine m{Options()};
  m.calibrate();
  EXPECT_GT(m.tell().baseline_ns, 0);
  m.live.baseline_ns = 77;
  EXPECT_EQ(m.tell().baseline_ns, -1);
}

TEST(MachineRates, so_many_trials_begin_and_no_more) {
  Machine m;
  for (uint32_t i = 0; i < SpeedupRate::kMostTrials; ++i) EXPECT_TRUE(m.rates.begin_trial());
  EXPECT_FALSE(m.rates.begin_trial());
}

TEST(MachineRates, are_as_assumed_where_nothing_is_measured) {
  Options o;
  o.measure_rates = false;
  Machine m(o);
  uint64_t bytes = m.code.space->bytes_freed();
  m.calibrate();
  EXPECT_EQ(m.code.space->bytes_freed(), bytes) << "nothing is compiled";
  m.note(m.version(Tier::kOptimized, 1'000'000));
  m.rates.note_speedup(9);
  EXPECT_FALSE(m.rates.begin_trial());
  SystemSnapshot s = m.tell();
  EXPECT_EQ(s.compile_ns, -1);
  EXPECT_EQ(s.speedup, -1);
  EXPECT_EQ(m.rates.compile_ns(), o.compile_ns);
}

TEST(MachineRates, at_the_start_what_is_a_default_is_measured_and_all_code_is_freed) {
  Options o;
  Machine m(o);
  uint64_t in_service = m.code.space->bytes_in_service(), freed = m.code.space->bytes_freed();
  m.calibrate();
  EXPECT_NE(m.rates.compile_ns(), o.compile_ns);
  EXPECT_GT(m.rates.compile_ns(), 0);
  EXPECT_NE(m.tell().baseline_ns, o.baseline_ns);
  EXPECT_EQ(m.code.space->bytes_in_service(), in_service);
  EXPECT_GT(m.rates.bytes_freed(), 0u);
  EXPECT_EQ(m.rates.bytes_freed(), m.code.space->bytes_freed() - freed);
}

TEST(MachineRates, what_was_set_is_not_measured) {
  Options o = assumed();
  Machine m(o);
  m.calibrate();
  EXPECT_EQ(m.rates.compile_ns(), kAssumed);
  EXPECT_EQ(m.tell().baseline_ns, -1);
  EXPECT_EQ(m.rates.bytes_freed(), 0u) << "nothing was compiled to be timed";
}

}  // namespace
}  // namespace uptier::tiering::machine_rates_test
