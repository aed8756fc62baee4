// global_locks: the locks of this floor's process-wide state.
//
// They are free in the child of a fork: before a fork all of them are taken, and afterwards both
// processes release them, so that the child can create runtimes of its own. They are leaf locks: a
// thread that holds one takes no other.
//
//   Thread: any.
#pragma once

#include <cstdint>
#include <mutex>

#include "uptier/thread_safety.h"

namespace uptier::jit {

enum class GlobalLock : uint8_t { kFaultHandlers, kCodeRegistry, kGdbNames };

CheckedLock<std::mutex>& global_lock(GlobalLock which) noexcept;

// Makes forks wait for the locks; registers once per process. Returns false if memory for that is
// refused.
bool hold_locks_over_forks() noexcept;

}  // namespace uptier::jit
