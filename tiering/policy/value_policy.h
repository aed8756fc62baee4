// What becomes of a method whose parameter is nearly always one value, or that has such a value
// inside: pure functions, like those of policy.h, whose (1) and names these use.
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
// A value probe of the host's inside of a body is asked about when optimized code is made. With
//   samples, share   as above, of the site
//   range            what lies between the least and the greatest value seen, out to powers of two
//                    and one bit more: [0, 2^(k+1) - 1], or [-2^(k+1), 2^(k+1) - 1]
// the answers of decide_site are
//   keep        fewer than value_samples samples, or neither of the below
//   specialize  share >= value_share: the code is made for the value
//   specialize  else, where the range leaves at least kSpareBits of the type: for the range
// and a guard that fails leaves for baseline code, so that decide_exit (policy.h) takes it back.
//
// A miss costs a comparison, a branch that is mispredicted and a count, some 20 cycles; what a hit
// saves nobody knows beforehand. So a version that is slower as a whole is taken back by its trial
// (trial.h), which times both; this rule is for what happens after the trial, and for where there
// is none.
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
  double speedup = 0;    // as measured; 0: PolicyOptions has what is assumed
};

struct GuardSnapshot {
  uint64_t window = 0;  // calls
  uint64_t misses = 0;  // among them
  uint32_t retries = 0;
};

// Bits of its type that a range must leave free to be worth a guard.
inline constexpr uint32_t kSpareBits = 4;

struct SiteSnapshot {
  uint64_t samples = 0;  // of the site
  uint64_t seen = 0;     // with the most frequent value
  int64_t value = 0;     // that one
  int64_t min = 0, max = 0;
  uint32_t site = 0;
  bool wide = false;  // the values have 64 bits
};

struct SiteDecision {
  Action action = Action::kKeep;
  int64_t min = 0, max = 0;  // what the code may take the values to lie in
  std::string reason;
};

Decision decide_value(const ValueSnapshot& v, const PolicyOptions& o);
Decision decide_guard(const GuardSnapshot& g, const PolicyOptions& o);
SiteDecision decide_site(const SiteSnapshot& s, const PolicyOptions& o);

}  // namespace uptier::tiering
