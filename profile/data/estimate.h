// estimate.h: estimates for cumulative counts, as the counts grow.
//
// Law: the growth of a count between two snapshots is weighted by the mean gap that was in force
// between them, so estimates stay unbiased while intervals change.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profile/data/schema.h"
#include "uptier/profile.h"

namespace uptier::profile {

// The observations of one id. Members as in MethodProfile.
struct Observed {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> estimates;
  Tables tables;

  friend bool operator==(const Observed&, const Observed&) = default;
};

// Replaces the cumulative counts of `seen` (empty the first time) by those of `now`, whose
// estimates are ignored, and adds the increase, times `weight` (0 counts as 1), to the estimates,
// saturating.
//
// A count that falls reduces its estimate in proportion. A table and its `other` exchange counts
// when the greatest entries change: a count that falls there releases its share of its estimate,
// and the rising counts take the released estimates in proportion to their rise. So the estimates
// of a site add up to its weighted total.
//
// Only some executions of a loop are timed, evenly spread between two snapshots, while the
// behaviour of loops changes as a program runs. So the sample is stratified: executions timed
// between two snapshots stand for the entries between them, and for earlier ones that no timed
// execution stands for yet:
//
//     due = estimated entries so far - entries that were stood for,  at least weight * timed
//     estimate of timed += due                   entries that are now stood for
//     estimate of timed iterations, cycles, exclusive cycles += their step * f
//     estimate of squares += its step * f^2
//
// with f = due / timed; or, because all iterations are counted and cycles are proportional to them,
// the same quotient for iterations (a ratio estimator). The quotient of entries is used if all were
// timed, in which case f is the weight; and if fewer than 16 were timed, since an execution under
// way has iterations but is not yet an entry. With a constant f the estimate is the mean times all
// entries. Source: Cochran, Sampling Techniques, 3rd ed. (1977), chapters 5 and 6.
//
// The counts must be those of a MethodProfile that passes check. O(words + entries).
void advance(Observed& seen, const Schema& schema, Observed now, uint64_t weight);

// Returns estimate_of, for a count of a method whose samples hold several executions each.
//
// One sample holds up to `most` executions of a site: as many as the busiest block or edge has per
// sample, but no fewer than a sample has iterations, (iterations / w + sampled calls) / samples,
// because all of these may belong to a site in one of several loops. The executions of a site may
// be spread over the samples or all lie in few of them. This is not counted: it would take a sum of
// squares for each site and work at each burst. So an intraclass correlation of 3/4 is assumed.
// With p = the count divided by its maximum, most * samples,
//
//     together = 1 + (most - 1) * (p + 3/4 (1 - p))
//     n_eff = min(count / together, samples) * alike, at least 1
//
// A correlation of 0 would mean independent executions, 1 that a sample holds all or none of them.
// For the choice of 3/4 see docs/notes/0038.
//
// Samples that stand for different numbers of opportunities are worth fewer of equal weight, (sum
// w)^2 / sum w^2 of them. The sum of squares is the method's weight_squares. The mean weight w is
// estimates over counts of all its blocks and edges, so that
//
//     alike = samples * w^2 / weight_squares, at most 1; 1 if the sum is not known
//
// If only a part of a merged profile has the sum, `alike` lies between its true value and 1.
// Source: the design effects of cluster samples and of unequal weights (Kish, Survey Sampling,
// 1965, chapters 5 and 11). O(slots).
Estimate estimate_in(const MethodProfile& method, uint64_t count, uint64_t estimate);

// Sets the estimates of a loop so that loop_cycles() returns the total of `cycles` and, as far as
// the timed executions allow, an interval of the same width; afterwards all entries are stood for.
// Does nothing to a loop without entries or without a timed execution.
struct LoopTotals {
  uint64_t total = 0;  // in whole cycles
  uint64_t own = 0;    // without inner loops
};
void set_loop_cycles(MethodProfile& method, const Slot& slot, const Estimate& cycles,
                     const LoopTotals& whole);

// The results of MethodProfile::estimate and loop_cycles.
std::optional<Estimate> estimate_at(const MethodProfile& method, SlotKind kind, SiteId site);
std::optional<Estimate> loop_cycles_at(const MethodProfile& method, SiteId site);

// The unit with which executions of a slot enter a sample.
enum class Draw : uint8_t {
  kEither = 0,  // calls or iterations, or unknown
  kCall,        // a sampled call, up to its first loop header
  kIteration,   // the iterations of a burst, from a loop header on
  kHeader,      // the same, for the block of a loop header: one execution per iteration
};

}  // namespace uptier::profile
