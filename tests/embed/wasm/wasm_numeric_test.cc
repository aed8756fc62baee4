// Every numeric instruction, load and store, as a table of examples; and conditions.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_numeric_test {
namespace {

class WasmNumeric : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmNumeric);

// An example of an instruction: operand bits and result bits. The types follow from the name, see
// `types_of`.
struct Example {
  const char* instruction;
  uint64_t a;
  uint64_t b;
  uint64_t result;
};

uint64_t f(float v) { return Val::f32(v).bits; }
uint64_t d(double v) { return Val::f64(v).bits; }
constexpr uint64_t kBig = 0x8000000000000000;

// clang-format off
const Example kExamples[] = {
    {"i32.eqz", 0, 0, 1}, {"i32.eqz", 2, 0, 0}, {"i64.eqz", 0, 0, 1}, {"i64.eqz", kBig, 0, 0},
    {"i32.eq", 5, 5, 1}, {"i32.ne", 5, 5, 0}, {"i64.eq", kBig, 0, 0}, {"i64.ne", kBig, 0, 1},
    {"i32.lt_s", 0xffffffff, 1, 1}, {"i32.lt_u", 0xffffffff, 1, 0},
    {"i32.gt_s", 0xffffffff, 1, 0}, {"i32.gt_u", 0xffffffff, 1, 1},
    {"i32.le_s", 0x80000000, 0, 1}, {"i32.le_u", 0x80000000, 0, 0},
    {"i32.ge_s", 0x80000000, 0, 0}, {"i32.ge_u", 0x80000000, 0, 1},
    {"i64.lt_s", kBig, 1, 1}, {"i64.lt_u", kBig, 1, 0}, {"i64.gt_s", kBig, 1, 0},
    {"i64.gt_u", kBig, 1, 1}, {"i64.le_s", kBig, 1, 1}, {"i64.le_u", kBig, 1, 0},
    {"i64.ge_s", kBig, 1, 0}, {"i64.ge_u", kBig, 1, 1},
    {"f32.eq", f(0.f), f(-0.f), 1}, {"f32.ne", f(NAN), f(NAN), 1}, {"f32.lt", f(1), f(2), 1},
    {"f32.gt", f(1), f(2), 0}, {"f32.le", f(NAN), f(1), 0}, {"f32.ge", f(2), f(2), 1},
    {"f64.eq", d(0.), d(-0.), 1}, {"f64.ne", d(NAN), d(NAN), 1}, {"f64.lt", d(1), d(2), 1},
    {"f64.gt", d(1), d(2), 0}, {"f64.le", d(NAN), d(1), 0}, {"f64.ge", d(2), d(2), 1},
    {"i32.clz", 0, 0, 32}, {"i32.ctz", 8, 0, 3}, {"i32.popcnt", 0xf0f0, 0, 8},
    {"i64.clz", 1, 0, 63}, {"i64.ctz", 0, 0, 64}, {"i64.popcnt", kBig | 1, 0, 2},
    {"i32.add", 0xffffffff, 2, 1}, {"i32.sub", 1, 2, 0xffffffff}, {"i32.mul", 0x10001, 0x10001, 0x20001},
    {"i32.div_s", 0xfffffff9, 2, 0xfffffffd}, {"i32.div_u", 0xfffffff9, 2, 0x7ffffffc},
    {"i32.rem_s", 0xfffffff9, 4, 0xfffffffd}, {"i32.rem_u", 0xfffffff9, 4, 1},
    {"i32.and", 12, 10, 8}, {"i32.or", 12, 10, 14}, {"i32.xor", 12, 10, 6}, {"i32.shl", 3, 33, 6},
    {"i32.shr_s", 0x80000000, 31, 0xffffffff}, {"i32.shr_u", 0x80000000, 31, 1},
    {"i32.rotl", 0x80000001, 1, 3}, {"i32.rotr", 3, 1, 0x80000001},
    {"i64.add", ~0ull, 2, 1}, {"i64.sub", 1, 2, ~0ull}, {"i64.mul", 1ull << 33, 1ull << 30, 1ull << 63},
    {"i64.div_s", -7ull, 2, -3ull}, {"i64.div_u", kBig, 2, 1ull << 62}, {"i64.rem_s", -7ull, 4, -3ull},
    {"i64.rem_u", kBig + 3, 4, 3}, {"i64.and", 12, 10, 8}, {"i64.or", 12, 10, 14},
    {"i64.xor", 12, 10, 6}, {"i64.shl", 3, 65, 6}, {"i64.shr_s", kBig, 63, ~0ull},
    {"i64.shr_u", kBig, 63, 1}, {"i64.rotl", kBig | 1, 1, 3}, {"i64.rotr", 3, 1, kBig | 1},
    {"f32.abs", f(-2), 0, f(2)}, {"f32.neg", f(NAN), 0, 0xffc00000}, {"f32.ceil", f(1.5), 0, f(2)},
    {"f32.floor", f(-1.5), 0, f(-2)}, {"f32.trunc", f(-1.5), 0, f(-1)},
    {"f32.nearest", f(2.5), 0, f(2)}, {"f32.sqrt", f(9), 0, f(3)}, {"f32.add", f(1), f(2), f(3)},
    {"f32.sub", f(1), f(2), f(-1)}, {"f32.mul", f(3), f(2), f(6)}, {"f32.div", f(1), f(2), f(.5)},
    {"f32.min", f(0.f), f(-0.f), f(-0.f)}, {"f32.max", f(0.f), f(-0.f), f(0.f)},
    {"f32.copysign", f(3), f(-0.f), f(-3)},
    {"f64.abs", d(-2), 0, d(2)}, {"f64.neg", d(2), 0, d(-2)}, {"f64.ceil", d(1.5), 0, d(2)},
    {"f64.floor", d(-1.5), 0, d(-2)}, {"f64.trunc", d(-1.5), 0, d(-1)},
    {"f64.nearest", d(3.5), 0, d(4)}, {"f64.sqrt", d(9), 0, d(3)}, {"f64.add", d(1), d(2), d(3)},
    {"f64.sub", d(1), d(2), d(-1)}, {"f64.mul", d(3), d(2), d(6)}, {"f64.div", d(1), d(2), d(.5)},
    {"f64.min", d(0.), d(-0.), d(-0.)}, {"f64.max", d(0.), d(-0.), d(0.)},
    {"f64.copysign", d(3), d(-0.), d(-3)},
    {"i32.wrap_i64", 0x123456789, 0, 0x23456789},
    {"i32.trunc_f32_s", f(-2.9f), 0, 0xfffffffe}, {"i32.trunc_f32_u", f(3e9f), 0, 3000000000},
    {"i32.trunc_f64_s", d(-2.9), 0, 0xfffffffe}, {"i32.trunc_f64_u", d(4294967295.9), 0, 0xffffffff},
    {"i64.extend_i32_s", 0x80000000, 0, 0xffffffff80000000}, {"i64.extend_i32_u", 0x80000000, 0, 0x80000000},
    {"i64.trunc_f32_s", f(-2.9f), 0, -2ull}, {"i64.trunc_f32_u", f(1e19f), 0, 9999999980506447872u},
    {"i64.trunc_f64_s", d(-2.9), 0, -2ull}, {"i64.trunc_f64_u", d(1e19), 0, 10000000000000000000u},
    {"f32.convert_i32_s", 0xffffffff, 0, f(-1)}, {"f32.convert_i32_u", 0xffffffff, 0, f(4294967296.f)},
    {"f32.convert_i64_s", ~0ull, 0, f(-1)}, {"f32.convert_i64_u", ~0ull, 0, f(18446744073709551616.f)},
    {"f32.demote_f64", d(1.1), 0, f(1.1f)},
    {"f64.convert_i32_s", 0xffffffff, 0, d(-1)}, {"f64.convert_i32_u", 0xffffffff, 0, d(4294967295.)},
    {"f64.convert_i64_s", ~0ull, 0, d(-1)}, {"f64.convert_i64_u", ~0ull, 0, d(18446744073709551616.)},
    {"f64.promote_f32", f(1.5f), 0, d(1.5)},
    {"i32.reinterpret_f32", 0x7fa00001, 0, 0x7fa00001}, {"i64.reinterpret_f64", kBig | 1, 0, kBig | 1},
    {"f32.reinterpret_i32", 0x7fa00001, 0, 0x7fa00001}, {"f64.reinterpret_i64", kBig | 1, 0, kBig | 1},
    {"i32.extend8_s", 0x180, 0, 0xffffff80}, {"i32.extend16_s", 0x18000, 0, 0xffff8000},
    {"i64.extend8_s", 0x180, 0, -128ull}, {"i64.extend16_s", 0x18000, 0, -32768ull},
    {"i64.extend32_s", 0x180000000, 0, 0xffffffff80000000},
    {"i32.trunc_sat_f32_s", f(-3e9f), 0, 0x80000000}, {"i32.trunc_sat_f32_u", f(-1), 0, 0},
    {"i32.trunc_sat_f64_s", d(3e9), 0, 0x7fffffff}, {"i32.trunc_sat_f64_u", d(5e9), 0, 0xffffffff},
    {"i64.trunc_sat_f32_s", f(NAN), 0, 0}, {"i64.trunc_sat_f32_u", f(1e20f), 0, ~0ull},
    {"i64.trunc_sat_f64_s", d(-1e20), 0, kBig}, {"i64.trunc_sat_f64_u", d(1e19), 0, 10000000000000000000u},
};
// clang-format on

