// Routines: the hand-written pieces of code that stubs, hosts and traps pass through.
//
//   invoke          C -> compiled code: loads the argument registers, remembers where to return
//   trap_exit       compiled code -> the innermost invoke: tells the TrapWalk which frames end, and
//                   unwinds to the Activation
//   entry_slow      a stub's slow path -> C: all argument registers survive it
//   trial           a call that may be timed: C chooses which of two versions it runs
//   loop_plain, loop_instrumented   slow side of a loop header's check: see loop_routines.h
//   guard_slow      a guard in front of a version has counted enough -> C: see value_guard.h
//   leave           an exit of compiled code -> C, and on into another frame: see leave.h
//   scalable_count  adds to a counter that has left the exact range, see probe_plan.h
//   probes          compiled code -> C functions that observe: see probe_routines.h
//
// One set for each runtime, in its code space, so that code reaches them with rel32.
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

// Decides which code a call with a due countdown runs. Called with the method's index and the
// pointer that Routines was created with; returns the address of the code. Must not throw.
using EntrySlow = const void* (*)(uint32_t method, void* runtime);

// Called first, with the calling thread's context: returns the code, or null to leave the event to
// EntrySlow. It must not use a vector register, because none is saved for it.
using EntryFast = const void* (*)(uint32_t method, const void* data,
                                  sampler::ThreadContext* context);

// The version that a call runs which may be timed, and where to store its time, in cycles of the
// time stamp counter, never 0. `cycles` null: the call is not timed.
struct TrialCall {
  const void* entry;
  uint64_t* cycles;
};
using TrialSlow = TrialCall (*)(uint32_t method, void* runtime);

// Calls `target` with registers and stack words as given. Sets `activation.stack_pointer`; the
// caller fills in the rest of `activation` and links it into the context. Returns 0 and fills
// out[0] from rax and out[1] from xmm0, or returns 1 if a trap ended the call. The call runs in the
// floating-point environment of float_state.h. Restores callee-saved registers, MXCSR with its
// flags, and after a trap the x87 control word.
using InvokeRoutine = uint32_t (*)(const void* target, const uint64_t* gp, const uint64_t* xmm,
                                   const uint64_t* stack, uint64_t stack_words, uint64_t* out,
                                   sampler::Activation* activation);

// The functions that exits call; both null if there are no exits.
struct Leaving {
  LeaveSlow leave = nullptr;
  LeaveSlow ask = nullptr;  // for exits that may stay
};

class Routines {
 public:
  // The distance from an Activation's stack pointer to the rbp of its invoke's frame.
  static constexpr uint64_t kInvokeFrame = 64;

  // Emits the routines. `runtime` is passed to `slow` and to `leaving` unchanged, `data` to `fast`;
  // `fast` and the report of `walk` may be null. The space must outlive every run of its code.
  // Errors: kResourceExhausted, or kUnsupported if the processor lacks instructions that compiled
  // code needs.
  static Result<Routines> create(CodeSpace& space, EntrySlow slow, void* runtime,
                                 EntryFast fast = nullptr, const void* data = nullptr,
                                 const TrapWalk& walk = {}, const Leaving& leaving = {},
                                 TrialSlow trial = nullptr, EntrySlow guard = nullptr,
                                 const LoopRoutines& loops = {});

  InvokeRoutine invoke() const { return reinterpret_cast<InvokeRoutine>(span_.data() + invoke_); }
  // Describes `invoke` for native tools: backtraces pass through it.
  NamedCode invoke_code() const;
  // Returns whether `pc` is in `invoke`.
  bool in_invoke(const void* pc) const {
    auto* at = static_cast<const uint8_t*>(pc);
    return at >= span_.data() + invoke_ && at < span_.data() + gone_;
  }
  // Describes the other routines, for tools that only need names.
  NamedCode other_code() const;
  // The fault handler resumes here, with the context's trap_pc set; or compiled code jumps here
  // right after a call that left a pending trap, with trap_pc 0.
  const void* trap_exit() const { return at(trap_exit_); }
  // Jumped to instead of a callee's entry, with trap_pc 0: the call itself ends with the trap.
  const void* trap_exit_at_entry() const { return at(trap_exit_at_entry_); }
  // Called in place of a method that had already been removed when the caller was compiled: the
  // call ends with the trap kNoCode, of no method.
  const void* gone() const { return at(gone_); }
  // Jumped to with the method's index in r11d and everything else as at the call.
  const void* entry_slow() const { return at(entry_slow_); }
  // The same for a call of a method two of whose versions are being compared. A timed call has a
  // frame of its own, with the usual frame pointer. The callee would not find stack arguments after
  // it, so methods with stack arguments do not come here. Null without a TrialSlow.
  const void* trial() const { return trial_ == 0 ? nullptr : at(trial_); }
  // Guards that have something to report jump here, as to entry_slow. Null without a `guard`.
  const void* guard_slow() const { return guard_slow_ == 0 ? nullptr : at(guard_slow_); }
  // Called by the checks at loop headers (Helpers::loop_slow_plain). Null without LoopRoutines.
  const void* loop_plain() const { return loop_plain_ == 0 ? nullptr : at(loop_plain_); }
  const void* loop_instrumented() const {
    return loop_instrumented_ == 0 ? nullptr : at(loop_instrumented_);
  }
  // Called by exits; the tables of their code say which exit it is. Null without `Leaving`.
  const void* leave() const { return leave_ == 0 ? nullptr : at(leave_); }
  const void* ask_to_leave() const { return ask_ == 0 ? nullptr : at(ask_); }
  // Called with the counter's address in r11, if the counter is 2^13 or more. Keeps every register
  // except r11 and the flags. Draws from the context's counter_random.
  const void* scalable_count64() const { return at(scalable_count64_); }
  const void* scalable_count32() const { return at(scalable_count32_); }
  const void* probe(ProbeRoutine r) const { return at(probes_[static_cast<uint32_t>(r)]); }
  // The routine that sampler::LoopTimer::measure needs.
  using LoopPair = void (*)(uint64_t* slab);
  LoopPair loop_pair() const { return reinterpret_cast<LoopPair>(span_.data() + loop_pair_); }

 private:
  const uint8_t* at(uint32_t offset) const { return span_.data() + offset; }
  CodeSpan span_;
  uint32_t invoke_ = 0, trap_exit_ = 0, trap_exit_at_entry_ = 0, entry_slow_ = 0, loop_pair_ = 0;
  uint32_t invoke_pad_ = 0;  // bytes of its landing pad; its NamedCode begins after them
  uint32_t gone_ = 0;
  uint32_t scalable_count64_ = 0, scalable_count32_ = 0;
  uint32_t leave_ = 0, ask_ = 0, trial_ = 0, guard_slow_ = 0;
  uint32_t loop_plain_ = 0, loop_instrumented_ = 0;
  uint32_t probes_[kProbeRoutines] = {};
};

// The outcome of invoke_code.
struct InvokeResult {
  bool trapped = false;  // the context's trap fields say why; the caller clears pending_trap
  uint64_t bits = 0;     // the result's bits, zero-extended
};

// Calls compiled code (or any C function of the signature) from C++ with argument bits, one word
// each. Links an Activation into the calling thread's context during the call.
InvokeResult invoke_code(InvokeRoutine invoke, const void* target, const Signature& signature,
                         std::span<const uint64_t> args);

}  // namespace uptier::jit
