// Calls into and out of compiled code, traps, and faults that do not come from compiled code.
#include <gtest/gtest.h>
#include <signal.h>
#include <xmmintrin.h>

#include <atomic>
#include <csetjmp>
#include <cstring>
#include <thread>

#include "jit/x64/code_buffer.h"
#include "tests/support/code_machine.h"
#include "tests/support/ir_corpus.h"

namespace uptier::jit::invoke_test {
namespace {

using test::CodeMachine;
using Ran = CodeMachine::Ran;

const Signature kNullary{{}, Type::kI64};

// Emits code with `fill` and publishes it.
template <typename Fill>
std::unique_ptr<Code> make(CodeMachine& m, Fill fill) {
  CodeBuffer b(*m.space);
  fill(b);
  return CodeMachine::take(b.publish(*m.space, 0, MethodId(0)));
}

std::unique_ptr<Code> make_trap(CodeMachine& m, TrapCode code, uint32_t loc) {
  return make(m, [&](CodeBuffer& b) { b.trap_now(code, loc); });
}

TEST(Invoke, passes_arguments_of_every_kind_and_returns_results) {
  CodeMachine m;
  for (const HostFunction& host : test::corpus_hosts()) {
    if (std::string(host.name) == "note" || std::string(host.name) == "raise_if") continue;
    std::vector<uint64_t> args;
    uint64_t place = 0;  // the value that a ref points to
    for (size_t i = 0; i < host.signature.params.size(); ++i) {
      switch (host.signature.params[i]) {
        case Type::kRef: args.push_back(reinterpret_cast<uintptr_t>(&place)); break;
        case Type::kF32: args.push_back(std::bit_cast<uint32_t>(1.5f + float(i))); break;
        case Type::kF64: args.push_back(std::bit_cast<uint64_t>(2.5 + double(i))); break;
        default: args.push_back(i + 1); break;
      }
    }
    HostCallee callee{host.name, host.address, SignatureId(0)};
    Ran ran = m.run(host.address, host.signature, args);
    place = 0;
    EXPECT_EQ(ran, (Ran{.bits = test::call_corpus_host(callee, args).bits})) << host.name;
  }
}

extern "C" uint64_t invoke_test_frame_address() {
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

TEST(Invoke, aligns_the_stack_for_any_number_of_stack_arguments) {
  CodeMachine m;
  for (unsigned extra = 0; extra < 40; ++extra) {
    Signature s{std::vector<Type>(6 + extra, Type::kI64), Type::kI64};
    Ran ran = m.run(reinterpret_cast<const void*>(invoke_test_frame_address), s,
                    std::vector<uint64_t>(6 + extra, 1));
    EXPECT_EQ(ran.bits % 16, 0u) << extra;
  }
}

TEST(Invoke, clips_narrow_results) {
  CodeMachine m;
  auto code = make(m, [](CodeBuffer& b) {
    b.assembler().mov(x86::rax, imm(-2));
    b.assembler().ret();
  });
  EXPECT_EQ(m.run(code->entry(), {{}, Type::kI32}, {}).bits, 0xfffffffeu);
  EXPECT_EQ(m.run(code->entry(), {{}, Type::kNone}, {}).bits, 0u);
}

TEST(Invoke, returns_the_trap_and_its_place) {
  CodeMachine m;
  auto code = make_trap(m, TrapCode::kUnreachable, 77);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(m.run(code->entry(), kNullary, {}),
              (Ran{.trap = TrapCode::kUnreachable, .location = 77}));
  }
  EXPECT_EQ(m.thread.context().activation, nullptr);
  EXPECT_EQ(m.thread.context().trap_pc, reinterpret_cast<uintptr_t>(code->base()));
}

TEST(Invoke, turns_a_division_fault_into_a_trap) {
  CodeMachine m;
  auto code = make(m, [](CodeBuffer& b) {
    b.assembler().xor_(x86::edx, x86::edx);
    b.assembler().xor_(x86::ecx, x86::ecx);
    b.trap_row(TrapCode::kDivideByZero, 5);
    b.assembler().div(x86::rcx);
    b.assembler().ret();
  });
  EXPECT_EQ(m.run(code->entry(), kNullary, {}),
            (Ran{.trap = TrapCode::kDivideByZero, .location = 5}));
}

TEST(Invoke, turns_a_memory_fault_into_a_trap_also_at_a_non_canonical_address) {
  CodeMachine m;
  for (uint64_t address : {uint64_t{8}, uint64_t{1} << 62}) {
    auto code = make(m, [&](CodeBuffer& b) {
      b.assembler().mov(x86::rax, imm(address));
      b.trap_row(TrapCode::kOutOfBoundsMemory, 6);
      b.assembler().mov(x86::rax, x86::qword_ptr(x86::rax));
      b.assembler().ret();
    });
    EXPECT_EQ(m.run(code->entry(), kNullary, {}),
              (Ran{.trap = TrapCode::kOutOfBoundsMemory, .location = 6}));
  }
}

// ---- Registers after a trap ---------------------------------------------------------------------

// Calls the invoke routine with known values in all callee-saved registers, and stores their values
// afterwards.
std::unique_ptr<Code> make_saver(CodeMachine& m, const void* target, uint64_t* after,
                                 sampler::Activation* activation) {
  static uint64_t zeros[8] = {}, out[2];
  const Gp saved[] = {x86::rbx, x86::rbp, x86::r12, x86::r13, x86::r14, x86::r15};
  return make(m, [&](CodeBuffer& b) {
    Assembler& a = b.assembler();
    auto address = [](const void* p) { return imm(reinterpret_cast<uintptr_t>(p)); };
    for (const Gp& r : saved) a.push(r);
    a.sub(x86::rsp, imm(8));
    for (unsigned i = 0; i < 6; ++i) a.mov(saved[i], imm(1000 + i));
    a.mov(x86::rdi, address(target));
    a.mov(x86::rsi, address(zeros));
    a.mov(x86::rdx, address(zeros));
    a.mov(x86::rcx, address(zeros));
    a.mov(x86::r8, imm(0));
    a.mov(x86::r9, address(out));
    a.mov(x86::rax, address(activation));
    a.push(x86::rax);
    a.push(x86::rax);
    b.call_address(reinterpret_cast<const void*>(m.routines->invoke()));
    a.add(x86::rsp, imm(16));
    a.mov(x86::r11, address(after));
    for (int i = 0; i < 6; ++i) a.mov(x86::qword_ptr(x86::r11, 8 * i), saved[i]);
    a.mov(x86::qword_ptr(x86::r11, 48), x86::rax);
    a.add(x86::rsp, imm(8));
    for (int i = 5; i >= 0; --i) a.pop(saved[i]);
    a.ret();
  });
}

TEST(Invoke, restores_callee_saved_registers_after_a_trap) {
  CodeMachine m;
  auto target = make(m, [](CodeBuffer& b) {
    for (const Gp& r : {x86::rbx, x86::rbp, x86::r12, x86::r13, x86::r14, x86::r15}) {
      b.assembler().mov(r, imm(-1));
    }
    b.assembler().sub(x86::rsp, imm(1000));
    b.trap_now(TrapCode::kUnreachable, 1);
  });
  uint64_t after[7];
  sampler::Activation activation;
  m.thread.context().activation = &activation;
  auto saver = make_saver(m, target->entry(), after, &activation);
  reinterpret_cast<void (*)()>(const_cast<void*>(saver->entry()))();
  m.thread.context().activation = nullptr;
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(after[i], 1000 + i);
  EXPECT_EQ(after[6] & 0xffffffff, 1u);
}

TEST(Invoke, restores_rounding_modes_and_the_direction_flag_after_a_trap) {
  CodeMachine m;
  static uint32_t mxcsr = 0x7f80;  // rounds towards zero
  static uint16_t x87 = 0x0f7f;
  auto code = make(m, [&](CodeBuffer& b) {
    b.assembler().mov(x86::rax, imm(reinterpret_cast<uintptr_t>(&mxcsr)));
    b.assembler().ldmxcsr(x86::dword_ptr(x86::rax));
    b.assembler().mov(x86::rax, imm(reinterpret_cast<uintptr_t>(&x87)));
    b.assembler().fldcw(x86::word_ptr(x86::rax));
    b.assembler().std();
    b.trap_now(TrapCode::kUnreachable, 1);
  });
  uint32_t before = _mm_getcsr();
  uint16_t x87_before, x87_after;
  asm volatile("fnstcw %0" : "=m"(x87_before));
  m.run(code->entry(), kNullary, {});
  uint64_t flags;
  asm volatile("pushfq; pop %0; cld" : "=r"(flags));
  asm volatile("fnstcw %0" : "=m"(x87_after));
  EXPECT_EQ(_mm_getcsr(), before);
  EXPECT_EQ(x87_after, x87_before);
  EXPECT_EQ(flags & 0x400, 0u);
}

// ---- Nesting ----------------------------------------------------------------------------------

CodeMachine* g_machine = nullptr;
const Code* g_inner = nullptr;
int g_inner_traps = 0;

extern "C" uint64_t invoke_test_nested() {
  Ran ran = g_machine->run(g_inner->entry(), kNullary, {});
  g_inner_traps += ran.trap == TrapCode::kUnreachable;
  return 40;
}

TEST(Invoke, traps_end_the_innermost_invoke_only) {
  CodeMachine m;
  auto inner = make_trap(m, TrapCode::kUnreachable, 1);
  g_machine = &m;
  g_inner = inner.get();
  auto call_nested = [&](CodeBuffer& b) {
    b.assembler().sub(x86::rsp, imm(8));
    b.call_address(reinterpret_cast<const void*>(invoke_test_nested));
    b.assembler().add(x86::rsp, imm(8));
  };
  auto returns = make(m, [&](CodeBuffer& b) {
    call_nested(b);
    b.assembler().add(x86::rax, imm(2));
    b.assembler().ret();
  });
  auto traps = make(m, [&](CodeBuffer& b) {
    call_nested(b);
    b.trap_now(TrapCode::kIntegerOverflow, 9);
  });
  g_inner_traps = 0;
  EXPECT_EQ(m.run(returns->entry(), kNullary, {}), (Ran{.bits = 42}));
  EXPECT_EQ(m.run(traps->entry(), kNullary, {}),
            (Ran{.trap = TrapCode::kIntegerOverflow, .location = 9}));
  EXPECT_EQ(g_inner_traps, 2);
  EXPECT_EQ(m.thread.context().activation, nullptr);
}

// ---- Faults outside of compiled code
// -------------------------------------------------------------

sigjmp_buf g_back;
int g_seen = 0;

void jump_back(int, siginfo_t*, void*) {
  ++g_seen;
  siglongjmp(g_back, 1);
}
void just_count(int) { ++g_seen; }

// Sets the process's handler for a scope.
class Handler {
 public:
  Handler(int signal, void (*f)(int, siginfo_t*, void*)) : signal_(signal) {
    struct sigaction s = {};
    s.sa_sigaction = f;
    s.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal, &s, &before_);
  }
  Handler(int signal, void (*f)(int)) : signal_(signal) {
    struct sigaction s = {};
    s.sa_handler = f;
    sigaction(signal, &s, &before_);
  }
  ~Handler() { sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_ = {};
};

std::unique_ptr<Code> make_unlisted_load(CodeMachine& m) {
  return make(m, [](CodeBuffer& b) {
    b.assembler().mov(x86::eax, imm(8));
    b.trap_row(TrapCode::kOutOfBoundsMemory, 1);
    b.assembler().nop();  // the trap row covers this instruction, not the next
    b.assembler().mov(x86::rax, x86::qword_ptr(x86::rax));
    b.assembler().ret();
  });
}

TEST(Faults, outside_listed_addresses_go_to_the_previous_handler) {
  Handler host(SIGSEGV, jump_back);
  CodeMachine m;
  auto code = make_unlisted_load(m);
  g_seen = 0;
  if (sigsetjmp(g_back, 1) == 0) m.run(code->entry(), kNullary, {});
  EXPECT_EQ(g_seen, 1);
  volatile uintptr_t nowhere = 16;
  if (sigsetjmp(g_back, 1) == 0) *reinterpret_cast<volatile int*>(nowhere) = 1;
  EXPECT_EQ(g_seen, 2);
  m.thread.context().activation = nullptr;
  // Traps of compiled code still work afterwards.
  auto trap = make_trap(m, TrapCode::kUnreachable, 3);
  EXPECT_EQ(m.run(trap->entry(), kNullary, {}).trap, TrapCode::kUnreachable);
}

TEST(Faults, without_an_invoke_go_to_the_previous_handler) {
  Handler host(SIGILL, jump_back);
  CodeMachine m;
  auto trap = make_trap(m, TrapCode::kUnreachable, 3);
  g_seen = 0;
  if (sigsetjmp(g_back, 1) == 0) reinterpret_cast<void (*)()>(const_cast<void*>(trap->entry()))();
  EXPECT_EQ(g_seen, 1);
}

TEST(Faults, sent_by_a_process_go_to_the_previous_handler) {
  Handler host(SIGFPE, just_count);
  CodeMachine m;
  g_seen = 0;
  raise(SIGFPE);
  EXPECT_EQ(g_seen, 1);
}

volatile uint32_t g_stop = 0;
std::atomic<uint32_t> g_spins = 0;  // written by the code below
void stop_spinning(int) { g_stop = 1; }

TEST(Faults, sent_while_a_listed_instruction_runs_are_no_traps) {
  Handler host(SIGFPE, stop_spinning);
  CodeMachine m;
  auto spin = make(m, [](CodeBuffer& b) {
    Label again = b.new_label();
    b.assembler().mov(x86::rax, imm(reinterpret_cast<uintptr_t>(&g_spins)));
    b.assembler().mov(x86::dword_ptr(x86::rax), imm(1));
    b.assembler().mov(x86::rax, imm(reinterpret_cast<uintptr_t>(&g_stop)));
    b.bind(again);
    b.trap_row(TrapCode::kOutOfBoundsMemory, 1);
    b.assembler().cmp(x86::dword_ptr(x86::rax), imm(0));
    b.trap_row(TrapCode::kOutOfBoundsMemory, 2);
    b.assembler().je(again);
    b.assembler().mov(x86::eax, imm(7));
    b.assembler().ret();
  });
  g_stop = 0;
  g_spins = 0;
  pthread_t spinner = pthread_self();
  std::thread sender([&] {
    while (g_spins.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pthread_kill(spinner, SIGFPE);
  });
  EXPECT_EQ(m.run(spin->entry(), kNullary, {}), (Ran{.bits = 7}));
  sender.join();
}

TEST(FaultsDeathTest, nobody_handles_kill_the_process_as_ever) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto with_default = [](auto die) {
    signal(SIGSEGV, SIG_DFL);  // sanitizers install their own handlers
    CodeMachine m;
    die(m);
  };
  auto fault = [](CodeMachine& m) { m.run(make_unlisted_load(m)->entry(), kNullary, {}); };
  EXPECT_EXIT(with_default(fault), testing::KilledBySignal(SIGSEGV), "");
  auto sent = [](CodeMachine&) { raise(SIGSEGV); };
  EXPECT_EXIT(with_default(sent), testing::KilledBySignal(SIGSEGV), "");
}

void* handler_of(int signal) {
  struct sigaction s = {};
  sigaction(signal, nullptr, &s);
  return reinterpret_cast<void*>(s.sa_sigaction);
}

TEST(Faults, handlers_are_put_back_with_the_last_user) {
  Handler host(SIGSEGV, jump_back);
  auto* original = reinterpret_cast<void*>(jump_back);
  {
    auto first = CodeMachine::take(FaultHandlers::install());
    EXPECT_NE(handler_of(SIGSEGV), original);
    { auto second = CodeMachine::take(FaultHandlers::install()); }
    EXPECT_NE(handler_of(SIGSEGV), original);
  }
  EXPECT_EQ(handler_of(SIGSEGV), original);
}

TEST(AltStack, is_made_only_where_there_is_none) {
  stack_t before = {}, during = {}, after = {};
  sigaltstack(nullptr, &before);
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  {
    auto ours = CodeMachine::take(AltStack::create());
    sigaltstack(nullptr, &during);
    EXPECT_EQ(during.ss_flags & SS_DISABLE, 0);
    EXPECT_EQ(during.ss_size, AltStack::kBytes);
    {
      auto second = CodeMachine::take(AltStack::create());
      sigaltstack(nullptr, &after);
      EXPECT_EQ(after.ss_sp, during.ss_sp);
    }
    sigaltstack(nullptr, &after);
    EXPECT_EQ(after.ss_sp, during.ss_sp);
  }
  sigaltstack(nullptr, &after);
  EXPECT_NE(after.ss_flags & SS_DISABLE, 0);
  sigaltstack(&before, nullptr);
}

}  // namespace
}  // namespace uptier::jit::invoke_test
