// Routines: the hand-written pieces of code through which stubs, hosts and traps pass.
//
//   invoke          C -> compiled code: loads the argument registers, remembers where to come back
//   trap_exit       compiled code -> the innermost invoke: tells the TrapWalk which frames go, and
//                   unwinds to the Activation
//   entry_slow      a stub's slow path -> C: all argument registers survive it
//   trial           a call that may be timed: C says which of two versions it runs
//   loop_plain, loop_instrumented   a loop header's check asks: see loop_routines.h
//   guard_slow      a guard in front of a version has counted enough -> C: see value_guard.h
//   leave           an exit of compiled code -> C, and on into another frame: see leave.h
//   scalable_count  adds to a counter that has left the exact range, see probe_plan.h
//   probes          compiled code -> C functions that observe: see probe_routines.h
//
// One set a runtime, in its code space, so that code reaches them with rel32.
#pragma once

#include <cstdint>
#include <span>

#include "jit/code/code_space.h"
#include "jit/code/leave.h"
#include "jit/code/loop_routines.h"
#include "jit/code/named_code.h"
#include "jit/code/probe_routines.h"
#include "jit/code/trap_walk.h"
#include "sampler/context.h"
#include "uptier/builder.h"
#include "uptier/result.h"

namespace uptier::jit {

// Decides what a call whose countdown is due runs: called with the method's index and the pointer
// that Routines was made with; returns the address of the code. Must not throw.
using EntrySlow = const void* (*)(uint32_t method, void* runtime);

// Tried before it, with the calling thread's context: returns the code, or null to leave the event
// to EntrySlow. It must not touch a vector register, so none is saved for it.
using EntryFast = const void* (*)(uint32_t method, const void* data,
                                  sampler::ThreadContext* context);

// Which version a call runs that may be timed, and where the time goes: cycles of the time stamp
// counter, never 0. `cycles` null: it is not timed.
struct TrialCall {
  const void* entry;
  uint64_t* cycles;
};
using TrialSlow = TrialCall (*)(uint32_t method, void* runtime);

// Calls `target` with registers and stack words as given. Sets `activation.stack_pointer`; the rest
// of `activation`, and linking it into the context, is the caller's. Returns 0 and fills out[0]
// from rax and out[1] from xmm0, or returns 1 when a trap ended the call. The call runs with the
// floating-point environment of float_state.h. Restores callee-saved registers, MXCSR with its flags,
// and where it trapped the x87 control word.
using InvokeRoutine = uint32_t (*)(const void* target, const uint64_t* gp, const uint64_t* xmm,
                                   const uint64_t* stack, uint64_t stack_words, uint64_t* out,
                                   sampler::Activation* activation);

// What exits call; both null where there are none.
struct Leaving {
  LeaveSlow leave = nullptr;
  LeaveSlow ask = nullptr;  // of exits that may stay
};

class Routines {
 public:
  // From an Activation's stack pointer up to the rbp of its invoke's frame.
  static constexpr uint64_t kInvokeFrame = 64;

  // Emits them. `runtime` is passed to `slow` and to `leaving` as it is, `data` to `fast`; `fast`
  // may be null, and so may be the report of `walk`. The space must outlive every run of its code.
  // Errors: kResourceExhausted, or kUnsupported on a processor that lacks what compiled code needs.
  static Result<Routines> create(CodeSpace& space, EntrySlow slow, void* runtime,
                                 EntryFast fast = nullptr, const void* data = nullptr,
                                 const TrapWalk& walk = {}, const Leaving& leaving = {},
                                 TrialSlow trial = nullptr, EntrySlow guard = nullptr,
                                 const LoopRoutines& loops = {});

