// interpret.h: the interpreter, which is complete by itself.
//
// Two of it are made from one source. Interpreter::kPlain knows of no tiers: what a program costs
// without a JIT. Interpreter::kTiered is Tier::kHost: it notes what it sees, calls functions by
// their entries, and offers its loops to compiled code.
#pragma once

#include "vm.h"

namespace calc {

enum class Interpreter { kPlain, kTiered };

// Calls a function with as many arguments as it has parameters. After fail() the result means
// nothing.
Val interpret(Vm& vm, Interpreter which, Closure* f, const Val* args);

// Takes a window of registers for a call of `f`; null, after fail(), when there is no room.
Val* open_window(Vm& vm, const Closure* f);
// Runs the rest of a call of `f` from `pc` on in such a window, and closes it.
Val resume(Vm& vm, Closure* f, Val* r, const Instr* pc);

}  // namespace calc
