// rake.h: adjusts the estimates of adaptive sampling to totals that are known exactly.
//
//   Coverage   the number of opportunities that the samples of one id stand for
//   rake       fits the estimates of one id to its numbers of calls and iterations
//   StreamSum  adds up the streams of a method, one for each thread
#pragma once

#include <cstdint>
#include <span>

#include "profile/data/estimate.h"
#include "profile/data/schema.h"

namespace uptier::profile {

// The opportunities that an id's samples stand for, if sampling adapts.
//
// Opportunities are calls, and iterations / burst; samples are sampled calls and bursts. A window's
// samples stand for all opportunities since the last window that had samples: their weight is
// opportunities / samples, not the interval that was in force (post-stratification). Intervals
// change by orders of magnitude, so otherwise a single sample at a wide one would outweigh all
// others; and events during a pause of sampling go to the samples that follow. Weights are whole
// numbers, so the sum is corrected at the end: `stretch` is opportunities / covered, with covered
// the sum of samples * weight; see rake().
//
// A ratio estimator: consistent, with a bias of the order 1 / samples (Cochran 1977, 5A.9 and 6.8).
struct Coverage {
  double covered = 0;
  double opportunities = 0;  // at the end of the last window with samples
  uint64_t samples = 0;      // likewise
  uint64_t squares = 0;      // the sum of samples * weight^2, saturating

  // Ends a window; returns the weight of its samples, at least 1.
  uint64_t weigh(uint64_t samples_now, double opportunities_now);
  // The same with a known weight.
  void end_window(uint64_t samples_now, uint64_t weight);
  // Returns the factor for estimates; 1 if nothing is known.
  double stretch(uint64_t calls, uint64_t iterations, uint64_t burst) const;
};

// Adjusts the estimates of an id with adaptive rates to the true totals. The numbers of calls and
// of iterations are known exactly, separately, while a window has one weight for both. So, as long
// as all of them ran code that can count: slots drawn with calls are multiplied by calls / estimate
// of the entry block; slots drawn with iterations by iterations / estimates of all headers
// together; and all others, or if one of these is not known, by `rest`, which is Coverage::stretch.
// Saturating; no estimate falls below its count. `draws`: by slot; may be shorter, the rest is
// kEither. Source: raking, or calibration to known totals (Deville and Sarndal, 1992).
void rake(const Schema& schema, std::span<const Draw> draws, Observed& seen, uint64_t calls,
          uint64_t iterations, double rest);

// Adds up the observations of the streams of a method (one for each thread), as estimates of all
// executions.
//
// Each stream is raked to its own calls and iterations. A stream without a sample tells nothing
// about its calls, so they are assumed to behave like those of the others: the sum is raked again,
// from the totals of the streams with samples to the totals of all. If threads share one countdown
// of calls (gap=exact), nobody knows whose calls were sampled, but their number is exact: then the
// sum is raked once, to the calls of all.
//
// The weight of a sample changes with its estimate, so squares of weights are multiplied by the
// square of the factor by which the mass of blocks and edges grew. Source: weighting classes for
// nonresponse, Cochran, Sampling Techniques, 3rd ed. (1977), 13.5.
class StreamSum {
 public:
  // `draws` and the schema must outlive the sum.
  StreamSum(const Schema& schema, std::span<const Draw> draws, bool one_countdown)
      : schema_(schema), draws_(draws), one_countdown_(one_countdown) {}

  struct Stream {
    uint64_t calls = 0;
    uint64_t iterations = 0;
    uint64_t samples = 0;  // sampled calls and bursts
    uint64_t squares = 0;  // of their weights
    double covered = 0;    // Coverage::covered
    uint64_t burst = 0;    // iterations of one; 0: their number is meaningless
  };
  // Adds a stream; rakes its estimates to its own calls if required.
  void add(const Stream& s, Observed& seen);
  // Adds the result of another sum, whose estimates are already in this one; some of these calls
  // and iterations belong to streams without a sample.
  struct Ran {
    double calls = 0;
    double iterations = 0;
  };
  void add_raked(const Stream& all, const Ran& seen);

  // Returns the totals of the streams with samples.
  Ran sampled() const { return sampled_; }
  uint64_t squares() const { return squares_; }
  // Adjusts the joint estimates of all streams to all executions.
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
