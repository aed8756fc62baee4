// cfg_hash: tells whether a profile still fits a body.
//
// FNV-1a over the successor lists in layout order and the number of call sites. Layout positions
// are hashed, not ids, so that two builds of one body agree. Version 1; a change of the recipe
// changes the seed.
#pragma once

#include <cstdint>

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the hash of a function in build order; never 0. Linear in instructions.
uint64_t cfg_hash(const Function& f);
// The same if the number of calls is known. Linear in blocks and edges.
uint64_t cfg_hash(const Function& f, uint32_t calls);

}  // namespace uptier::jit
