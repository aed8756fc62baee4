// The interpreter: limits, counts, guards, memory, and the pure functions below it.
#include "jit/frontend/interpret.h"

#include <gtest/gtest.h>

#include <cmath>

#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/ir/semantics.h"
#include "tests/support/ir_corpus.h"

namespace uptier::test::ir_interpret_test {
namespace {

using jit::Interpreter;
using jit::InterpretOptions;
using jit::InterpretOutcome;
using jit::Module;
using Kind = InterpretOutcome::Kind;

Module parse(const std::string& text) {
  auto m = jit::parse_module(text, {.file = "t", .hosts = corpus_hosts()});
  EXPECT_TRUE(m.ok()) << m.error().message;
  if (!m) return {};
  Status s = jit::verify(*m);
  EXPECT_TRUE(s.ok()) << s.error().message;
  return std::move(*m);
}

constexpr const char* kLoop = R"(
func @loop(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  jump b1(v0)
b1(v2: i32):
  loop_header
  branch v2, b2, b3
b2:
  v3 = sub.i32 v2, v1
  probe value v3
  jump b1(v3)
b3:
  return v2
}
func @calls(i32) -> i32 {
b0(v0: i32):
  v1 = call @loop(v0)
  v2 = call @loop(v0)
  return v2
}
)";

TEST(Interpret, counts_blocks_calls_host_probes_and_loop_visits) {
  Module m = parse(kLoop);
  Interpreter i(m);
  uint64_t args[] = {5};
  ASSERT_EQ(i.run(MethodId(1), args).kind, Kind::kReturned);
  auto sites = i.site_counts(MethodId(0));
  EXPECT_EQ((std::vector<uint64_t>{2, 12, 10, 2, 10}),
            std::vector<uint64_t>(sites.begin(), sites.end()));
  EXPECT_EQ(i.loop_counts(MethodId(0))[0], 12u);
  auto calls = i.site_counts(MethodId(1));
  EXPECT_EQ((std::vector<uint64_t>{1, 1, 1}), std::vector<uint64_t>(calls.begin(), calls.end()));
}

TEST(Interpret, stops_at_the_step_limit) {
  Module m = parse(kLoop);
  Interpreter i(m, {.step_limit = 1000});
  uint64_t args[] = {0xffffffff};
  InterpretOutcome o = i.run(MethodId(0), args);
  EXPECT_EQ(o.kind, Kind::kStopped);
  EXPECT_EQ(o.why, "the step limit was reached");
  EXPECT_EQ(i.steps(), 1000u);
}

TEST(Interpret, the_depth_limit_is_a_trap_at_the_call) {
  Module m = parse("func @f(i32) {\nb0(v0: i32):\n  call @f(v0) @33\n  return\n}\n");
  Interpreter i(m, {.depth_limit = 10});
  uint64_t args[] = {1};
  InterpretOutcome o = i.run(MethodId(0), args);
  EXPECT_EQ(o.trap, TrapCode::kStackExhausted);
  EXPECT_EQ(o.location, 33u);
  EXPECT_EQ(i.site_counts(MethodId(0))[0], 10u);
}

TEST(Interpret, a_trap_says_method_and_location) {
  Module m = parse(
      "func @f(i32) -> i32 {\nb0(v0: i32):\n  v1 = call @g(v0) @5\n  return v1\n}\n"
      "func @g(i32) -> i32 {\nb0(v0: i32):\n  v1 = div_s.i32 v0, v0 @8\n  return v1\n}\n");
  Interpreter i(m);
  uint64_t args[] = {0};
  InterpretOutcome o = i.run(MethodId(0), args);
  EXPECT_EQ(o.kind, Kind::kTrapped);
  EXPECT_EQ(o.trap, TrapCode::kDivideByZero);
  EXPECT_EQ(o.method, MethodId(1));
  EXPECT_EQ(o.location, 8u);
}

TEST(Interpret, a_failed_guard_hands_over_the_last_frame_state) {
  Module m = parse(
      "func @f(i32, f64) -> i32 {\nb0(v0: i32, v1: f64):\n"
      "  frame_state pc=3 [v0]\n  frame_state pc=4 depth=2 [v1, v0]\n  guard v0, bounds\n"
      "  return v0\n}\n");
  Interpreter i(m);
  uint64_t args[] = {0, 0x3ff0000000000000};
  InterpretOutcome o = i.run(MethodId(0), args);
  EXPECT_EQ(o.trap, TrapCode::kGuardFailed);
  EXPECT_EQ(o.reason, GuardReason::kBounds);
  EXPECT_EQ(o.pc, 4u);
  EXPECT_EQ(o.inline_depth, 2u);
  EXPECT_EQ(o.slots, (std::vector<uint64_t>{0x3ff0000000000000, 0}));
}

TEST(Interpret, memory_outside_of_the_ranges_is_never_touched) {
  Module m = parse(
      "func @traps(ref) -> i32 {\nb0(v0: ref):\n  v1 = load.i32 v0 traps\n  return v1\n}\n"
      "func @plain(ref) -> i32 {\nb0(v0: ref):\n  v1 = load.i32 v0\n  return v1\n}\n"
      "func @write(ref, i32) {\nb0(v0: ref, v1: i32):\n  store.i32 v1, v0 traps\n  return\n}\n");
  uint32_t word = 77;
  auto at = reinterpret_cast<uint64_t>(&word);
  InterpretOptions options;
  options.memory = {{at, 4, false}};
  Interpreter i(m, options);
  auto run = [&](const char* name, std::vector<uint64_t> args) {
    return i.run(m.find(name), args);
  };
  EXPECT_EQ(run("traps", {at}).bits, 77u);
  EXPECT_EQ(run("traps", {at + 1}).trap, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(run("traps", {at - 1}).trap, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(run("traps", {UINT64_MAX}).trap, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(run("plain", {0}).kind, Kind::kStopped);
  EXPECT_EQ(run("write", {at, 5}).trap, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(word, 77u);
}

TEST(Interpret, what_compiled_code_must_not_be_given_stops_the_run) {
  Module m = parse(
      "func @f(ref) -> i32 {\nb0(v0: ref):\n  v1 = call_indirect.(ref)->i32 v0(v0)\n"
      "  return v1\n}\n"
      "func @g() {\nb0:\n  call #9.() ()\n  call_host @gone.() ()\n  return\n}\n");
  Interpreter i(m);
  uint64_t nowhere[] = {12345}, other[] = {Interpreter::address_of(MethodId(1))};
  EXPECT_EQ(i.run(MethodId(0), nowhere).why, "an indirect call of something that is no method");
  EXPECT_EQ(i.run(MethodId(0), other).why, "@g: a wrong number of arguments");
  EXPECT_EQ(i.run(MethodId(1), {}).why, "a call of a method outside of the module");
  EXPECT_EQ(i.run(MethodId(7), {}).why, "the module has no such method");
  Interpreter with_methods(
      m, {.call_method = [](MethodId, std::span<const uint64_t>) { return jit::OutsideResult{}; }});
  EXPECT_EQ(with_methods.run(MethodId(1), {}).why, "a call of host function @gone");
}

TEST(Interpret, i32_arguments_and_results_are_cut_to_32_bits) {
  Module m = parse(
      "func @f(i32) -> i64 {\nb0(v0: i32):\n  v1 = call_host @raise_if.(i32, i32)->i32 (v0, v0)\n"
      "  v2 = extend_u.i64 v0\n  return v2\n}\n");
  InterpretOptions options;
  options.call_host = call_corpus_host;
  Interpreter i(m, options);
  uint64_t args[] = {0xdeadbeef00000000};
  EXPECT_EQ(i.run(MethodId(0), args).bits, 0u);
}

// ---- semantics.h
// ----------------------------------------------------------------------------------

TEST(Semantics, float_operations_make_nans_quiet_and_moves_keep_them) {
  const uint64_t signaling = 0x7ff0000000000001, quiet = 0x0008000000000000;
  for (unsigned n = 0; n < kOpcodeCount; ++n) {
    auto op = static_cast<Opcode>(n);
    if (!jit::evaluates(op) || !(info(op).types & kMaskF64)) continue;
    if (info(op).shape != Shape::kUnary && info(op).shape != Shape::kBinary) continue;
    uint64_t operands[] = {signaling, 0x3ff0000000000000};
    uint64_t bits = jit::evaluate(op, Type::kF64, Type::kF64, operands).bits;
    bool moves = op == Opcode::kFAbs || op == Opcode::kFNeg || op == Opcode::kFCopysign;
    EXPECT_TRUE(is_nan(Type::kF64, bits)) << info(op).text;
    EXPECT_EQ((bits & quiet) != 0, !moves) << info(op).text;
  }
}

TEST(Semantics, conversions_accept_what_their_rows_say) {
  EXPECT_EQ(jit::conversion_sources(Opcode::kWrap, Type::kI32), kMaskI64);
  EXPECT_EQ(jit::conversion_sources(Opcode::kWrap, Type::kI64), 0);
  EXPECT_EQ(jit::conversion_sources(Opcode::kTruncSatU, Type::kI64), kMaskFloat);
  EXPECT_EQ(jit::conversion_sources(Opcode::kBitcast, Type::kRef), kMaskI64 | kMaskF64 | kMaskRef);
  EXPECT_EQ(jit::conversion_sources(Opcode::kBitcast, Type::kNone), 0);
  EXPECT_EQ(jit::conversion_sources(Opcode::kAdd, Type::kI32), 0);
  for (unsigned n = 0; n < kOpcodeCount; ++n) {
    auto op = static_cast<Opcode>(n);
    if (info(op).shape != Shape::kConvert) continue;
    for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64, Type::kRef}) {
      bool in_row = info(op).types & jit::mask_of(t);
      EXPECT_EQ(jit::conversion_sources(op, t) != 0, in_row) << info(op).text << type_name(t);
    }
  }
}

// Every operation for which `evaluates` is true has semantics for every type of its table row.
TEST(Semantics, every_row_has_a_meaning) {
  uint64_t operands[] = {1, 1, 1};
  for (unsigned n = 0; n < kOpcodeCount; ++n) {
    auto op = static_cast<Opcode>(n);
    for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64, Type::kRef}) {
      if (!jit::evaluates(op) || !(info(op).types & jit::mask_of(t))) continue;
      uint8_t sources = jit::conversion_sources(op, t);
      Type source = sources & kMaskInt ? Type::kI32 : Type::kF32;
      EXPECT_NE(jit::evaluate(op, t, source, operands).trap, TrapCode::kUnreachable)
          << info(op).text << "." << type_name(t);
    }
  }
}

}  // namespace
}  // namespace uptier::test::ir_interpret_test
