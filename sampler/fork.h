// fork: detects that the process was forked.
//
// The child has only the forking thread. Its handler (pthread_atfork) detaches that thread, so that
// every lookup of its context finds the shared one, and increments a count: an object that was made
// at another count belongs to a parent process.
//
//   Thread: any. The count stays 0 in a process that has never called watch_forks().
#pragma once

#include <cstdint>

namespace uptier::sampler {

// Installs the handler, once per process. Returns false if there is no memory for it.
bool watch_forks() noexcept;

// Returns the number of forks between this process and the one that first called watch_forks().
uint32_t forks() noexcept;

}  // namespace uptier::sampler
