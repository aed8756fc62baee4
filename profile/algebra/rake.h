// rake.h: brings the estimates of adaptive sampling to totals that are known exactly.
//
//   Coverage   what the samples of one id stand for
//   rake       fits the estimates of one id to its numbers of calls and iterations
//   StreamSum  adds up the streams of a method, one for each thread
#pragma once

#include <cstdint>
#include <span>

#include "profile/data/estimate.h"
#include "profile/data/schema.h"

namespace uptier::profile {

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
