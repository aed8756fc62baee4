// estimate.h: cumulative counts that are estimated as they grow.
//
// Law: what came on from one snapshot to the next is weighted by the mean gap that was in force in
// between, so estimates stay unbiased while intervals change.
#pragma once

#include <cstdint>
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

// What an id's samples stand for, where sampling adapts.
//
// Opportunities are calls, and iterations / burst; samples are sampled calls and bursts. A window's
// samples stand for the opportunities that there were since the last window that had any: their
// weight is opportunities / samples, not the interval that was in force (post-stratification). With
// intervals that change by orders of magnitude a single sample at a wide one would otherwise
// outweigh all others; and what ran while sampling paused goes to the samples that follow. Weights
// are whole numbers, so the sum is put right at the end: `stretch` is opportunities / covered, with
// covered the sum of samples * weight; see rake().
//
// A ratio estimator: consistent, its bias of the order 1 / samples (Cochran 1977, 5A.9 and 6.8).
struct Coverage {
  double covered = 0;
  double opportunities = 0;  // when the last window with samples ended
  uint64_t samples = 0;      // likewise
  uint64_t squares = 0;      // the sum of samples * weight^2, saturating

  // Ends a window; returns the weight of its samples, at least 1.
  uint64_t weigh(uint64_t samples_now, double opportunities_now);
  // The same with a weight that is known.
  void end_window(uint64_t samples_now, uint64_t weight);
  // Returns what estimates are to be multiplied by; 1 if nothing is known.
  double stretch(uint64_t calls, uint64_t iterations, uint64_t burst) const;
};

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

// With what the executions of a slot come into a sample.
enum class Draw : uint8_t {
  kEither = 0,  // calls or iterations, or not known
  kCall,        // a sampled call, up to its first loop header
  kIteration,   // a burst's iterations, from a loop header on
  kHeader,      // the same, of the block of a loop header: one execution an iteration
};

// Brings the estimates of an id whose rates adapt to what there was. How many calls and iterations
// there were is known exactly, each for itself, and a window's one weight is of both together; so,
// as long as all of them ran code that can count, slots drawn with calls are multiplied by
// calls / estimate of the entry block, those drawn with iterations by iterations / estimates of the
// headers together, and all others, or where one of these is not known, by `rest`, which is
// Coverage::stretch. Saturating; no estimate falls below its count. `draws`: by slot; shorter where
// the rest is kEither.
// Source: raking, or calibration to known totals (Deville and Sarndal, 1992).
void rake(const Schema& schema, std::span<const Draw> draws, Observed& seen, uint64_t calls,
          uint64_t iterations, double rest);

// Sums up what the streams of a method (one for each thread) have observed, as estimates of all
// that ran.
//
// Each stream is raked to its own calls and iterations. One without a sample says nothing of what its
// calls did, so they are taken for what the others' were: the sum is raked again, from what the
// streams with samples have run to what all have. Where threads share one countdown of calls
// (gap=exact) nobody knows whose calls were whose, but their number is exact: then the sum is raked
// once, to the calls of all.
//
// What a sample stands for changes with its estimate, so squares of weights are multiplied by the
// square of what the mass of blocks and edges grew by.
// Source: weighting classes for nonresponse, Cochran, Sampling Techniques, 3rd ed. (1977), 13.5.
class StreamSum {
 public:
  // What both `draws` and the schema are of must outlive the sum.
  StreamSum(const Schema& schema, std::span<const Draw> draws, bool one_countdown)
      : schema_(schema), draws_(draws), one_countdown_(one_countdown) {}

  struct Stream {
    uint64_t calls = 0;
    uint64_t iterations = 0;
    uint64_t samples = 0;  // sampled calls and bursts
    uint64_t squares = 0;  // of what these stand for
    double covered = 0;    // Coverage::covered
    uint64_t burst = 0;    // iterations of one; 0: their number means nothing
  };
  // Adds a stream; brings its estimates to its own calls where that is to be done.
  void add(const Stream& s, Observed& seen);
  // Adds what was added to another sum, whose estimates are in this one already; of these calls and
  // iterations some are of streams without a sample.
  struct Ran {
    double calls = 0;
    double iterations = 0;
  };
  void add_raked(const Stream& all, const Ran& seen);

  // What the streams have run that had samples.
  Ran sampled() const { return sampled_; }
  uint64_t squares() const { return squares_; }
  // Brings the estimates of all streams together to all that ran.
  void finish(Observed& sum);

 private:
  void rake_counting_squares(Observed& seen, uint64_t calls, uint64_t iterations, double rest,
                             uint64_t& squares) const;

  const Schema& schema_;
  std::span<const Draw> draws_;
  bool one_countdown_;
  Stream all_;
  Ran sampled_;
  uint64_t squares_ = 0;
};

}  // namespace uptier::profile
