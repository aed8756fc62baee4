// Calls: arguments and results of all kinds, host functions, tables, and traps with their
// locations.
#include <limits>

#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_call_test {
namespace {

class WasmCall : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmCall);

TEST_P(WasmCall, arguments_and_results_keep_their_bits) {
  Instance& i = world.make(R"((module
    (func (export "i32") (param i32) (result i32) local.get 0)
    (func (export "i64") (param i64) (result i64) local.get 0)
    (func (export "f32") (param f32) (result f32) local.get 0)
    (func (export "f64") (param f64) (result f64) local.get 0)))");
  for (Val v : {Val{Type::kI32, 0xfffffffe}, Val{Type::kI64, 0x8000000000000001},
                Val{Type::kF32, 0x7fa00001}, Val{Type::kF64, 0xfff0000000000001}}) {
    EXPECT_EQ(call1(i, type_name(v.type), {v}), v.bits) << type_name(v.type);
  }
}

TEST_P(WasmCall, many_parameters_of_all_types_arrive) {
  std::string params, sum = "i64.const 0";
  std::vector<Val> args;
  uint64_t want = 0;
  for (int n = 0; n < 24; ++n) {
    const char* types[] = {"i32", "i64", "f32", "f64"};
    const char* to_i64[] = {"i64.extend_i32_u", "", "i64.trunc_f32_u", "i64.trunc_f64_u"};
    params += std::string(" ") + types[n % 4];
    sum += " local.get " + std::to_string(n) + " " + to_i64[n % 4] + " i64.const " +
           std::to_string(n + 1) + " i64.mul i64.add";
    uint64_t v = 100 + n;
    args.push_back(n % 4 == 0   ? Val::i32(v)
                   : n % 4 == 1 ? Val::i64(v)
                   : n % 4 == 2 ? Val::f32(v)
                                : Val::f64(v));
    want += v * (n + 1);
  }
  Instance& i = world.make("(module (func $f (export \"f\") (param" + params + ") (result i64) " +
                           sum + ") (func (export \"g\") (param" + params + ") (result i64) " +
                           [&] {
                             std::string gets;
                             for (int n = 0; n < 24; ++n) gets += " local.get " + std::to_string(n);
                             return gets;
                           }() +
                           " call $f))");
  EXPECT_EQ(call1(i, "f", args), want);
  EXPECT_EQ(call1(i, "g", args), want);
}

TEST_P(WasmCall, several_results_of_own_functions) {
  Instance& i = world.make(R"((module
    (func $three (export "three") (param i32) (result i32 f64 i64)
      local.get 0  f64.const 2.5  i64.const -3)
    (func (export "through") (param i32) (result i64 i32 f64) (local i32 f64 i64)
      local.get 0 call $three local.set 3 local.set 2 local.set 1
      local.get 3 local.get 1 local.get 2)
    (func (export "twice") (result i32)
      i32.const 1 call $three drop drop
      i32.const 10 call $three drop drop
      i32.sub)))");
  EXPECT_EQ(call(i, "three", {Val::i32(7)}),
            (std::vector<Val>{Val::i32(7), Val::f64(2.5), Val::i64(-3)}));
  EXPECT_EQ(call(i, "through", {Val::i32(8)}),
            (std::vector<Val>{Val::i64(-3), Val::i32(8), Val::f64(2.5)}));
  EXPECT_EQ(call1(i, "twice"), static_cast<uint32_t>(-9));
}

TEST_P(WasmCall, blocks_and_loops_with_parameters) {
  Instance& i = world.make(R"((module
    (func (export "gcd") (param i32 i32) (result i32)
      local.get 0 local.get 1
      (loop $l (param i32 i32) (result i32)
        (local.set 1) (local.set 0)
        (if (result i32) (i32.eqz (local.get 1)) (then (local.get 0)) (else
          (local.get 1) (i32.rem_u (local.get 0) (local.get 1)) (br $l)))))
    (func (export "swap") (param i32 i32) (result i32 i32)
      local.get 0 local.get 1
      (block (param i32 i32) (result i32 i32) local.set 0 local.set 1 local.get 0 local.get 1))
    (func (export "keep") (param i32) (result i32)
      i32.const 5 local.get 0
      (if (param i32) (result i32) (then i32.const 1 i32.add)))))");
  EXPECT_EQ(call1(i, "gcd", {Val::i32(84), Val::i32(36)}), 12u);
  EXPECT_EQ(call(i, "swap", {Val::i32(1), Val::i32(2)}),
            (std::vector<Val>{Val::i32(2), Val::i32(1)}));
  EXPECT_EQ(call1(i, "keep", {Val::i32(1)}), 6u);
  EXPECT_EQ(call1(i, "keep", {Val::i32(0)}), 5u);
}