struct Types {
  std::string param;
  std::string result;
  int arity;
};

bool is_one_of(const std::string& name, std::initializer_list<const char*> list) {
  for (const char* s : list) {
    if (name == s) return true;
  }
  return false;
}

// "f32.convert_i64_s" takes the type after the operation, a comparison gives i32, and so on.
Types types_of(const std::string& instruction) {
  std::string own = instruction.substr(0, 3), name = instruction.substr(4);
  for (const char* source : {"_i32", "_i64", "_f32", "_f64"}) {
    if (name.find(source) != std::string::npos) return {source + 1, own, 1};
  }
  if (name == "eqz") return {own, "i32", 1};
  if (is_one_of(name.substr(0, 2), {"eq", "ne", "lt", "gt", "le", "ge"}) &&
      !is_one_of(name, {"neg", "nearest"})) {
    return {own, "i32", 2};
  }
  bool unary =
      name.starts_with("extend") || is_one_of(name, {"clz", "ctz", "popcnt", "abs", "neg", "ceil",
                                                     "floor", "trunc", "nearest", "sqrt"});
  return {own, own, unary ? 1 : 2};
}

Val val(const std::string& type, uint64_t bits) {
  for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64}) {
    if (type == type_name(t)) return {t, bits};
  }
  return {};
}

