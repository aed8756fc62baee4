// What does it cost to be countable? Calls of an almost empty method through its stub, in every
// state that it can be in, beside a plain C function through a pointer. Bad news: more than a
// nanosecond between the first two.
#include <benchmark/benchmark.h>

#include "jit/ir/build.h"
#include "jit/ir/parse.h"
#include "tools/ir_host.h"
#include "uptier/runtime.h"

namespace {

using namespace uptier;

constexpr const char* kLeaf = R"(
func @leaf(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 7
  v2 = xor.i32 v0, v1
  return v2
}
)";

__attribute__((noinline)) uint32_t c_leaf(uint32_t x) { return x ^ 7; }

void call_many(benchmark::State& state, uint32_t (*leaf)(uint32_t)) {
  benchmark::DoNotOptimize(leaf);
  uint32_t x = 1;
  for (auto _ : state) x = leaf(x);
  benchmark::DoNotOptimize(x);
}

void c_function(benchmark::State& state) { call_many(state, c_leaf); }
BENCHMARK(c_function);

void method(benchmark::State& state, const Options& options, int warm_calls) {
  auto module = jit::parse_module(kLeaf);
  auto runtime = Runtime::create(options);
  auto host = tools::IrHost::add(**runtime, *module);
  ThreadScope scope(**runtime);
  auto* leaf = (*runtime)->entry<uint32_t(uint32_t)>((*host)->method(MethodId(0)));
  for (int i = 0; i < warm_calls; ++i) leaf(1);
  (*runtime)->flush();
  call_many(state, leaf);
}

Options make(TierMode tier, uint64_t interval, GapMode gap) {
  Options o;
  o.tier = tier;
  o.interval = interval;
  o.gap = gap;
  o.policy = PolicyMode::kNever;
  return o;
}

void baseline_unsampled(benchmark::State& s) {
  method(s, make(TierMode::kBaseline, 16, GapMode::kRandom), 0);
}
BENCHMARK(baseline_unsampled);
void baseline_sampled_1000(benchmark::State& s) {
  method(s, make(TierMode::kAuto, 1000, GapMode::kRandom), 1000);
}
BENCHMARK(baseline_sampled_1000);
void baseline_sampled_16(benchmark::State& s) {
  method(s, make(TierMode::kAuto, 16, GapMode::kRandom), 1000);
}
BENCHMARK(baseline_sampled_16);
void baseline_exact_16(benchmark::State& s) {
  method(s, make(TierMode::kAuto, 16, GapMode::kExact), 1000);
}
BENCHMARK(baseline_exact_16);
void instrumented(benchmark::State& s) {
  method(s, make(TierMode::kInstrumented, 1, GapMode::kRandom), 0);
}
BENCHMARK(instrumented);
void optimized(benchmark::State& s) {
  method(s, make(TierMode::kOptimized, 16, GapMode::kRandom), 0);
}
BENCHMARK(optimized);

}  // namespace
