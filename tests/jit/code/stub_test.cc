#include "jit/code/stubs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "jit/x64/code_buffer.h"
#include "tests/support/code_machine.h"

namespace uptier::jit::stub_test {
namespace {

using test::CodeMachine;
using test::disassemble;

constexpr MethodId kMethod{3};

size_t used_bytes(const uint8_t* stub) {
  size_t n = StubTable::kStubBytes;
  while (n > 0 && stub[n - 1] == 0xcc) --n;
  return n;
}

TEST(Stub, is_four_instructions_in_32_bytes) {
  CodeMachine m;
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  auto* stub = static_cast<const uint8_t*>(m.stubs->stub(kMethod));
  ASSERT_LE(used_bytes(stub), 28u);
  EXPECT_EQ(disassemble(stub, used_bytes(stub)),
            "mov r11, qword ptr fs:[*]\n"
            "dec dword ptr [r11+0x1180]\n"
            "js *\n"
            "jmp qword ptr [rip*]\n");
  EXPECT_EQ(sampler::method_offset(kMethod.index()), 0x1180u);
  auto* tail = static_cast<const uint8_t*>(m.stubs->tail(kMethod));
  EXPECT_EQ(disassemble(tail, 11), "mov r11d, 0x03\njmp *\n");
}

TEST(Stub, with_a_shared_countdown_has_three_instructions) {
  CodeMachine m(StubTable::Countdown::kShared);
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  auto* stub = static_cast<const uint8_t*>(m.stubs->stub(kMethod));
  EXPECT_EQ(disassemble(stub, used_bytes(stub)),
            "lock dec dword ptr [rip*]\n"
            "js *\n"
            "jmp qword ptr [rip*]\n");
}

// Compares each stub of a chunk with the bytes that the assembler emits for the same instructions.
TEST(Stub, is_as_the_assembler_would_write_it) {
  CodeMachine m;
  ASSERT_TRUE(m.stubs->ensure(MethodId(0)).ok());
  for (uint32_t i = 0; i < StubTable::kChunk; ++i) {
    auto* stub = static_cast<const uint8_t*>(m.stubs->stub(MethodId(i)));
    auto* tail = static_cast<const uint8_t*>(m.stubs->tail(MethodId(i)));
    CodeBuffer b(*m.space);
    b.load_context(x86::r11);
    auto countdown =
        static_cast<int32_t>(sampler::method_offset(i) + sampler::kCallCountdownOffset);
    b.assembler().dec(x86::dword_ptr(x86::r11, countdown));
    uint32_t js = b.offset();
    b.assembler().mov(x86::r11d, imm(i));
    uint32_t bytes = b.offset();
    auto code = b.publish_bare(*m.space);
    ASSERT_TRUE(code.ok());
    ASSERT_TRUE(std::equal(stub, stub + js, code->data())) << i;
    EXPECT_TRUE(std::equal(tail, tail + (bytes - js), code->data() + js)) << i;
    int32_t distance = 0;
    std::memcpy(&distance, stub + js + 2, sizeof distance);
    EXPECT_EQ(stub[js], 0x0f);
    EXPECT_EQ(stub[js + 1], 0x88);
    EXPECT_EQ(stub + js + 6 + distance, tail) << i;
  }
}

extern "C" uint64_t stub_test_answer(uint64_t a) { return a + 1; }
extern "C" uint64_t stub_test_other(uint64_t a) { return a + 2; }

const void* address(uint64_t (*f)(uint64_t)) { return reinterpret_cast<const void*>(f); }

uint64_t call(const void* code, uint64_t a) {
  return reinterpret_cast<uint64_t (*)(uint64_t)>(const_cast<void*>(code))(a);
}

TEST(Stub, jumps_through_its_cell) {
  CodeMachine m;
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  m.stubs->set_target(kMethod, address(stub_test_answer));
  EXPECT_EQ(call(m.stubs->stub(kMethod), 5), 6u);
  m.stubs->set_target(kMethod, address(stub_test_other));
  EXPECT_EQ(call(m.stubs->stub(kMethod), 5), 7u);
  EXPECT_EQ(*static_cast<const void* const*>(m.stubs->cell(kMethod)), address(stub_test_other));
}

TEST(Stub, asks_the_slow_path_until_code_is_installed) {
  CodeMachine m;
  std::vector<uint32_t> asked;
  m.slow = [&](uint32_t method) {
    asked.push_back(method);
    return address(stub_test_answer);
  };
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  EXPECT_EQ(m.stubs->target(kMethod), m.stubs->tail(kMethod));
  EXPECT_EQ(call(m.stubs->stub(kMethod), 1), 2u);
  EXPECT_EQ(call(m.stubs->stub(kMethod), 1), 2u);
  EXPECT_EQ(asked, (std::vector<uint32_t>{3, 3}));
}

TEST(Stub, takes_the_slow_path_when_the_countdown_falls_below_zero) {
  CodeMachine m;
  int slow_calls = 0;
  m.slow = [&](uint32_t method) {
    ++slow_calls;
    m.thread.method(method).call_countdown = 4;  // the fifth call from here is due
    return address(stub_test_other);
  };
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  m.stubs->set_target(kMethod, address(stub_test_answer));
  m.thread.method(3).call_countdown = 2;
  std::string ran;
  for (int i = 0; i < 10; ++i) ran += call(m.stubs->stub(kMethod), 0) == 1 ? 'f' : 's';
  EXPECT_EQ(ran, "ffsffffsff");
  EXPECT_EQ(slow_calls, 2);
}

TEST(Stub, with_a_shared_countdown_loses_no_call_of_two_threads) {
  CodeMachine m(StubTable::Countdown::kShared);
  std::atomic<int> slow_calls{0};
  m.slow = [&](uint32_t) {
    slow_calls.fetch_add(1);
    return address(stub_test_answer);
  };
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  m.stubs->set_target(kMethod, address(stub_test_answer));
  constexpr int kCalls = 100000;
  m.stubs->shared_countdown(kMethod).store(2 * kCalls - 10);
  auto work = [&] {
    for (int i = 0; i < kCalls; ++i) call(m.stubs->stub(kMethod), 0);
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(slow_calls.load(), 10);
}

TEST(Stub, tables_grow_by_chunks_up_to_their_capacity) {
  CodeMachine m;
  uint64_t before = m.space->bytes_in_service();
  ASSERT_TRUE(m.stubs->ensure(MethodId(0)).ok());
  uint64_t one = m.space->bytes_in_service() - before;
  EXPECT_EQ(one, 4 * CodeSpace::kPage);
  ASSERT_TRUE(m.stubs->ensure(MethodId(255)).ok());
  EXPECT_EQ(m.space->bytes_in_service() - before, one);
  ASSERT_TRUE(m.stubs->ensure(MethodId(599)).ok());
  EXPECT_EQ(m.space->bytes_in_service() - before, 2 * one);
  EXPECT_EQ(m.stubs->ensure(MethodId(600)).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(m.stubs->method_of(m.stubs->stub(MethodId(599))), MethodId(599));
  EXPECT_EQ(m.stubs->method_of(m.stubs->tail(MethodId(255))), MethodId(255));
  EXPECT_EQ(m.stubs->method_of(&m), MethodId::none());
}

TEST(Stub, table_survives_a_refused_chunk) {
  CodeMachine m;
  m.space->fail_allocation(1);
  EXPECT_EQ(m.stubs->ensure(kMethod).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(m.space->failures_forced(), 1u);
  EXPECT_TRUE(m.stubs->ensure(kMethod).ok());
}

// ---- The slow path keeps every register that a call may carry ---------------------------------

// Fills all argument registers, r10 and rax with known values, calls `target`, and stores the
// values of the same registers when `target`'s code is reached.
struct RegisterTorture {
  explicit RegisterTorture(CodeMachine& m) : b(*m.space) {}

  // Emits: out[0..7] = rdi rsi rdx rcx r8 r9 rax r10; out[8..23] = xmm0-7; ret.
  void emit_dump(uint64_t* out) {
    Assembler& a = b.assembler();
    a.mov(x86::r11, imm(reinterpret_cast<uintptr_t>(out)));
    int i = 0;
    for (const Gp& r : kInts) a.mov(x86::qword_ptr(x86::r11, 8 * i++), r);
    for (uint32_t x = 0; x < 8; ++x, i += 2)
      a.movups(x86::xmmword_ptr(x86::r11, 8 * i), x86::xmm(x));
    a.ret();
  }
  void emit_fill_and_call(const uint64_t* in, const void* target) {
    Assembler& a = b.assembler();
    a.sub(x86::rsp, imm(8));
    a.mov(x86::r11, imm(reinterpret_cast<uintptr_t>(in)));
    int i = 0;
    for (const Gp& r : kInts) a.mov(r, x86::qword_ptr(x86::r11, 8 * i++));
    for (uint32_t x = 0; x < 8; ++x, i += 2)
      a.movups(x86::xmm(x), x86::xmmword_ptr(x86::r11, 8 * i));
    b.call_address(target);
    a.add(x86::rsp, imm(8));
    a.ret();
  }
  static constexpr int kWords = 24;
  inline static const Gp kInts[] = {x86::rdi, x86::rsi, x86::rdx, x86::rcx,
                                    x86::r8,  x86::r9,  x86::rax, x86::r10};
  CodeBuffer b;
};

TEST(Stub, slow_path_keeps_all_registers_of_the_call) {
  CodeMachine m;
  ASSERT_TRUE(m.stubs->ensure(kMethod).ok());
  uint64_t in[RegisterTorture::kWords], out[RegisterTorture::kWords] = {};
  for (int i = 0; i < RegisterTorture::kWords; ++i) in[i] = 0x9e3779b97f4a7c15u * (i + 1);
  RegisterTorture dump(m), fill(m);
  dump.emit_dump(out);
  auto dump_code = CodeMachine::take(dump.b.publish_bare(*m.space));
  fill.emit_fill_and_call(in, m.stubs->stub(kMethod));
  auto fill_code = CodeMachine::take(fill.b.publish_bare(*m.space));
  m.slow = [&](uint32_t) -> const void* {
    // Overwrites every register that a C function may overwrite.
    asm volatile(
        "pcmpeqd %%xmm0,%%xmm0; pcmpeqd %%xmm1,%%xmm1; pcmpeqd %%xmm2,%%xmm2;"
        "pcmpeqd %%xmm3,%%xmm3; pcmpeqd %%xmm4,%%xmm4; pcmpeqd %%xmm5,%%xmm5;"
        "pcmpeqd %%xmm6,%%xmm6; pcmpeqd %%xmm7,%%xmm7; xor %%ecx,%%ecx; xor %%edx,%%edx;"
        "xor %%esi,%%esi; xor %%edi,%%edi; xor %%r8d,%%r8d; xor %%r9d,%%r9d; xor %%r10d,%%r10d;" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "rcx", "rdx", "rsi",
              "rdi", "r8", "r9", "r10");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) % 16, 0u);
    return dump_code.data();
  };
  reinterpret_cast<void (*)()>(fill_code.data())();
  for (int i = 0; i < RegisterTorture::kWords; ++i) EXPECT_EQ(out[i], in[i]) << "word " << i;
}

}  // namespace
}  // namespace uptier::jit::stub_test
