#include "jit/code/routines.h"

#include <cassert>
#include <vector>

#include "jit/code/float_state.h"
#include "jit/x64/call_layout.h"
#include "jit/x64/code_buffer.h"
#include "jit/x64/emit_routines.h"
#include "jit/x64/macros.h"

namespace uptier::jit {

// The parameters are in the order of the registers that trap_exit fills: rdi rsi rdx rcx r8.
extern "C" void uptier_walk_trap(const CodeSpace* space, TrapWalk::Report report, uint64_t pc,
                                 uint64_t rbp, void* runtime) noexcept {
  walk_frames(*space, {report, runtime}, pc, rbp);
}

namespace {

using namespace asmjit::x86;

// ---- invoke and trap_exit ---------------------------------------------------------------------

constexpr int32_t kSaved = 5 * 8;  // rbx r12 r13 r14 r15 below rbp
constexpr int32_t kOutSlot = -48;  // displacements from rbp
constexpr int32_t kMxcsrSlot = -56;
constexpr int32_t kX87Slot = -52;
constexpr int32_t kSpareSlot = -60;                 // 4 bytes
constexpr int32_t kFrame = Routines::kInvokeFrame;  // rsp of the callee, without stack arguments
constexpr int32_t kActivationArg = 16;              // the seventh argument

constexpr Gp kSavedRegisters[] = {rbx, r12, r13, r14, r15};

void emit_invoke_entry(Assembler& a) {
  a.push(rbp);
  a.mov(rbp, rsp);
  for (const Gp& r : kSavedRegisters) a.push(r);
  a.sub(rsp, imm(kFrame - kSaved));
  a.mov(qword_ptr(rbp, kOutSlot), r9);
  a.stmxcsr(dword_ptr(rbp, kMxcsrSlot));
  a.fnstcw(word_ptr(rbp, kX87Slot));
  a.mov(rax, qword_ptr(rbp, kActivationArg));
  a.mov(qword_ptr(rax, offsetof(sampler::Activation, stack_pointer)), rsp);
}

// Sets the standard MXCSR unless it is set already, which is nearly always so. The flags only
// record masked exceptions and change nothing, so they are ignored.
void emit_standard_floats(CodeBuffer& b) {
  Assembler& a = b.assembler();
  Label standard = b.new_label();
  a.mov(eax, dword_ptr(rbp, kMxcsrSlot));
  a.and_(eax, imm(~static_cast<int32_t>(kMxcsrFlags)));
  a.cmp(eax, imm(kStandardMxcsr));
  a.short_().je(standard);
  a.mov(dword_ptr(rbp, kSpareSlot), imm(kStandardMxcsr));
  a.ldmxcsr(dword_ptr(rbp, kSpareSlot));
  b.bind(standard);
}

// Restores the caller's MXCSR, flags included. Testing first whether a write is necessary costs
// more: 20.8 ns per invoke instead of 16.3 (15.1 if MXCSR is left alone).
void emit_callers_floats(Assembler& a) { a.ldmxcsr(dword_ptr(rbp, kMxcsrSlot)); }

// Copies r8 words from rcx to the stack, the first at the lowest address. Keeps rsp a multiple of
// 16.
void emit_stack_arguments(CodeBuffer& b) {
  Assembler& a = b.assembler();
  Label loop = b.new_label(), done = b.new_label();
  a.lea(rax, qword_ptr(r8, 1));
  a.and_(rax, imm(-2));
  a.shl(rax, imm(3));
  a.sub(rsp, rax);
  a.test(r8, r8);
  a.short_().jz(done);
  b.bind(loop);
  a.mov(rax, qword_ptr(rcx, r8, 3, -8));
  a.mov(qword_ptr(rsp, r8, 3, -8), rax);
  a.dec(r8);
  a.jnz(loop);
  b.bind(done);
}

void emit_invoke_call(Assembler& a) {
  a.mov(r11, rdi);
  a.mov(r10, rsi);
  for (uint32_t i = 0; i < kXmmArgCount; ++i) {
    a.movsd(xmm(i), qword_ptr(rdx, static_cast<int32_t>(8 * i)));
  }
  for (uint32_t i = 0; i < kGpArgCount; ++i) {
    a.mov(gpq(kGpArgs[i]), qword_ptr(r10, static_cast<int32_t>(8 * i)));
  }
  a.call(r11);
  a.mov(rcx, qword_ptr(rbp, kOutSlot));
  a.mov(qword_ptr(rcx), rax);
  a.movsd(qword_ptr(rcx, 8), xmm0);
  emit_callers_floats(a);
  a.xor_(eax, eax);
}

void emit_invoke_return(Assembler& a) {
  a.lea(rsp, qword_ptr(rbp, -kSaved));
  for (int i = 4; i >= 0; --i) a.pop(kSavedRegisters[i]);
  a.pop(rbp);
  a.ret();
}

uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

//   faulted: rsp may lie beyond the end of the stack (a frame is taken before it is checked), and
//            everything below rbp is dead: the walk runs right below the frame pointer, unless that
//            is still the invoke's
//   else:    the call that raised the trap left its return address below rsp
void emit_walk(CodeBuffer& b, const CodeSpace& space, const TrapWalk& walk) {
  Assembler& a = b.assembler();
  Label faulted = b.new_label(), go = b.new_label();
  b.load_context(r11);
  a.mov(rdx, qword_ptr(r11, offsetof(sampler::ThreadContext, trap_pc)));
  a.test(rdx, rdx);
  a.short_().jnz(faulted);
  a.mov(rdx, qword_ptr(rsp, -8));
  a.dec(rdx);
  a.short_().jmp(go);
  b.bind(faulted);
  a.mov(r11, qword_ptr(r11, offsetof(sampler::ThreadContext, activation)));
  a.cmp(rbp, qword_ptr(r11, offsetof(sampler::Activation, stack_pointer)));
  a.short_().ja(go);
  a.mov(rsp, rbp);
  b.bind(go);
  a.mov(rdi, imm(address_of(&space)));
  a.mov(rsi, imm(reinterpret_cast<uintptr_t>(walk.report)));
  a.mov(r8, imm(address_of(walk.runtime)));
  a.mov(rcx, rbp);
  a.and_(rsp, imm(-16));
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(&uptier_walk_trap)));
  a.call(rax);
}

