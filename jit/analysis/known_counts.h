// known_counts: counts of a body's counters from a profile, as constants of optimized code.
//
//     v3 = known_count.i64 9          v3 = known_count.i64 9 count=1200      v3 = const.i64 1200
//     v4 = ge_u.i64 v3, v2     ->     v4 = ge_u.i64 v3, v2            ->     ...
//     branch v4, b1, b2
//       as described                    note_counts, from a profile            settle_counts
//
// The compiler reads the count from the instruction itself, so an inlined body keeps its own
// counts. Code that is entered in the middle of a loop gets its constants only after its entry has
// been built: the entering frame holds the number that it has used so far.
//
//   Thread: none of their own. Cost: linear; one look at each instruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// The number of a counter, a hit or a gauge.
struct KnownCount {
  SiteId site = 0;
  uint64_t count = 0;
};

// Returns the sites that instructions of `f` ask for, ascending, each once.
std::vector<SiteId> asked_counts(const Function& f);

// Writes the counts into the known_count instructions; sites that are not in `known` get 0.
void note_counts(Function& f, std::span<const KnownCount> known);

// Replaces all known_count instructions by constants; 0 if no count was noted.
void settle_counts(Function& f);

}  // namespace uptier::jit
