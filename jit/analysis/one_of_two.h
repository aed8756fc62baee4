// one_of_two: `select`s that choose the address a loop stores to, if the loop also loads one of the
// two addresses directly.
//
//     p = select c, x, y        x, y: a value and a constant each
//     store p
//     load x                    must know whether the store went there
//
// A processor that meets the load predicts that the store goes elsewhere, and restarts if it did
// not; or it waits for c. With a store on each side of a branch it knows. This does not hold if the
// loop reads only through the select (a partition that writes at its low or its high end): there
// only the store waits, and a branch would be mispredicted.
//
//   Thread: none of its own. Cost: one look at each instruction; for each store through a select, the
//   sizes of the loops around it.
#pragma once

#include <unordered_set>

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the results of such `select`s, by Value::index(). The store is in the block of the
// select.
std::unordered_set<uint32_t> one_of_two(const Function& f);

}  // namespace uptier::jit
