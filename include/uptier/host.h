// host.h: what an embedder brings.
//
// Three ways in, which may be mixed method by method:
//   1. `build` describes the body to a FunctionBuilder, and the library makes every tier and copy;
//   2. `compile` returns machine code or a C function for a Plan: the method gets stub, schedule,
//      counters, profile, policy and reclamation, and needs no IR (MethodInfo::own_code);
//   3. an interpreter is Tier::kHost: a C function with the method's signature runs until the
//      method is hot (MethodInfo::host_entry), and its loops go over to compiled code in the middle
//      of a call (Runtime::osr_enter).
//
// Collectors. One that moves nothing finds the roots in frames of compiled code by looking at the
// calling thread's registers and stack, conservatively; frames are described to nobody. Whenever a
// function of the host's is called, in every tier and copy:
//   - each i64 and ref that the code still uses is in a callee-saved general register or an aligned
//     word of the native stack, whole and as it is; so are HostFrame::slots, and parameters that a
//     version takes to be known (Options::value_versions);
//   - or its address is gone and one is left that `build` has computed from it by arithmetic, in
//     this round of a loop: these must lie within the object. The base of an access lives up to it;
//   - no other memory of the library's holds a value that is still used. Counters, tables, logs and
//     profiles hold words that were seen: they are no roots.
// The host keeps alive what it bakes into code as constants, puts no kValue probe on references
// (Options::value_samples: they may become constants), and does not collect in signal handlers, nor
// in `build`. docs/embedding.md, "A collector".
#pragma once

#include <cstdint>
#include <string>

#include "uptier/builder.h"
#include "uptier/ids.h"
#include "uptier/plan.h"
#include "uptier/profile.h"
#include "uptier/result.h"

namespace uptier {

class Host;

// A frame that compiled code gives back to the host's interpreter, because a guard has failed.
struct HostFrame {
  MethodId method;
  uint32_t pc = 0;  // of the frame_state
  GuardReason reason = GuardReason::kUser;
  uint32_t slot_count = 0;
  const uint64_t* slots = nullptr;  // bits of what the frame_state names, zero-extended
  Host* host = nullptr;             // whose method it is
};

class Host {
 public:
  virtual ~Host() = default;

  // Describes the body of a method. Called when the method is first compiled and again for each
  // further compilation, each time with the same result (same blocks in the same order): also of a
  // method that was retired, until `gone`. One that differs is not compiled; after
  // four such times no better code is asked for (LossReport::unstable_bodies).
  //
  // Thread: a calling thread or the runtime's worker, two methods at a time possibly; never the
  //         same method twice at once.
  // Errors: the method then stays in the code it has, its interpreter included; a first compile
  //         that fails makes the calls of a method without one trap (TrapCode::kNoCode). The
  //         message appears in the report. The default refuses.
  virtual Status build(MethodId, FunctionBuilder&) {
    return Error{ErrorCode::kUnsupported, "the host does not describe this method"};
  }

  // Makes code for a plan (never an OSR one). The profile is what was observed of the method so
  // far. Only called for methods with MethodInfo::own_code. An instrumented copy counts at
  // Runtime::counters(), in the words of MethodInfo::own_schema.
  //
  // The code may call what it likes, but cannot end with a trap: one that is raised below it
  // (Runtime::raise) is taken by whichever code looks for one next, or dropped.
  //
  // Thread, errors: as for build; but a first compile that fails is not tried again. The default
  // refuses.
  virtual Result<HostCode> compile(const Plan&, const MethodProfile&) {
    return Error{ErrorCode::kUnsupported, "the host has no compiler for this method"};
  }

  // Takes back what `compile` returned: no thread runs it, and none will. Called before the
  // method's remove_methods returns, `gone` is called, or the runtime dies, at the latest. Thread:
  // any, with the runtime's locks held: it must not call the runtime.
  virtual void release(MethodId, const HostCode&) noexcept {}