// Handles a trap without an invoke to resume: an entry was called directly. Software detected the
// trap, so there is stack left, and trap_return is set.
void emit_orphan_check(CodeBuffer& b, const TrapWalk& walk) {
  Assembler& a = b.assembler();
  Label invoked = b.new_label();
  a.cmp(qword_ptr(r11, offsetof(sampler::ThreadContext, activation)), imm(0));
  a.short_().jne(invoked);
  a.mov(rdi, imm(address_of(walk.runtime)));
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(walk.orphaned)));
  a.and_(rsp, imm(-16));
  a.call(rax);
  b.bind(invoked);
}

// Resumes the innermost invoke as if its callee had returned, but with the result 1: a trap.
void emit_trap_exit(CodeBuffer& b, const Label& invoke_return, const CodeSpace& space,
                    const TrapWalk& walk) {
  Assembler& a = b.assembler();
  a.cld();
  Label faulted = b.new_label();
  b.load_context(r11);
  a.cmp(qword_ptr(r11, offsetof(sampler::ThreadContext, trap_pc)), imm(0));
  a.short_().jne(faulted);  // the stack below rsp may be unmapped
  a.mov(rdx, qword_ptr(rsp, -8));
  a.mov(qword_ptr(r11, offsetof(sampler::ThreadContext, trap_return)), rdx);
  if (walk.orphaned != nullptr) emit_orphan_check(b, walk);
  b.bind(faulted);
  if (walk.report != nullptr) emit_walk(b, space, walk);
  b.load_context(r11);
  a.mov(r11, qword_ptr(r11, offsetof(sampler::ThreadContext, activation)));
  a.mov(rsp, qword_ptr(r11, offsetof(sampler::Activation, stack_pointer)));
  a.lea(rbp, qword_ptr(rsp, kFrame));
  a.ldmxcsr(dword_ptr(rbp, kMxcsrSlot));
  a.fldcw(word_ptr(rbp, kX87Slot));
  a.mov(eax, imm(1));
  a.jmp(invoke_return);
}

