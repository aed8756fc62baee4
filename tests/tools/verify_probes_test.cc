// The law of block probes on programs: uptier compile --verify-probes.
#include "tools/verify_probes.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"
#include "tests/support/wasm_world.h"

namespace uptier::tools {
namespace {

// A program with a loop that calls a function with a two-way branch, a selection, a loop that fills memory, and
// a switch.
constexpr const char* kProgram = R"((module
  (memory (export "memory") 1)
  (func $pick (param $x i32) (result i32)
    (if (result i32) (i32.and (local.get $x) (i32.const 1))
      (then (i32.add (local.get $x) (i32.const 5)))
      (else (i32.sub (local.get $x) (i32.const 7)))))
  (func $kind (param $x i32) (result i32)
    (block $c (block $b (block $a
      (br_table $a $b $c (i32.and (local.get $x) (i32.const 3))))
      (return (i32.const 3)))
      (return (i32.load (i32.const 64))))
    (i32.const 9))
  (func $clear (param $n i32)
    (local $i i32)
    (loop $again
      (i32.store8 (i32.add (i32.const 256) (local.get $i)) (i32.const 0))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $n)))))
  (func (export "_start")
    (local $i i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (call $pick (local.get $i))))
      (if (i32.and (local.get $sum) (i32.const 4))
        (then (local.set $sum (i32.sub (local.get $sum) (i32.const 1001)))))
      (local.set $sum (i32.add (local.get $sum) (call $kind (local.get $sum))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 300))))
    (call $clear (i32.const 200))
    (i32.store (i32.const 128) (local.get $sum)))
))";

TEST(VerifyProbes, passes_and_code_keep_the_counts_of_a_program) {
  auto check = verify_probes("p.wasm", wasm::test::assemble(kProgram), {});
  ASSERT_TRUE(check.ok()) << check.error().message;
  for (const ProbeCheck::Step& s : check->steps) EXPECT_EQ(s.broken, "") << s.pass;
  EXPECT_TRUE(check->holds());
  // 300 rounds with 7 blocks or more each, and 200 of $clear.
  EXPECT_GT(check->executions, 300u * 7 + 200);
  EXPECT_GT(check->code_steps, check->executions);
  EXPECT_LE(check->code_lost, check->code_doubtful);
  auto lost_by = [&](const char* pass) {
    for (const ProbeCheck::Step& s : check->steps) {
      if (s.pass == pass) return s.lost;
    }
    ADD_FAILURE() << pass;
    return uint64_t{0};
  };
  EXPECT_GT(lost_by("if_conversion"), 0u) << "selections merge blocks";
  EXPECT_EQ(lost_by("inline_calls"), 0u);
  EXPECT_GT(lost_by("code"), 0u);
  // $clear fills memory in one operation, which is one execution of the row in machine code.
  EXPECT_GE(lost_by("code"), 190u);
}

class VerifyProbesTool : public test::ToolDir {};

TEST_F(VerifyProbesTool, prints_a_line_for_each_pass_and_the_share_of_code) {
  const auto bytes = wasm::test::assemble(kProgram);
  const std::string file = path("p.wasm");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto text = test::run_tool("compile --verify-probes " + file);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("\nif_conversion              unknown"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\ninline_calls               known "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("rows of the machine code count"), std::string::npos);
  const auto json = test::run_tool("compile --verify-probes --json " + file);
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_NE(json.out.find("\"holds\": true"), std::string::npos);
}

TEST_F(VerifyProbesTool, says_why_a_program_cannot_be_checked) {
  const auto bytes = wasm::test::assemble("(module (func (export \"_start\") unreachable))");
  const std::string file = path("t.wasm");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto trap = test::run_tool("compile --verify-probes " + file);
  EXPECT_EQ(trap.code, 1);
  EXPECT_NE(trap.err.find("cannot be checked: the program traps: "), std::string::npos) << trap.err;
  EXPECT_NE(test::run_tool("compile " + file + " 1").code, 0)
      << "arguments are for programs that run";
}

}  // namespace
}  // namespace uptier::tools
