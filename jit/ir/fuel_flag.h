// The flag of accesses to the thread's fuel, which add_fuel() places (frontend/add_fuel.h).
#pragma once

#include <cstdint>

#include "jit/ir/function.h"

namespace uptier::jit {

// Only add_fuel() sets this flag of loads and stores. A call's flag of the same value has another
// meaning.
inline constexpr uint8_t kMemFuel = 4;

// Returns whether a load or store that the verifier has accepted goes to the thread's fuel.
constexpr bool is_fuel(const Inst& access) { return (access.flags & kMemFuel) != 0; }

}  // namespace uptier::jit
