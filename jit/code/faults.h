// faults: from a processor fault in compiled code to a trap.
//
// A fault is ours only if all of this holds; anything else goes to the handler that was there
// before, as if ours did not exist:
//
//   the kernel raised it for an instruction (not kill()),
//   the pc is exactly that of a trap row of live code,
//   the thread is inside an invoke of the stack that it is on.
//
// Where only the last fails and nobody was there before, the process would end with a signal that
// says nothing: the runtime whose code it is ends it with a message (CodeRegistration::add).
//
// The handler then writes the trap into the thread's context and resumes at trap_exit. Code that
// faults without having made its frame (frame_row.h) is given it first, so that from there on
// frames are one chain of rbp. The handler allocates nothing, locks nothing and calls nothing but
// code_registry.
#pragma once

#include <signal.h>

#include <cstddef>

#include "uptier/result.h"

namespace uptier::jit {

// Keeps SIGSEGV, SIGBUS, SIGFPE and SIGILL handled while any such object lives. The handlers of the
// host are put back with the last one, unless the host has installed others since: those are left
// alone, and ours stays reachable after them.
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
// even where the thread's own stack is used up. Where the host has set one that has room for a signal
// frame and kLeast more, it is kept; a smaller one is put back at the end.
//
//   Thread: made and destroyed by the thread that it is for.
class AltStack {
 public:
  static constexpr size_t kBytes = 64 << 10;  // plus a guard page below
  // What the handler takes below the frame that the kernel makes, and the host's handler after it.
  static constexpr size_t kLeast = 16 << 10;

  // Errors: kResourceExhausted when the kernel refuses memory, or another stack while the thread is
  // on the host's.
  static Result<AltStack> create();
  AltStack(AltStack&& other) noexcept;
  AltStack& operator=(AltStack&& other) noexcept;
  ~AltStack();

 private:
  AltStack() = default;
  void* mapping_ = nullptr;  // null: the host's own is in use
  stack_t before_ = {};
};

// Lets the signals of faults through on the calling thread, for the life of the object: one that is
// blocked when an instruction raises it ends the process. What was blocked before is at the end.
//
//   Thread: made and destroyed by the thread that it is for.
class UnblockedFaults {
 public:
  UnblockedFaults() noexcept;
  ~UnblockedFaults();
  UnblockedFaults(const UnblockedFaults&) = delete;
  UnblockedFaults& operator=(const UnblockedFaults&) = delete;

 private:
  sigset_t blocked_;  // of the signals of faults, those that were
  bool any_ = false;
};

}  // namespace uptier::jit
