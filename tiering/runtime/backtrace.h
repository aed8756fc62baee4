// The compiled frames of the calling thread, for the host's backtraces.
//
//   Thread: the calling thread's own stack. No allocation, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uptier/ids.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

struct Engine;

// Calls `visit` for each frame of compiled code, the innermost first, until it returns false.
void walk_frames(const Engine& engine, bool (*visit)(MethodId, uint32_t location, void*),
                 void* to) noexcept;
// Fills `sites` with the innermost frames. Returns their number.
size_t walk_frames(const Engine& engine, std::span<CallSite> sites) noexcept;

}  // namespace uptier::tiering
