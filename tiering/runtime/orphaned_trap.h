// A trap without a running invoke: the host has called an entry directly, and the code trapped.
// There is nowhere to unwind to, so the process ends, and the log says why.
//
//   Thread: the one that trapped, in a signal handler of a fault in compiled code or below guest frames.
//   Nothing here allocates or locks, except the host's log function, which may.
#pragma once

namespace uptier::tiering {

struct Engine;

[[noreturn]] void end_orphaned(const Engine& engine) noexcept;

}  // namespace uptier::tiering
