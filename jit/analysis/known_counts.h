// known_counts: what a profile knows of a body's counters, as constants of optimized code.
//
//     v3 = known_count.i64 9          v3 = known_count.i64 9 count=1200      v3 = const.i64 1200
//     v4 = ge_u.i64 v3, v2     ->     v4 = ge_u.i64 v3, v2            ->     ...
//     branch v4, b1, b2
//       as described                    note_counts, of a profile              settle_counts
//
// The compiler reads the count from the instruction itself, so that a body which is inlined brings
// its own along. Code that is entered in the middle of a loop gets its constants only when the way
// in has been made: what the frame that enters holds is the number that it has gone by so far.
//
//   Thread: none of their own. Cost: linear; one look at each instruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// What a counter, a hit or a gauge has come to.
struct KnownCount {
  SiteId site = 0;
  uint64_t count = 0;
};

// Returns the sites that are asked for, ascending, each once.
std::vector<SiteId> asked_counts(const Function& f);

// Writes the counts into what asks for them; what is not among `known` is 0.
void note_counts(Function& f, std::span<const KnownCount> known);

// Makes constants of all that ask, 0 where nothing was noted.
void settle_counts(Function& f);

}  // namespace uptier::jit
