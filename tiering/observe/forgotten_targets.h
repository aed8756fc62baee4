// Counts in tables of call targets that belong to methods which are forgotten.
//
// An entry's key is the address of a stub, which goes to another method. Its owner may be counting
// in the table, in code that takes no lock, or may not run for days; so nobody else writes to it,
// and no place waits for it. Instead it is written down, when a place is free, what entries hold of
// it, and readers give to the method that has the place now
//
//     count of the entry - min(count of the entry, what was written down)
//
// and the rest to `other`. Law: a method is never credited with another's calls.
//   - Nobody calls the old method any more, so its part of an entry never grows; it may get smaller,
//     by what the owner moves to `other`. So what was written down once stays at least its part.
//   - So does the least of what snapshots showed since; an entry that one does not show is gone, and
//     when it comes back it is the new method's.
//   - A table that would not hold still while it was copied (copy_table) may hold anything: then all
//     that its next snapshot shows is nobody's.
// What it costs the new method is at most what it was called up to that snapshot, and calls that
// went to `other` in the place of the old one's.
//
//   Thread: the caller holds the runtime's state mutex; the owners of the tables run meanwhile.
#pragma once

#include <cstdint>
#include <span>

#include "tiering/model/method.h"
#include "tiering/model/probe_set.h"

namespace uptier::tiering {

// Returns the counts that are written down for a stream; empty if there are none.
const ForgottenTargets& forgotten_in(const Method& m, uint32_t stream);
// Lowers the counts that are written down for a stream to those that a new snapshot, `words`, shows.
void keep_forgotten(Method& m, uint32_t stream, std::span<const uint64_t> words);
// Takes `held`, what a stream's tables hold of methods that are about to be forgotten, out of what the
// stream has seen of them, from now on.
void forget_targets(Method& m, uint32_t stream, const ForgottenTargets& held,
                    const MethodAt& method_at);

// Does to the words of a stream what their owner did after the snapshot that they are from, so that
// what falls is not taken for counts that have come to `other`. `entries`: calls that ran the copy.
void age_stream(Method& m, uint32_t stream, uint64_t entries, const MethodAt& method_at);
// The same of the words of a copy of optimized code.
void age_optimized_stream(Method& m, uint32_t stream, std::span<const uint64_t> words,
                          const MethodAt& method_at);

}  // namespace uptier::tiering
