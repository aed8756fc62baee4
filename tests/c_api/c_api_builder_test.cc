// The C API's builder: it builds the same as the C++ builder, and misuse is refused, never
// undefined.
#include "tests/support/c_api_world.h"
#include "uptier/runtime.h"

namespace uptier::test::c_api_builder_test {
namespace {

using CApiBuilder = CApi;

// One body with every function of the builder, in C and in C++. The evaluation order of arguments
// is unspecified, so no call has two arguments that append instructions.
void everything_in_c(uptier_builder* b, uptier_method callee) {
  const uptier_value x = uptier_build_param(b, 0), y = uptier_build_param(b, 1);
  EXPECT_EQ(uptier_build_type_of(b, x), uptier_type{UPTIER_TYPE_I64});
  uptier_variable sum = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_variable f = uptier_build_declare(b, UPTIER_TYPE_F64);
  uptier_build_def(b, sum, uptier_build_i64(b, -2));
  uptier_build_def(b, f, uptier_build_f64(b, 1.5));
  uptier_build_set_location(b, 10);
  uptier_block loop = uptier_build_create_block(b), odd = uptier_build_create_block(b);
  uptier_block even = uptier_build_create_block(b), out = uptier_build_create_block(b);
  EXPECT_NE(uptier_build_current(b).id, 0u);
  uptier_build_jump(b, loop);
  EXPECT_EQ(uptier_build_current(b).id, 0u);

  uptier_build_switch_to(b, loop);
  EXPECT_EQ(uptier_build_loop_header(b, 3, &sum, 1).id, 1u);
  const uptier_value args[] = {x, uptier_build_use(b, sum)};
  uptier_value called = uptier_build_call(b, callee, args, 2);
  uptier_build_frame_state(b, 4, args, 2);
  uptier_value small = uptier_build_convert(b, UPTIER_OP_WRAP, UPTIER_TYPE_I32, called);
  uptier_build_guard(b, small, UPTIER_GUARD_BOUNDS);
  uint32_t site = 99;
  uptier_build_probe(b, UPTIER_PROBE_VALUE, called, 0, &site);
  EXPECT_EQ(site, 0u);
  uptier_build_probe(b, UPTIER_PROBE_LOG, x, 0, nullptr);
  uptier_build_probe(b, UPTIER_PROBE_COUNTER, x, 0, &site);
  EXPECT_EQ(site, 2u);
  EXPECT_NE(uptier_build_known_count(b, site).id, 0u);
  uptier_build_def(b, sum, uptier_build_binary(b, UPTIER_OP_ADD, called, y));
  const uptier_block cases[] = {odd, even};
  uptier_build_switch(b, small, cases, 2, out);
  uptier_build_seal(b, odd);
  uptier_build_seal(b, even);

  uptier_build_switch_to(b, odd);
  uptier_value p = uptier_build_ref(b, reinterpret_cast<void*>(0x1000));
  uptier_address at = {p, small, 16, UPTIER_MEM_TRAPS};
  uptier_value read = uptier_build_load(b, UPTIER_OP_LOAD8_U, UPTIER_TYPE_I32, at);
  uptier_build_store(b, UPTIER_OP_STORE16, read, {p, {}, 8, 0});
  uptier_build_trap_if(b, read, UPTIER_TRAP_OUT_OF_BOUNDS_TABLE);
  uptier_build_call_indirect(b, p, signature(1, UPTIER_TYPE_NONE), &x, 1, UPTIER_CALL_MAY_TRAP);
  uptier_build_branch(b, uptier_build_unary(b, UPTIER_OP_EQZ, read), loop, out);
  uptier_build_seal(b, loop);
  uptier_build_seal(b, out);

  uptier_build_switch_to(b, even);
  uptier_build_frame_state(b, 9, &x, 1);
  uptier_build_leave(b, UPTIER_GUARD_UNREACHED);

  uptier_build_switch_to(b, out);
  uptier_value h = uptier_build_call_host(b, "triple", reinterpret_cast<uptier_code>(host_triple),
                                          signature(1), &y, 1, UPTIER_CALL_MAY_TRAP);
  uptier_value g =
      uptier_build_convert(b, UPTIER_OP_TRUNC_SAT_S, UPTIER_TYPE_I64, uptier_build_use(b, f));
  uptier_value s = uptier_build_select(b, uptier_build_i32(b, -1), h, g);
  uptier_value two_and_a_half = uptier_build_f32(b, 2.5f);
  uptier_value two = uptier_build_constant(b, UPTIER_TYPE_F32, 0x40000000);
  uptier_value less = uptier_build_binary(b, UPTIER_OP_FLT, two_and_a_half, two);
  uptier_value k = uptier_build_convert(b, UPTIER_OP_EXTEND_U, UPTIER_TYPE_I64, less);
  uptier_value total = uptier_build_use(b, sum);
  uptier_value mixed = uptier_build_binary(b, UPTIER_OP_XOR, s, k);
  uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_ADD, total, mixed));
  uptier_error none = {UPTIER_IO, "left alone"};
  EXPECT_EQ(uptier_build_status(b, &none), UPTIER_OK);
  EXPECT_STREQ(none.message, "left alone");
}

