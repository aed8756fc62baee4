// code_registry: finds the Code for any program counter of the process.
//
// A signal handler knows only a pc, so the list of live code spaces is global. It is a fixed array;
// runtimes register in it, and readers take no lock. A reader starts with the slot in which its
// thread last found something, and then scans all slots that were ever used. A space leaves only
// when no reader is scanning the array.
//
//   Thread: any. find_code, in_code, trap_exit_for and end_orphaned are async-signal-safe.
#pragma once

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "uptier/result.h"

namespace uptier::jit {

// Returns the Code that `pc` lies in, or null. The answer stays valid as long as its body may run,
// which holds for a pc taken from a running thread or its stack.
const Code* find_code(const void* pc) noexcept;

// Returns whether `pc` lies in any code space (bodies, stubs, routines).
bool in_code(const void* pc) noexcept;

// Returns the trap_exit routine of the space that `pc` lies in, or null.
const void* trap_exit_for(const void* pc) noexcept;

// Handles a fault in compiled code with no invoke under way and no earlier signal handler: ends the
// process with a message. Runs in a signal handler.
using Orphaned = void (*)(void* runtime);

// Calls the Orphaned of the space that `pc` lies in, if there is one.
void end_orphaned(const void* pc) noexcept;

// Makes a space visible to the functions above for the life of this object, which must end before
// the space does.
class CodeRegistration {
 public:
  // One for each runtime, and a process may have one runtime for each tenant. Each needs a thread
  // and about half a gigabyte of address space.
  static constexpr unsigned kMaxSpaces = 4096;

  CodeRegistration() = default;
  CodeRegistration(CodeRegistration&& other) noexcept;
  CodeRegistration& operator=(CodeRegistration&& other) noexcept;
  // Waits for readers, for some nanoseconds.
  ~CodeRegistration();

  // `trap_exit` may be null for a space whose code has no trap rows; `orphaned` is called with
  // `runtime`. Errors: kResourceExhausted if kMaxSpaces are registered.
  static Result<CodeRegistration> add(const CodeSpace& space, const void* trap_exit,
                                      Orphaned orphaned = nullptr, void* runtime = nullptr);

 private:
  int slot_ = -1;
};

}  // namespace uptier::jit