  // Says that the runtime is done with a method that was retired (Runtime::retire_methods): none of
  // its code is left, nor code of others that has its body in it, and the host is not asked for it
  // any more, by `build` or by host_resume. Called once for each such method, when that is noticed
  // by a thread that retires or removes methods, is quiescent, flushes, detaches or returns from its
  // outermost `invoke`, and at the latest when the runtime dies.
  //
  // Thread: that one; no lock of the runtime's is held, so that it may remove other methods, but for
  //         while the runtime dies. Whoever removes a method waits while another thread tells its
  //         host, so not with a lock that this takes.
  virtual void gone(MethodId) noexcept {}

  // Returns what methods have in common whose alias classes mean the same (opcodes.h), provided that
  // they have a module_key in common as well. A host that is one object for each method returns
  // what those share. Thread: any.
  virtual const void* alias_scope() const noexcept { return this; }
};

struct MethodInfo {
  // Names the method in profiles and traces. Methods may share one (the instances of a module do):
  // profiles add up what those of the same shape have counted. Where the name or the body differs,
  // a profile cannot tell them apart: LossReport::keys_shared. All 0: the library makes one of the
  // name and of how many methods without a key have that name already.
  MethodKey key;
  std::string name;
  Signature signature;
  // Optional: code that runs the method in Tier::kHost until better code is installed. A C function
  // with exactly `signature`; may raise a trap only with host_may_trap. Nothing says which method it
  // is called for, so a host whose interpreter is one function makes the method (a closure)
  // argument 0. `build` is not called before a compilation is due, after flush_first calls or
  // loop_flush_first iterations, and may be made of what was seen by then.
  //
  // Only Options::tier = auto runs it. The fixed tiers compile the method at its first call as if it
  // had none (guards leave for host_resume all the same), and interpret only what `build` refuses: a
  // host that guesses has seen nothing by then. They are for tests, not for timing.
  const void* host_entry = nullptr;
  // Whether `build` needs nothing that host_entry has seen. A method that a saved profile
  // (Options::profile) knows to be hot is then optimized at its first call, like one without an
  // interpreter. Without, it is interpreted first in every process, whatever the profile says.
  bool describes_at_once = false;
  // Optional: goes on with the call of a frame of this method, from its pc to its end, and returns
  // the bits of the method's result. A guard that fails, in any code of the method, then comes
  // here, and the frame of compiled code is gone when this returns. It may run guest code and may
  // raise a trap (Runtime::raise). The frame and its slots live for the call. Its interpreter may
  // enter compiled code again, which may come here again: see Runtime::osr_enter for what bounds
  // that. An exit for which the stack has no room traps stack_exhausted.
  //
  // A guard that keeps failing is counted, and when Options::exit_limit (exit_limit_loop) has been
  // met exit_retries times and once more, the exit itself takes the method's compiled code out of
  // service for good: it goes back to host_entry, or to baseline code without one. What it guesses
  // is the host's to change, with another method (add_method, retire_methods), best before that:
  // it sees every exit.
  //
  // Thread: the one that runs the method. Errors: none may leave it. Without it, a guard that fails
  // in baseline code ends the call with TrapCode::kGuardFailed. Cost: about a microsecond more than
  // the call.
  uint64_t (*host_resume)(const HostFrame* frame) = nullptr;
  // Whether `host_entry` may return with a trap raised (Runtime::raise). Its calls then go through
  // a few instructions that look for one.
  bool host_may_trap = false;
  // Whether the host makes the code by itself: `compile` is asked, and `build` is not.
  bool own_code = false;
  // With own_code: the size of the body in instructions, from which costs are estimated, and what
  // instrumented copies count: in words, so what has a table has nothing but its `other` there.
  // Without slots there is no instrumented copy.
  uint32_t own_size = 1;
  Schema own_schema = {};
};

}  // namespace uptier
