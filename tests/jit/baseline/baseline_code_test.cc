// Baseline code: its instructions, its tables, and how compilation fails.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/baseline_module.h"
#include "tests/support/random_ir.h"

namespace uptier::test::baseline_code_test {
namespace {

using jit::Code;
using jit::Function;
using Ran = CodeMachine::Ran;

// Compiles single functions; `target_` decides where their calls go.
class Compiler : jit::CallResolver {
 public:
  explicit Compiler(CodeMachine& m) : machine_(m) {
    // Never called here. The address is outside of the code space, as a runtime's helpers are, so
    // the bytes do not depend on where the code lies.
    helpers_.loop_slow_plain = helpers_.loop_slow_instrumented =
        reinterpret_cast<const void*>(uint64_t{0x123456789a});
    helpers_.trap_exit = m.routines->trap_exit();
    call = {jit::CallTarget::Kind::kStub, m.routines->trap_exit()};
  }
  Result<std::unique_ptr<Code>> compile(const Function& f, jit::BaselineRequest r = {}) {
    return jit::compile_baseline({f, MethodId(5), helpers_, *this, *machine_.space}, r);
  }
  std::unique_ptr<Code> must(const Function& f, jit::BaselineRequest r = {}) {
    return CodeMachine::take(compile(f, r));
  }
  jit::CallTarget call;

 private:
  jit::CallTarget target(MethodId) override { return call; }
  CodeMachine& machine_;
  jit::Helpers helpers_;
};

Function parse(const std::string& text, const std::vector<HostFunction>& hosts = {}) {
  auto m = jit::parse_module(text, {"test", hosts});
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().message);
  return m->functions[0];
}

std::string listing(const Code& c) { return disassemble(c.base(), c.size()); }
std::string bytes(const Code& c) {
  return std::string(reinterpret_cast<const char*>(c.base()), c.size());
}

const char* kSum = R"(
func @sum(ref, i32) -> i64 {
b0(v0: ref, v1: i32):
  v2 = const.i64 0
  jump b1(v1, v2)
b1(v3: i32, v4: i64):
  loop_header 0 pc=0 []
  v5 = const.i32 1
  v6 = sub.i32 v3, v5
  v7 = load.i64 v0[v6]+16 traps
  v8 = add.i64 v4, v7
  v9 = const.i32 8
  v10 = gt_s.i32 v6, v9
  branch v10, b1(v6, v8), b2
b2:
  return v8
}
)";

TEST(BaselineCode, is_what_it_is_thought_to_be) {
  CodeMachine m;
  auto code = Compiler(m).must(parse(kSum));
  EXPECT_EQ(listing(*code), R"(push rbp
mov rbp, rsp
sub rsp, 0x20
mov qword ptr [rbp-0x10], rdi
mov r11, qword ptr fs:[*]
mov r10d, dword ptr [r11+0x1284]
mov dword ptr [rbp-0x18], esi
mov qword ptr [rbp-0x20], 0x00
dec r10d
jle *
mov esi, dword ptr [rbp-0x18]
sub esi, 0x01
mov rdi, qword ptr [rbp-0x10]
mov r8, qword ptr [rdi+rsi*1+0x10]
add r8, qword ptr [rbp-0x20]
mov qword ptr [rbp-0x20], r8
cmp esi, 0x08
jle *
mov dword ptr [rbp-0x18], esi
dec r10d
jnle *
jmp *
mov r11, qword ptr fs:[*]
mov dword ptr [r11+0x1284], r10d
mov rax, r8
leave
ret
mov r11, qword ptr fs:[*]
mov dword ptr [r11+0x1284], r10d
mov edi, 0x05
mov esi, 0x00
mov rdx, rbp
mov rcx, 0x00
mov r11, 0x123456789A
call r11
jmp rax
lea rsp, [rbp-0x20]
mov r11, qword ptr fs:[*]
mov r10d, dword ptr [r11+0x1284]
jmp *
)");
}