void everything_in_cpp(FunctionBuilder& b, MethodId callee) {
  const Value x = b.param(0), y = b.param(1);
  Variable sum = b.declare(Type::kI64), f = b.declare(Type::kF64);
  b.def(sum, b.i64(-2));
  b.def(f, b.f64(1.5));
  b.set_location(10);
  Block loop = b.create_block(), odd = b.create_block();
  Block even = b.create_block(), out = b.create_block();
  b.jump(loop);

  b.switch_to(loop);
  b.loop_header(3, std::span(&sum, 1));
  const Value args[] = {x, b.use(sum)};
  const Signature two{{Type::kI64, Type::kI64}, Type::kI64};
  Value called = b.call(callee, two, args, "callee");
  b.frame_state(4, args);
  Value small = b.convert(Opcode::kWrap, Type::kI32, called);
  b.guard(small, GuardReason::kBounds);
  b.probe(ProbeKind::kValue, called);
  b.probe(ProbeKind::kLog, x);
  b.known_count(b.probe(ProbeKind::kCounter, x));
  b.def(sum, b.binary(Opcode::kAdd, called, y));
  const Block cases[] = {odd, even};
  b.switch_on(small, cases, out);
  b.seal(odd);
  b.seal(even);

  b.switch_to(odd);
  Value p = b.ref(reinterpret_cast<void*>(0x1000));
  Value read = b.load(Opcode::kLoad8U, Type::kI32, {p, small, 16, kMemTraps});
  b.store(Opcode::kStore16, read, {p, Value::none(), 8, kMemNone});
  b.trap_if(read, TrapCode::kOutOfBoundsTable);
  b.call_indirect(p, {{Type::kI64}, Type::kNone}, std::span(&x, 1), kCallMayTrap);
  b.branch(b.unary(Opcode::kEqz, read), loop, out);
  b.seal(loop);
  b.seal(out);

  b.switch_to(even);
  b.frame_state(9, std::span(&x, 1));
  b.leave();

  b.switch_to(out);
  HostFunction triple{
      "triple", reinterpret_cast<const void*>(host_triple), {{Type::kI64}, Type::kI64}};
  Value h = b.call_host(triple, std::span(&y, 1), kCallMayTrap);
  Value g = b.convert(Opcode::kTruncSatS, Type::kI64, b.use(f));
  Value s = b.select(b.i32(-1), h, g);
  Value two_and_a_half = b.f32(2.5f);
  Value k = b.convert(Opcode::kExtendU, Type::kI64,
                      b.binary(Opcode::kFLt, two_and_a_half, b.constant(Type::kF32, 0x40000000)));
  Value total = b.use(sum);
  b.ret(b.binary(Opcode::kAdd, total, b.binary(Opcode::kXor, s, k)));
}

class EverythingHost : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    if (m.index() == 0) {
      b.ret(b.param(0));
    } else {
      everything_in_cpp(b, MethodId(0));
    }
    return {};
  }
};

TEST_F(CApiBuilder, every_builder_function_builds_what_cpp_builds) {
  BodyHost& callee = keep({ret_first});
  uptier_method first = add("callee", callee, signature(2));
  BodyHost& host = keep({[&](uptier_builder* b) { everything_in_c(b, first); }});
  const std::string in_c = ir(add("everything", host, signature(2)));

  auto runtime = Runtime::create(Options());
  ASSERT_TRUE(runtime.ok());
  EverythingHost cpp;
  const Signature two{{Type::kI64, Type::kI64}, Type::kI64};
  ASSERT_TRUE((*runtime)->add_method(cpp, {{7, 0}, "callee", two}).ok());
  auto m = (*runtime)->add_method(cpp, {{7, 1}, "everything", two});
  ASSERT_TRUE(m.ok());
  Result<std::string> in_cpp = (*runtime)->ir(*m);
  ASSERT_TRUE(in_cpp.ok()) << in_cpp.error().message;
  EXPECT_EQ(in_c, *in_cpp);
}