// A call of a method that was removed: traps as at a callee's entry, whose exit follows.
void emit_gone(Assembler& a, CodeBuffer& b) {
  auto word = [](size_t at, uint32_t bytes) { return ptr(r11, static_cast<int32_t>(at), bytes); };
  b.load_context(r11);
  a.mov(word(offsetof(sampler::ThreadContext, pending_trap), 4),
        imm(static_cast<uint32_t>(TrapCode::kNoCode)));
  a.mov(word(offsetof(sampler::ThreadContext, trap_location), 4), imm(0));
  a.mov(word(offsetof(sampler::ThreadContext, trap_detail), 8), imm(0));
  a.mov(word(offsetof(sampler::ThreadContext, trap_pc), 8), imm(0));
  a.mov(word(offsetof(sampler::ThreadContext, trap_method), 4), imm(0));
  // Control falls through the padding, where int3 would stop it.
  while (b.offset() % 16 != 0) a.nop();
}

// ---- scalable_count ---------------------------------------------------------------------------

// rax = the counter, 2^m <= rax < 2^(m+1); k = m - 12, at least 1. Draws 64 bits by a linear
// congruential generator (Knuth's MMIX), whose high bits are good; adds a step of 2^k if the
// highest k bits are 0. A 32-bit counter stops at 2^32-1, so its step has to see the old value.
void emit_scalable_count(CodeBuffer& b, bool narrow) {
  Assembler& a = b.assembler();
  Label done = b.new_label(), again = b.new_label();
  Mem counter = ptr(r11, 0, narrow ? 4 : 8);
  a.push(rax);
  a.push(rcx);
  a.push(rdx);
  a.push(rbx);
  a.mov(gp(rax, !narrow), counter);
  a.bsr(rbx, rax);
  a.sub(ebx, imm(12));
  b.load_context(rcx);
  a.mov(rdx, imm(int64_t{6364136223846793005}));
  a.imul(rdx, qword_ptr(rcx, sampler::kCounterRandomOffset));
  a.mov(rax, imm(int64_t{1442695040888963407}));
  a.add(rdx, rax);
  a.mov(qword_ptr(rcx, sampler::kCounterRandomOffset), rdx);
  a.mov(ecx, imm(64));
  a.sub(ecx, ebx);
  a.shr(rdx, cl);
  a.jnz(done);
  a.mov(ecx, ebx);
  a.mov(ebx, imm(1));
  a.shl(rbx, cl);
  if (!narrow) {
    a.lock().add(counter, rbx);
  } else {
    a.mov(eax, counter);
    b.bind(again);
    a.mov(edx, imm(-1));
    a.mov(ecx, eax);
    a.add(ecx, ebx);
    a.cmovnc(edx, ecx);
    a.lock().cmpxchg(counter, edx);
    a.jne(again);
  }
  b.bind(done);
  a.pop(rbx);
  a.pop(rdx);
  a.pop(rcx);
  a.pop(rax);
  a.ret();
}

// ---- entry_slow -------------------------------------------------------------------------------

// The registers that a call may use: for arguments, the static chain, and the count of varargs.
constexpr Gp kCarried[] = {rdi, rsi, rdx, rcx, r8, r9, rax, r10};
constexpr int32_t kCarriedGp = 8 * 16;  // above the vector registers
constexpr int32_t kMethodSlot = kCarriedGp + 8 * 8;
constexpr int32_t kCarriedBytes = kMethodSlot + 16;

void emit_carried_gp(Assembler& a, bool save) {
  int32_t at = kCarriedGp;
  for (const Gp& r : kCarried) {
    save ? a.mov(qword_ptr(rsp, at), r) : a.mov(r, qword_ptr(rsp, at));
    at += 8;
  }
}

void emit_carried_xmm(Assembler& a, bool save) {
  int32_t at = 0;
  for (uint32_t i = 0; i < kXmmArgCount; ++i, at += 16) {
    save ? a.movaps(xmmword_ptr(rsp, at), xmm(i)) : a.movaps(xmm(i), xmmword_ptr(rsp, at));
  }
}

