// RandomBytes: where numbers come from that a guest must not guess.
#pragma once

#include <cstddef>

namespace uptier::jit {

// Fills `bytes` bytes at `to`; returns false where that cannot be done. Thread: any.
using RandomBytes = bool (*)(void* to, size_t bytes);

// The kernel's generator. Where it refuses, and has not always done so in this process, what is derived
// from a secret that was drawn before.
bool kernel_random(void* to, size_t bytes);

}  // namespace uptier::jit
