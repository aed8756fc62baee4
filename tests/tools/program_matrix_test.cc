// The tier matrix on real programs: each example program prints the same in every tier mode and
// under every stress plan. The stress counters prove that something was forced.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/program_runs.h"

namespace uptier::test::program_matrix_test {
namespace {

struct Mode {
  const char* name;
  const char* flags;
  const char* counter;  // counter of the report that must not be 0; "" for none
};

const Mode kModes[] = {
    {"baseline_plain", "--tier=baseline", ""},
    {"baseline_sampled_1", "--policy=never --interval=1", ""},
    {"baseline_sampled_7", "--policy=never --interval=7", ""},
    {"baseline_sampled_16", "--policy=never --interval=16", ""},
    {"baseline_sampled_1000", "--policy=never --interval=1000", ""},
    {"instrumented", "--tier=instrumented", ""},
    {"exact", "--policy=never --gap=exact", ""},
    {"optimized", "--tier=optimized", ""},
    {"automatic", "", ""},
    {"automatic_synchronous", "-O workers=0", ""},
    {"always", "--policy=always --interval=3", ""},
    {"osr_at_every_loop", "--policy=never --stress=osr=all", "/stress/osr/forced"},
    {"osr_at_random", "--policy=never --stress=osr=random:0.01:7", "/stress/osr/forced"},
    {"copies_to_and_fro", "--policy=never --stress=copy=every:3", "/stress/copy/forced"},
    {"copies_and_osr", "--stress=copy=random:0.3:5,osr=every:1000", "/stress/copy/forced"},
    {"versions_to_and_fro", "--policy=always -O flush_first=1 -O workers=0 --stress=flip=every:2",
     "/stress/flip/forced"},
    {"values_guessed", "--tier=optimized --stress=values=all", "/stress/values/forced"},
    {"values_guessed_anew", "--policy=always -O flush_first=2 --stress=values=all,osr=every:50",
     "/stress/values/forced"},
    {"late_compiler", "--stress=delay=all", "/stress/delay/forced"},
    {"little_room", "--policy=always -O flush_first=2 -O pack_code=off -O code_budget=196608",
     "/losses/evictions"},
    {"guards_fail", "--tier=optimized --stress=guard=every:5", "/stress/guard/forced"},
    {"all_guards_fail", "--policy=always -O workers=0 -O flush_first=4 --stress=guard=all",
     "/stress/guard/forced"},
    {"each_guard_fails_once", "--tier=optimized --stress=guard=once", "/stress/guard/forced"},
    {"each_loop_is_entered_once", "--policy=never --stress=osr=once,guard=once",
     "/stress/osr/forced"},
    {"guards_fail_behind_osr", "--policy=never --stress=osr=random:0.05:7,guard=random:0.05:3",
     "/stress/guard/forced"},
    {"guards_fail_with_little_room",
     "--policy=always -O flush_first=2 -O pack_code=off -O code_budget=196608 "
     "--stress=guard=random:0.01:9",
     "/losses/evictions"},
    {"cold_blocks", "--policy=always -O flush_first=2 -O deopt_cold=on -O cold_samples=1", ""},
    {"cold_blocks_called_back",
     "--policy=always -O workers=0 -O deopt_cold=on -O osr_out=on -O cold_samples=1", ""},
    {"frames_move", "--tier=optimized --stress=osr_out=random:0.01:5", "/stress/osr_out/forced"},
    {"code_moves_in_baseline", "--policy=never --stress=relay=all", "/stress/relay/forced"},
    {"code_moves_when_optimized", "--tier=optimized --stress=relay=every:3",
     "/stress/relay/forced"},
    {"code_moves_when_instrumented", "--tier=instrumented --stress=relay=every:3",
     "/stress/relay/forced"},
    {"code_moves_in_automatic_mode", "--policy=always -O flush_first=2 --stress=relay=all",
     "/stress/relay/forced"},
    {"code_and_frames_move",
     "--policy=always -O flush_first=2 "
     "--stress=relay=every:2,osr_out=random:0.01:5,guard=random:0.01:3,copy=random:0.1:9",
     "/stress/relay/forced"},
    {"explicit_bounds", "--explicit-bounds", ""},
};

// Two copies of these programs' loops take up to 75 KB, so the little room must be larger for them.
std::string flags_for(const std::string& program, const std::string& flags) {
  bool little = flags.find("code_budget") != std::string::npos;
  bool large = program == "script" || program == "store" || program == "exprvm";
  return little && large ? flags + " -O code_budget=327680" : flags;
}

class ProgramMatrix : public testing::TestWithParam<std::tuple<Program, Mode>> {};

TEST_P(ProgramMatrix, prints_what_is_expected) {
  const auto& [program, mode] = GetParam();
  RunResult r = run_tool("run --report=json " + flags_for(program.name, mode.flags) + " " +
                         wasm_path(program.name));
  EXPECT_EQ(r.signal, 0);
  EXPECT_EQ(r.code, 0) << r.err.substr(0, 2000);
  EXPECT_EQ(r.out, expected_output(program.name));
  if (*mode.counter == 0) return;
  auto report = nlohmann::json::parse(r.err, nullptr, false);
  ASSERT_TRUE(report.is_object()) << r.err.substr(0, 2000);
  EXPECT_GT(report[nlohmann::json::json_pointer(mode.counter)].get<uint64_t>(), 0u);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Program, Mode>>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Examples, ProgramMatrix,
                         testing::Combine(testing::ValuesIn(programs()), testing::ValuesIn(kModes)),
                         name_of);

}  // namespace
}  // namespace uptier::test::program_matrix_test
