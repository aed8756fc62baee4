// host.h: the interface that an embedder implements.
//
// There are three ways to provide code, and each method may use another:
//   1. `build` describes the body to a FunctionBuilder, and the library makes every tier and copy.
//   2. `compile` returns machine code or a C function for a Plan. The method has a stub, a sampling
//      schedule, counters, a profile, the policy and reclamation, but no IR (MethodInfo::own_code).
//   3. An interpreter is Tier::kHost: a C function with the method's signature runs until the
//      method is hot (MethodInfo::host_entry). Its loops can move to compiled code in the middle of
//      a call (Runtime::osr_enter).
//
// Garbage collectors. A collector that does not move objects finds the roots in frames of compiled
// code by scanning the calling thread's registers and stack conservatively. There are no stack
// maps. Whenever compiled code calls a function of the host, in every tier and copy:
//   - Each i64 and ref that the code still uses is unchanged in a callee-saved general register or
//     in an aligned word of the native stack. The same holds for HostFrame::slots, and for
//     parameters whose value a version assumes (Options::value_versions).
//   - In place of an address, the code may keep a derived (interior) pointer that `build` computes
//     from it in the same loop iteration. The host must ensure that derived pointers lie within
//     the object. The base of an access is live up to the access.
//   - No other memory of the library holds a value that is still used. Counters, tables, logs and
//     profiles hold words that were seen: they are not roots.
// The host must keep objects alive that it puts into code as constants. It must not put kValue
// probes on references (they may become constants: Options::value_samples), and must not collect in
// signal handlers or in `build`. See docs/embedding.md, "A collector".
#pragma once

#include <cstdint>
#include <string>

#include "uptier/builder.h"
#include "uptier/ids.h"
#include "uptier/image.h"
#include "uptier/plan.h"
#include "uptier/positions.h"
#include "uptier/profile.h"
#include "uptier/result.h"

namespace uptier {

class Host;

// A frame that compiled code returns to the host's interpreter because a guard has failed.
struct HostFrame {
  MethodId method;
  uint32_t pc = 0;  // as passed to FunctionBuilder::frame_state
  GuardReason reason = GuardReason::kUser;
  uint32_t slot_count = 0;
  const uint64_t* slots = nullptr;  // values of the frame_state, zero-extended
  Host* host = nullptr;             // the host of the method
};

class Host {
 public:
  virtual ~Host() = default;

  // Describes the body of a method. Called when the method is first compiled and for each further
  // compilation, also for a method that was retired, until `gone`. The description must be the same
  // each time, instructions, constants and probes included; to change it, register another method.
  // Only control flow and the number of calls are compared. A method that differs in these is not
  // compiled; after four such attempts the runtime stops asking for better code
  // (LossReport::unstable_bodies).
  //
  // It must not call remove_methods, retire_methods, set, observe, flush, save_profile or gather,
  // nor destroy the runtime. Thread: a calling thread or the runtime's worker. Two methods may be
  // described at the same time, but never the same method twice.
  // Exceptions: if memory is refused, FunctionBuilder throws std::bad_alloc. Let it pass: `build`
  // must not be noexcept, and must throw nothing else.
  // Errors: the method stays in its present code, which may be the interpreter. If a method without
  // an interpreter fails its first compilation, its calls trap (TrapCode::kNoCode). The report has
  // the message. The default implementation refuses.
  virtual Status build(MethodId, FunctionBuilder&) {
    return Error{ErrorCode::kUnsupported, "the host does not describe this method"};
  }

  // Makes code for a plan (never an OSR plan), with the profile of the method so far. Only called
  // for methods with MethodInfo::own_code. An instrumented copy counts at Runtime::counters(), in
  // the words of MethodInfo::own_schema.
  //
  // The code may call any function, but it cannot end with a trap. If such a function calls
  // Runtime::raise, the next compiled code that tests for a trap ends with it; if there is none,
  // the trap is dropped.
  //
  // Thread and errors: as for `build`, except that a first compilation that fails is not tried
  // again. The default implementation refuses.
  virtual Result<HostCode> compile(const Plan&, const MethodProfile&) {
    return Error{ErrorCode::kUnsupported, "the host has no compiler for this method"};
  }

  // Gives back code that `compile` has made: no thread runs it now or later. Called before
  // remove_methods of the method returns, before `gone`, or before the runtime is destroyed,
  // whichever is first. Thread: any, with locks of the runtime held, so it must not call the
  // runtime.
  virtual void release(MethodId, const HostCode&) noexcept {}

  // Says that the runtime no longer needs a retired method (Runtime::retire_methods): its code is
  // gone, and so is all code that has its body inlined, and the host will not be asked for it again
  // by `build` or host_resume. Called once for each such method, by a thread that notices it while
  // it retires or removes methods, is quiescent, flushes, detaches or returns from its outermost
  // `invoke`; at the latest when the runtime is destroyed.
  //
  // Thread: the one that notices. It holds no lock of the runtime, so it may remove other methods,
  // except during the destruction of the runtime. A thread that removes a method waits while
  // another thread is in this call for it. So it must not hold a lock that this call takes.
  virtual void gone(MethodId) noexcept {}

