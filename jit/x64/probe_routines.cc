#include "jit/code/probe_routines.h"

#include "jit/x64/emit_routines.h"
#include "sampler/log_ring.h"
#include "sampler/loop_timer.h"
#include "sampler/site_tables.h"

namespace uptier::jit {
namespace {

using namespace asmjit::x86;

uintptr_t function_of(ProbeRoutine r) {
  auto address = [](auto* f) { return reinterpret_cast<uintptr_t>(f); };
  switch (r) {
    case ProbeRoutine::kTarget: return address(sampler::uptier_probe_target);
    case ProbeRoutine::kValue: return address(sampler::uptier_probe_value);
    case ProbeRoutine::kLog: return address(sampler::uptier_probe_log);
    case ProbeRoutine::kLoopEnter: return address(sampler::uptier_loop_enter);
    case ProbeRoutine::kLoopLeave: return address(sampler::uptier_loop_leave);
    case ProbeRoutine::kLoopArrive: return address(sampler::uptier_loop_arrive);
  }
  return 0;
}

constexpr Gp kKept[] = {rax, rdx, rcx, rsi, rdi, r8, r9, r10};
// The first of them: the registers that reading the time stamp counter writes.
constexpr size_t kClock = 2;
constexpr int32_t kKeptBytes = 8 * 8;
constexpr int32_t kArguments = 16;  // above rbp and the return address

// rax = the time, after everything before has finished, and before anything after has begun.
void read_time(Assembler& a) {
  a.lfence();
  a.rdtsc();
  a.lfence();
  a.shl(rdx, imm(32));
  a.or_(rax, rdx);
}

}  // namespace

// Loop probes read the time first and last. Their functions return where to add the last reading,
// so that the sum is the time that the probe took.
void emit_probe_routine(CodeBuffer& b, ProbeRoutine r) {
  Assembler& a = b.assembler();
  const bool times = r == ProbeRoutine::kLoopEnter || r == ProbeRoutine::kLoopLeave;
  a.push(rbp);
  a.mov(rbp, rsp);
  for (size_t i = 0; i < kClock; ++i) a.push(kKept[i]);
  if (times) read_time(a);
  for (size_t i = kClock; i < std::size(kKept); ++i) a.push(kKept[i]);
  if (times) a.mov(rcx, rax);
  a.and_(rsp, imm(-16));
  a.mov(rdi, r11);
  a.lea(rsi, qword_ptr(rbp, kArguments));
  b.load_context(rdx);
  a.mov(rax, imm(function_of(r)));
  a.call(rax);
  a.lea(rsp, qword_ptr(rbp, -kKeptBytes));
  for (size_t i = std::size(kKept); i-- > kClock;) a.pop(kKept[i]);
  if (times) {
    Label untimed = b.new_label();
    a.mov(r11, rax);
    a.test(r11, r11);
    a.jz(untimed);
    read_time(a);
    a.add(qword_ptr(r11), rax);
    b.bind(untimed);
  }
  for (size_t i = kClock; i-- > 0;) a.pop(kKept[i]);
  a.pop(rbp);
  a.ret(imm(8 * probe_words(r)));
}

void emit_loop_pair(CodeBuffer& b, const Label& enter, const Label& leave) {
  Assembler& a = b.assembler();
  a.push(rbp);
  a.mov(rbp, rsp);
  a.dec(qword_ptr(rdi, 8 * sampler::kLoopState));
  for (const Label& routine : {enter, leave}) {
    a.mov(r11, rdi);
    a.push(imm(INT32_MAX));
    a.push(rbp);
    a.push(imm(0));
    a.call(routine);
  }
  a.pop(rbp);
  a.ret();
}

}  // namespace uptier::jit
