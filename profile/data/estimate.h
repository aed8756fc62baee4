// estimate.h: cumulative counts that are estimated as they grow.
//
// Law: what came on from one snapshot to the next is weighted by the mean gap that was in force in
// between, so estimates stay unbiased while intervals change.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profile/data/schema.h"
#include "uptier/profile.h"

namespace uptier::profile {

// What one id has observed. Members as in MethodProfile.
struct Observed {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> estimates;
  Tables tables;

  friend bool operator==(const Observed&, const Observed&) = default;
};

// Replaces the cumulative counts of `seen` (empty before the first time) by those of `now`, whose
// estimates are not looked at, and adds to the estimates what came on, times `weight` (0 counts as
// 1), saturating.
//
// A count that falls takes its estimate with it in proportion. A table and its `other` exchange
// counts when the greatest entries change: what falls there releases its share of its estimate, and
// the rising ones take what was released in proportion to how much they rise. So the estimates of a
// site add up to what its total came to, weighted.
//
// Of a loop, only some executions are timed, evenly spread between two snapshots, while what loops
// do changes as a program goes on. So the sample is stratified: those timed between two snapshots
// stand for the entries that came on between them, and for earlier ones that none stood for yet:
//
//     due = estimated entries so far - entries that were stood for,  at least weight * timed
//     estimate of timed += due                   entries that were stood for
//     estimate of timed iterations, cycles, exclusive cycles += their step * f
//     estimate of squares += its step * f^2
//
// with f = due / timed, or, since all iterations are counted and cycles go with them, the same
// quotient of iterations (a ratio estimator). The quotient of entries is taken where all were
// timed, which makes f the weight, and where fewer than 16 were, since an execution under way has
// iterations but is no entry yet. With a constant f that is the one mean times all entries.
// Source: Cochran, Sampling Techniques, 3rd ed. (1977), chapters 5 and 6.
//
// The counts must be those of a MethodProfile that passes check. O(words + entries).
void advance(Observed& seen, const Schema& schema, Observed now, uint64_t weight);

// Returns estimate_of, of a count of a method whose samples hold several executions each.
//
// One sample holds up to `most` executions of a site: as many as there are of the busiest block or
// edge to a sample, but no fewer than it has iterations, (iterations / w + sampled calls) / samples,
// which those of a site that lies in one of several loops may all be. Those of a site may be spread
// over the samples or all lie in few, which nobody counts: it would take a sum of squares for each
// site and work at each burst. So an intraclass correlation of 3/4 is assumed, and with p the count
// divided by most * samples, its share of what it can be at most,
//
//     together = 1 + (most - 1) * (p + 3/4 (1 - p))
//     n_eff = min(count / together, samples) * alike, at least 1
//
// 0 in the place of 3/4 would be executions that know nothing of each other, 1 those of which a
// sample holds all or none. Why 3/4: docs/notes/0038.
//
// Samples that stand for different numbers of opportunities tell less than as many of one weight:
// (sum w)^2 / sum w^2 of them. The sum of squares is the method's weight_squares; the mean weight w
// is estimates over counts of all its blocks and edges, so that
//
//     alike = samples * w^2 / weight_squares, at most 1; 1 where the sum is not known
//
// Where only a part of a merged profile has the sum, `alike` lies between what it is and 1.
// Source: the design effects of cluster samples and of unequal weights (Kish, Survey Sampling,
// 1965, chapters 5 and 11).
// O(slots).
Estimate estimate_in(const MethodProfile& method, uint64_t count, uint64_t estimate);

// Sets the estimates of a loop so that loop_cycles() returns the total of `cycles` and, as far as the
// timed executions allow, an interval of the same width; all entries are then stood for. Does nothing
// to a loop without entries or without a timed execution.
struct LoopTotals {
  uint64_t total = 0;  // in whole cycles
  uint64_t own = 0;    // without the loops inside
};
void set_loop_cycles(MethodProfile& method, const Slot& slot, const Estimate& cycles,
                     const LoopTotals& whole);

// What MethodProfile::estimate and loop_cycles return.
std::optional<Estimate> estimate_at(const MethodProfile& method, SlotKind kind, SiteId site);
std::optional<Estimate> loop_cycles_at(const MethodProfile& method, SiteId site);

// With what the executions of a slot come into a sample.
enum class Draw : uint8_t {
  kEither = 0,  // calls or iterations, or not known
  kCall,        // a sampled call, up to its first loop header
  kIteration,   // a burst's iterations, from a loop header on
  kHeader,      // the same, of the block of a loop header: one execution an iteration
};

}  // namespace uptier::profile
