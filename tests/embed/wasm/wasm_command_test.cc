// Commands under WASI: their output and how they end, compiled and interpreted.
#include "tests/support/wasm_command.h"
#include "tests/support/program_runs.h"
#include "tests/support/wasm_interpreter.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_command_test {
namespace {

// A module that writes "hi\n", then runs the code `end`.
std::string greeting(const std::string& end) {
  return R"((module
    (import "wasi_snapshot_preview1" "fd_write"
      (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\10\00\00\00\03\00\00\00") (data (i32.const 16) "hi\n")
    (func $end )" +
         end + R"()
    (func (export "_start")
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
      (call $end))))";
}

class WasmCommand : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmCommand);

TEST_P(WasmCommand, return_from_start_is_exit_code_zero) {
  Ended e = run_command(world.engine(), assemble(greeting("")));
  EXPECT_EQ(e.out, "hi\n");
  EXPECT_EQ(e.result.exit_code, std::optional<uint32_t>(0));
}

TEST_P(WasmCommand, exit_ends_the_guest_at_once_with_its_code) {
  Ended e =
      run_command(world.engine(), assemble(greeting("(call $exit (i32.const 300)) unreachable")));
  EXPECT_EQ(e.out, "hi\n");
  EXPECT_EQ(e.result.exit_code, std::optional<uint32_t>(300));
  EXPECT_FALSE(e.result.trap.trapped());
}

TEST_P(WasmCommand, trap_leaves_no_exit_code) {
  Ended e = run_command(world.engine(), assemble(greeting("unreachable")));
  EXPECT_FALSE(e.result.exit_code.has_value());
  EXPECT_EQ(e.result.trap.code, TrapCode::kUnreachable);
  EXPECT_EQ(e.result.trap.function_name, "end");
}

TEST(WasmCommandErrors, module_without_start_says_so) {
  World world;
  Ended e = run_command(world.engine(), assemble("(module (func (export \"main\")))"));
  EXPECT_FALSE(e.result.exit_code.has_value());
  EXPECT_EQ(e.result.trap.code, TrapCode::kHost);
  EXPECT_NE(e.result.trap.text().find("_start"), std::string::npos);
}

TEST(WasmCommandErrors, every_wasi_function_links) {
  std::string imports;
  for (const WasiFunction& f : wasi_functions()) {
    std::string types;
    for (const char* c = f.signature; *c != '\0'; ++c) {
      types += *c == '>' ? ") (result" : *c == 'I' ? " i64" : " i32";
    }
    imports += "(import \"wasi_snapshot_preview1\" \"" + std::string(f.name) + "\" (func (param" +
               types + ")))\n";
  }
  ASSERT_FALSE(imports.empty());
  World world;
  auto wasi = Wasi::create({});
  ASSERT_TRUE(wasi.ok());
  bind_wasi(world.linker(), **wasi);
  EXPECT_TRUE(world.try_make("(module " + imports + ")").ok());
}

// Checks the descriptions of real programs without any compiler. The runs are small because the
// interpreter is slow.
TEST(WasmOracle, programs_print_the_same_interpreted_and_compiled) {
  InterpreterRuntime runtime;
  EngineOptions options;
  options.explicit_bounds = true;
  Engine interpreting(runtime, options);
  World compiling;
  ASSERT_FALSE(uptier::test::programs().empty());
  for (const uptier::test::Program& p : uptier::test::programs()) {
    std::string bytes = uptier::test::slurp(uptier::test::wasm_path(p.name));
    Bytes module(bytes.begin(), bytes.end());
    Ended a = run_command(interpreting, module, {p.name, "1"});
    Ended b = run_command(compiling.engine(), module, {p.name, "1"});
    EXPECT_EQ(a.result.exit_code, std::optional<uint32_t>(0)) << a.result.trap.text();
    EXPECT_EQ(a.result.exit_code, b.result.exit_code) << p.name;
    EXPECT_EQ(a.out, b.out) << p.name;
    EXPECT_NE(a.out, "") << p.name;
  }
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_command_test
