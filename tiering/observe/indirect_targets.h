// Targets of the method's indirect calls, as the instrumented copy of optimized code counts them.
//
// The words of a table hold what the sampler needs; in windows, and in what is compared with them,
// the same words stand for
//
//   word of the table   0                             1, 2, ...
//   executions of       targets that have no word     a target each, by first sight
//
// so that windows have one length, and the executions of a call by target are a part of the one
// distribution that the code is made for.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <string>
#include <vector>

#include "tiering/model/method.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

// Adds to a window what came on from one snapshot to the next; makes room for the tables.
void add_target_counts(Method& m, const profile::Observed& before, const profile::Observed& now,
                       std::vector<uint64_t>& window);
// Says of the tables' words whether the copy counts them, in the loop if there is one; `observed` has
// those of the blocks.
void observe_targets(const Method& m, const jit::Code& copy, std::vector<bool>& observed,
                     const jit::LoopScope* scope = nullptr);
// Adds what code was made from to the counts of its blocks; returns the sum. Shares alone are taken
// from there: how often a site runs is for blocks to say, and windows say the rest.
// What it knew nothing of is not comparable. `known`: what the windows hold.
double add_made_targets(Method& m, const std::vector<double>& known, const TargetsBySite& made,
                        std::vector<double>& counts, std::vector<bool>& comparable);
// Returns what a compiler is told that a call reaches, by key.
TargetCounts target_counts(const jit::SiteTargets& site, const MethodTable& methods);
// Returns what the windows of a copy hold of sites that ran at all.
TargetsBySite seen_targets(const Method& m, const CopyWindows& windows);
// Returns the name of a table's word in the log.
std::string target_name(const Method& m, size_t word);

}  // namespace uptier::tiering
