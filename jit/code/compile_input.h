// CompileInput: the input of both compilers: a function, and the addresses that its code calls.
//
//   Thread: a compilation runs on one thread; the resolver says which threads may call it.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "jit/code/probe_routines.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// The way in which code reaches the callee of a direct call.
struct CallTarget {
  enum class Kind : uint8_t {
    kStub,  // call the address (a stub in the code space)
    kCell,  // call through the 8-byte word at the address (skips the stub's count)
    kSelf,  // call the start of the code that is being compiled
    // As the stub does it: count the call, then call through the word at the address. If an event
    // is due, call `due` instead. Optimized code only; elsewhere, and where calls are rare, the
    // stub is called.
    kCounted,
  };
  Kind kind = Kind::kStub;
  const void* address = nullptr;
  const void* stub = nullptr;  // kCounted: the callee's stub
  const void* due = nullptr;   // kCounted: the stub's tail
};

class CallResolver {
 public:
  virtual ~CallResolver() = default;
  virtual CallTarget target(MethodId callee) = 0;
};

// Addresses of the C helpers and routines that code refers to; constant for a runtime.
struct Helpers {
  // (uint32_t method, uint32_t loop, void* frame, void* runtime) -> address to jump to. Called from
  // the checks at loop headers when the countdown is due. `frame` is the baseline frame's rbp.
  const void* loop_slow_plain = nullptr;
  const void* loop_slow_instrumented = nullptr;
  // Jumped to when ThreadContext::pending_trap is set after a host call.
  const void* trap_exit = nullptr;
  // Called by exits: Routines::leave and ask_to_leave, inside the code space. If they are null,
  // guards trap and nothing is speculated on.
  const void* leave = nullptr;
  const void* ask_to_leave = nullptr;
  // Called by counters of CounterMode::kScalable and kDual: the routines of Routines, inside the
  // code space. May be null if there are no such counters.
  const void* scalable_count64 = nullptr;
  const void* scalable_count32 = nullptr;
  // Called by instrumented copies whose plan has sites or loops, by ProbeRoutine.
  const void* probes[kProbeRoutines] = {};
  // Passed to the loop helpers unchanged.
  void* runtime = nullptr;
};

// All references must outlive the compilation.
struct CompileInput {
  const Function& function;
  MethodId method;
  const Helpers& helpers;
  CallResolver& calls;
  CodeSpace& space;
  bool lines = false;  // make CodeTables::lines
  // Plain code gets CodeTables::probes. Its bytes are the same without. Instrumented copies need the
  // rows, and have them in any case.
  bool block_rows = true;
};

}  // namespace uptier::jit
