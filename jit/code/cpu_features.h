// cpu_features: which instructions code may contain here.
#pragma once

#include <cstdint>
#include <vector>

namespace uptier::jit {

// Returns the features of the processor as words of bits. Code made with one list must not run with
// another.
std::vector<uint64_t> cpu_features();

}  // namespace uptier::jit
