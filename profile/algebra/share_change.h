// share_change.h: which shares differ by more than the noise of two sides of runs explains.
//
// A share is what one item (a method) has of a whole (the time, or the executions) of one run. Its
// variance between runs of one program is
//
//     p (1 - p) / observations  +  between
//
// The first part is known: `observations` is the number of independent draws that have the same noise.
// The second part is estimated from the runs of both sides, as what their spread exceeds the first part
// by (the moment estimator for random effects, DerSimonian and Laird 1986). Few runs tell little about
// one item. So p (1 - p) * common counts like an estimate with kPriorDegrees degrees of freedom, where
// `common` is the same excess over all items, but at least `assumed`. With one run on each side,
// p (1 - p) * assumed is all there is. The noise of all items at once is
//
//     noise = c * sqrt(p (1 - p) (1/N + 1/M) + between * (1/runs + 1/runs)) + (1/N + 1/M) / 2
//
// where p is the share in both sides together (in `between` the mean of the sides), N and M are the observations of the sides, and the last
// term corrects for counts being whole (Yates). c is the mean of the points of the normal distribution and
// of Student's, weighted by the two variances (Cochran 1964), at a tail of error / (2 * tested).
//
// Law: if nothing changed, the probability that any item lies beyond its noise is at most `error`.
// `tested` counts the items that could lie beyond it if one side had all of their observations: the
// others cannot, so they take no part of the error (Tarone 1990), and thousands of methods that were
// hardly seen cost nothing. Bonferroni's inequality, because it holds whatever the items have to do with
// each other: shares of one whole exclude each other, callers and callees rise together. Holm's procedure
// gains only after a first finding and gives no bound that fits all rows; a bound from the greatest of
// correlated differences gains nothing noticeable unless there are only two or three items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace uptier::profile {

// The share of one item in one run.
struct ShareSample {
  double share = 0;                                               // 0..1
  double observations = std::numeric_limits<double>::infinity();  // > 0; infinity: an exact share
};

struct ShareRun {
  double weight = 1;                // of the run in the mean of its side, > 0
  double assumed = 0;               // variance between runs, as a multiple of p (1 - p)
  std::vector<ShareSample> shares;  // by item; all runs have the same items
};

struct ShareChange {
  double before = 0;  // weighted means of the sides
  double after = 0;
  double noise = 0;  // the greatest |moved| that noise explains
  double usual = 0;  // the standard deviation of moved() if nothing changed
  bool beyond = false;

  double moved() const { return after - before; }
};

struct ShareChanges {
  std::vector<ShareChange> items;
  size_t tested = 0;
};

inline constexpr double kFamilyError = 0.05;
inline constexpr uint32_t kPriorDegrees = 4;

// Compares two sides with at least one run each. Pure. O(runs * items).
ShareChanges share_changes(std::span<const ShareRun> before, std::span<const ShareRun> after,
                           double error = kFamilyError);

}  // namespace uptier::profile
