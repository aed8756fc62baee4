// The clocks of the runtime.
#pragma once

#include <cstdint>

namespace uptier::tiering {

// Returns the monotonic time.
uint64_t now_ns();
// Returns the processor time of the calling thread.
uint64_t thread_cpu_ns();

}  // namespace uptier::tiering