  InvokeRoutine invoke() const { return reinterpret_cast<InvokeRoutine>(span_.data() + invoke_); }
  // What native tools are told of it: backtraces pass through.
  NamedCode invoke_code() const;
  // Returns whether `pc` is in it.
  bool in_invoke(const void* pc) const {
    auto* at = static_cast<const uint8_t*>(pc);
    return at >= span_.data() + invoke_ && at < span_.data() + gone_;
  }
  // The others, for tools that ask for no more than names.
  NamedCode other_code() const;
  // Resumed at by the fault handler, with the context's trap_pc set; or jumped to by compiled code
  // right after a call that left a pending trap, with trap_pc 0.
  const void* trap_exit() const { return at(trap_exit_); }
  // Jumped to instead of a callee's entry, with trap_pc 0: the call itself ends with the trap.
  const void* trap_exit_at_entry() const { return at(trap_exit_at_entry_); }
  // Called in the place of a method that had been removed when the caller was compiled: the call
  // ends with the trap kNoCode, of no method.
  const void* gone() const { return at(gone_); }
  // Jumped to with the method's index in r11d and everything else as at the call.
  const void* entry_slow() const { return at(entry_slow_); }
  // The same for a call of a method of whose versions two are compared. What is timed has a frame
  // of its own, with the usual frame pointer; arguments on the stack would not be found after it,
  // so a method that has any does not come here. Null without a TrialSlow.
  const void* trial() const { return trial_ == 0 ? nullptr : at(trial_); }
  // Jumped to like entry_slow, by guards that have something to tell. Null without a `guard`.
  const void* guard_slow() const { return guard_slow_ == 0 ? nullptr : at(guard_slow_); }
  // Called by the checks at loop headers (Helpers::loop_slow_plain). Null without LoopRoutines.
  const void* loop_plain() const { return loop_plain_ == 0 ? nullptr : at(loop_plain_); }
  const void* loop_instrumented() const {
    return loop_instrumented_ == 0 ? nullptr : at(loop_instrumented_);
  }
  // Called by exits: where they lie is in the tables of their code. Null without `Leaving`.
  const void* leave() const { return leave_ == 0 ? nullptr : at(leave_); }
  const void* ask_to_leave() const { return ask_ == 0 ? nullptr : at(ask_); }
  // Called with the counter's address in r11, when it was found at 2^13 or beyond. Keeps every
  // register but r11 and flags. Draws from the context's counter_random.
  const void* scalable_count64() const { return at(scalable_count64_); }
  const void* scalable_count32() const { return at(scalable_count32_); }
  const void* probe(ProbeRoutine r) const { return at(probes_[static_cast<uint32_t>(r)]); }
  // What sampler::LoopTimer::measure asks for.
  using LoopPair = void (*)(uint64_t* slab);
  LoopPair loop_pair() const { return reinterpret_cast<LoopPair>(span_.data() + loop_pair_); }

 private:
  const uint8_t* at(uint32_t offset) const { return span_.data() + offset; }
  CodeSpan span_;
  uint32_t invoke_ = 0, trap_exit_ = 0, trap_exit_at_entry_ = 0, entry_slow_ = 0, loop_pair_ = 0;
  uint32_t invoke_pad_ = 0;  // bytes of its landing pad, where no frame is told of
  uint32_t gone_ = 0;
  uint32_t scalable_count64_ = 0, scalable_count32_ = 0;
  uint32_t leave_ = 0, ask_ = 0, trial_ = 0, guard_slow_ = 0;
  uint32_t loop_plain_ = 0, loop_instrumented_ = 0;
  uint32_t probes_[kProbeRoutines] = {};
};

// How invoke_code ended.
struct InvokeResult {
  bool trapped = false;  // the context's trap fields say why; the caller clears pending_trap
  uint64_t bits = 0;     // the result's bits, zero-extended
};

// Calls compiled code (or any C function of the signature) from C++ with argument bits, one word
// each. Links an Activation into the calling thread's context for the duration.
InvokeResult invoke_code(InvokeRoutine invoke, const void* target, const Signature& signature,
                         std::span<const uint64_t> args);

}  // namespace uptier::jit
