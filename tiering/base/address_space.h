// Address space under a limit of the process (RLIMIT_AS, `ulimit -v`).
#pragma once

#include <cstdint>

#include "uptier/options.h"

namespace uptier::tiering {

// Returns the bytes that the process may still map; UINT64_MAX without a limit, or if the present
// size is unknown.
uint64_t address_space_left() noexcept;

// Reduces code_budget and slab_budget, for which address space is reserved, to 1/16 of what is left.
// (A runtime reserves four times code_budget, and each thread slab_budget.)
void fit_address_space(Options& o, uint64_t left) noexcept;

}  // namespace uptier::tiering
