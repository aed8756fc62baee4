// run_shares.h: the shares of a profile's methods, and how many observations each rests on.
//
// Time: a share is a proportion of stack samples. All of them are its observations; samples that were
// delivered together count as one (TimeProfile::squares).
//
// Executions: calls are exact, and so are the rounds of loops. Samples tell only how often the other
// blocks of a method run for each execution of its busiest block. With f as that proportion,
//
//     variance of a method's executions = sum over its blocks of f (1 - f) * busiest^2 / n
//
// where n is the number of the method's samples (sampled calls and bursts) with the design effects of
// clusters and of unequal weights (Kish, Survey Sampling, 1965): all executions in one sample count as one,
// and samples of weights w as (sum w)^2 / sum w^2. A method of one block has no such noise, nor has one
// whose calls were all observed. The blocks of a method without any sample are guesses: they are off by all
// of their estimate with a probability of 5 %. Inlined bodies are not counted by anything exact: theirs is
// the variance of estimate_of, and the blocks of a body are wrong together. A share is a quotient, so what
// the other methods vary by is part of its variance (the delta method). The result is given as the number of
// draws with the same variance.
//
// Runs of one program differ by more than this. No sample explains it: which methods are compiled first,
// and what is inlined where, depends on the machine's load, and what ran before there was an instrumented
// copy was not observed. The constants below are what runs were seen to differ by (docs/accuracy.md); they
// count until several runs of a side tell more.
#pragma once

#include <map>
#include <vector>

#include "profile/algebra/share_change.h"
#include "uptier/profile.h"
#include "uptier/profile_time.h"

namespace uptier::profile {

// Variances of a share p between runs of one program, as multiples of p (1 - p). A run of executions that
// took `seconds` has kCountsBetween * (1 + kStartSeconds / seconds): its start is not observed as the rest
// is. Exact counts have none.
inline constexpr double kCountsBetween = 1.5e-4;
inline constexpr double kStartSeconds = 7;
inline constexpr double kTimeBetween = 2e-4;

// The shares of one run. What is not in it has a share of 0.
struct RunShares {
  std::map<PathFrame, ShareSample> shares;
  double whole = 0;         // of which they are shares; 0: nothing was observed
  double assumed = 0;       // see ShareRun
  double observations = 0;  // of a share of 0
};

// Returns the shares of executions of blocks (of edges, for a method without any), inlined bodies
// included. `runs`: how many runs the profile is the sum of; what they differ by averages out. `seconds`:
// of processor time that they took, 0: unknown. O(sites).
RunShares count_shares(const Profile& p, double runs = 1, double seconds = 0);

// Returns the shares of processor time, without callees; the places that are no methods have shares too.
RunShares time_shares(const TimeProfile& t, double runs = 1);

// What became of one method or place.
struct NamedChange {
  PathFrame frame;
  ShareChange change;
};

struct RunChanges {
  std::vector<NamedChange> items;  // by frame; without those that neither side has a share of
  size_t tested = 0;               // see ShareChanges
};

// Compares two sides with at least one run each; runs that observed nothing do not count. Empty if a
// side has no other.
RunChanges run_changes(const std::vector<RunShares>& before, const std::vector<RunShares>& after,
                       double error = kFamilyError);

}  // namespace uptier::profile
