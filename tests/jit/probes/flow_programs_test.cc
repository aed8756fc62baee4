// The example programs in edge-counting copies: their output, their counts against the reference
// interpreter's, and how much is saved by counting edges instead of blocks.
#include <gtest/gtest.h>

#include "tests/support/flow_runtime.h"
#include "tests/support/golden.h"
#include "tests/support/ir_corpus.h"
#include "tests/support/program_runs.h"
#include "tests/support/wasm_command.h"
#include "tests/support/wasm_interpreter.h"

namespace uptier::test::flow_programs_test {
namespace {

// Memory bounds are checked in code: the interpreter, which runs the same bodies, has no guard
// pages.
wasm::test::Ended run_on(Runtime& runtime, const Program& p) {
  wasm::EngineOptions options;
  options.explicit_bounds = true;
  wasm::Engine engine(runtime, options);
  std::string bytes = slurp(wasm_path(p.name));
  return wasm::test::run_command(engine, {bytes.begin(), bytes.end()}, {p.name, "1"},
                                 wasm::Bounds::kExplicit);
}

class FlowPrograms : public testing::TestWithParam<Program> {};

TEST_P(FlowPrograms, count_the_interpreters_blocks_and_edges) {
  wasm::test::InterpreterRuntime interpreter;
  auto expected = run_on(interpreter, GetParam());
  FlowRuntime compiled({});
  auto got = run_on(compiled, GetParam());
  EXPECT_EQ(got.out, expected.out);
  EXPECT_EQ(got.result.exit_code, expected.result.exit_code);
  uint64_t edges_compared = 0;
  for (uint32_t m = 0; m < compiled.methods(); ++m) {
    auto blocks = interpreter.blocks(m), edges = interpreter.edges(m);
    ASSERT_EQ(compiled.has_code(m), !blocks.empty()) << m;
    if (blocks.empty()) continue;
    profile::FlowCounts c = compiled.counts(m);
    EXPECT_FALSE(c.clamped) << m;
    EXPECT_TRUE(imbalanced_blocks(compiled.layout(m).shape().graph, c).empty()) << m;
    ASSERT_EQ(c.blocks, std::vector<uint64_t>(blocks.begin(), blocks.end())) << m;
    c.edges.resize(compiled.layout(m).real_edges());
    ASSERT_EQ(c.edges, std::vector<uint64_t>(edges.begin(), edges.end())) << m;
    edges_compared += edges.size();
  }
  EXPECT_GT(edges_compared, 300u);
}

INSTANTIATE_TEST_SUITE_P(Examples, FlowPrograms, testing::ValuesIn(programs()),
                         [](const auto& p) { return p.param.name; });

// ---- Savings
// --------------------------------------------------------------------------------------

struct Cost {
  uint64_t bodies = 0, counters = 0, increments = 0;
};

Cost cost_of_program(const Program& p, FlowMode flow) {
  FlowRuntime runtime({.flow = flow});
  run_on(runtime, p);
  Cost cost;
  for (uint32_t m = 0; m < runtime.methods(); ++m) {
    if (!runtime.has_code(m)) continue;
    ++cost.bodies;
    cost.counters += runtime.plan(m).flow_counters();
    cost.increments += runtime.increments(m);
  }
  return cost;
}

std::string row(const std::string& name, const Cost& blocks, const Cost& edges) {
  auto percent = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? std::string() : " " + std::to_string(100 * part / whole) + "%";
  };
  return name + ": " + std::to_string(blocks.bodies) + " bodies, counters " +
         std::to_string(blocks.counters) + " -> " + std::to_string(edges.counters) +
         percent(edges.counters, blocks.counters) + ", increments " +
         std::to_string(blocks.increments) + " -> " + std::to_string(edges.increments) +
         percent(edges.increments, blocks.increments) + "\n";
}

// Bodies that ran, counters in their code, and increments in one small run.
TEST(FlowSavings, edges_need_fewer_counters_and_increments_than_blocks) {
  std::string text;
  for (const Program& p : programs()) {
    Cost blocks = cost_of_program(p, FlowMode::kBlocks);
    Cost edges = cost_of_program(p, FlowMode::kEdges);
    EXPECT_LT(edges.counters, blocks.counters) << p.name;
    EXPECT_LT(edges.increments, blocks.increments) << p.name;
    text += row(p.name, blocks, edges);
  }
  Cost blocks, edges;
  for (const CorpusFile& file : load_corpus()) {
    for (const jit::Function& f : file.module.functions) {
      ++blocks.bodies;
      blocks.counters += f.block_sites;
      edges.counters += jit::plan_probes(f, {}).flow_counters();
    }
  }
  text += row("tests/ir", blocks, edges);
  std::printf("%s", text.c_str());
  expect_golden("flow_savings", text);
}

}  // namespace
}  // namespace uptier::test::flow_programs_test
