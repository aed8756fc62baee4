// How long does a function take to compile, and does the time per instruction stay the same as
// functions grow?
//
// Bad news would be a column per_inst that rises with the size (something is quadratic), or an
// optimizing compiler beyond 2.5 us per IR instruction.
#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "jit/code/routines.h"
#include "jit/compile/compile.h"
#include "jit/frontend/parse.h"
#include "tests/support/random_ir.h"

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

// One `if` after the other, each of which may add to a sum.
std::string diamonds_text(int64_t count) {
  std::string text = "func @diamonds(i64) -> i64 {\nb0(v0: i64):\n  probe block 1\n";
  int64_t sum = 0, next = 1;
  auto value = [](int64_t v) { return "v" + std::to_string(v); };
  for (int64_t n = 0; n < count; ++n) {
    std::string x = value(sum), k = value(next), bit = value(next + 1), y = value(next + 2);
    std::string way = "b" + std::to_string(2 * n + 1), join = "b" + std::to_string(2 * n + 2);
    text += "  " + k + " = const.i64 " + std::to_string(int64_t{1} << n % 40) + "\n";
    text += "  " + bit + " = and.i64 " + x + ", " + k + "\n";
    std::string set = value(next + 3);
    text += "  " + set + " = eq.i64 " + bit + ", " + k + "\n";
    text += "  branch " + set + ", " + way + ", " + join + "(" + x + ")\n";
    text += way + ":\n  probe block " + std::to_string(2 * n + 2) + "\n";
    text += "  " + y + " = add.i64 " + x + ", " + k + "\n  jump " + join + "(" + y + ")\n";
    text += join + "(" + value(next + 4) + ": i64):\n";
    text += "  probe block " + std::to_string(2 * n + 3) + "\n";
    sum = next + 4;
    next += 5;
  }
  return text + "  return " + value(sum) + "\n}\n";
}

const jit::Function& diamonds(int64_t count) {
  static std::map<int64_t, jit::Module> made;
  auto [it, fresh] = made.try_emplace(count);
  if (fresh) it->second = std::move(*jit::parse_module(diamonds_text(count), {.file = "bench"}));
  return it->second.functions[0];
}

struct NoCalls final : jit::CallResolver {
  jit::CallTarget target(MethodId) override { return {jit::CallTarget::Kind::kSelf, nullptr}; }
};

const void* no_slow_path(uint32_t, void*) { return nullptr; }

template <typename Compile>
void run(benchmark::State& state, const jit::Function& f, Compile compile) {
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
  run(state, program(state.range(0)),
      [](const jit::CompileInput& in) { return jit::compile_baseline(in, {}); });
}
void BM_CompileOptimized(benchmark::State& state) {
  run(state, program(state.range(0)),
      [](const jit::CompileInput& in) { return jit::compile_optimized(in, {}); });
}
// Half of the ways are taken half of the time, so that branches become selections; the others never.
void BM_CompileDiamondsWithProfile(benchmark::State& state) {
  const jit::Function& f = diamonds(state.range(0));
  std::vector<uint64_t> counts(f.block_sites, 1'000);
  for (size_t site = 2; site <= counts.size(); site += 2)
    counts[site - 1] = site % 4 == 0 ? 0 : 500;
  run(state, f, [&](const jit::CompileInput& in) {
    return jit::compile_optimized(in, {.block_counts = counts});
  });
}
BENCHMARK(BM_CompileBaseline)->Arg(50)->Arg(500)->Arg(5'000)->Arg(50'000);
BENCHMARK(BM_CompileOptimized)->Arg(50)->Arg(500)->Arg(5'000)->Arg(50'000);
BENCHMARK(BM_CompileDiamondsWithProfile)->Arg(100)->Arg(1'000)->Arg(2'000)->Arg(4'000);

}  // namespace
}  // namespace uptier
