// The text form of IR: printed text parses to the same function, and errors say where they are.
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/frontend/interpret.h"
#include "jit/frontend/lex.h"
#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "tests/support/golden.h"

namespace uptier::test::ir_text_test {
namespace {

using jit::Module;
using jit::parse_constant;
using jit::parse_module;

Module parse(std::string_view text) {
  auto m = parse_module(text, {.file = "t"});
  EXPECT_TRUE(m.ok()) << m.error().message;
  return m ? std::move(*m) : Module{};
}

std::string error_of(std::string_view text) {
  auto m = parse_module(text, {.file = "t"});
  return m ? "" : m.error().message;
}

// Wraps lines into a function of one block.
std::string body(const std::string& lines) {
  return "func @f(i32) -> i32 {\nb0(v0: i32):\n" + lines + "\n}\n";
}

// One of every construct of the text form.
constexpr std::string_view kEverything = R"(
; A comment, and an empty line before it.
func @everything(i32, f64, ref) -> i64 {   ; the bracket is left out
b0(v0: i32, v1: f64, v2: ref):
  v3 = const.i64 -5 @7
  v4 = const.f32 nan:0x7fc00001
  v5 = const.f64 0x1.8p1
  v6 = const.f64 -inf
  v7 = const.f64 1e-310
  v8 = const.ref null
  v9 = add.i64 v3, v3 @4294967295
  v10 = lt_s.i32 v0, v0
  v11 = select.i64 v10, v3, v9
  v12 = trunc_sat_u.i64 v1
  v13 = load8_s.i32 v2[v0]+16 traps
  v14 = load.f64 v2+4294967295 invariant
  v15 = load32_u.i64 v2[v9] traps invariant
  store16.i32 v0, v2+2
  store.ref v8, v2[v9]
  v16 = call @everything(v0, v1, v2) @12
  call @"odd name\x22\x5cx5c"()
  v17 = call @elsewhere#77.(i32)->f32 (v0)
  call #78.() ()
  v18 = call_indirect.(i32, ref)->ref v2(v0, v2)
  call_indirect.() v2() may_trap
  v19 = call_host @print.(i64)->i64 (v3) may_trap
  call_host @print.() ()
  probe value v1
  probe hit
  probe call_target v2
  probe log v1
  probe log tag=4294967295 v1
  probe counter v0
  probe hit
  probe hit v1
  probe gauge v1
  probe range v0
  frame_state pc=3 depth=1 [v0, v2]
  v20 = eqz.i32 v0
  guard v20, bounds
  trap_if v20, indirect_type_mismatch
  switch v0, [b1(v0), b2, b1(v10)], b2
b1(v21: i32):
  loop_header pc=5 [v21, v3]
  branch v21, b1(v0), b2
b2:
  jump b3
b3:
  branch v0, b4, b5
b4:
  trap unreachable @9
b5:
  return v16
}

func @"odd name\x22\x5cx5c"() {
b0:
  return
}
)";

TEST(IrText, prints_everything_as_the_golden_file_has_it) {
  Module m = parse(kEverything);
  Status s = jit::verify(m);
  EXPECT_TRUE(s.ok()) << s.error().message;
  expect_golden("ir_everything", jit::to_text(m));
}

TEST(IrText, a_printed_module_reads_back_to_the_same_text) {
  std::string text = jit::to_text(parse(kEverything));
  EXPECT_EQ(jit::to_text(parse(text)), text);
}

TEST(IrText, reading_back_keeps_every_field) {
  Module a = parse(jit::to_text(parse(kEverything))), b = parse(jit::to_text(a));
  const jit::Function &f = a.functions[0], &g = b.functions[0];
  ASSERT_EQ(f.insts.size(), g.insts.size());
  for (size_t n = 0; n < f.insts.size(); ++n) {
    const jit::Inst &i = f.insts[n], &j = g.insts[n];
    EXPECT_EQ(i.op, j.op);
    EXPECT_EQ(i.type, j.type);
    EXPECT_EQ(i.flags, j.flags);
    EXPECT_EQ(i.aux, j.aux);
    EXPECT_EQ(i.loc, j.loc);
    EXPECT_EQ(i.site, j.site);
    EXPECT_EQ(i.result, j.result);
    EXPECT_EQ(i.imm, j.imm);
    EXPECT_TRUE(std::ranges::equal(f.args(i), g.args(j)));
  }
  EXPECT_EQ(f.site_count, g.site_count);
  EXPECT_EQ(f.cfg_hash, g.cfg_hash);
}

TEST(IrText, the_bracket_keeps_numbers_that_passes_have_left_with_holes) {
  std::string text =
      "func @f() [sites 5+3, loops 2, cfg 0xabc] {\nb0:\n  probe block 4\n  return\n}\n";
  Module m = parse(text);
  EXPECT_EQ(m.functions[0].site_count, 8u);
  EXPECT_EQ(m.functions[0].block_sites, 5u);
  EXPECT_EQ(m.functions[0].loop_count, 2u);
  EXPECT_EQ(m.functions[0].cfg_hash, 0xabcu);
  EXPECT_EQ(jit::to_text(m), text);
  EXPECT_TRUE(jit::verify(m, jit::Stage::kTransformed).ok());
  EXPECT_FALSE(jit::verify(m).ok());
}

TEST(IrText, without_the_bracket_probes_and_sites_are_placed_afresh) {
  Module m = parse("func @f() {\nb7:\n  probe block 9\n  jump b3\nb3:\n  return\n}\n");
  EXPECT_EQ(m.functions[0].site_count, 2u);
  EXPECT_TRUE(jit::verify(m).ok()) << jit::verify(m).error().message;
}

TEST(IrText, functions_may_be_called_before_they_stand) {
  Module m = parse(
      "func @f() -> i32 {\nb0:\n  v0 = call @g()\n  return v0\n}\n"
      "func @g() -> i32 {\nb0:\n  v0 = const.i32 3\n  return v0\n}\n");
  jit::Interpreter i(m);
  EXPECT_EQ(i.run(m.find("f"), {}).bits, 3u);
}

TEST(IrText, host_functions_get_the_address_of_their_name_and_signature) {
  static const int somewhere = 0;
  HostFunction known{"h", &somewhere, {{Type::kI32}, Type::kNone}};
  auto m = parse_module(
      body("call_host @h.(i32) (v0)\ncall_host @h.() ()\ncall_host @g.(i32) (v0)\nreturn v0"),
      {.file = "t", .hosts = {&known, 1}});
  ASSERT_TRUE(m.ok()) << m.error().message;
  const auto& callees = m->functions[0].host_callees;
  ASSERT_EQ(callees.size(), 3u);
  EXPECT_EQ(callees[0].address, known.address);
  EXPECT_EQ(callees[1].address, nullptr);
  EXPECT_EQ(callees[2].address, nullptr);
}

TEST(IrText, errors_name_line_column_and_rule) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"fun @f() {\n}\n", "t:1:1: expected 'func', found 'fun'"},
      {"func f() {\n}\n", "t:1:6: expected @name, found 'f'"},
      {"func @f(i33) {\n}\n", "t:1:9: expected a type, found 'i33'"},
      {"func @f() {\n  return\n}\n", "t:2:3: expected a block, found 'return'"},
      {"func @f() {\nb0:\n  return\n", "t:4:1: expected an operation, found ''"},
      {"func @f() {\nb0:\n  frob\n}\n", "t:3:3: expected an operation, found 'frob'"},
      {"func @f() {\nb0:\n  v1 = return\n}\n", "t:3:3: the operation has no result"},
      {"func @f() {\nb0:\n  const.i32 1\n}\n", "t:3:3: the result needs a name: v<n> = ..."},
      {"func @f() {\nb0:\n  v0 = const.i32 x\n}\n",
       "t:3:18: expected a constant of type i32, found 'x'"},
      {"func @f() {\nb0:\n  v0 = const.i32 4294967296\n}\n",
       "t:3:18: expected a constant of type i32, found '4294967296'"},
      {"func @f() {\nb0:\n  v0 = add v1, v2\n}\n", "t:3:12: expected '.', found 'v1'"},
      {"func @f() {\nb0:\n  return v9\n}\n", "t:3:10: v9 is never defined"},
      {"func @f() {\nb0:\n  jump b9\n}\n", "t:3:8: b9 is never defined"},
      {"func @f() {\nb0:\n  return\nb0:\n  return\n}\n", "t:4:1: block b0 is defined twice"},
      {"func @f() {\nb0:\n  v1 = const.i32 1\n  v1 = const.i32 1\n}\n",
       "t:4:3: v1 is defined twice"},
      {"func @f() {\nb0:\n  call @g()\n}\n", "t:3:8: no function @g in this text"},
      {"func @f() {\nb0:\n  call @g#3(v1)\n}\n",
       "t:3:12: a call by number needs a signature: .(...)->type"},
      {"func @f() {\nb0:\n  trap nothing\n}\n", "t:3:8: expected a trap code, found 'nothing'"},
      {"func @f() {\nb0:\n  return return\n}\n",
       "t:3:10: expected the end of the line, found 'return'"},
      {"func @f() {\nb0:\n  return\n}\nfunc @f() {\nb0:\n  return\n}\n",
       "t:5:1: a second function @f"},
      {"func @f() {\nb0:\n  store.i32 v0, v1+4294967296\n}\n",
       "t:3:20: the number does not fit into 32 bits"},
      {"func @f() {\nb0:\n  return @4294967296\n}\n",
       "t:3:10: the location does not fit into 32 bits"},
      {"func @f() [sites 4000000000+1, loops 0, cfg 0] {\n}\n",
       "t:1:12: more than 8388608 sites or loops"},
      {"func @\"a\\q\"() {\n}\n", "t:1:6: a bad escape in a quoted name"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.text), c.message) << c.text;
}

