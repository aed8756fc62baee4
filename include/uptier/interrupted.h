// interrupted.h: lets a host function that waits find out that it should return.
#pragma once

namespace uptier {

// Returns true if the calling thread's innermost `invoke` is to end, because of Runtime::interrupt
// or a deadline. A host function that waits should then return; it need not raise a trap. Call it
// when a system call returns EINTR: the signal is repeated, every 50 us to 5 ms. Returns false
// on a thread that is not attached. Cost: some loads.
bool interrupted() noexcept;

}  // namespace uptier
