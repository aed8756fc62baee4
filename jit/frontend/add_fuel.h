// add_fuel: makes a body count the work that it does, as fuel.
//
//   at the entry, and at each loop header:   v = load.i64 fuel; v = v - 1; store v; trap_if v < 0
//
// One unit is a call of a described body or an arrival at one of its loop headers. The counting
// consists of ordinary operations, so every pass that compiles, inlines, unrolls or exits from them
// must keep their effect, and the count is the same in every tier. They come after loop_header,
// where a frame moves from one code to another: the code that it moves to counts the arrival.
//
// The word belongs to the thread (sampler/fuel.h). An access to it has the flag kMemFuel, an alias
// class of its own, and a base that is not an address: emission ignores it.
#pragma once

#include "jit/ir/fuel_flag.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// Returns whether a load or store was placed by add_fuel().
bool is_fuel_access(const Function& f, const Inst& i);

// `f` is as it was built, without probes except those of blocks.
void add_fuel(Function& f);

}  // namespace uptier::jit