struct Misuse {
  const char* message;  // a part of the error message
  Body body;
};

uptier_value arg(uptier_builder* b) { return uptier_build_param(b, 0); }
constexpr uptier_value kNoValue = {0}, kFarValue = {1000};
constexpr uptier_block kNoBlock = {0}, kFarBlock = {1000};

// Misuse that the builder refuses at once.
const Misuse kRefused[] = {
    {"uptier_build_param: there is no parameter 2", [](auto* b) { uptier_build_param(b, 2); }},
    {"uptier_build_param: there is no", [](auto* b) { uptier_build_param(b, SIZE_MAX); }},
    {"type_of: there is no value 0", [](auto* b) { uptier_build_type_of(b, kNoValue); }},
    {"type_of: there is no value 1000", [](auto* b) { uptier_build_type_of(b, kFarValue); }},
    {"switch_to: there is no block 0",
     [](auto* b) { uptier_build_ret(b, arg(b)), uptier_build_switch_to(b, kNoBlock); }},
    {"switch_to: there is no block 1000",
     [](auto* b) { uptier_build_ret(b, arg(b)), uptier_build_switch_to(b, kFarBlock); }},
    {"switch_to: the current block has not ended",
     [](auto* b) { uptier_build_switch_to(b, uptier_build_create_block(b)); }},
    {"switch_to: block 1 has been filled",
     [](auto* b) {
       uptier_block entry = uptier_build_current(b);
       uptier_build_ret(b, arg(b));
       uptier_build_switch_to(b, entry);
     }},
    {"seal: there is no block", [](auto* b) { uptier_build_seal(b, kFarBlock); }},
    {"seal: block 1 is sealed", [](auto* b) { uptier_build_seal(b, uptier_build_current(b)); }},
    {"declare: there is no value type 0",
     [](auto* b) { uptier_build_declare(b, UPTIER_TYPE_NONE); }},
    {"declare: there is no value type 6", [](auto* b) { uptier_build_declare(b, 6); }},
    {"def: there is no variable 0", [](auto* b) { uptier_build_def(b, {0}, arg(b)); }},
    {"def: there is no value",
     [](auto* b) { uptier_build_def(b, uptier_build_declare(b, UPTIER_TYPE_I64), kFarValue); }},
    {"def: the value has another type",
     [](auto* b) { uptier_build_def(b, uptier_build_declare(b, UPTIER_TYPE_I32), arg(b)); }},
    {"use: there is no variable 3", [](auto* b) { uptier_build_use(b, {3}); }},
    {"use: the block has ended",
     [](auto* b) {
       uptier_variable x = uptier_build_declare(b, UPTIER_TYPE_I64);
       uptier_build_ret(b, arg(b));
       uptier_build_use(b, x);
     }},
    {"constant: there is no value type", [](auto* b) { uptier_build_constant(b, 0, 1); }},
    {"constant: bits above the width",
     [](auto* b) { uptier_build_constant(b, UPTIER_TYPE_I32, 1ull << 32); }},
    {"i64: the block has ended",
     [](auto* b) { uptier_build_ret(b, arg(b)), uptier_build_i64(b, 1); }},
    {"f32: the block has ended",
     [](auto* b) { uptier_build_ret(b, arg(b)), uptier_build_f32(b, 1); }},
    {"f64: the block has ended",
     [](auto* b) { uptier_build_ret(b, arg(b)), uptier_build_f64(b, 1); }},
    {"unary: add is an operation of another shape: uptier_build_binary makes it",
     [](auto* b) { uptier_build_unary(b, UPTIER_OP_ADD, arg(b)); }},
    {"unary: there is no operation", [](auto* b) { uptier_build_unary(b, UINT32_MAX, arg(b)); }},
    {"unary: there is no value", [](auto* b) { uptier_build_unary(b, UPTIER_OP_CLZ, kNoValue); }},
    {"binary: clz is an operation",
     [](auto* b) { uptier_build_binary(b, UPTIER_OP_CLZ, arg(b), arg(b)); }},
    {"binary: there is no operation",
     [](auto* b) { uptier_build_binary(b, UPTIER_OPCODE_COUNT, arg(b), arg(b)); }},
    {"binary: there is no value",
     [](auto* b) { uptier_build_binary(b, UPTIER_OP_ADD, arg(b), kFarValue); }},
    {"convert: add is", [](auto* b) { uptier_build_convert(b, UPTIER_OP_ADD, 1, arg(b)); }},
    {"convert: there is no value type",
     [](auto* b) { uptier_build_convert(b, UPTIER_OP_WRAP, 77, arg(b)); }},
    {"convert: there is no value 0",
     [](auto* b) { uptier_build_convert(b, UPTIER_OP_WRAP, UPTIER_TYPE_I32, kNoValue); }},
    {"select: there is no value",
     [](auto* b) { uptier_build_select(b, kNoValue, arg(b), arg(b)); }},
    {"load: store is",
     [](auto* b) {
       uptier_build_load(b, UPTIER_OP_STORE, UPTIER_TYPE_I64, {arg(b), {}, 0, 0});
     }},
    {"load: there is no value type",
     [](auto* b) {
       uptier_build_load(b, UPTIER_OP_LOAD, 9, {arg(b), {}, 0, 0});
     }},
    {"load: there is no value 0",
     [](auto* b) { uptier_build_load(b, UPTIER_OP_LOAD, UPTIER_TYPE_I64, {}); }},
    {"load: there is no value 1000",
     [](auto* b) {
       uptier_build_load(b, UPTIER_OP_LOAD, UPTIER_TYPE_I64, {arg(b), kFarValue, 0, 0});
     }},
    {"load: a flag",
     [](auto* b) {
       uptier_build_load(b, UPTIER_OP_LOAD, UPTIER_TYPE_I64, {arg(b), {}, 0, 0x101});
     }},
    {"store: load is",
     [](auto* b) {
       uptier_build_store(b, UPTIER_OP_LOAD, arg(b), {arg(b), {}, 0, 0});
     }},
    {"store: there is no value",
     [](auto* b) {
       uptier_build_store(b, UPTIER_OP_STORE, kNoValue, {arg(b), {}, 0, 0});
     }},
    {"store: a flag",
     [](auto* b) {
       uptier_build_store(b, UPTIER_OP_STORE, arg(b), {arg(b), {}, 0, UPTIER_MEM_INVARIANT});
     }},
    {"call: method 0 is not in service", [](auto* b) { uptier_build_call(b, {0}, nullptr, 0); }},
    {"call: method 5000 is", [](auto* b) { uptier_build_call(b, {5000}, nullptr, 0); }},
    {"call_indirect: there is no value",
     [](auto* b) { uptier_build_call_indirect(b, kNoValue, signature(0), nullptr, 0, 0); }},
    {"call_indirect: 0 arguments, where the signature has 1",
     [](auto* b) { uptier_build_call_indirect(b, arg(b), signature(1), nullptr, 0, 0); }},
    {"call_indirect: a list is NULL",
     [](auto* b) { uptier_build_call_indirect(b, arg(b), signature(1), nullptr, 1, 0); }},
    {"call_indirect: a signature has too many",
     [](auto* b) {
       constexpr size_t kMany = UPTIER_MAX_PARAMS + 1;
       uptier_build_call_indirect(b, arg(b), {kI64, kMany, 0}, nullptr, kMany, 0);
     }},
    {"call_indirect: a flag that the operation does not have",
     [](auto* b) { uptier_build_call_indirect(b, arg(b), signature(0), nullptr, 0, 8); }},
    {"call_host: the name or the function is NULL",
     [](auto* b) { uptier_build_call_host(b, "f", nullptr, signature(0), nullptr, 0, 0); }},
    {"call_host: the name or the function is NULL",
     [](auto* b) {
       auto f = reinterpret_cast<uptier_code>(host_triple);
       uptier_build_call_host(b, nullptr, f, signature(0), nullptr, 0, 0);
     }},
    {"call_host: a flag",
     [](auto* b) {
       auto f = reinterpret_cast<uptier_code>(host_triple);
       uptier_build_call_host(b, "f", f, signature(0), nullptr, 0, UPTIER_MEM_TRAPS);
     }},
    {"call_host: a signature has an unknown",
     [](auto* b) {
       auto f = reinterpret_cast<uptier_code>(host_triple);
       uptier_build_call_host(b, "f", f, {nullptr, 0, 100}, nullptr, 0, 0);
     }},
    {"call_host: there is no value",
     [](auto* b) {
       auto f = reinterpret_cast<uptier_code>(host_triple);
       uptier_build_call_host(b, "f", f, signature(1), &kFarValue, 1, 0);
     }},
    {"jump: there is no block", [](auto* b) { uptier_build_jump(b, kNoBlock); }},
    {"jump: block 1 is sealed", [](auto* b) { uptier_build_jump(b, uptier_build_current(b)); }},
    {"jump: the block has ended",
     [](auto* b) { uptier_build_ret(b, arg(b)), uptier_build_jump(b, kFarBlock); }},
    {"branch: there is no block",
     [](auto* b) { uptier_build_branch(b, arg(b), uptier_build_create_block(b), kFarBlock); }},
    {"branch: there is no value",
     [](auto* b) { uptier_build_branch(b, kNoValue, kFarBlock, kFarBlock); }},
    {"switch: there is no block",
     [](auto* b) { uptier_build_switch(b, arg(b), &kFarBlock, 1, kFarBlock); }},
    {"switch: a list is too long",
     [](auto* b) { uptier_build_switch(b, arg(b), &kFarBlock, SIZE_MAX, kFarBlock); }},
    {"switch: a list is NULL",
     [](auto* b) { uptier_build_switch(b, arg(b), nullptr, 1, kFarBlock); }},
    {"switch: block 1 is sealed",
     [](auto* b) {
       uptier_block entry = uptier_build_current(b);
       uptier_build_switch(b, arg(b), &entry, 1, uptier_build_create_block(b));
     }},
    {"ret: there is no value", [](auto* b) { uptier_build_ret(b, kNoValue); }},
    {"trap: there is no trap 0", [](auto* b) { uptier_build_trap(b, UPTIER_TRAP_NONE); }},
    {"trap: there is no trap", [](auto* b) { uptier_build_trap(b, UPTIER_TRAP_COUNT); }},
    {"trap_if: there is no trap", [](auto* b) { uptier_build_trap_if(b, arg(b), 1000); }},
    {"trap_if: there is no value", [](auto* b) { uptier_build_trap_if(b, kNoValue, 1); }},
    {"loop_header: the entry block is no loop header, since nothing jumps to it: "
     "uptier_build_create_block",
     [](auto* b) { uptier_build_loop_header(b, 0, nullptr, 0); }},
    {"loop_header: a loop header is sealed after",
     [](auto* b) {
       uptier_block loop = uptier_build_create_block(b);
       uptier_build_jump(b, loop);
       uptier_build_seal(b, loop);
       uptier_build_switch_to(b, loop);
       uptier_build_loop_header(b, 0, nullptr, 0);
     }},
    {"loop_header: a loop header comes first",
     [](auto* b) {
       uptier_block loop = uptier_build_create_block(b);
       uptier_build_jump(b, loop);
       uptier_build_switch_to(b, loop);
       uptier_build_i64(b, 1);
       uptier_build_loop_header(b, 0, nullptr, 0);
     }},
    {"loop_header: there is no variable",
     [](auto* b) {
       uptier_variable x = {9};
       uptier_build_loop_header(b, 0, &x, 1);
     }},
    {"frame_state: there is no value",
     [](auto* b) { uptier_build_frame_state(b, 0, &kNoValue, 1); }},
    {"guard: there is no guard reason",
     [](auto* b) { uptier_build_guard(b, arg(b), UPTIER_GUARD_REASON_COUNT); }},
    {"leave: there is no guard reason",
     [](auto* b) { uptier_build_leave(b, UPTIER_GUARD_REASON_COUNT); }},
    {"guard: there is no value", [](auto* b) { uptier_build_guard(b, kFarValue, 0); }},
    {"probe: probes of kind block: the library places these itself",
     [](auto* b) { uptier_build_probe(b, 1, arg(b), 0, nullptr); }},
    {"probe: probes of kind edge: the library places these itself",
     [](auto* b) { uptier_build_probe(b, 2, arg(b), 0, nullptr); }},
    {"probe: probes of kind loop: the library places these itself",
     [](auto* b) { uptier_build_probe(b, 5, arg(b), 0, nullptr); }},
    {"probe: there is no probe of kind 0",
     [](auto* b) { uptier_build_probe(b, 0, arg(b), 0, nullptr); }},
    {"probe: there is no probe of kind 11",
     [](auto* b) { uptier_build_probe(b, 11, arg(b), 0, nullptr); }},
    {"probe: there is no probe of kind 259",
     [](auto* b) { uptier_build_probe(b, 256 + UPTIER_PROBE_CALL_TARGET, arg(b), 0, nullptr); }},
    {"probe: there is no value",
     [](auto* b) { uptier_build_probe(b, UPTIER_PROBE_LOG, kNoValue, 0, nullptr); }},
    {"probe: there is no value",
     [](auto* b) { uptier_build_probe(b, UPTIER_PROBE_HIT, kFarValue, 0, nullptr); }},
    {"known_count: there is no counter, hit or gauge",
     [](auto* b) { uptier_build_known_count(b, 0); }},
    {"known_count: there is no counter, hit or gauge",
     [](auto* b) {
       uint32_t index = 0;
       uptier_build_probe(b, UPTIER_PROBE_RANGE, arg(b), 0, &index);
       uptier_build_known_count(b, index);
     }},
};
// clang-format on