void emit_entry_slow(CodeBuffer& b, EntrySlow slow, void* runtime, EntryFast fast,
                     const void* data) {
  Assembler& a = b.assembler();
  Label done = b.new_label();
  a.push(rbp);
  a.mov(rbp, rsp);
  a.sub(rsp, imm(kCarriedBytes));
  a.and_(rsp, imm(-16));
  emit_carried_gp(a, true);
  a.cld();
  if (fast != nullptr) {
    a.mov(dword_ptr(rsp, kMethodSlot), r11d);
    a.mov(edi, r11d);
    a.mov(rsi, imm(address_of(data)));
    b.load_context(rdx);
    a.mov(rax, imm(reinterpret_cast<uintptr_t>(fast)));
    a.call(rax);
    a.mov(r11, rax);
    a.test(rax, rax);
    a.jnz(done);
    a.mov(r11d, dword_ptr(rsp, kMethodSlot));
  }
  emit_carried_xmm(a, true);
  a.mov(edi, r11d);
  a.mov(rsi, imm(address_of(runtime)));
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(slow)));
  a.call(rax);
  a.mov(r11, rax);
  emit_carried_xmm(a, false);
  b.bind(done);
  emit_carried_gp(a, false);
  a.leave();
  a.jmp(r11);
}

// ---- trial ------------------------------------------------------------------------------------

// For a timed call: where to store the cycles, and when it began.
constexpr int32_t kCyclesSlot = kMethodSlot;
constexpr int32_t kStartSlot = kMethodSlot + 8;

// rdx = the time, after everything before has finished. Changes rax.
void emit_time(Assembler& a) {
  a.lfence();
  a.rdtsc();
  a.shl(rdx, imm(32));
  a.or_(rdx, rax);
}

//   which version, timed?  --no--> jmp entry, as at the call
//                          --yes-> call entry, [cycles] = time taken | 1, ret
void emit_trial(CodeBuffer& b, TrialSlow slow, void* runtime) {
  Assembler& a = b.assembler();
  Label timed = b.new_label();
  a.push(rbp);
  a.mov(rbp, rsp);
  a.sub(rsp, imm(kCarriedBytes));
  a.and_(rsp, imm(-16));
  emit_carried_gp(a, true);
  emit_carried_xmm(a, true);
  a.cld();
  a.mov(edi, r11d);
  a.mov(rsi, imm(address_of(runtime)));
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(slow)));
  a.call(rax);
  a.mov(r11, rax);
  a.mov(qword_ptr(rsp, kCyclesSlot), rdx);
  emit_carried_xmm(a, false);
  a.test(rdx, rdx);
  a.short_().jnz(timed);
  emit_carried_gp(a, false);
  a.leave();
  a.jmp(r11);
  b.bind(timed);
  emit_time(a);
  a.mov(qword_ptr(rsp, kStartSlot), rdx);
  emit_carried_gp(a, false);
  a.call(r11);
  a.mov(r11, rax);
  emit_time(a);
  a.sub(rdx, qword_ptr(rsp, kStartSlot));
  a.or_(rdx, imm(1));
  a.mov(rcx, qword_ptr(rsp, kCyclesSlot));
  a.mov(qword_ptr(rcx), rdx);
  a.mov(rax, r11);
  a.leave();
  a.ret();
}

}  // namespace

NamedCode Routines::invoke_code() const {
  NamedCode code;
  code.base = span_.data() + invoke_ + invoke_pad_;
  code.size = gone_ - invoke_ - invoke_pad_;
  for (const Gp& r : kSavedRegisters) code.saved.push_back(static_cast<uint8_t>(r.id()));
  code.saved_at = -8;
  code.name = "uptier invoke";
  return code;
}

NamedCode Routines::other_code() const {
  NamedCode code;
  code.base = span_.data() + gone_;
  code.size = span_.size() - gone_;
  code.frames = {{0, {FrameState::Kind::kNone}}};
  code.name = "uptier routines";
  return code;
}

