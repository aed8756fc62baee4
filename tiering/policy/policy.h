// Policy: decisions about exits and trials, in addition to uptier/policy.h; pure functions as well.
//
// A version that replaces another optimized one is timed against it (trial.h). With the rank test's
// z (rank_sum.h), and medians of the cycles of a call, the decision is
//   roll_back  z >= trial_z   and   median of the new > (1 + trial_margin) * median of the old (3)
//   keep       else, and if the old one is baseline code and takes fewer than kLeastTrialCycles
// So of equal versions one in a thousand is rolled back, and only if it also looks slower by a
// twentieth.
//
// A site where optimized code is exited too often is not worth its speculation. With
//   limit  exit_limit (in a loop exit_limit_loop) * 2^retries
// on the exits since the last decision, decide_exit returns
//   keep       fewer than the limit
//   recompile  the limit is reached: compile with the current profile. A guard declared by the host does
//              not depend on the profile, so nothing is compiled, and the decision is keep
//   ban        the limit is reached after exit_retries times: code never speculates there again; a
//              method whose host declared the guard leaves optimized code for good
#pragma once

#include <cstdint>
#include <string>

#include "uptier/policy.h"

namespace uptier::tiering {

// The history of a site where optimized code is exited.
struct ExitSnapshot {
  uint64_t exits = 0;    // since the last decision other than keep
  uint32_t retries = 0;  // times that the limit was reached
  bool in_loop = false;
  bool declared = false;  // a guard declared by the host, which no compilation removes
};

struct ExitDecision {
  Action action = Action::kKeep;
  bool met = false;  // the limit was reached, which is one more retry
  std::string reason;
};

// With fewer cycles per call, a ratio tells more about the timing than about the versions.
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

// Returns the number of exits after which the policy is asked about a site.
uint64_t exit_limit(const ExitSnapshot& e, const PolicyOptions& o);
// Pure as well.
ExitDecision decide_exit(const ExitSnapshot& e, const PolicyOptions& o);

// Returns the number of samples of a version after which drift may replace it.
uint64_t drift_limit(const MethodSnapshot& m, const PolicyOptions& o);

// Returns `past` of (1).
double past_ns(const MethodSnapshot& m, const PolicyOptions& o);

}  // namespace uptier::tiering
