// Policy: what is decided beside uptier/policy.h, about exits and trials, by pure functions as well.
//
// A version that takes the place of another optimized one is timed against it (trial.h). With the
// rank test's z (rank_sum.h), and medians of the cycles of a call, the answer is
//   roll_back  z >= trial_z   and   median of the new > (1 + trial_margin) * median of the old (3)
//   keep       else, and where the old one is baseline code and takes fewer than kLeastTrialCycles
// so that of versions that are alike one in a thousand is taken back, if it looks slower by a
// twentieth as well.
//
// A site at which optimized code is left too often is not worth its speculation. With
//   limit  exit_limit (in a loop exit_limit_loop) * 2^retries
// of exits since the last answer, decide_exit says
//   keep       fewer than the limit
//   recompile  the limit is met: with what is known by now. A guard that the host declared stays
//              whatever is known, so nothing is compiled, and the answer is keep
//   ban        the limit is met after exit_retries times: code never speculates there again; a
//              method whose host declared the guard leaves optimized code for good
#pragma once

#include <cstdint>
#include <string>

#include "uptier/policy.h"

namespace uptier::tiering {

// The history of a place where optimized code is left.
struct ExitSnapshot {
  uint64_t exits = 0;    // since the last answer that was no keep
  uint32_t retries = 0;  // times that the limit was met
  bool in_loop = false;
  bool declared = false;  // a guard of the host's, which no compilation removes
};

struct ExitDecision {
  Action action = Action::kKeep;
  bool met = false;  // the limit was, which is one retry more
  std::string reason;
};

// Below so many cycles a call, a ratio is more that of the timing than of what is timed.
inline constexpr uint64_t kLeastTrialCycles = 500;

// The result of a trial of two versions.
struct TrialSnapshot {
  uint64_t before_samples = 0, now_samples = 0;  // calls timed
  uint64_t before_cycles = 0, now_cycles = 0;    // medians
  double z = 0;                                  // positive: the new version is slower
  bool tiers = false;                            // the old one is baseline code
};

// Pure as well.
Decision decide_trial(const TrialSnapshot& t, const PolicyOptions& o);

// Returns the exits after which the policy is asked about a site.
uint64_t exit_limit(const ExitSnapshot& e, const PolicyOptions& o);
// Pure as well.
ExitDecision decide_exit(const ExitSnapshot& e, const PolicyOptions& o);

// Returns the samples of a version after which drift may replace it.
uint64_t drift_limit(const MethodSnapshot& m, const PolicyOptions& o);

// Returns `past` of (1).
double past_ns(const MethodSnapshot& m, const PolicyOptions& o);

}  // namespace uptier::tiering
