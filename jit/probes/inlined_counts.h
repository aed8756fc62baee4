// inlined_counts: the places where an instrumented copy counts events of bodies inlined into it.
//
// There is one word for each block of which the passes have kept a probe, however many copies it
// has, by rising body and site. Bodies are numbered in the order in which they were inlined, the
// most valuable first. Bodies that exceed kMostInlinedCounts are not counted, and so unknown.
//
// Likewise there is a table, or the words of a probe's kind, for each indirect call and probe that
// is left of a body whose blocks are counted. Bodies that exceed kMostInlinedProbeWords have
// only their blocks observed.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/code/code.h"
#include "jit/ir/function.h"
#include "jit/probes/plan_sites.h"

namespace uptier::jit {

// 8 KiB for each thread and copy.
inline constexpr size_t kMostInlinedCounts = 1024;

// `f` is optimized; the words begin at `offset` of the slab.
std::vector<InlinedCount> place_inlined_counts(const Function& f, uint32_t offset);

// 16 KiB more: 58 tables of 16 targets each.
inline constexpr size_t kMostInlinedProbeWords = 2048;

// `counts` is the result of place_inlined_counts(); the words begin at `offset`. Tables are not
// recent-weighted.
std::vector<InlinedProbe> place_inlined_probes(const Function& f, const SiteProbeRequest& r,
                                               const std::vector<InlinedCount>& counts,
                                               uint32_t offset);
// Returns the number of its words in the slab.
uint32_t words_of(const InlinedProbe& p);

// Returns its counts from a copy of a slab.
SiteCounts site_counts(const InlinedProbe& p, std::span<const uint64_t> slab);

// Returns the entry for a block of an inlined body, or null.
const InlinedCount* find_inlined_count(const std::vector<InlinedCount>& counts, uint32_t body,
                                       SiteId site);
// The same for a probe, or for an indirect call's targets.
const InlinedProbe* find_inlined_probe(const std::vector<InlinedProbe>& probes, uint32_t body,
                                       SiteId site);

}  // namespace uptier::jit