TEST_P(WasmCall, br_table_carries_results_to_all_targets) {
  Instance& i = world.make(R"((module (func (export "f") (param i32) (result i32)
    (block $a (result i32)
      (block $b (result i32)
        (block $c (result i32)
          i32.const 100 local.get 0 br_table $c $b $a $b)
        i32.const 1 i32.add)
      i32.const 10 i32.add))))");
  EXPECT_EQ(call1(i, "f", {Val::i32(0)}), 111u);
  EXPECT_EQ(call1(i, "f", {Val::i32(1)}), 110u);
  EXPECT_EQ(call1(i, "f", {Val::i32(2)}), 100u);
  EXPECT_EQ(call1(i, "f", {Val::i32(3)}), 110u);
  EXPECT_EQ(call1(i, "f", {Val::i32(-1)}), 110u);
}

// ---- Host functions ----------------------------------------------------------------------------

TEST_P(WasmCall, host_function_gets_arguments_and_gives_results) {
  auto callback = [](void* env, Instance&, const uint64_t* args, uint64_t* results) noexcept {
    *static_cast<int*>(env) += 1;
    EXPECT_EQ(args[0], 0xffffffffu);  // zero-extended
    EXPECT_EQ(args[1], 5u);
    EXPECT_EQ(args[2], 0x3fc00000u);
    results[0] = 7;
    results[1] = args[3];
    results[2] = 9;
  };
  int calls = 0;
  FuncType type{{Type::kI32, Type::kI64, Type::kF32, Type::kF64},
                {Type::kI32, Type::kF64, Type::kI64}};
  world.linker().define({"host", "f", type, callback, &calls});
  Instance& i = world.make(R"((module
    (type $t (func (param i32 i64 f32 f64) (result i32 f64 i64)))
    (import "host" "f" (func $f (type $t)))
    (export "direct" (func $f))
    (table 1 funcref) (elem (i32.const 0) $f)
    (func (export "from_code") (result i64 f64 i32) (local i64 f64)
      i32.const -1 i64.const 5 f32.const 1.5 f64.const 2.25 call $f
      local.set 0 local.set 1 drop local.get 0 local.get 1
      i32.const -1 i64.const 5 f32.const 1.5 f64.const 2.25 i32.const 0
      call_indirect (type $t) drop drop local.get 0 i32.wrap_i64 i32.add
      drop drop drop local.get 0 local.get 1 i32.const 3)))");
  EXPECT_EQ(call(i, "direct", {Val::i32(-1), Val::i64(5), Val::f32(1.5f), Val::f64(2.25)}),
            (std::vector<Val>{Val::i32(7), Val::f64(2.25), Val::i64(9)}));
  EXPECT_EQ(call(i, "from_code"), (std::vector<Val>{Val::i64(9), Val::f64(2.25), Val::i32(3)}));
  EXPECT_EQ(calls, 3);
}

TEST_P(WasmCall, host_function_may_call_back_and_its_arguments_stay) {
  auto callback = [](void*, Instance& caller, const uint64_t* args, uint64_t* results) noexcept {
    uint64_t n = args[0];
    uint64_t below = n == 0 ? 0 : call1(caller, "f", {Val::i32(static_cast<int32_t>(n - 1))});
    results[0] = below + args[0];
  };
  world.linker().define({"host", "f", {{Type::kI32}, {Type::kI32}}, callback, nullptr});
  Instance& i = world.make(R"((module (import "host" "f" (func $f (param i32) (result i32)))
    (func (export "f") (param i32) (result i32) (call $f (local.get 0)))))");
  EXPECT_EQ(call1(i, "f", {Val::i32(20)}), 210u);
}

