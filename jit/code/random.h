// RandomBytes: the source of numbers that a guest must not guess.
#pragma once

#include <cstddef>

namespace uptier::jit {

// Fills `bytes` bytes at `to`; returns false if it cannot. Thread: any.
using RandomBytes = bool (*)(void* to, size_t bytes);

// The kernel's generator. If it refuses now but has answered before in this process, the bytes are
// derived from a secret that was drawn then.
bool kernel_random(void* to, size_t bytes);

}  // namespace uptier::jit
