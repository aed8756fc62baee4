// Counts in tables of call targets that belong to forgotten methods.
//
// The key of a table entry is the address of a stub, which goes to another method. The table's
// owner may be counting in it, in code that takes no lock, or may not run for days. So no other
// thread writes to the table, and no place waits for it. Instead, when a place is freed, the counts
// of its entries are recorded, and readers credit the method that has the place now with
//
//     count of the entry - min(count of the entry, recorded count)
//
// and `other` with the rest. Law: a method is never credited with another method's calls.
// - The old method is not called any more, so its part of an entry never grows; it may shrink, when
//   the owner moves counts to `other`. So a recorded count remains an upper bound of its part.
// - So does the least count in the snapshots since. If a snapshot lacks the entry, the old part is
//   gone; if the entry comes back, it belongs to the new method.
// - A table that kept changing while it was copied (copy_table) may have had any counts: then all
//   counts in its next snapshot are assigned to `other`.
//
// The cost for the new method: at most its calls up to that snapshot, and calls that went to
// `other` in place of the old method's.
//
//   Thread: the caller holds the runtime's state mutex; the owners of the tables run meanwhile.
#pragma once

#include <cstdint>
#include <span>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/model/probe_set.h"

namespace uptier::tiering {

// Returns the recorded counts of a stream; empty if there are none.
const ForgottenTargets& forgotten_in(const Method& m, uint32_t stream) UPTIER_REQUIRES(state_lock);
// Lowers the recorded counts of a stream to those in a new snapshot, `words`.
void keep_forgotten(Method& m, uint32_t stream, std::span<const uint64_t> words)
    UPTIER_REQUIRES(state_lock);
// Removes `held`, the counts of methods about to be forgotten in a stream's tables, from the data
// of the stream, now and later.
void forget_targets(Method& m, uint32_t stream, const ForgottenTargets& held,
                    const MethodAt& method_at) UPTIER_REQUIRES(state_lock);

// Ages the words of a stream as their owner did after the snapshot they come from, so that counts
// that fall do not look like new counts in `other`. `entries`: calls that ran the copy.
void age_stream(Method& m, uint32_t stream, uint64_t entries, const MethodAt& method_at)
    UPTIER_REQUIRES(state_lock);
// The same for the words of a copy of optimized code.
void age_optimized_stream(Method& m, uint32_t stream, std::span<const uint64_t> words,
                          const MethodAt& method_at) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
