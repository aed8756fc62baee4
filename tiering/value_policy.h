// What becomes of a method whose parameter is nearly always one value: pure functions, like those
// of policy.h, whose (1) and names these use.
//
// With
//   share   of the samples of a parameter that have its most frequent value
//   misses  calls of the version that was made for it, that came with another one
//
// the answers of decide_value are
//   keep        share < value_share, or fewer than value_samples samples
//   keep        (4) does not hold: cost + cost + past / speedup < past, so that what the general
//               version saves has paid for both
//   specialize  else: a version is made for the value, and a guard in front of it
//   ban         it was tried exit_retries times, and taken back
// and those of decide_guard, at the end of a window of calls
//   keep        misses <= miss_share * calls
//   roll_back   else: calls go to the general version again, and the value is not tried again
//   ban         the same, after exit_retries times: no value is
//
// A miss costs a comparison, a branch that is mispredicted and a count, some 20 cycles; what a hit
// saves nobody knows beforehand. So a version that is slower as a whole is taken back by its trial
// (trial.h), which times both; this rule is for what happens after the trial, and for where there
// is none.
#pragma once

#include <cstdint>
#include <string>

#include "tiering/policy.h"

namespace uptier::tiering {

struct ValueSnapshot {
  uint64_t samples = 0;  // of the parameter
  uint64_t seen = 0;     // with the value
  uint32_t param = 0;    // from 0
  int64_t value = 0;
  uint32_t retries = 0;  // versions for values that were taken back
  double past_ns = 0;    // the greater of executed and saved work, in baseline code
  double cost_ns = 0;    // of a compilation
  double speedup = 0;    // as measured; 0: PolicyOptions has what is assumed
};

struct GuardSnapshot {
  uint64_t window = 0;  // calls
  uint64_t misses = 0;  // among them
  uint32_t retries = 0;
};

Decision decide_value(const ValueSnapshot& v, const PolicyOptions& o);
Decision decide_guard(const GuardSnapshot& g, const PolicyOptions& o);

}  // namespace uptier::tiering
