// one_of_two: selections that say to which of two places a loop writes, when it reads one of them
// by its own name.
//
//     p = select c, x, y        x, y: a value and a constant each
//     store p
//     load x                    has to know whether the store went there
//
// A processor that meets the load takes the store for one that goes elsewhere, and begins again
// when it did not, or it waits for c. With a store on each side of a branch it knows. What the loop
// reads through the selection alone (a partition that writes at its low or its high end) is none:
// there nothing but the store waits, and a branch would be mispredicted.
//
//   Thread: none of its own. Cost: one look at each instruction; where something is written through a
//   selection, the sizes of the loops around it.
#pragma once

#include <unordered_set>

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the results of such selections, by Value::index(). The store is in the selection's block.
std::unordered_set<uint32_t> one_of_two(const Function& f);

}  // namespace uptier::jit
