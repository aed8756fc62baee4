// What does it take to read the source lines of a module, and to hold them? Bad news: more than 64 bytes a
// row of the line table, or more than 20 ms a megabyte of debug sections.
//
// UPTIER_BENCH_MODULE names the module; without it a small one of the tests is read. bench/lines.py runs
// this for the examples.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "embed/wasm/source_lines.h"
#include "test_paths.h"

namespace uptier::wasm {
namespace {

std::vector<uint8_t> module_bytes() {
  const char* named = std::getenv("UPTIER_BENCH_MODULE");
  std::ifstream in(
      named != nullptr ? named : UPTIER_SOURCE_DIR "/tests/fuzz/corpus/dwarf/plain5.wasm",
      std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void read_lines(benchmark::State& state) {
  const std::vector<uint8_t> bytes = module_bytes();
  const ModuleBytes module(bytes, std::shared_ptr<const void>());
  for (auto _ : state) {
    Result<SourceLines> lines = SourceLines::read(module);
    if (!lines.ok()) state.SkipWithError(lines.error().message.c_str());
    benchmark::DoNotOptimize(lines);
  }
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const Result<SourceLines> kept = SourceLines::read(module);
  const size_t held = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  if (!kept.ok()) return;
  size_t rows = 0;
  kept->map().lines().each_row([&](const dwarf::Row&, uint32_t) { ++rows; });
  state.counters["rows"] = static_cast<double>(rows);
  state.counters["bytes/row"] = static_cast<double>(held) / static_cast<double>(rows);
}
BENCHMARK(read_lines);

}  // namespace
}  // namespace uptier::wasm
