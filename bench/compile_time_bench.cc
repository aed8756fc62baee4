// How long does a function take to compile, and does the time per instruction stay the same as
// functions grow?
//
// Bad news would be a column per_inst that rises with the size (something is quadratic), or an
// optimizing compiler beyond 2.5 us per IR instruction.
#include <benchmark/benchmark.h>

#include <map>

#include "jit/code/routines.h"
#include "jit/compile.h"
#include "tests/random_ir.h"

namespace uptier {
namespace {

// Programs of about 500, 5,000, 50,000 instructions, made once.
const jit::Function& program(int64_t instructions) {
  static std::map<int64_t, jit::Module> made;
  auto [it, fresh] = made.try_emplace(instructions);
  if (fresh) {
    test::RandomOptions o{.functions = 1, .variables = 40, .depth = 5};
    o.statements = static_cast<int>(instructions / 6);
    it->second = test::random_module(5, o);
  }
  return it->second.functions[0];
}

struct NoCalls final : jit::CallResolver {
  jit::CallTarget target(MethodId) override { return {jit::CallTarget::Kind::kSelf, nullptr}; }
};

const void* no_slow_path(uint32_t, void*) { return nullptr; }

template <typename Compile>
void run(benchmark::State& state, Compile compile) {
  const jit::Function& f = program(state.range(0));
  size_t count = 0;
  for (Block b : f.layout) count += f.block(b).insts.size();
  auto made = jit::CodeSpace::create({.code_budget = 64 << 20, .data_bytes = 4096});
  std::unique_ptr<jit::CodeSpace>& space = *made;
  auto routines = jit::Routines::create(*space, &no_slow_path, nullptr);
  jit::Helpers helpers;
  helpers.trap_exit = routines->trap_exit();
  helpers.loop_slow_plain = helpers.loop_slow_instrumented = routines->trap_exit();
  NoCalls calls;
  jit::CompileInput in{f, MethodId(0), helpers, calls, *space};
  uint64_t bytes = 0;
  for (auto _ : state) {
    auto code = compile(in);
    if (!code.ok()) return state.SkipWithError(code.error().message.c_str());
    bytes = (*code)->size();
  }
  state.counters["insts"] = static_cast<double>(count);
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["per_inst"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void BM_CompileBaseline(benchmark::State& state) {
  run(state, [](const jit::CompileInput& in) { return jit::compile_baseline(in, {}); });
}
void BM_CompileOptimized(benchmark::State& state) {
  run(state, [](const jit::CompileInput& in) { return jit::compile_optimized(in, {}); });
}
BENCHMARK(BM_CompileBaseline)->Arg(50)->Arg(500)->Arg(5'000)->Arg(50'000);
BENCHMARK(BM_CompileOptimized)->Arg(50)->Arg(500)->Arg(5'000)->Arg(50'000);

}  // namespace
}  // namespace uptier
