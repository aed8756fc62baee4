// frame_kind_at: the state of a body's frame at any of its instructions, for signal handlers.
#pragma once

#include "jit/code/code.h"

namespace uptier::jit {

// `pc` lies in `code`. Async-signal-safe, logarithmic.
FrameState::Kind frame_kind_at(const Code& code, const void* pc) noexcept;

}  // namespace uptier::jit
