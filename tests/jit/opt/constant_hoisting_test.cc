// Constants that stay in a register: code and the interpreter store the same bits.
#include "jit/ir/print.h"
#include "jit/opt/passes.h"
#include "tests/support/compare.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::keep_constants_test {
namespace {

// The second constant is a signaling NaN, which must not become quiet.
constexpr const char* kStores = R"(func @fill(ref, i64, i64) -> i64 {
b0(v0: ref, v1: i64, v2: i64):
  jump b1(v1)
b1(v3: i64):
  v4 = const.i64 -1125899906842622
  store.i64 v4, v0[v3]
  v5 = const.i64 0x7ff4000000000001
  store.i64 v5, v0[v3]+8
  v6 = const.f64 0x1.8p+1
  store.f64 v6, v0[v3]+16
  store.i64 v4, v0[v3]+24
  v7 = const.i64 32
  v8 = add.i64 v3, v7
  v9 = lt_s.i64 v8, v2
  branch v9, b1(v8), b2
b2:
  return v8
}
)";

TEST(KeepConstants, are_stored_bit_for_bit) {
  auto module = jit::parse_module(kStores, {"stores", {}});
  ASSERT_TRUE(module.ok()) << module.error().message;
  Scratch scratch;
  jit::Interpreter oracle(*module, interpret_options(scratch));
  CodeMachine machine;
  OptimizedModule code(machine, *module);
  const Signature& s = module->functions[0].signature();
  for (uint64_t end : {1u, 32u, 33u, 256u}) {
    std::vector<uint64_t> args{scratch.base(), 0, end};
    Expected want = expected_of(oracle, MethodId(0), args, scratch);
    EXPECT_EQ(difference(want, s.result, scratch,
                         [&] { return machine.run(code.entry(MethodId(0)), s, args); }),
              "");
  }
}

// Three constants, and the loop materializes none: each 64-bit move precedes it.
TEST(KeepConstants, a_round_makes_none) {
  auto module = jit::parse_module(kStores, {"stores", {}});
  ASSERT_TRUE(module.ok()) << module.error().message;
  CodeMachine machine;
  OptimizedModule code(machine, *module);
  const jit::Code& made = *code.codes()[0];
  EXPECT_EQ(disassemble(made.base(), made.size()).find("0xFFFC000000000002"), std::string::npos);
}

}  // namespace
}  // namespace uptier::test::keep_constants_test
