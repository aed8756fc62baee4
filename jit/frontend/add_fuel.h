// add_fuel: has a description count what it runs.
//
//   at the entry, and at each loop header:   v = load.i64 fuel; v = v - 1; store v; trap_if v < 0
//
// One unit is a call of a described body or an arrival at one of its loop headers. These are
// operations like any others, so whatever compiles them, inlines them, unrolls them or leaves them in
// the middle must keep their effect, and the number is the same in every tier. They come after
// loop_header, where frames change between codes: the code that goes on counts the arrival.
//
// The word is the thread's (sampler/fuel.h). An access to it has the flag kMemFuel, an alias class of
// its own, and a base that is no address: what emits it does not look at that.
#pragma once

#include "jit/ir/fuel_flag.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// Returns whether a load or store is one that add_fuel() has placed.
bool is_fuel_access(const Function& f, const Inst& i);

// `f` as it was built, without probes beside those of blocks.
void add_fuel(Function& f);

}  // namespace uptier::jit
