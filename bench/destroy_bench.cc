// How long does it take to be rid of a runtime with many methods that have been called? Bad news: a
// time that the user of a program sees at its end, or a host that makes a runtime for each document
// for each of these.
#include <benchmark/benchmark.h>

#include <string>

#include "uptier/builder.h"
#include "uptier/host.h"
#include "uptier/runtime.h"

namespace {

using namespace uptier;

// Methods that add their number.
class Adders : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(m.index())));
    return {};
  }
};

// The time is the destructor's alone.
void destroy_runtime(benchmark::State& state) {
  auto count = static_cast<uint32_t>(state.range(0));
  const Signature one{{Type::kI64}, Type::kI64};
  for (auto _ : state) {
    state.PauseTiming();
    Adders host;
    auto runtime = Runtime::create(Options());
    if (!runtime) return state.SkipWithError("no runtime");
    for (uint32_t i = 0; i < count; ++i) {
      auto m = (*runtime)->add_method(host, {{1, i}, "m" + std::to_string(i), one});
      uint64_t args[] = {1};
      if (!m || (*runtime)->invoke(*m, args).bits != i + 1) state.SkipWithError("a wrong answer");
    }
    state.ResumeTiming();
    runtime->reset();
  }
}
BENCHMARK(destroy_runtime)->Arg(1'000)->Arg(50'000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