Result<Routines> Routines::create(CodeSpace& space, EntrySlow slow, void* runtime, EntryFast fast,
                                  const void* data, const TrapWalk& walk, const Leaving& leaving,
                                  TrialSlow trial, EntrySlow guard, const LoopRoutines& loops) {
  if (Status s = check_cpu(); !s) return s.error();
  CodeBuffer b(space);
  Assembler& a = b.assembler();
  Routines r;
  Label invoke_return = b.new_label();
  auto start = [&] {
    while (b.offset() % 16 != 0) a.int3();
    uint32_t at = b.offset();
    b.landing_pad();
    return at;
  };
  r.invoke_ = start();
  r.invoke_pad_ = b.offset() - r.invoke_;
  emit_invoke_entry(a);
  emit_standard_floats(b);
  emit_stack_arguments(b);
  emit_invoke_call(a);
  b.bind(invoke_return);
  emit_invoke_return(a);
  r.gone_ = start();
  emit_gone(a, b);
  // trap_exit expects the return address below rsp, as after a return. At a callee's entry it is at
  // rsp.
  r.trap_exit_at_entry_ = start();
  a.add(rsp, imm(8));
  r.trap_exit_ = b.offset();
  Label trap_exit = b.new_label();
  b.bind(trap_exit);
  emit_trap_exit(b, invoke_return, space, walk);
  r.scalable_count64_ = start();
  emit_scalable_count(b, false);
  r.scalable_count32_ = start();
  emit_scalable_count(b, true);
  r.entry_slow_ = start();
  emit_entry_slow(b, slow, runtime, fast, data);
  if (trial != nullptr) {
    r.trial_ = start();
    emit_trial(b, trial, runtime);
  }
  if (guard != nullptr) {
    r.guard_slow_ = start();
    emit_entry_slow(b, guard, runtime, nullptr, nullptr);
  }
  if (loops.plain != nullptr) {
    r.loop_plain_ = start();
    emit_loop_plain(b, loops);
    r.loop_instrumented_ = start();
    emit_loop_instrumented(b, loops);
  }
  if (leaving.leave != nullptr) {
    r.leave_ = start();
    emit_leave(b, leaving.leave, runtime, trap_exit, false);
    r.ask_ = start();
    emit_leave(b, leaving.ask, runtime, trap_exit, true);
  }
  Label probes[kProbeRoutines];
  for (uint32_t i = 0; i < kProbeRoutines; ++i) {
    r.probes_[i] = start();
    b.bind(probes[i] = b.new_label());
    emit_probe_routine(b, static_cast<ProbeRoutine>(i));
  }
  r.loop_pair_ = start();
  emit_loop_pair(b, probes[static_cast<uint32_t>(ProbeRoutine::kLoopEnter)],
                 probes[static_cast<uint32_t>(ProbeRoutine::kLoopLeave)]);
  auto span = b.publish_bare(space);
  if (!span.ok()) return span.error();
  r.span_ = std::move(span).value();
  return r;
}

InvokeResult invoke_code(InvokeRoutine invoke, const void* target, const Signature& signature,
                         std::span<const uint64_t> args) {
  assert(args.size() == signature.params.size());
  uint64_t gp[kGpArgCount] = {}, xmm[kXmmArgCount] = {}, small[16];
  std::vector<uint64_t> large;
  uint64_t* stack = small;
  if (uint32_t words = stack_words(signature); words > std::size(small)) {
    large.resize(words);
    stack = large.data();
  }
  ArgCursor cursor;
  for (size_t i = 0; i < args.size(); ++i) {
    ArgPlace p = cursor.next(signature.params[i]);
    uint64_t* to = p.kind == ArgPlace::Kind::kGp    ? gp
                   : p.kind == ArgPlace::Kind::kXmm ? xmm
                                                    : stack;
    to[p.index] = args[i];
  }
  sampler::ThreadContext& context = *sampler::current_context();
  sampler::Activation activation{context.activation, 0};
  context.activation = &activation;
  uint64_t out[2];
  bool trapped = invoke(target, gp, xmm, stack, cursor.stack_words(), out, &activation) != 0;
  context.activation = activation.outer;
  if (trapped) return {true, 0};
  Type t = signature.result;
  if (t == Type::kNone) return {};
  uint64_t bits = is_float(t) ? out[1] : out[0];
  return {false, is_wide(t) ? bits : static_cast<uint32_t>(bits)};
}

}  // namespace uptier::jit