TEST(BaselineCode, instrumented_differs_by_slab_counts_and_checks_only) {
  CodeMachine m;
  auto code = Compiler(m).must(parse(kSum), {.copy = Copy::kInstrumented});
  EXPECT_EQ(listing(*code), R"(push rbp
mov rbp, rsp
sub rsp, 0x20
mov r11, qword ptr fs:[*]
mov r11, qword ptr [r11+0x1288]
mov qword ptr [rbp-0x08], r11
mov r11, qword ptr [rbp-0x08]
inc qword ptr [r11]
mov qword ptr [rbp-0x10], rdi
mov dword ptr [rbp-0x18], esi
mov qword ptr [rbp-0x20], 0x00
mov r11, qword ptr fs:[*]
inc dword ptr [r11+0x1284]
jns *
mov r11, qword ptr [rbp-0x08]
inc qword ptr [r11+0x08]
mov esi, dword ptr [rbp-0x18]
sub esi, 0x01
mov rdi, qword ptr [rbp-0x10]
mov r8, qword ptr [rdi+rsi*1+0x10]
add r8, qword ptr [rbp-0x20]
mov qword ptr [rbp-0x20], r8
cmp esi, 0x08
jle *
mov dword ptr [rbp-0x18], esi
jmp *
mov r11, qword ptr [rbp-0x08]
inc qword ptr [r11+0x10]
mov rax, r8
leave
ret
mov edi, 0x05
mov esi, 0x00
mov rdx, rbp
mov rcx, 0x00
mov r11, 0x123456789A
call r11
jmp rax
mov r11, qword ptr fs:[*]
mov r11, qword ptr [r11+0x1288]
mov qword ptr [rbp-0x08], r11
jmp *
)");
}

TEST(BaselineCode, has_no_check_where_nothing_may_divert_it) {
  CodeMachine m;
  auto code = Compiler(m).must(parse(kSum), {.loop_checks = false});
  EXPECT_EQ(listing(*code).find("fs:"), std::string::npos);
  const auto& loop = code->tables().loops.at(0);
  EXPECT_EQ(loop.continue_offset, loop.arrive_offset);
}

Function without_block_probes(Function f) {
  for (jit::BlockData& b : f.blocks) {
    std::erase_if(b.insts, [&](jit::InstId i) {
      return f.inst(i).op == Opcode::kProbe && f.inst(i).args.size == 0;
    });
  }
  return f;
}

TEST(BaselineCode, block_probes_add_rows_and_not_one_byte) {
  CodeMachine m;
  Compiler c(m);
  int compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const Function& f : random_module(seed, {.functions = 1, .hosts = false}).functions) {
      auto with = c.must(f), without = c.must(without_block_probes(f));
      ASSERT_TRUE(bytes(*with) == bytes(*without)) << "seed " << seed;
      EXPECT_TRUE(without->tables().probes.empty());
      EXPECT_FALSE(with->tables().probes.empty());
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40);
}

TEST(BaselineCode, same_function_same_bytes_and_tables) {
  CodeMachine m;
  Compiler c(m);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Function f = random_module(seed, {.functions = 1, .hosts = false}).functions[0];
    for (Copy copy : {Copy::kPlain, Copy::kInstrumented}) {
      auto a = c.must(f, {.copy = copy}), b = c.must(f, {.copy = copy});
      ASSERT_TRUE(bytes(*a) == bytes(*b)) << "seed " << seed;
      EXPECT_EQ(a->tables(), b->tables());
    }
  }
}

TEST(BaselineCode, both_copies_share_the_frame_and_list_the_same_sites) {
  CodeMachine m;
  Compiler c(m);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const Function& f : random_module(seed).functions) {
      auto plain = c.must(f), instrumented = c.must(f, {.copy = Copy::kInstrumented});
      EXPECT_EQ(plain->tables().frame_size, instrumented->tables().frame_size);
      EXPECT_EQ(plain->tables().frame_size % 16, 0u);
      const auto& p = plain->tables().probes;
      const auto& i = instrumented->tables().probes;
      // In the plain copy only, a probe with no code after it is replaced by the next one.
      EXPECT_LE(p.size(), i.size());
      EXPECT_EQ(i.size(), f.block_sites);
      const auto& t = plain->tables().traps;
      EXPECT_EQ(t.size(), instrumented->tables().traps.size());
      EXPECT_TRUE(
          std::is_sorted(t.begin(), t.end(), [](auto& a, auto& b) { return a.offset < b.offset; }));
    }
  }
}

