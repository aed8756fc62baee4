// ran_so_far: how often a method was called, and how often its loops came to their headers, by the
// countdowns of all threads. Threads that run meanwhile make it wrong by a few.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/model/threads.h"

namespace uptier::tiering {

// Returns the calls that stubs have counted.
uint64_t calls_so_far(const Method& m, const Threads& threads) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
