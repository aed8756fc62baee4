// What does a method cost that is added, called 100 times and removed, as in a host that makes a
// function for each query? Bad news: system calls in each life, or memory that grows with their
// number. And what do a runtime and its first call cost? Bad news: a time that a short command
// notices.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <fstream>
#include <string>

#include "uptier/builder.h"
#include "uptier/host.h"
#include "uptier/runtime.h"

namespace {

using namespace uptier;

const Signature kOne{{Type::kI64}, Type::kI64};

class Adders : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(m.index())));
    return {};
  }
};

// Resident bytes of the process that are no file's.
double resident() {
  uint64_t kib = 0;
  std::ifstream in("/proc/self/status");
  for (std::string key; in >> key;) {
    uint64_t n = 0;
    if (key == "RssAnon:" || key == "RssShmem:") in >> n, kib += n;
  }
  return static_cast<double>(kib << 10);
}

// One round is one life. `grown`: bytes of resident memory per life, after the first 1,000.
void method_life(benchmark::State& state) {
  Options o;
  Adders host;
  auto runtime = Runtime::create(o);
  if (!runtime) return state.SkipWithError("no runtime");
  ThreadScope scope(**runtime);
  uint32_t lives = 0;
  double before = 0;
  for (auto _ : state) {
    auto m = (*runtime)->add_method(host, {{1, lives}, "short", kOne});
    if (!m) return state.SkipWithError("no method");
    auto call = (*runtime)->entry<int64_t(int64_t)>(*m);
    for (int64_t i = 0; i < 100; ++i) benchmark::DoNotOptimize(call(i));
    (*runtime)->remove_methods({&*m, 1});
    if (++lives == 1'000) before = resident();
  }
  if (lives > 1'000) state.counters["grown"] = (resident() - before) / (lives - 1'000);
}
BENCHMARK(method_life)->Iterations(20'000)->Unit(benchmark::kMicrosecond)->UseRealTime();

void create_and_call(benchmark::State& state) {
  for (auto _ : state) {
    Adders host;
    auto runtime = Runtime::create(Options());
    if (!runtime) return state.SkipWithError("no runtime");
    auto m = (*runtime)->add_method(host, {{1, 0}, "first", kOne});
    uint64_t args[] = {1};
    if (!m || (*runtime)->invoke(*m, args).bits != 1) state.SkipWithError("a wrong answer");
    state.PauseTiming();
    runtime->reset();
    state.ResumeTiming();
  }
}
BENCHMARK(create_and_call)->Unit(benchmark::kMicrosecond)->UseRealTime();

// Resident memory of a runtime with methods that were called: `bytes` is what it adds.
void runtime_memory(benchmark::State& state) {
  auto count = static_cast<uint32_t>(state.range(0));
  for (auto _ : state) {
    malloc_trim(0);
    const double before = resident();
    Adders host;
    auto runtime = Runtime::create(Options());
    if (!runtime) return state.SkipWithError("no runtime");
    ThreadScope scope(**runtime);
    for (uint32_t i = 0; i < count; ++i) {
      auto m = (*runtime)->add_method(host, {{1, i}, "m" + std::to_string(i), kOne});
      uint64_t args[] = {1};
      for (int n = 0; m && n < 100; ++n) benchmark::DoNotOptimize((*runtime)->invoke(*m, args));
    }
    state.counters["bytes"] = resident() - before;
  }
}
BENCHMARK(runtime_memory)->Arg(1)->Arg(100)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