TEST_P(WasmCall, trap_of_a_host_function_ends_the_guest) {
  auto callback = [](void*, Instance&, const uint64_t*, uint64_t*) noexcept {
    Runtime::raise(TrapCode::kExit, 42);
  };
  world.linker().define({"host", "exit", {}, callback, nullptr});
  Instance& i = world.make(R"((module (import "host" "exit" (func $exit))
    (global $after (export "after") (mut i32) (i32.const 0))
    (func (export "f") (call $exit) (global.set $after (i32.const 1)))))");
  TrapReport t = call_trap(i, "f");
  EXPECT_EQ(t.code, TrapCode::kExit);
  EXPECT_EQ(t.detail, 42u);
  EXPECT_EQ(t.text().substr(0, 25), "program exit with code 42");
  EXPECT_EQ(i.global(0).get(), Val::i32(0));
}

TEST_P(WasmCall, trap_inside_a_nested_call_stays_inside) {
  auto callback = [](void* env, Instance& caller, const uint64_t*, uint64_t*) noexcept {
    *static_cast<TrapReport*>(env) = call_trap(caller, "boom");
  };
  TrapReport inner;
  world.linker().define({"host", "f", {}, callback, &inner});
  Instance& i = world.make(R"((module (import "host" "f" (func $f))
    (func (export "boom") unreachable)
    (func (export "g") (result i32) (call $f) (i32.const 5))))");
  EXPECT_EQ(call1(i, "g"), 5u);
  EXPECT_EQ(inner.code, TrapCode::kUnreachable);
}

// ---- Tables -------------------------------------------------------------------------------------

TEST_P(WasmCall, call_indirect_checks_index_then_null_then_type) {
  Instance& i = world.make(R"((module
    (type $v (func)) (type $i (func (result i32)))
    (table 3 funcref) (elem (i32.const 0) $f)
    (func $f (result i32) i32.const 5)
    (func (export "i") (param i32) (result i32) (call_indirect (type $i) (local.get 0)))
    (func (export "v") (param i32) (call_indirect (type $v) (local.get 0)))))");
  EXPECT_EQ(call1(i, "i", {Val::i32(0)}), 5u);
  EXPECT_EQ(call_trap(i, "v", {Val::i32(0)}).code, TrapCode::kIndirectTypeMismatch);
  EXPECT_EQ(call_trap(i, "v", {Val::i32(1)}).code, TrapCode::kUninitializedElement);
  EXPECT_EQ(call_trap(i, "v", {Val::i32(3)}).code, TrapCode::kUndefinedElement);
  EXPECT_EQ(call_trap(i, "i", {Val::i32(-1)}).code, TrapCode::kUndefinedElement);
  // If the index were scaled in 32 bits, 2^27 elements further would be the same address.
  EXPECT_EQ(call_trap(i, "i", {Val::i32(1 << 27)}).code, TrapCode::kUndefinedElement);
}

TEST_P(WasmCall, equal_types_under_different_numbers_match) {
  Instance& i = world.make(R"((module
    (type $a (func (param i32) (result i32))) (type $b (func (param i32) (result i32)))
    (table 1 funcref) (elem (i32.const 0) $f)
    (func $f (type $a) local.get 0)
    (func (export "f") (result i32) (call_indirect (type $b) (i32.const 7) (i32.const 0)))))");
  EXPECT_EQ(call1(i, "f"), 7u);
}

// ---- Traps --------------------------------------------------------------------------------------

// Returns the offset of the last `byte` before the end of a function's body.
uint32_t last_opcode(const Module& m, uint32_t function, uint8_t byte) {
  const ModuleInfo& info = m.info();
  uint32_t at = info.functions[function].body_end - 1;
  while (info.bytes[at] != byte) --at;
  return at;
}