TEST(IrText, constants_read_back_exactly) {
  for (uint64_t bits : {0x0ull, 0x80000000ull, 0x1ull, 0x7f7fffffull, 0x3dcccccdull, 0x7f800000ull,
                        0xff800000ull, 0x7fc00000ull, 0x7f800001ull, 0xffffffffull}) {
    for (Type t : {Type::kI32, Type::kF32}) {
      EXPECT_EQ(parse_constant(t, jit::constant_text(t, bits)), bits) << std::hex << bits;
    }
    uint64_t wide = bits << 32 | bits;
    for (Type t : {Type::kI64, Type::kF64, Type::kRef}) {
      EXPECT_EQ(parse_constant(t, jit::constant_text(t, wide)), wide) << std::hex << wide;
    }
  }
}

TEST(IrText, constants_may_be_written_in_several_ways) {
  EXPECT_EQ(parse_constant(Type::kI32, "-1"), 0xffffffffu);
  EXPECT_EQ(parse_constant(Type::kI32, "0xffffffff"), 0xffffffffu);
  EXPECT_EQ(parse_constant(Type::kI32, "-2147483649"), std::nullopt);
  EXPECT_EQ(parse_constant(Type::kI64, "-9223372036854775808"), 1ull << 63);
  EXPECT_EQ(parse_constant(Type::kF32, "0x1p-149"), 1u);
  EXPECT_EQ(parse_constant(Type::kF64, "-nan"), 0xfff8000000000000u);
  EXPECT_EQ(parse_constant(Type::kF64, "nan:0x1"), std::nullopt);
  for (const char* bad : {"", "-", "0x", "1x", "--1", "0x-1", "+1", "infinity", "nan()", "1e999"}) {
    EXPECT_EQ(parse_constant(Type::kF64, bad), std::nullopt) << bad;
    EXPECT_EQ(parse_constant(Type::kI64, bad), std::nullopt) << bad;
  }
}