TEST_F(CApiBuilder, misuse_of_the_builder_is_refused_once_and_for_all) {
  for (const Misuse& misuse : kRefused) {
    const std::string got = complaint([&](uptier_builder* b) {
      uptier_error e = {};
      misuse.body(b);
      EXPECT_EQ(uptier_build_status(b, &e), UPTIER_INVALID_ARGUMENT) << misuse.message;
      EXPECT_EQ(e.status, UPTIER_INVALID_ARGUMENT);
      // Later calls do nothing and cannot hide the first error.
      EXPECT_EQ(uptier_build_param(b, 0).id, 0u);
      EXPECT_EQ(uptier_build_create_block(b).id, 0u);
      EXPECT_EQ(uptier_build_current(b).id, 0u);
      EXPECT_EQ(uptier_build_seal(b, kFarBlock), UPTIER_INVALID_ARGUMENT);
      EXPECT_EQ(uptier_build_ret(b, kFarValue), UPTIER_INVALID_ARGUMENT);
    });
    EXPECT_NE(got.find(misuse.message), std::string::npos)
        << "expected: " << misuse.message << "\ngot:      " << got;
    EXPECT_EQ(got.rfind("broken: uptier_build_", 0), 0u) << got;
  }
}

// Misuse that only the complete body shows; the verifier finds it.
const Misuse kInvalid[] = {
    {"", [](auto*) {}},  // the entry block does not end
    {"", [](auto* b) { uptier_build_jump(b, uptier_build_create_block(b)); }},
    {"operand 1 is i32, not i64", [](auto* b) { uptier_build_ret(b, uptier_build_i32(b, 1)); }},
    {"is i32, not i64",
     [](auto* b) {
       uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_ADD, arg(b), uptier_build_i32(b, 1)));
     }},
    {"there is no fadd of type i64",
     [](auto* b) { uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_FADD, arg(b), arg(b))); }},
    {"",
     [](auto* b) {  // a loop header that is never sealed and never left
       uptier_block loop = uptier_build_create_block(b);
       uptier_build_jump(b, loop);
       uptier_build_switch_to(b, loop);
       uptier_build_loop_header(b, 0, nullptr, 0);
     }},
};