TEST_P(WasmCall, traps_name_function_and_offset) {
  Instance& i = world.make(R"((module (memory 1) (table 1 funcref) (type $v (func))
    (func $divide (export "div") (param i32) (result i32)
      (nop) (i32.div_s (i32.const 1) (local.get 0)))
    (func $outer (export "outer") (param i32) (result i32) (nop) (call $divide (local.get 0)))
    (func $load (export "load") (param i32) (result i32) (nop) (i32.load (local.get 0)))
    (func $trunc (export "trunc") (param f64) (result i32) (nop) (i32.trunc_f64_s (local.get 0)))
    (func $indirect (export "indirect") (nop) (call_indirect (type $v) (i32.const 0)))
    (func $fill (export "fill") (nop) (memory.fill (i32.const 65536) (i32.const 0) (i32.const 1)))
    (func $stop (export "stop") (nop) unreachable)))");
  const Module& m = i.module();
  auto expect = [&](const TrapReport& t, TrapCode code, uint32_t function, uint8_t opcode) {
    EXPECT_EQ(t.code, code);
    EXPECT_TRUE(t.has_location);
    EXPECT_EQ(t.function, function) << t.text();
    EXPECT_EQ(t.function_name, m.info().name_of(function));
    EXPECT_EQ(t.offset, last_opcode(m, function, opcode)) << t.text();
  };
  expect(call_trap(i, "div", {Val::i32(0)}), TrapCode::kDivideByZero, 0, 0x6d);
  expect(call_trap(i, "outer", {Val::i32(0)}), TrapCode::kDivideByZero, 0, 0x6d);
  expect(call_trap(i, "load", {Val::i32(65533)}), TrapCode::kOutOfBoundsMemory, 2, 0x28);
  double inf = std::numeric_limits<double>::infinity();
  expect(call_trap(i, "trunc", {Val::f64(inf)}), TrapCode::kIntegerOverflow, 3, 0xaa);
  expect(call_trap(i, "trunc", {Val::f64(std::numeric_limits<double>::quiet_NaN())}),
         TrapCode::kInvalidConversion, 3, 0xaa);
  expect(call_trap(i, "indirect"), TrapCode::kUninitializedElement, 4, 0x11);
  expect(call_trap(i, "fill"), TrapCode::kOutOfBoundsMemory, 5, 0xfc);
  expect(call_trap(i, "stop"), TrapCode::kUnreachable, 6, 0x00);
}

TEST_P(WasmCall, trap_text_reads_well) {
  Instance& i = world.make("(module (func $stop (export \"f\") unreachable))");
  TrapReport t = call_trap(i, "f");
  EXPECT_TRUE(t.text().starts_with("unreachable at 0x")) << t.text();
  EXPECT_TRUE(t.text().ends_with(" in func[0] <stop>")) << t.text();
}

TEST_P(WasmCall, endless_recursion_exhausts_the_stack_and_nothing_else) {
  Instance& i = world.make(R"((module
    (func $f (export "f") (param i64) (result i64)
      (i64.add (call $f (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))
    (func $a (export "a") (call $b)) (func $b (call $a))
    (func (export "ok") (result i32) (i32.const 1))))");
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(call_trap(i, "f", {Val::i64(0)}).code, TrapCode::kStackExhausted);
    EXPECT_EQ(call_trap(i, "a").message, "call stack exhausted");
    EXPECT_EQ(call1(i, "ok"), 1u);
  }
}

TEST_P(WasmCall, results_are_the_same_when_called_often) {
  Instance& i = world.make(R"((module (memory 1)
    (func (export "sum") (param i32) (result i32) (local $i i32) (local $s i32)
      (loop $l
        (i32.store (i32.shl (local.get $i) (i32.const 2)) (local.get $i))
        (local.set $s (i32.add (local.get $s) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                            (local.get 0))))
      (local.get $s))))");
  for (int n = 1; n < 400; ++n) {
    ASSERT_EQ(call1(i, "sum", {Val::i32(n)}), static_cast<uint32_t>(n) * (n - 1) / 2);
  }
}

// ---- Misuse -------------------------------------------------------------------------------------

TEST(WasmInvoke, unknown_names_and_wrong_arguments_are_errors) {
  World world;
  Instance& i = world.make(
      "(module (memory (export \"m\") 1) (func (export \"f\") (param i32) (result i32) local.get "
      "0))");
  EXPECT_EQ(i.invoke("g").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(i.invoke("m").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(i.invoke("f").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(i.invoke("f", std::vector<Val>{Val::i64(1)}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_call_test