TEST(IrText, names_of_any_bytes_survive) {
  Module m;
  jit::Function f = parse("func @f() {\nb0:\n  return\n}\n").functions[0];
  for (std::string name :
       {std::string("a.b$c_1"), std::string(""), std::string("1st"), std::string("sp ace"),
        std::string("\0\n\"\\@\xff", 6), std::string("x.")}) {
    f.name = name;
    m.functions.push_back(f);
  }
  Module again = parse(jit::to_text(m));
  ASSERT_EQ(again.functions.size(), m.functions.size());
  for (size_t i = 0; i < m.functions.size(); ++i) {
    EXPECT_EQ(again.functions[i].name, m.functions[i].name);
  }
}

// Printing must also work on broken functions, for debugging.
TEST(IrText, a_broken_function_prints_with_question_marks) {
  jit::Function f = parse(body("v1 = add.i32 v0, v0\nreturn v1")).functions[0];
  f.pool[f.insts[0].args.at] = Value(1000);
  f.insts[1].args.at = 100000;
  f.layout.push_back(Block(5));
  f.insts[2].op = static_cast<Opcode>(250);
  f.signature_id = SignatureId(9);
  expect_golden("ir_broken", jit::to_text(f));
}

}  // namespace
}  // namespace uptier::test::ir_text_test
