// algebra.h: what can be done with profiles beside merge, scale and trim (uptier/profile.h).
//
// Laws, each with a test: subtract undoes merge where nothing saturated; top of top is top of the
// lesser number; without_empty changes no sum; a summary is that of the counts alone.
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

// Takes the sums of `what` off those of `from`, none below 0. Min, max and gauges stay, methods of
// other code too; entries of tables that become 0 go. Returns how many counts were not there to
// be taken. Inlined bodies that become 0 go.
uint64_t subtract(Profile& from, const Profile& what);

// The same of calls and positions. Shapes stay.
uint64_t subtract(CallProfile& from, const CallProfile& what);

// Leaves what is known of the methods of a profile: their shapes, if they are of its code, their
// first calls, and the calls between them.
void restrict_to(CallProfile& calls, const Profile& profile);

// Returns the executions of a method: of its blocks, or of its edges where it has no blocks,
// estimated. Where it is inlined they are not counted in.
long double executions(const MethodProfile& method);

// Returns the n methods with most executions, of equal ones those with the lesser key, and what is
// inlined into them.
Profile top(const Profile& profile, size_t n);

// Leaves the methods that `wanted` says, and what is inlined into them; returns how many went.
uint64_t leave(Profile& profile, const std::function<bool(const MethodProfile&)>& wanted);

// Removes methods of which nothing was seen; returns how many.
uint64_t without_empty(Profile& profile);

// How executions spread over blocks: the hottest `sites` blocks, all with `least` executions at
// least, have a share of `cutoff` of all.
struct Percentile {
  double cutoff = 0;
  uint64_t least = 0;
  uint64_t sites = 0;
};
struct Summary {
  uint64_t methods = 0;
  uint64_t sites = 0;     // blocks
  uint64_t seen = 0;      // of these, executed
  uint64_t greatest = 0;  // executions of one, estimated
  long double total = 0;
  std::vector<Percentile> percentiles;
};
inline constexpr double kCutoffs[] = {0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
// `cutoffs` ascend and lie in 0..1; a percentile is told for each.
Summary summarize(const Profile& profile, std::span<const double> cutoffs = kCutoffs);

}  // namespace uptier::profile
