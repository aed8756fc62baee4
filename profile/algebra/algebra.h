// algebra.h: operations on profiles other than merge, scale and trim (uptier/profile.h).
//
// Laws, each with a test: subtract undoes merge if nothing saturated; top of top is top of the
// smaller number; without_empty changes no sum; a summary depends only on the estimates of blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

using uptier::CallProfile;
using uptier::MethodKey;
using uptier::MethodProfile;
using uptier::Profile;

// Subtracts the sums of `what` from those of `from`, none below 0. Min, max and gauges stay, and so
// do methods of other code; entries of tables and inlined bodies that become 0 are removed. Returns
// how many counts would have become negative.
uint64_t subtract(Profile& from, const Profile& what);

// The same for calls and positions. Shapes stay.
uint64_t subtract(CallProfile& from, const CallProfile& what);

// Keeps only data about the methods of a profile: their shapes, if they are of its code, their
// first calls, and the calls between them.
void restrict_to(CallProfile& calls, const Profile& profile);

// Returns the estimated executions of a method's blocks, or of its edges if the blocks have none.
// Executions of inlined bodies are not included.
long double executions(const MethodProfile& method);

// Returns the n methods with most executions, of equal ones those with the smaller key, with the
// bodies that are inlined into them.
Profile top(const Profile& profile, size_t n);

// Keeps the methods for which `wanted` returns true, and the bodies inlined into them; returns how
// many were removed.
uint64_t leave(Profile& profile, const std::function<bool(const MethodProfile&)>& wanted);

// Removes methods without any observation; returns how many.
uint64_t without_empty(Profile& profile);

// The distribution of executions over blocks: the hottest `sites` blocks, each with at least
// `least` executions, have a share of `cutoff` of all.
struct Percentile {
  double cutoff = 0;
  uint64_t least = 0;
  uint64_t sites = 0;
};
struct Summary {
  uint64_t methods = 0;
  uint64_t sites = 0;     // blocks
  uint64_t seen = 0;      // blocks that were executed
  uint64_t greatest = 0;  // most executions of one block, estimated
  long double total = 0;
  std::vector<Percentile> percentiles;
};
inline constexpr double kCutoffs[] = {0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
// `cutoffs` ascend and lie in 0..1; there is a percentile for each.
Summary summarize(const Profile& profile, std::span<const double> cutoffs = kCutoffs);

}  // namespace uptier::profile
