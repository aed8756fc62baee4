// What does it cost to be countable? Calls of an almost empty method through its stub, in every
// state that it can be in, beside a plain C function through a pointer. Bad news: more than a
// nanosecond between the first two.
//
// `stub_and_check` is the difference itself: the same compiled code, called through its stub and
// through nothing but an indirect jump, in turns within one loop. Bad news: its `extra_ns` above
// 0.4. `behind_ns` is of a stub that is such a jump, to the counting or past it (docs/notes/0010): what
// a method pays that is counted, so that one that is known would pay `bare_ns`.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/parse.h"
#include "tools/ir_host.h"
#include "uptier/runtime.h"

// A stub without a countdown: a jump through a word. And one that jumps through a word to what
// counts, with the instructions of jit/code/stubs.h.
extern "C" {
[[gnu::visibility("hidden")]] uint32_t (*uptier_bench_target)(uint32_t);
[[gnu::visibility("hidden")]] uint32_t uptier_bench_jump(uint32_t);
[[gnu::visibility("hidden")]] uint32_t uptier_bench_behind(uint32_t);
[[gnu::visibility("hidden")]] thread_local int32_t* uptier_bench_countdown;
}
asm(R"(
  .pushsection .text
  .balign 32
uptier_bench_jump:
  jmp *uptier_bench_target(%rip)
  .balign 32
uptier_bench_count:
  movq %fs:uptier_bench_countdown@tpoff, %r11
  decl 64(%r11)
  js 1f
  jmp *uptier_bench_target(%rip)
1: ud2
  .balign 32
uptier_bench_behind:
  jmp *uptier_bench_entry(%rip)
  .section .data.rel.local, "aw"
  .balign 8
uptier_bench_entry: .quad uptier_bench_count
  .popsection
)");

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
  std::unique_ptr<tools::IrHost> host;  // the worker asks it until the runtime ends
  auto runtime = Runtime::create(options);
  host = std::move(tools::IrHost::add(**runtime, *module).value());
  ThreadScope scope(**runtime);
  auto* leaf = (*runtime)->entry<uint32_t(uint32_t)>(host->method(MethodId(0)));
  for (int i = 0; i < warm_calls; ++i) leaf(1);
  (*runtime)->flush();
  call_many(state, leaf);
}

// ---- A stub against a bare indirect jump --------------------------------------------------------

using Leaf = uint32_t(uint32_t);

// The code that a stub leads to now: what its last instruction, jmp [rip + d], jumps to.
Leaf* code_behind(Leaf* stub) {
  const auto* at = reinterpret_cast<const uint8_t*>(stub);
  while (at[0] != 0xff || at[1] != 0x25) ++at;
  int32_t d;
  __builtin_memcpy(&d, at + 2, sizeof d);
  Leaf* code;
  __builtin_memcpy(&code, at + 6 + d, sizeof code);
  return code;
}

double ns_per_call(Leaf* leaf, uint64_t calls) {
  timespec from{}, to{};
  uint32_t x = 1;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  for (uint64_t i = 0; i < calls; ++i) x = leaf(x);
  benchmark::DoNotOptimize(x);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  auto ns = static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 +
            static_cast<double>(to.tv_nsec - from.tv_nsec);
  return ns / static_cast<double>(calls);
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

// One iteration is a pair of short runs, so that a disturbance meets both.
void stub_and_check(benchmark::State& state) {
  auto module = jit::parse_module(kLeaf);
  std::unique_ptr<tools::IrHost> host;  // the worker asks it until the runtime ends
  auto runtime = Runtime::create(make(TierMode::kBaseline, 16, GapMode::kRandom));
  host = std::move(tools::IrHost::add(**runtime, *module).value());
  ThreadScope scope(**runtime);
  auto* stub = (*runtime)->entry<Leaf>(host->method(MethodId(0)));
  stub(1);
  uptier_bench_target = code_behind(stub);
  constexpr uint64_t kCalls = 100'000;
  std::vector<double> through, bare, extra, behind, more;
  alignas(64) int32_t countdowns[32];
  uptier_bench_countdown = countdowns;
  for (auto _ : state) {
    countdowns[16] = 1 << 30;
    through.push_back(ns_per_call(stub, kCalls));
    bare.push_back(ns_per_call(uptier_bench_jump, kCalls));
    behind.push_back(ns_per_call(uptier_bench_behind, kCalls));
    extra.push_back(through.back() - bare.back());
    more.push_back(behind.back() - through.back());
  }
  auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  state.counters["stub_ns"] = median(through);
  state.counters["bare_ns"] = median(bare);
  state.counters["extra_ns"] = median(extra);
  state.counters["behind_ns"] = median(behind);
  state.counters["behind_more_ns"] = median(more);
}
BENCHMARK(stub_and_check)->Unit(benchmark::kMicrosecond);

}  // namespace
