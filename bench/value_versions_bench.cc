// How much is a version for a stable parameter worth, and how much does it cost when the parameter
// stops being stable?
//
// Bad news would be: a kernel whose parameter never changes at a ratio above 1.0, or one whose
// parameter has changed for good above 1.05.
//
//   off_ns, on_ns   CPU time of a call with value_versions off and on, medians over rounds
//   ratio           on / off, the median of the rounds' own; low and high beside it
//   versions        made for values; taken_back those that went again
//   guesses         of values inside of bodies; given_up those that went again
//
// Both runtimes live in one process and take turns, call by call of a round, so that a busy machine
// disturbs both alike.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/parse.h"
#include "tools/ir_host.h"
#include "uptier/runtime.h"

namespace {

using namespace uptier;

// digits: the sum of x's digits to a base. fir: a filter of some taps over 64 words. mode: one of
// four sums over 64 words, chosen in the loop. loaded: digits, but the base is in memory, where a
// probe of the host's sees it.
constexpr const char* kKernels = R"(
func @digits(ref, i64) -> i64 {
b0(v0: ref, v1: i64):
  v2 = load.i64 v0
  v3 = const.i64 0
  jump b1(v2, v3)
b1(v4: i64, v5: i64):
  loop_header
  v6 = rem_u.i64 v4, v1
  v7 = div_u.i64 v4, v1
  v8 = add.i64 v5, v6
  v9 = const.i64 0
  v10 = ne.i64 v7, v9
  branch v10, b1(v7, v8), b2
b2:
  return v8
}

func @fir(ref, i64) -> i64 {
b0(v0: ref, v1: i64):
  v2 = const.i64 0
  jump b1(v2, v2)
b1(v3: i64, v4: i64):
  loop_header
  jump b2(v2, v4)
b2(v5: i64, v6: i64):
  loop_header
  v7 = add.i64 v3, v5
  v8 = const.i64 3
  v9 = shl.i64 v7, v8
  v10 = load.i64 v0[v9]
  v11 = add.i64 v5, v8
  v12 = mul.i64 v10, v11
  v13 = add.i64 v6, v12
  v14 = const.i64 1
  v15 = add.i64 v5, v14
  v16 = lt_u.i64 v15, v1
  branch v16, b2(v15, v13), b3
b3:
  v17 = add.i64 v3, v14
  v18 = const.i64 64
  v19 = lt_u.i64 v17, v18
  branch v19, b1(v17, v13), b4
b4:
  return v13
}

func @mode(ref, i64) -> i64 {
b0(v0: ref, v1: i64):
  v2 = const.i64 0
  jump b1(v2, v2)
b1(v3: i64, v4: i64):
  loop_header
  v5 = const.i64 3
  v6 = shl.i64 v3, v5
  v7 = load.i64 v0[v6]
  v8 = wrap.i32 v1
  switch v8, [b2, b3, b4], b5
b2:
  v9 = add.i64 v4, v7
  jump b6(v9)
b3:
  v10 = xor.i64 v4, v7
  jump b6(v10)
b4:
  v11 = sub.i64 v4, v7
  jump b6(v11)
b5:
  v12 = mul.i64 v7, v7
  v13 = add.i64 v4, v12
  jump b6(v13)
b6(v14: i64):
  v15 = const.i64 1
  v16 = add.i64 v3, v15
  v17 = const.i64 64
  v18 = lt_u.i64 v16, v17
  branch v18, b1(v16, v14), b7
b7:
  return v14
}

func @loaded(ref, i64) -> i64 {
b0(v0: ref, v1: i64):
  v2 = load.i64 v0
  v3 = const.i64 0
  v11 = load.i64 v0+800
  probe value v11
  jump b1(v2, v3)
b1(v4: i64, v5: i64):
  loop_header
  v6 = rem_u.i64 v4, v11
  v7 = div_u.i64 v4, v11
  v8 = add.i64 v5, v6
  v9 = const.i64 0
  v10 = ne.i64 v7, v9
  branch v10, b1(v7, v8), b2
b2:
  return v8
}
)";

