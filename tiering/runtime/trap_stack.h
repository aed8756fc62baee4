// The frames that the calling thread's last trap has unwound.
//
//   Thread: the one that trapped. No allocation, no lock.
#pragma once

#include <cstddef>
#include <span>

#include "uptier/runtime.h"

namespace uptier::tiering {

struct Engine;

// See Runtime::trap_stack.
size_t trap_stack(const Engine& engine, std::span<CallSite> sites) noexcept;

}  // namespace uptier::tiering