TEST_P(WasmNumeric, every_instruction_does_what_its_name_says) {
  std::string text = "(module";
  for (size_t n = 0; n < std::size(kExamples); ++n) {
    Types t = types_of(kExamples[n].instruction);
    text += "(func (export \"" + std::to_string(n) + "\") (param " + t.param +
            (t.arity == 2 ? " " + t.param : "") + ") (result " + t.result + ") local.get 0 " +
            (t.arity == 2 ? "local.get 1 " : "") + kExamples[n].instruction + ")\n";
  }
  Instance& i = world.make(text + ")");
  for (size_t n = 0; n < std::size(kExamples); ++n) {
    const Example& e = kExamples[n];
    Types t = types_of(e.instruction);
    std::vector<Val> args{val(t.param, e.a)};
    if (t.arity == 2) args.push_back(val(t.param, e.b));
    EXPECT_EQ(call1(i, std::to_string(n), args), e.result) << e.instruction;
  }
}

TEST(WasmNumericTable, names_every_numeric_instruction) {
  std::vector<std::string> names;
  for (const Example& e : kExamples) names.push_back(e.instruction);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(names.size(), 0xc4u - 0x45 + 1 + 8);
}

TEST_P(WasmNumeric, loads_and_stores_have_their_width_and_sign) {
  struct Access {
    const char* instruction;
    uint64_t bits;  // loaded from the pattern, or stored over zeroes
  };
  constexpr uint64_t kPattern = 0xf1e2d3c4b5a69788;
  const Access loads[] = {{"i32.load", 0xb5a69788},
                          {"i64.load", kPattern},
                          {"f32.load", 0xb5a69788},
                          {"f64.load", kPattern},
                          {"i32.load8_s", 0xffffff88},
                          {"i32.load8_u", 0x88},
                          {"i32.load16_s", 0xffff9788},
                          {"i32.load16_u", 0x9788},
                          {"i64.load8_s", 0xffffffffffffff88},
                          {"i64.load8_u", 0x88},
                          {"i64.load16_s", 0xffffffffffff9788},
                          {"i64.load16_u", 0x9788},
                          {"i64.load32_s", 0xffffffffb5a69788},
                          {"i64.load32_u", 0xb5a69788}};
  const Access stores[] = {
      {"i32.store", 0xb5a69788}, {"i64.store", kPattern}, {"f32.store", 0xb5a69788},
      {"f64.store", kPattern},   {"i32.store8", 0x88},    {"i32.store16", 0x9788},
      {"i64.store8", 0x88},      {"i64.store16", 0x9788}, {"i64.store32", 0xb5a69788}};
  std::string text = "(module (memory (export \"m\") 1)";
  auto type = [](const Access& a) { return std::string(a.instruction).substr(0, 3); };
  for (const Access& a : loads) {
    text += "(func (export \"" + std::string(a.instruction) + "\") (param i32) (result " + type(a) +
            ") (" + a.instruction + " offset=3 (local.get 0)))";
  }
  for (const Access& a : stores) {
    text += "(func (export \"" + std::string(a.instruction) + "\") (param i32 " + type(a) + ") (" +
            a.instruction + " offset=3 (local.get 0) (local.get 1)))";
  }
  Instance& i = world.make(text + ")");
  uint8_t* at = i.memory()->bytes().data() + 100;
  std::memcpy(at, &kPattern, 8);
  for (const Access& a : loads) {
    EXPECT_EQ(call1(i, a.instruction, {Val::i32(97)}), a.bits) << a.instruction;
  }
  for (const Access& a : stores) {
    std::memset(at, 0, 8);
    bool wide = type(a)[1] == '6';
    call(i, a.instruction, {Val::i32(97), val(type(a), wide ? kPattern : 0xb5a69788)});
    uint64_t left;
    std::memcpy(&left, at, 8);
    EXPECT_EQ(left, a.bits) << a.instruction;
  }
}

