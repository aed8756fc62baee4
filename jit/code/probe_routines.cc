#include "jit/code/probe_routines.h"

#include "sampler/log_ring.h"
#include "sampler/loop_timer.h"
#include "sampler/site_tables.h"

namespace uptier::jit {
namespace {

using namespace asmjit::x86;

using Observe = void (*)(uint64_t* slab, const sampler::ProbeCall*, sampler::ThreadContext*);

Observe function_of(ProbeRoutine r) {
  switch (r) {
    case ProbeRoutine::kTarget: return sampler::uptier_probe_target;
    case ProbeRoutine::kValue: return sampler::uptier_probe_value;
    case ProbeRoutine::kLog: return sampler::uptier_probe_log;
    case ProbeRoutine::kLoopEnter: return sampler::uptier_loop_enter;
    case ProbeRoutine::kLoopLeave: return sampler::uptier_loop_leave;
    case ProbeRoutine::kLoopArrive: return sampler::uptier_loop_arrive;
  }
  return nullptr;
}

constexpr Gp kKept[] = {rax, rcx, rdx, rsi, rdi, r8, r9, r10};
constexpr int32_t kKeptBytes = 8 * 8;
constexpr int32_t kArguments = 16;  // above rbp and the return address

}  // namespace

void emit_probe_routine(CodeBuffer& b, ProbeRoutine r) {
  Assembler& a = b.assembler();
  a.push(rbp);
  a.mov(rbp, rsp);
  for (const Gp& g : kKept) a.push(g);
  a.and_(rsp, imm(-16));
  a.mov(rdi, r11);
  a.lea(rsi, qword_ptr(rbp, kArguments));
  b.load_context(rdx);
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(function_of(r))));
  a.call(rax);
  a.lea(rsp, qword_ptr(rbp, -kKeptBytes));
  for (size_t i = std::size(kKept); i-- > 0;) a.pop(kKept[i]);
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