  // Returns where a location of a method lies in the sources (positions.h), if the method's body
  // has no position for it. Called when somebody asks: Runtime::positions; and, for a body whose
  // code is installed, Options::gdb and jit_dump. Never before. The same location always has the
  // same position. Not called for a method that was removed or retired.
  //
  // Thread: any, several at a time, with locks of the runtime held: it must not call the runtime,
  // and must not wait for a thread that does. The default implementation knows none.
  virtual SourcePositions positions(MethodId, uint32_t location) {
    (void)location;
    return {};
  }

  // Returns a hash of everything that the description of a method depends on: the program, and the
  // host's own choices. Two processes in which the hash and MethodKey::function_index of a method are
  // equal must describe it alike, constants included, where methods of the same host stand for each
  // other by their function indices. So a description that contains addresses or numbers that the
  // process has drawn must have none. Code of methods with a hash can come from images (image.h). The default: none.
  //
  // Thread: any, several at a time. Called once for each first call while there is an image, and by
  // write_image. Exceptions: none.
  virtual ContentHash content(MethodId) noexcept { return {}; }
  // Returns the method of this host with a function index, registering it if there is none yet: code
  // of `caller` that comes from an image calls it. `build` would have called it the same way. Thread,
  // locks, exceptions: as for `build`. The default implementation refuses, and then only methods
  // without direct calls come from images.
  virtual Result<MethodId> callee(MethodId caller, uint32_t function_index) {
    (void)caller, (void)function_index;
    return Error{ErrorCode::kUnsupported, "the host does not find callees by their index"};
  }

  // Returns an object that stands for the meaning of alias classes (opcodes.h): methods for which
  // it is the same, and which share a module_key, give the same meaning to an alias class. If a
  // host is one object per method, return the object that those hosts share. Thread: any.
  virtual const void* alias_scope() const noexcept { return this; }
};

// Copied by add_method. host_entry and host_resume must stay callable until remove_methods returns or,
// for a retired method, until Host::gone.
struct MethodInfo {
  // Names the method in profiles and traces. Methods may share a key, as the instances of a module
  // do; profiles then add the counts of those with the same shape. If their names or bodies differ,
  // a profile cannot tell them apart (LossReport::keys_shared). If the key is all 0, the library
  // makes one from the name and the number of earlier methods without a key that have the same
  // name.
  MethodKey key;
  std::string name;
  Signature signature;
  // Optional: code that runs the method in Tier::kHost until better code is installed. It is a C
  // function with exactly `signature`. It may raise a trap only with host_may_trap. It is not told
  // which method it is called for, so a host whose interpreter is one function passes the method
  // (or a closure) as argument 0. `build` is not called before a compilation is due, after
  // flush_first calls or loop_flush_first iterations, so `build` may use the interpreter's
  // observations up to then.
  //
  // Only Options::tier = auto runs host_entry. The fixed tiers compile the method at its first call
  // as if host_entry were null (guards still leave to host_resume), and interpret only methods that
  // `build` refuses. A host that guesses has observed nothing by then, so fixed tiers are for
  // tests, not for timing.
  const void* host_entry = nullptr;
  // True if `build` does not need the observations of host_entry. A method that is hot in a saved
  // profile (Options::profile) is then optimized at its first call, like one without an
  // interpreter. If false, it is interpreted first in every process, whatever the profile says.
  bool describes_at_once = false;
  // Optional: continues the call of a frame of this method from its pc to its end, and returns the
  // bits of the method's result. Called when a guard fails, in any code of the method; the frame of
  // compiled code is gone when this returns. It may run guest code and may raise a trap
  // (Runtime::raise). The frame and its slots are valid during the call. The interpreter may enter
  // compiled code again, which may call this again; see Runtime::osr_enter for the bound. If the
  // stack has no room for an exit, it traps stack_exhausted.
  //
  // Each guard has a limit of exits: Options::exit_limit (in a loop: exit_limit_loop), doubled each
  // time it is reached. When it is reached for the (exit_retries + 1)-th time, that exit takes the
  // method's compiled code out of service for good: the method goes back to host_entry, or to
  // baseline code if it has none. To change its assumptions, the host adds a new method and retires
  // this one, best before that happens: it sees every exit.
  //
  // Thread: the one that runs the method. Errors: it must not throw. If host_resume is null, a
  // guard that fails in baseline code ends the call with TrapCode::kGuardFailed. Cost: about a
  // microsecond in addition to the call.
  uint64_t (*host_resume)(const HostFrame* frame) = nullptr;
  // True if `host_entry` may return with a trap raised (Runtime::raise). Its calls then go through
  // a few instructions that test for a trap.
  bool host_may_trap = false;
  // True if the host makes the code itself: the runtime calls `compile` and never `build`.
  bool own_code = false;
  // With own_code. own_size is the number of IR instructions (opcodes.h) that the body would have;
  // costs are estimated from it. own_schema says what instrumented copies count, in words; a slot
  // with a table has only its `other` word. Without slots there is no instrumented copy.
  uint32_t own_size = 1;
  Schema own_schema = {};
};

}  // namespace uptier
