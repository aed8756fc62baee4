// fork: what a process keeps in mind of fork().
//
// The child has the forking thread and no other. Its handler (pthread_atfork) makes that thread one
// that is attached to nothing, so that whatever asks for the thread's context finds the shared one,
// and counts: who was made at another count is of a parent's.
//
//   Thread: any. A process that nobody called watch_forks() in counts none.
#pragma once

#include <cstdint>

namespace uptier::sampler {

// Installs the handler, once a process. Returns false when memory for it is refused.
bool watch_forks() noexcept;

// Returns how many forks lie between this process and the one that first called watch_forks().
uint32_t forks() noexcept;

}  // namespace uptier::sampler
