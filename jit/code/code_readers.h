// code_readers: lets signal handlers look at code that another thread may destroy at that moment.
//
// A handler that finds a Code by an address that is not running, such as a stale word of the stack, may hold
// one that is going. So handlers look inside of a CodeReading. A thread that destroys a Code first
// removes it from the lookups, then waits until no handler of the process is looking.
//
//   Thread: any. CodeReading is async-signal-safe. A reader never waits, so a destroyer waits for
//   microseconds, unless a reader's thread is not scheduled.
#pragma once

namespace uptier::jit {

class CodeReading {
 public:
  CodeReading() noexcept;
  ~CodeReading();
  CodeReading(const CodeReading&) = delete;
  CodeReading& operator=(const CodeReading&) = delete;
};

// Waits for the readers. Readers that begin later cannot find code that was removed before the call.
void await_code_readers() noexcept;

// Forgets readers that no longer exist: for the child of a fork, whose other threads are gone.
void forget_readers_of_other_threads() noexcept;

}  // namespace uptier::jit
