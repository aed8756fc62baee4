// interrupted: what a host function that waits asks.
#pragma once

namespace uptier {

// Returns whether the calling thread's innermost `invoke` is to end, by Runtime::interrupt or a
// deadline: a host function that waits returns then, and need raise nothing. Ask where a system call
// says EINTR, since the signal that says so comes again and again. Cost: some loads.
bool interrupted() noexcept;

}  // namespace uptier
