// Ways to share and store flow counters: which are exact, how large the error of the others may be,
// and that the increments change nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/support/baseline_module.h"
#include "tests/support/flow_module.h"
#include "tests/support/random_ir.h"

namespace uptier::test::flow_modes_test {
namespace {

using Reading = jit::FlowLayout::Reading;

// Counts its argument down: one counter for the iterations, one for everything else.
const char* kCountDown = R"(
func @count(i64) -> i64 {
b0(v0: i64):
  jump b1(v0)
b1(v1: i64):
  v2 = const.i64 1
  v3 = sub.i64 v1, v2
  v4 = eqz.i64 v3
  branch v4, b2, b1(v3)
b2:
  return v3
}
)";

jit::Module parse(const std::string& text) {
  auto m = jit::parse_module(text, {"test", corpus_hosts()});
  if (!m.ok()) throw std::runtime_error(m.error().message);
  return std::move(*m);
}

struct Counted {
  uint64_t exact = 0, approximate = 0;
};

Counted count_iterations(const jit::ProbeRequest& request, uint64_t iterations, uint64_t seed) {
  static const jit::Module module = parse(kCountDown);
  CodeMachine machine;
  FlowModule compiled(machine, module, request);
  machine.thread.context().counter_random = seed;
  compiled.run(MethodId(0), {iterations});
  return {compiled.counts(0).blocks[1], compiled.counts(0, Reading::kApproximate).blocks[1]};
}

TEST(FlowModes, scalable_counts_are_exact_up_to_the_threshold) {
  for (bool narrow : {false, true}) {
    for (uint64_t n : {1, 2, 100, 8191, 8192}) {
      EXPECT_EQ(count_iterations({FlowMode::kBlocks, CounterMode::kScalable, narrow}, n, 1).exact,
                n);
    }
  }
}

// Two sigma are 2 sqrt(4/3) / 2^7 = 1.8 % of the count. All of 200 runs lie within four sigma (odds
// against: below 2 %), and their mean lies within four of its own sigma. Seeds are fixed.
TEST(FlowModes, scalable_counts_err_by_two_percent_at_two_sigma) {
  constexpr uint64_t kIterations = 1'000'000;
  constexpr int kRuns = 200;
  const double sigma = std::sqrt(4.0 / 3) / 128;
  for (bool narrow : {false, true}) {
    double sum = 0;
    int within_two = 0;
    for (uint64_t seed = 0; seed < kRuns; ++seed) {
      uint64_t start = seed * 0x9e3779b97f4a7c15;
      Counted c =
          count_iterations({FlowMode::kEdges, CounterMode::kDual, narrow}, kIterations, start);
      ASSERT_EQ(c.exact, kIterations);
      double error = static_cast<double>(c.approximate) / kIterations - 1;
      EXPECT_LT(std::abs(error), 4 * sigma) << "seed " << seed;
      within_two += std::abs(error) < 2 * sigma;
      sum += error;
    }
    EXPECT_GE(within_two, kRuns * 9 / 10);
    EXPECT_LT(std::abs(sum / kRuns), 4 * sigma / std::sqrt(kRuns));
    EXPECT_NE(sum, 0);
  }
}

TEST(FlowModes, narrow_counters_stop_and_never_wrap) {
  jit::Module module = parse(kCountDown);
  for (CounterMode mode : {CounterMode::kPerThread, CounterMode::kInterlocked, CounterMode::kRacing,
                           CounterMode::kScalable}) {
    CodeMachine machine;
    FlowModule compiled(machine, module, {FlowMode::kBlocks, mode, true});
    uint32_t start = mode == CounterMode::kPerThread  ? UINT32_MAX - 10
                     : mode == CounterMode::kScalable ? UINT32_MAX - (1u << 20)
                                                      : jit::ProbePlan::kNarrowFull - 10;
    uint64_t both = uint64_t{start} << 32;  // counter of block 2, which shares a word with block 1
    compiled.slab(0)[0] = both;
    compiled.run(MethodId(0), {10'000'000});
    EXPECT_EQ(compiled.counts(0).blocks, (std::vector<uint64_t>{1, UINT32_MAX, 1}))
        << static_cast<int>(mode);
  }
}

TEST(FlowModes, narrow_slabs_take_half_the_space) {
  jit::Module module = parse(kCountDown);
  for (FlowMode flow : {FlowMode::kBlocks, FlowMode::kEdges}) {
    for (CounterMode mode : {CounterMode::kPerThread, CounterMode::kDual}) {
      auto wide = jit::plan_probes(module.functions[0], {flow, mode, false});
      auto narrow = jit::plan_probes(module.functions[0], {flow, mode, true});
      EXPECT_EQ(wide.stride(), 2 * narrow.stride());
      EXPECT_EQ(wide.flow_counters(), narrow.flow_counters());
      EXPECT_EQ(wide.bytes % 8, 0u);
      EXPECT_EQ(narrow.bytes % 8, 0u);
      EXPECT_LT(narrow.bytes, wide.bytes);
    }
  }
}

// Counters far into the probabilistic range call a routine at each increment, which must preserve
// every register and flag that the program needs.
TEST(FlowModes, the_routine_of_scalable_counters_changes_no_answer) {
  corpus_raise = raise_in_context;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    jit::Module module = random_module(seed, {.guards = true});
    auto last = static_cast<uint32_t>(module.functions.size() - 1);
    const Signature& signature = module.functions[last].signature();
    Scratch scratch;
    CodeMachine machine;
    FlowModule compiled(machine, module, {FlowMode::kEdges, CounterMode::kScalable, seed % 2 == 1});
    for (uint32_t m = 0; m <= last; ++m) {
      for (uint64_t& word : compiled.slab(m)) word = (uint64_t{1} << 40 | 1) << 16;
    }
    jit::Interpreter interpreter(module, interpret_options(scratch));
    Random r(seed);
    auto args = random_arguments(signature, scratch, r);
    scratch.fill();
    Answer expected = interpret(interpreter, MethodId(last), args);
    std::string memory = scratch.bytes();
    scratch.fill();
    auto ran = compiled.run(MethodId(last), args);
    ASSERT_EQ(ran.trap, expected.trap) << "seed " << seed;
    ASSERT_TRUE(ran.trap != TrapCode::kNone ||
                same_value(signature.result, ran.bits, expected.bits))
        << "seed " << seed;
    ASSERT_EQ(memory, scratch.bytes()) << "seed " << seed;
  }
}

