// inlined_counts: where an instrumented copy counts what bodies do that were inlined into it.
//
// One word for each block that the passes have left a probe of, whatever copies of it there are, by
// rising body and site. Bodies are numbered in the order in which they were inlined, what was worth
// most first: those that kMostInlinedCounts has no room for are not counted, and so unknown.
//
// Likewise a table, or the words of a probe's kind, for each indirect call and probe that is left of
// a body whose blocks are counted; of bodies that kMostInlinedProbeWords has no room for nothing but
// the blocks is observed.
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

// `counts` is what the former returned; the words begin at `offset`. Tables are not recent-weighted.
std::vector<InlinedProbe> place_inlined_probes(const Function& f, const SiteProbeRequest& r,
                                               const std::vector<InlinedCount>& counts,
                                               uint32_t offset);
// Returns how many words it has in the slab.
uint32_t words_of(const InlinedProbe& p);

// Returns what a copy of a slab holds of it.
SiteCounts site_counts(const InlinedProbe& p, std::span<const uint64_t> slab);

// Returns the place of a block of an inlined body, or null.
const InlinedCount* find_inlined_count(const std::vector<InlinedCount>& counts, uint32_t body,
                                       SiteId site);
// The same of a probe, or of an indirect call's targets.
const InlinedProbe* find_inlined_probe(const std::vector<InlinedProbe>& probes, uint32_t body,
                                       SiteId site);

}  // namespace uptier::jit
