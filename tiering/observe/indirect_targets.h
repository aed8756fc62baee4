// Targets of the method's indirect calls, as counted by the instrumented copy of optimized code.
//
// A table's words in the slab have the sampler's layout. In windows, and in data compared with
// windows, the same words have this meaning:
//
//   word of the table   0                             1, 2, ...
//   executions of       targets that have no word     one target each, in order of first sight
//
// So windows have one length, and the executions of a call by target are part of the one
// distribution that the code is made for.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <string>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

// Adds to a window the counts between two snapshots; makes room for the tables.
void add_target_counts(Method& m, const profile::Observed& before, const profile::Observed& now,
                       std::vector<uint64_t>& window) UPTIER_REQUIRES(state_lock);
// Sets in `observed`, for the words of the tables, whether the copy counts them (within the loop
// `scope`, if given). It already has the words of the blocks.
void observe_targets(const Method& m, const jit::Code& copy, std::vector<bool>& observed,
                     const jit::LoopScope* scope = nullptr) UPTIER_REQUIRES(state_lock);
// Adds the target counts that code was made from to those of its blocks; returns the sum. Only
// shares are taken from there: the blocks tell how often a site runs, and the windows tell the
// rest. Sites without data are not comparable. `known`: the counts of the windows.
double add_made_targets(Method& m, const std::vector<double>& known, const TargetsBySite& made,
                        std::vector<double>& counts, std::vector<bool>& comparable)
    UPTIER_REQUIRES(state_lock);
// Returns the targets that the compiler is given for a call, by key.
TargetCounts target_counts(const jit::SiteTargets& site, const MethodTable& methods);
// Returns the counts in a copy's windows, for sites that ran at all.
TargetsBySite seen_targets(const Method& m, const CopyWindows& windows) UPTIER_REQUIRES(state_lock);
// Returns the name of a table's word in the log.
std::string target_name(const Method& m, size_t word) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