// ---- Threads ----------------------------------------------------------------------------------

// Runs the module's function on two threads that share a slab; each thread has its own context.
Counted count_on_two_threads(const jit::ProbeRequest& request, uint64_t iterations) {
  static const jit::Module module = parse(kCountDown);
  CodeMachine machine;
  FlowModule compiled(machine, module, request);
  auto work = [&](uint64_t seed) {
    AttachedThread thread;
    thread.context().counter_random = seed;
    thread.method(0).slab = compiled.slab(0).data();
    thread.method(0).loop_countdown = -AttachedThread::kNever;
    const Signature& s = module.functions[0].signature();
    jit::invoke_code(machine.routines->invoke(), machine.stubs->stub(MethodId(0)), s,
                     std::vector<uint64_t>{iterations});
  };
  std::thread other(work, 17);
  work(4711);
  other.join();
  return {compiled.counts(0).blocks[1], compiled.counts(0, Reading::kApproximate).blocks[1]};
}

TEST(FlowModes, two_threads_lose_no_interlocked_increment) {
  constexpr uint64_t kIterations = 2'000'000;
  for (bool narrow : {false, true}) {
    Counted c =
        count_on_two_threads({FlowMode::kEdges, CounterMode::kInterlocked, narrow}, kIterations);
    EXPECT_EQ(c.exact, 2 * kIterations);
    c = count_on_two_threads({FlowMode::kBlocks, CounterMode::kDual, narrow}, kIterations);
    EXPECT_EQ(c.exact, 2 * kIterations);
    EXPECT_NEAR(static_cast<double>(c.approximate), 2.0 * kIterations, 0.04 * 2 * kIterations);
  }
}

}  // namespace
}  // namespace uptier::test::flow_modes_test
