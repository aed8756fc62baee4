// global_locks: the locks of what this floor keeps for the whole process.
//
// A fork finds them free: it takes them all before, and both processes give them back, so that the
// child can make runtimes of its own. They are leaves: who holds one takes no other.
//
//   Thread: any.
#pragma once

#include <cstdint>
#include <mutex>

#include "uptier/thread_safety.h"

namespace uptier::jit {

enum class GlobalLock : uint8_t { kFaultHandlers, kCodeRegistry, kGdbNames };

CheckedLock<std::mutex>& global_lock(GlobalLock which) noexcept;

// Has forks wait for them, once a process. Returns false when memory for that is refused.
bool hold_locks_over_forks() noexcept;

}  // namespace uptier::jit