TEST(BaselineCode, every_trap_row_claims_an_instruction_that_can_fault) {
  CodeMachine m;
  Compiler c(m);
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  int rows = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const Function& f : random_module(seed).functions) {
      auto code = c.must(f);
      for (const jit::TrapRow& row : code->tables().traps) {
        ZydisDecodedInstruction i;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        ASSERT_TRUE(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->base() + row.offset,
                                                        code->size() - row.offset, &i, operands)));
        bool divides = i.mnemonic == ZYDIS_MNEMONIC_DIV || i.mnemonic == ZYDIS_MNEMONIC_IDIV;
        bool accesses = operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
                        operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY;
        switch (row.code) {
          case TrapCode::kDivideByZero:
            EXPECT_TRUE(divides || i.mnemonic == ZYDIS_MNEMONIC_UD2);
            break;
          case TrapCode::kOutOfBoundsMemory:
            EXPECT_TRUE(accesses || i.mnemonic == ZYDIS_MNEMONIC_UD2);
            break;
          case TrapCode::kHost:  // after a call; tells which call it was
            EXPECT_TRUE(i.mnemonic == ZYDIS_MNEMONIC_MOV || i.mnemonic == ZYDIS_MNEMONIC_UD2);
            break;
          default: EXPECT_EQ(i.mnemonic, ZYDIS_MNEMONIC_UD2); break;
        }
        ++rows;
      }
    }
  }
  EXPECT_GT(rows, 100);
}

// The other register that a division uses holds a dead argument.
TEST(BaselineCode, divisions_start_from_whatever_their_registers_held) {
  CodeMachine m;
  for (const char* op : {"rem_s", "div_s", "rem_u", "div_u"}) {
    Function f = parse(std::string(R"(
func @f(i64, i64, i64) -> i64 {
b0(v0: i64, v1: i64, v2: i64):
  v3 = )") + op + R"(.i64 v0, v1
  return v3
}
)");
    auto code = Compiler(m).must(f);
    bool quotient = op[0] == 'd', is_signed = op[4] == 's';
    uint64_t minus_one = UINT64_MAX;
    uint64_t expected = !is_signed ? (quotient ? 0 : 100) : quotient ? uint64_t(-100) : 0;
    EXPECT_EQ(m.run(code->entry(), f.signature(), {100, minus_one, 99}), (Ran{.bits = expected}));
    EXPECT_EQ(m.run(code->entry(), f.signature(), {100, 7, 99}),
              (Ran{.bits = quotient ? 14u : 2u}));
  }
}

// ---- Calls ------------------------------------------------------------------------------------

const char* kFactorial = R"(
func @factorial(i64) -> i64 {
b0(v0: i64):
  v1 = eqz.i64 v0
  branch v1, b1, b2
b1:
  v2 = const.i64 1
  return v2
b2:
  v3 = const.i64 1
  v4 = sub.i64 v0, v3
  v5 = call @factorial(v4)
  v6 = mul.i64 v0, v5
  return v6
}
)";

TEST(BaselineCode, calls_itself_a_cell_or_a_stub) {
  CodeMachine m;
  Compiler c(m);
  Function f = parse(kFactorial);
  MethodId id(5);
  ASSERT_TRUE(m.stubs->ensure(id).ok());
  using Kind = jit::CallTarget::Kind;
  for (jit::CallTarget t :
       {jit::CallTarget{Kind::kSelf, nullptr}, jit::CallTarget{Kind::kCell, m.stubs->cell(id)},
        jit::CallTarget{Kind::kStub, m.stubs->stub(id)}}) {
    c.call = t;
    auto code = c.must(f);
    m.stubs->set_target(id, code->entry());
    int32_t before = m.thread.method(5).call_countdown;
    EXPECT_EQ(m.run(code->entry(), f.signature(), {10}), (Ran{.bits = 3628800}));
    int32_t counted = before - m.thread.method(5).call_countdown;
    EXPECT_EQ(counted, t.kind == Kind::kStub ? 10 : 0);
  }
}

