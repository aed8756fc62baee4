// Code does not depend on its rows of blocks: each function of the example programs, of the IR tests and of
// random modules has the same bytes with them and without, from both compilers.
#include "tools/probe_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "jit/code/copy_code.h"
#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "tests/support/random_ir.h"

namespace uptier::tools {
namespace {

Functions functions_of(const std::string& file) {
  const std::string text = test::slurp(file);
  auto read = read_functions(file, {text.begin(), text.end()});
  EXPECT_TRUE(read.ok()) << file;
  return read.ok() ? std::move(*read) : Functions();
}

// Returns the number of codes that were compared; expects that all are the same.
size_t compare(const Functions& functions, const std::string& what) {
  auto costs = probe_table_costs(functions, 1);
  EXPECT_TRUE(costs.ok()) << what << ": " << (costs.ok() ? "" : costs.error().message);
  size_t compared = 0;
  if (!costs.ok()) return compared;
  for (const ProbeTableCost& c : *costs) {
    for (const ProbeTableCost::Method& m : c.methods) {
      EXPECT_TRUE(m.same) << what << ": " << c.compiler << " code of " << m.name;
      EXPECT_EQ(m.row_bytes, m.rows * sizeof(jit::ProbeRow));
    }
    EXPECT_EQ(c.methods.size() + c.failed, functions.module.functions.size());
    compared += c.methods.size();
  }
  return compared;
}

size_t compare_files(const std::string& folder, const std::string& extension) {
  size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(UPTIER_SOURCE_DIR "/" + folder)) {
    if (entry.path().extension() != extension) continue;
    compared += compare(functions_of(entry.path()), entry.path().filename());
  }
  return compared;
}

TEST(ProbeTable, code_of_all_example_programs_is_the_same_without_rows) {
  EXPECT_GT(compare_files("examples/programs/wasm", ".wasm"), 500u);
}

TEST(ProbeTable, code_of_all_tests_in_IR_is_the_same_without_rows) {
  EXPECT_GT(compare_files("tests/ir", ".uir") + compare_files("tests/opt", ".uir"), 400u);
}

TEST(ProbeTable, random_code_is_the_same_without_rows) {
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    test::RandomOptions o{.functions = 4, .statements = 16, .variables = 6};
    o.wide = seed % 3 == 0;
    o.odd = seed % 5 == 0;
    Functions functions;
    functions.module = test::random_module(seed, o);
    compared += compare(functions, "seed " + std::to_string(seed));
  }
  EXPECT_GT(compared, 400u);
}

// Appends each function without its block probes.
Functions with_stripped(Functions functions) {
  const std::vector<jit::Function> with = functions.module.functions;
  for (jit::Function f : with) {
    for (jit::BlockData& b : f.blocks) {
      std::erase_if(b.insts, [&](jit::InstId i) { return jit::is_block_probe(f.inst(i)); });
    }
    functions.module.functions.push_back(std::move(f));
  }
  return functions;
}

// Returns the number of functions that both compilers made; lists those whose code has other bytes.
size_t compare_stripped(Functions all, const std::string& what) {
  const auto count = static_cast<uint32_t>(all.module.functions.size());
  const Functions functions = with_stripped(std::move(all));
  auto world = CompileWorld::create(functions, nullptr, kCodeBudget, true);
  EXPECT_TRUE(world.ok() && (*world)->moves());
  if (!world.ok() || !(*world)->moves()) return 0;
  size_t compared = 0;
  for (uint32_t i = 0; i < count; ++i) {
    auto with = (*world)->optimized(MethodId(i), {}, false);
    auto without = (*world)->optimized(MethodId(count + i), {}, false);
    EXPECT_EQ(with.ok(), without.ok());
    if (!with.ok() || !without.ok()) continue;
    ++compared;
    const auto& rows = (*without)->tables().probes;  // of other probes
    EXPECT_TRUE(std::ranges::none_of(rows, &jit::ProbeRow::starts));
    EXPECT_TRUE(jit::same_bytes(**with, **without))
        << what << ": " << functions.module.functions[i].name;
  }
  return compared;
}

// Not only the table: the probes themselves keep no pass from anything.
TEST(ProbeTable, optimized_code_is_the_same_without_block_probes) {
  size_t compared = 0;
  for (const auto& p : test::programs()) {
    compared += compare_stripped(functions_of(test::wasm_path(p.name)), p.name);
  }
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Functions functions;
    functions.module = test::random_module(seed, {.functions = 4, .statements = 16});
    compared += compare_stripped(std::move(functions), "seed " + std::to_string(seed));
  }
  EXPECT_GT(compared, 500u);
}

TEST(ProbeTable, bytes_of_other_code_are_not_the_same) {
  Functions functions = functions_of(test::wasm_path("mix"));
  auto world = CompileWorld::create(functions, nullptr, kCodeBudget, true);
  ASSERT_TRUE(world.ok() && (*world)->moves());
  auto make = [&](uint32_t m) { return std::move(*(*world)->optimized(MethodId(m), {}, true)); };
  const auto a = make(0), again = make(0), b = make(1);
  EXPECT_TRUE(jit::same_bytes(*a, *again));
  EXPECT_FALSE(jit::same_bytes(*a, *b));
}

TEST(ProbeTable, the_command_says_what_rows_take) {
  const auto text = test::run_tool("compile --probe-table " + test::wasm_path("mix"));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("row bytes"), std::string::npos);
  EXPECT_NE(text.out.find("the code of every function is the same"), std::string::npos);
  const auto json = test::run_tool("compile --probe-table --json " + test::wasm_path("mix"));
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_NE(json.out.find("\"row_bytes\""), std::string::npos);
  EXPECT_NE(test::run_tool("compile --json " + test::wasm_path("mix")).code, 0);
}

}  // namespace
}  // namespace uptier::tools
