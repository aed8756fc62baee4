// devirtualize: tests whether an indirect call goes to its usual target, and calls that directly.
//
//     b: ... call_indirect t(x) ...      b:     ... branch t == entry of m, direct, other
//                                  ->    direct: v1 = call m(x); jump rest(v1)
//                                        other:  v2 = call_indirect t(x); jump rest(v2)
//                                        rest(v: the result): ...
//
// With several targets, `other` tests for the next one. If the value of the first argument is
// guessed as well, a block between b and direct tests it: a predicted branch costs less than an
// operand. A wrong guess costs a comparison. The indirect call stays, and so do the checks that the
// host put before it.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"
#include "jit/opt/inlinee.h"

namespace uptier::jit {

struct Guess {
  const TargetShare* target = nullptr;
  // If valid, the call is made directly only if its first argument equals this value, which is then
  // passed in its place.
  Value first_argument = Value::none();
};

struct Devirtualized {
  std::vector<Block> direct;  // by guess: the block of the direct call
  Block other;                // of the call that stays indirect
  Block rest;                 // the code after the call
};

// Replaces instruction `position` of block `b`, a call_indirect with the signature of the targets.
// `total`: the number of observed executions, including those with other targets.
Devirtualized devirtualize(Function& f, Block b, size_t position, std::span<const Guess> guesses,
                           uint64_t total);

}  // namespace uptier::jit