TEST(BaselineCode, deep_recursion_traps_and_leaves_the_thread_usable) {
  CodeMachine m;
  Compiler c(m);
  Function f = parse(kFactorial);
  c.call = {jit::CallTarget::Kind::kSelf, nullptr};
  auto code = c.must(f);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(m.run(code->entry(), f.signature(), {UINT64_MAX}).trap, TrapCode::kStackExhausted);
    EXPECT_EQ(m.run(code->entry(), f.signature(), {5}), (Ran{.bits = 120}));
  }
}

// Every call uses all argument registers, the arguments move between registers from one call to the
// next, and every call takes the stub's slow path.
TEST(BaselineCode, arguments_survive_slow_paths_at_every_depth) {
  const char* text = R"(
func @f(i64, i32, i64, i32, i64, i64, i64, f64, f32, f64, f32, f64, f64, f64, f64, f64) -> f64 {
b0(v0: i64, v1: i32, v2: i64, v3: i32, v4: i64, v5: i64, v6: i64, v7: f64, v8: f32, v9: f64, v10: f32, v11: f64, v12: f64, v13: f64, v14: f64, v15: f64):
  v16 = const.i64 1
  v17 = sub.i64 v0, v16
  v18 = eqz.i64 v0
  branch v18, b1, b2
b1:
  v19 = extend_s.i64 v1
  v20 = add.i64 v19, v2
  v21 = extend_u.i64 v3
  v22 = mul.i64 v20, v21
  v23 = add.i64 v22, v4
  v24 = sub.i64 v23, v5
  v25 = xor.i64 v24, v6
  v26 = convert_s.f64 v25
  v27 = promote.f64 v8
  v28 = promote.f64 v10
  v29 = fadd.f64 v26, v7
  v30 = fsub.f64 v29, v27
  v31 = fadd.f64 v30, v9
  v32 = fmul.f64 v31, v28
  v33 = fadd.f64 v32, v11
  v34 = fsub.f64 v33, v12
  v35 = fadd.f64 v34, v13
  v36 = fsub.f64 v35, v14
  v37 = fadd.f64 v36, v15
  return v37
b2:
  v38 = call @f(v17, v3, v4, v1, v2, v6, v5, v9, v10, v7, v8, v12, v11, v15, v13, v14)
  v39 = convert_s.f64 v6
  v40 = fadd.f64 v38, v39
  return v40
}
)";
  auto module = jit::parse_module(text, {"test", {}});
  ASSERT_TRUE(module.ok()) << module.error().message;
  CodeMachine m;
  BaselineModule compiled(m, *module, BaselineModule::Use::kPlain);
  jit::Interpreter interpreter(*module);
  int slow_calls = 0;
  m.slow = [&](uint32_t method) {
    ++slow_calls;
    m.thread.method(method).call_countdown = 0;
    asm volatile("" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    return m.stubs->target(MethodId(method));
  };
  m.thread.method(0).call_countdown = 0;
  for (uint64_t depth : {0, 1, 2, 3, 1000}) {
    std::vector<uint64_t> args{depth, 0xfffffffb, 7, 3000000000, 11, 13, 17};
    for (int i = 0; i < 9; ++i) {
      bool narrow = i == 1 || i == 3;
      args.push_back(narrow ? std::bit_cast<uint32_t>(1.25f * float(i + 1))
                            : std::bit_cast<uint64_t>(1.5 * (i + 1)));
    }
    slow_calls = 0;
    auto expected = interpreter.run(MethodId(0), args);
    EXPECT_EQ(compiled.run(MethodId(0), args), (Ran{.bits = expected.bits}));
    EXPECT_EQ(slow_calls, static_cast<int>(depth) + 1);
  }
}

TEST(BaselineCode, a_host_function_may_raise_a_trap) {
  Function f = parse(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  v1 = call_host @raise_if.(i32, i32)->i32 (v0, v0) may_trap
  return v1
}
)",
                     corpus_hosts());
  corpus_raise = raise_in_context;
  CodeMachine m;
  auto code = Compiler(m).must(f);
  EXPECT_EQ(m.run(code->entry(), f.signature(), {0}), (Ran{.bits = 1}));
  auto host = static_cast<uint64_t>(TrapCode::kHost);
  EXPECT_EQ(m.run(code->entry(), f.signature(), {host}), (Ran{.trap = TrapCode::kHost}));
}