TEST_P(WasmNumeric, eqz_is_a_value_wherever_one_is_wanted) {
  Instance& i = world.make(R"((module (global $g (mut i32) (i32.const 0)) (memory 1)
    (func (export "carried") (param i32) (result i32)
      (block (result i32) (i32.eqz (local.get 0)) (br 0)))
    (func (export "branched") (param i32 i32) (result i32)
      (block (result i32) (i32.eqz (local.get 0)) (br_if 0 (local.get 1)) (i32.eqz)))
    (func (export "returned") (param i32) (result i32 i32)
      (i32.eqz (local.get 0)) (i32.eqz (i32.eqz (local.get 0))))
    (func (export "parameter") (param i32) (result i32)
      (i32.eqz (local.get 0)) (if (param i32) (result i32) (i32.const 0)
        (then) (else (i32.const 10) (i32.add))))
    (func (export "stored") (param i32) (result i32)
      (i32.store (i32.const 0) (i32.eqz (local.get 0)))
      (global.set $g (i32.eqz (i32.eqz (local.get 0))))
      (i32.add (i32.load (i32.const 0)) (i32.mul (global.get $g) (i32.const 2))))
    (func (export "twice") (param i32) (result i32)
      (if (result i32) (i32.eqz (i32.eqz (local.get 0)))
        (then (i32.const 1)) (else (i32.const 2))))
    (func (export "switch") (param i32) (result i32)
      (block (block (br_table 0 1 (i32.eqz (local.get 0)))) (return (i32.const 5))) (i32.const 6))
    (func (export "select") (param i32) (result i32)
      (select (i32.eqz (local.get 0)) (i32.const 7) (i32.eqz (i32.const 0))))
    (func (export "choose") (param i32) (result i32)
      (select (i32.const 3) (i32.const 4) (i32.eqz (local.get 0))))))");
  auto with = [&](const char* name, int32_t a) { return call1(i, name, {Val::i32(a)}); };
  for (int32_t a : {0, 1, 9}) {
    uint64_t zero = a == 0;
    EXPECT_EQ(with("carried", a), zero) << a;
    EXPECT_EQ(call1(i, "branched", {Val::i32(a), Val::i32(1)}), zero) << a;
    EXPECT_EQ(call1(i, "branched", {Val::i32(a), Val::i32(0)}), 1 - zero) << a;
    EXPECT_EQ(call(i, "returned", {Val::i32(a)}),
              (std::vector<Val>{Val::i32(a == 0), Val::i32(a != 0)}));
    EXPECT_EQ(with("parameter", a), zero + 10) << a;
    EXPECT_EQ(with("stored", a), a == 0 ? 1u : 2u) << a;
    EXPECT_EQ(with("twice", a), a == 0 ? 2u : 1u) << a;
    EXPECT_EQ(with("switch", a), a == 0 ? 6u : 5u) << a;
    EXPECT_EQ(with("select", a), zero) << a;
    EXPECT_EQ(with("choose", a), a == 0 ? 3u : 4u) << a;
  }
}

TEST_P(WasmNumeric, if_hands_its_parameters_to_both_arms) {
  Instance& i = world.make(R"((module (func (export "f") (param i32) (result i32)
    (i32.const 100) (i32.const 7) (local.get 0)
    (if (param i32 i32) (result i32) (then (i32.sub)) (else (i32.add))))))");
  EXPECT_EQ(call1(i, "f", {Val::i32(1)}), 93u);
  EXPECT_EQ(call1(i, "f", {Val::i32(0)}), 107u);
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_numeric_test