TEST_F(CApiBuilder, the_verifier_finds_what_the_builder_cannot) {
  for (const Misuse& misuse : kInvalid) {
    const std::string got = complaint([&](uptier_builder* b) {
      misuse.body(b);
      EXPECT_EQ(uptier_build_status(b, nullptr), UPTIER_OK);
    });
    EXPECT_NE(got, "");
    EXPECT_NE(got.find(misuse.message), std::string::npos) << got;
  }
}

TEST_F(CApiBuilder, methods_without_result_return_nothing) {
  BodyHost& host =
      keep({[](uptier_builder* b) { EXPECT_EQ(uptier_build_ret(b, kNoValue), UPTIER_OK); }});
  uptier_method nothing = add("nothing", host, signature(0, UPTIER_TYPE_NONE));
  BodyHost& caller = keep({[&](uptier_builder* b) {
    EXPECT_EQ(uptier_build_call(b, nothing, nullptr, 0).id, 0u);
    EXPECT_EQ(uptier_build_status(b, nullptr), UPTIER_OK);
    uptier_build_ret(b, kNoValue);
  }});
  EXPECT_EQ(invoke(add("caller", caller, signature(0, UPTIER_TYPE_NONE)), {}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 0u);
}

TEST(CApiNullBuilder, a_null_builder_is_refused_by_every_function) {
  uptier_error e = {};
  const uptier_value v = {1};
  const uptier_block k = {1};
  const auto bad = UPTIER_INVALID_ARGUMENT;
  EXPECT_EQ(uptier_build_status(nullptr, &e), bad);
  EXPECT_STREQ(e.message, "the builder is NULL");
  EXPECT_EQ(uptier_build_param(nullptr, 0).id, 0u);
  EXPECT_EQ(uptier_build_type_of(nullptr, v), uptier_type{UPTIER_TYPE_NONE});
  EXPECT_EQ(uptier_build_create_block(nullptr).id, 0u);
  EXPECT_EQ(uptier_build_switch_to(nullptr, k), bad);
  EXPECT_EQ(uptier_build_seal(nullptr, k), bad);
  EXPECT_EQ(uptier_build_current(nullptr).id, 0u);
  EXPECT_EQ(uptier_build_declare(nullptr, UPTIER_TYPE_I32).id, 0u);
  EXPECT_EQ(uptier_build_def(nullptr, {1}, v), bad);
  EXPECT_EQ(uptier_build_use(nullptr, {1}).id, 0u);
  EXPECT_EQ(uptier_build_set_location(nullptr, 1), bad);
  EXPECT_EQ(uptier_build_i32(nullptr, 1).id, 0u);
  EXPECT_EQ(uptier_build_i64(nullptr, 1).id, 0u);
  EXPECT_EQ(uptier_build_f32(nullptr, 1).id, 0u);
  EXPECT_EQ(uptier_build_f64(nullptr, 1).id, 0u);
  EXPECT_EQ(uptier_build_ref(nullptr, nullptr).id, 0u);
  EXPECT_EQ(uptier_build_constant(nullptr, UPTIER_TYPE_I32, 1).id, 0u);
  EXPECT_EQ(uptier_build_unary(nullptr, UPTIER_OP_CLZ, v).id, 0u);
  EXPECT_EQ(uptier_build_binary(nullptr, UPTIER_OP_ADD, v, v).id, 0u);
  EXPECT_EQ(uptier_build_convert(nullptr, UPTIER_OP_WRAP, UPTIER_TYPE_I32, v).id, 0u);
  EXPECT_EQ(uptier_build_select(nullptr, v, v, v).id, 0u);
  EXPECT_EQ(uptier_build_load(nullptr, UPTIER_OP_LOAD, UPTIER_TYPE_I32, {}).id, 0u);
  EXPECT_EQ(uptier_build_store(nullptr, UPTIER_OP_STORE, v, {}), bad);
  EXPECT_EQ(uptier_build_call(nullptr, {1}, nullptr, 0).id, 0u);
  EXPECT_EQ(uptier_build_call_indirect(nullptr, v, signature(0), nullptr, 0, 0).id, 0u);
  EXPECT_EQ(uptier_build_call_host(nullptr, "f", nullptr, signature(0), nullptr, 0, 0).id, 0u);
  EXPECT_EQ(uptier_build_jump(nullptr, k), bad);
  EXPECT_EQ(uptier_build_branch(nullptr, v, k, k), bad);
  EXPECT_EQ(uptier_build_switch(nullptr, v, nullptr, 0, k), bad);
  EXPECT_EQ(uptier_build_ret(nullptr, v), bad);
  EXPECT_EQ(uptier_build_trap(nullptr, UPTIER_TRAP_EXIT), bad);
  EXPECT_EQ(uptier_build_trap_if(nullptr, v, UPTIER_TRAP_EXIT), bad);
  EXPECT_EQ(uptier_build_loop_header(nullptr, 0, nullptr, 0).id, 0u);
  EXPECT_EQ(uptier_build_frame_state(nullptr, 0, nullptr, 0), bad);
  EXPECT_EQ(uptier_build_guard(nullptr, v, UPTIER_GUARD_TYPE), bad);
  EXPECT_EQ(uptier_build_leave(nullptr, UPTIER_GUARD_TYPE), bad);
  EXPECT_EQ(uptier_build_probe(nullptr, UPTIER_PROBE_LOG, v, 0, nullptr), bad);
}

}  // namespace
}  // namespace uptier::test::c_api_builder_test