// Where control can arrive from another copy, no value may stay in a register, however this copy
// reaches the block.
TEST(BaselineCode, a_loop_header_with_one_predecessor_starts_with_empty_registers) {
  jit::Module module;
  module.functions.push_back(parse(R"(
func @f(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = mul.i64 v0, v1
  v3 = sub.i64 v0, v1
  jump b1
b1:
  loop_header 0 pc=0 []
  v4 = mul.i64 v2, v3
  v5 = add.i64 v4, v2
  return v5
}
)"));
  CodeMachine m;
  BaselineModule compiled(m, module, BaselineModule::Use::kToAndFro);
  EXPECT_EQ(compiled.run(MethodId(0), {11, 5}), (Ran{.bits = 55 * 6 + 55}));
  EXPECT_EQ(compiled.transfers(), 1u);
}

// ---- Failing ----------------------------------------------------------------------------------

TEST(BaselineCode, a_refused_allocation_leaves_nothing_behind) {
  CodeMachine m;
  Compiler c(m);
  uint64_t before = m.space->bytes_in_service();
  m.space->fail_allocation(1);
  EXPECT_EQ(c.compile(parse(kSum)).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(m.space->bytes_in_service(), before);
  EXPECT_TRUE(c.compile(parse(kSum)).ok());
  EXPECT_EQ(m.space->bytes_in_service(), before);
}

TEST(BaselineCode, refuses_a_host_function_without_an_address) {
  Function f = parse("func @f() {\nb0:\n  call_host @elsewhere.() ()\n  return\n}\n",
                     {{"elsewhere", nullptr, {{}, Type::kNone}}});
  CodeMachine m;
  auto r = Compiler(m).compile(f);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(r.error().message.find("elsewhere"), std::string::npos);
}

// A chain of blocks, each of which defines a value that the last block needs.
Function many_values(uint32_t n) {
  FunctionBuilder b({{Type::kI64}, Type::kI64}, "many");
  std::vector<Value> values;
  for (uint32_t i = 0; i < n; ++i) {
    values.push_back(b.binary(Opcode::kMul, b.param(0), b.i64(i + 3)));
  }
  Block last = b.create_block();
  b.jump(last);
  b.seal(last);
  b.switch_to(last);
  Value sum = b.param(0);
  for (Value v : values) sum = b.binary(Opcode::kXor, sum, v);
  b.ret(sum);
  return BuilderAccess::finish(b);
}

TEST(BaselineCode, checks_the_stack_of_leaves_with_large_frames) {
  CodeMachine m;
  Compiler c(m);
  uint64_t expected = 9;
  for (uint64_t i = 0; i < 1000; ++i) expected ^= 9 * (i + 3);
  Function f = many_values(1000);
  auto code = c.must(f);
  EXPECT_GT(code->tables().frame_size, 8000u);
  EXPECT_EQ(m.run(code->entry(), f.signature(), {9}), (Ran{.bits = expected}));
  m.thread.context().stack_limit = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - 4096;
  EXPECT_EQ(m.run(code->entry(), f.signature(), {9}).trap, TrapCode::kStackExhausted);
}

TEST(BaselineCode, refuses_frames_beyond_a_mebibyte) {
  CodeMachine m;
  EXPECT_EQ(Compiler(m).compile(many_values((1 << 17) + 10)).error().code, ErrorCode::kUnsupported);
}

// The frame has few canonical slots, but one block spills many values.
TEST(BaselineCode, checks_the_stack_of_leaves_that_spill_much) {
  CodeMachine m;
  FunctionBuilder b({{Type::kI64}, Type::kI64}, "spills");
  std::vector<Value> values;
  for (uint32_t i = 0; i < 500; ++i) {
    values.push_back(b.binary(Opcode::kMul, b.param(0), b.i64(i + 3)));
  }
  Value sum = b.param(0);
  for (Value v : values) sum = b.binary(Opcode::kXor, sum, v);
  b.ret(sum);
  Function f = BuilderAccess::finish(b);
  auto code = Compiler(m).must(f);
  EXPECT_GT(code->tables().frame_size, 3000u);
  EXPECT_NE(listing(*code).find("cmp rsp"), std::string::npos);
}

}  // namespace
}  // namespace uptier::test::baseline_code_test