using Kernel = int64_t (*)(const int64_t*, int64_t);

// The second argument of a kernel: always `stable`, or one of `others` after the warm-up.
struct Values {
  int64_t stable;
  int64_t others[4];
};
constexpr Values kValues[] = {{10, {10, 7, 16, 60}},
                              {4, {4, 3, 5, 2}},
                              {2, {0, 1, 2, 3}},
                              {10, {10, 7, 16, 60}}};  // by kernel

uint64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

class World {
 public:
  World(const jit::Module& module, bool versions) {
    Options o;
    o.value_versions = versions;
    runtime_ = std::move(Runtime::create(o).value());
    host_ = std::move(tools::IrHost::add(*runtime_, module).value());
    attached_.emplace(*runtime_);
  }
  Kernel kernel(uint32_t k) const {
    return reinterpret_cast<Kernel>(
        const_cast<void*>(runtime_->entry_address(host_->method(MethodId(k)))));
  }
  uint64_t decided(std::string_view action, std::string_view reason) const {
    uint64_t n = 0;
    for (const DecisionRecord& d : runtime_->report().decisions) {
      n += d.action == action && d.reason.find(reason) != std::string::npos;
    }
    return n;
  }

 private:
  // Destroyed from the last one up.
  std::unique_ptr<tools::IrHost> host_;
  std::unique_ptr<Runtime> runtime_;
  std::optional<ThreadScope> attached_;
};

// The index of the word from which `loaded` reads its base.
constexpr size_t kLoaded = 100;
constexpr int kWarm = 400'000, kCalls = 4'000, kRounds = 40;

double median(std::vector<double> v) {
  std::ranges::nth_element(v, v.begin() + static_cast<ptrdiff_t>(v.size() / 2));
  return v[v.size() / 2];
}

void values(benchmark::State& state) {
  auto index = static_cast<uint32_t>(state.range(0));
  bool changes = state.range(1) != 0;
  const Values& v = kValues[index];
  auto parsed = jit::parse_module(kKernels, {.file = "kernels"});
  if (!parsed) return state.SkipWithError(parsed.error().message.c_str());
  const jit::Module& module = *parsed;
  std::vector<int64_t> memory(128);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int64_t>(i * 7919 + 1234567);
  World off(module, false), on(module, true);
  Kernel kernels[] = {off.kernel(index), on.kernel(index)};
  auto run = [&](Kernel f, int calls, bool stable) {
    uint64_t start = cpu_ns(), random = 1;
    for (int i = 0; i < calls; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      int64_t value = stable ? v.stable : v.others[random >> 62];
      memory[kLoaded] = value;
      benchmark::DoNotOptimize(f(memory.data(), value));
    }
    return static_cast<double>(cpu_ns() - start) / calls;
  };
  std::vector<double> times[2], ratios;
  for (auto _ : state) {
    for (Kernel f : kernels) run(f, kWarm, true);
    for (Kernel f : kernels) run(f, kWarm, !changes);
    for (int r = 0; r < kRounds; ++r) {
      double t[2];
      for (int n = 0; n < 2; ++n) {
        int which = (n + r) % 2;
        t[which] = run(kernels[which], kCalls, !changes);
        times[which].push_back(t[which]);
      }
      ratios.push_back(t[1] / t[0]);
    }
  }
  state.counters["off_ns"] = median(times[0]);
  state.counters["on_ns"] = median(times[1]);
  state.counters["ratio"] = median(ratios);
  state.counters["low"] = *std::ranges::min_element(ratios);
  state.counters["high"] = *std::ranges::max_element(ratios);
  state.counters["versions"] = static_cast<double>(on.decided("specialize", "parameter "));
  state.counters["guesses"] = static_cast<double>(on.decided("specialize", "site "));
  state.counters["given_up"] = static_cast<double>(on.decided("recompile", "exit at site "));
  state.counters["taken_back"] = static_cast<double>(on.decided("roll_back", ""));
}

BENCHMARK(values)
    ->ArgNames({"kernel", "changes"})
    ->ArgsProduct({{0, 1, 2, 3}, {0, 1}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
