// Decisions about methods with a parameter, or a value inside the body, that is nearly always the
// same: pure functions like those of policy.h, with its rule (1) and names.
//
// With
//   share   of a parameter's samples: the share with the most frequent value
//   misses  calls of the version for that value with another value
//
// decide_value returns
//   keep        share < value_share, or fewer than value_samples samples
//   keep        (4) does not hold: cost + cost + past / speedup < past, so that the savings of the
//               general version have paid for both
//   specialize  else: a version is made for the value, and a guard in front of it
//   ban         it was tried exit_retries times, and taken back
// and decide_guard, at the end of a window of calls,
//   keep        misses <= miss_share * calls
//   roll_back   else: calls go to the general version again, and the value is not tried again
//   ban         the same, after exit_retries times: no value is tried again
//
// A value probe of the host inside a body is considered when optimized code is made. With
//   samples, share   as above, for the site
//   range            from the least to the greatest value seen, extended to powers of two and one bit
//                    more: [0, 2^(k+1) - 1], or [-2^(k+1), 2^(k+1) - 1]
// decide_site returns
//   keep        fewer than value_samples samples, or neither of the below
//   specialize  share >= value_share: the code is made for the value
//   specialize  else, if the range leaves at least kSpareBits of the type free: for the range
// and a guard that fails exits to baseline code, so that decide_exit (policy.h) takes it back.
//
// A miss costs a comparison, a mispredicted branch and a count, some 20 cycles; the savings of a
// hit are not known beforehand. So a version that is slower as a whole is taken back by its trial
// (trial.h), which times both; this rule is for the time after the trial, and for versions without
// one.
#pragma once

#include <cstdint>
#include <string>

#include "tiering/policy/policy.h"

namespace uptier::tiering {

struct ValueSnapshot {
  uint64_t samples = 0;  // of the parameter
  uint64_t seen = 0;     // with the value
  uint32_t param = 0;    // from 0
  int64_t value = 0;
  uint32_t retries = 0;  // versions for values that were taken back
  double past_ns = 0;    // the greater of executed and saved work, in baseline code
  double cost_ns = 0;    // of a compilation
  double speedup = 0;    // as measured; 0: use the assumption in PolicyOptions
};

struct GuardSnapshot {
  uint64_t window = 0;  // calls
  uint64_t misses = 0;  // among them
  uint32_t retries = 0;
};

// Bits of its type that a range must leave free, so that a guard is worth it.
inline constexpr uint32_t kSpareBits = 4;

struct SiteSnapshot {
  uint64_t samples = 0;  // of the site
  uint64_t seen = 0;     // with the most frequent value
  int64_t value = 0;     // the most frequent value
  int64_t min = 0, max = 0;
  uint32_t site = 0;
  bool wide = false;  // the values have 64 bits
};

struct SiteDecision {
  Action action = Action::kKeep;
  int64_t min = 0, max = 0;  // the range that the code may assume for the values
  std::string reason;
};

Decision decide_value(const ValueSnapshot& v, const PolicyOptions& o);
Decision decide_guard(const GuardSnapshot& g, const PolicyOptions& o);
SiteDecision decide_site(const SiteSnapshot& s, const PolicyOptions& o);

}  // namespace uptier::tiering
