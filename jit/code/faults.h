// faults: turns a processor fault in compiled code into a trap.
//
// A fault is ours only if all of this holds; any other goes to the handler installed before ours,
// as if ours did not exist:
//
//   the kernel raised it for an instruction (not kill()),
//   the pc is exactly the address of a trap row of live code,
//   the thread is inside an invoke of the stack that it is on.
//
// If only the last condition fails and there was no earlier handler, the process would end with an
// unexplained signal. In that case the runtime of the code ends it with a message
// (CodeRegistration::add).
//
// The handler writes the trap into the thread's context and resumes at trap_exit. Code that faults
// before it has made its frame (frame_row.h) first gets one, so that from there on frames are one
// chain of rbp. The handler allocates nothing, takes no lock and calls only code_registry.
#pragma once

#include <signal.h>

#include <cstddef>

#include "uptier/result.h"

namespace uptier::jit {

// Handles SIGSEGV, SIGBUS, SIGFPE and SIGILL while any such object lives. The last object restores
// the host's handlers, unless the host has installed others since: it leaves those alone, and ours
// stays reachable through them.
//
//   Thread: any.
class FaultHandlers {
 public:
  // Errors: kIo when the kernel refuses a handler.
  static Result<FaultHandlers> install();
  FaultHandlers(FaultHandlers&& other) noexcept;
  FaultHandlers& operator=(FaultHandlers&& other) noexcept;
  ~FaultHandlers();

 private:
  FaultHandlers() = default;
  bool installed_ = false;
};

// The calling thread's alternate signal stack, for the life of the object: the handler must run
// even if the thread's own stack is exhausted. If the host has set one with room for a signal frame
// and kLeast more, it is kept; a smaller one is restored at the end.
//
// Thread: created and destroyed by its thread.
class AltStack {
 public:
  static constexpr size_t kBytes = 64 << 10;  // plus a guard page below
  // Stack that our handler needs below the kernel's signal frame, and then the host's handler.
  static constexpr size_t kLeast = 16 << 10;

  // Errors: kResourceExhausted if the kernel refuses memory, or refuses another stack because the
  // thread runs on the host's alternate stack.
  static Result<AltStack> create();
  AltStack(AltStack&& other) noexcept;
  AltStack& operator=(AltStack&& other) noexcept;
  ~AltStack();

 private:
  AltStack() = default;
  void* mapping_ = nullptr;  // null: the host's own is in use
  stack_t before_ = {};
};

// Unblocks the fault signals on the calling thread for the life of the object: if one is blocked
// when an instruction raises it, the process ends. The destructor blocks them again.
//
// Thread: created and destroyed by its thread.
class UnblockedFaults {
 public:
  UnblockedFaults() noexcept;
  ~UnblockedFaults();
  UnblockedFaults(const UnblockedFaults&) = delete;
  UnblockedFaults& operator=(const UnblockedFaults&) = delete;

 private:
  sigset_t blocked_;  // the fault signals that were blocked before
  bool any_ = false;
};

}  // namespace uptier::jit
