// code_registry: from any program counter of the process to the Code that it lies in.
//
// A signal handler knows a pc and nothing else, so the list of live code spaces is global: a fixed
// array, registered by the runtimes, read without a lock up to the last place that was ever taken,
// beginning with the one where the thread found something before. A space leaves only when no reader
// is on its way through the array.
//
//   Thread: any. find_code, in_code, trap_exit_for and end_orphaned are async-signal-safe.
#pragma once

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "uptier/result.h"

namespace uptier::jit {

// Returns the Code that `pc` lies in, or null. The answer stays valid while its body may run, as it
// does for a pc taken from a running thread or its stack.
const Code* find_code(const void* pc) noexcept;

// Returns whether `pc` lies in any code space (bodies, stubs, routines).
bool in_code(const void* pc) noexcept;

// Returns the trap_exit routine of the space that `pc` lies in, or null.
const void* trap_exit_for(const void* pc) noexcept;

// In the child of a fork: those who were looking a pc up are not there any more.
void forget_readers_of_other_threads() noexcept;

// Handles the trap whose code faulted with no invoke under way, where nobody else would: ends the
// process with a message. Called in a signal handler.
using Orphaned = void (*)(void* runtime);

// Calls the Orphaned of the space that `pc` lies in, if it has one.
void end_orphaned(const void* pc) noexcept;

// Makes a space visible to the functions above for the life of this object, which must end before
// the space does.
class CodeRegistration {
 public:
  // One a runtime, and there may be a runtime for each tenant; each takes address space, about half a
  // gigabyte, and a thread.
  static constexpr unsigned kMaxSpaces = 4096;

  CodeRegistration() = default;
  CodeRegistration(CodeRegistration&& other) noexcept;
  CodeRegistration& operator=(CodeRegistration&& other) noexcept;
  // Waits for readers, some nanoseconds.
  ~CodeRegistration();

  // `trap_exit` may be null in a space whose code has no trap rows; `orphaned` gets `runtime`.
  // Errors: kResourceExhausted when kMaxSpaces are registered.
  static Result<CodeRegistration> add(const CodeSpace& space, const void* trap_exit,
                                      Orphaned orphaned = nullptr, void* runtime = nullptr);

 private:
  int slot_ = -1;
};

}  // namespace uptier::jit
