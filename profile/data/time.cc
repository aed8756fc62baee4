// The arithmetic of TimeProfile.
#include <algorithm>
#include <cmath>
#include <set>

#include "profile/base/numbers.h"
#include "uptier/profile_time.h"

namespace uptier {
namespace {

using profile::add_saturating;

void add_path(PathTime& to, const PathTime& from) {
  add_saturating(to.samples, from.samples);
  add_saturating(to.ns, from.ns);
  for (const PathTime& callee : from.callees) add_path(to.callee(callee.frame), callee);
}

void scale_path(PathTime& path, uint64_t numerator, uint64_t denominator) {
  uint64_t saturated = 0;
  path.samples = profile::mul_div(path.samples, numerator, denominator, saturated);
  path.ns = profile::mul_div(path.ns, numerator, denominator, saturated);
  for (PathTime& callee : path.callees) scale_path(callee, numerator, denominator);
}

uint64_t total_ns(const PathTime& path) {
  uint64_t sum = path.ns;
  for (const PathTime& callee : path.callees) add_saturating(sum, total_ns(callee));
  return sum;
}

void take_off(uint64_t& from, uint64_t what, uint64_t& missing) {
  missing += from < what ? 1 : 0;
  from -= std::min(from, what);
}

void take_off(PathTime& from, const PathTime& what, uint64_t& missing) {
  take_off(from.samples, what.samples, missing);
  take_off(from.ns, what.ns, missing);
  for (const PathTime& callee : what.callees) take_off(from.callee(callee.frame), callee, missing);
}

// Removes paths without samples and time, and without callees that have any.
void remove_empty(PathTime& path) {
  for (PathTime& callee : path.callees) remove_empty(callee);
  std::erase_if(path.callees, [](const PathTime& callee) {
    return callee.samples == 0 && callee.ns == 0 && callee.callees.empty();
  });
}

// Adds the time of a path and of all its callees. `above`: the frames of its callers.
uint64_t add_frames(const PathTime& path, std::multiset<PathFrame>& above,
                    std::map<PathFrame, FrameTime>& to) {
  const auto at = above.insert(path.frame);
  uint64_t all = path.ns;
  for (const PathTime& callee : path.callees) add_saturating(all, add_frames(callee, above, to));
  above.erase(at);
  FrameTime& sum = to[path.frame];
  add_saturating(sum.samples, path.samples);
  add_saturating(sum.own_ns, path.ns);
  if (!above.contains(path.frame)) add_saturating(sum.all_ns, all);
  return all;
}

}  // namespace

const char* time_place_name(TimePlace p) {
  switch (p) {
    case TimePlace::kMethod: return "method";
    case TimePlace::kRuntime: return "runtime";
    case TimePlace::kHost: return "host";
    case TimePlace::kCompiling: return "compiling";
    case TimePlace::kOutside: return "outside";
  }
  return "?";
}

// Kish's effective number of samples for unequal weights: whole^2 / squares.
ShareEstimate share_of_time(double part, double whole, double squares) {
  if (whole <= 0 || squares <= 0) return {};
  constexpr double kZ = 1.96;
  const double n = whole * whole / squares;
  const double p = part / whole;
  const double scale = 1 + kZ * kZ / n;
  const double middle = (p + kZ * kZ / (2 * n)) / scale;
  const double half = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n)) / scale;
  return {p, std::clamp(middle - half, 0.0, p), std::clamp(middle + half, p, 1.0)};
}

PathTime& PathTime::callee(const PathFrame& f) {
  const auto at = std::ranges::lower_bound(callees, f, {}, &PathTime::frame);
  if (at != callees.end() && at->frame == f) return *at;
  PathTime fresh;
  fresh.frame = f;
  return *callees.insert(at, std::move(fresh));
}

void TimeProfile::add(const std::vector<PathFrame>& path, uint64_t samples, uint64_t ns) {
  PathTime* at = &root;
  for (const PathFrame& f : path) at = &at->callee(f);
  add_saturating(at->samples, samples);
  add_saturating(at->ns, ns);
  add_saturating(sampled_ns, ns);
}

TimeProfile& TimeProfile::operator+=(const TimeProfile& other) {
  add_path(root, other.root);
  add_saturating(asked_ns, other.asked_ns);
  add_saturating(sampled_ns, other.sampled_ns);
  add_saturating(squares, other.squares);
  return *this;
}

void TimeProfile::scale(uint64_t numerator, uint64_t denominator) {
  uint64_t saturated = 0;
  scale_path(root, numerator, denominator);
  remove_empty(root);
  asked_ns = profile::mul_div(asked_ns, numerator, denominator, saturated);
  sampled_ns = total_ns(root);  // the sum of the paths after rounding
  squares = profile::mul_div(squares, numerator, denominator, saturated);
  squares = profile::mul_div(squares, numerator, denominator, saturated);
}

uint64_t TimeProfile::subtract(const TimeProfile& what) {
  uint64_t missing = 0;
  take_off(root, what.root, missing);
  remove_empty(root);
  take_off(asked_ns, what.asked_ns, missing);
  take_off(sampled_ns, what.sampled_ns, missing);
  take_off(squares, what.squares, missing);
  return missing;
}

std::map<PathFrame, FrameTime> TimeProfile::by_frame() const {
  std::map<PathFrame, FrameTime> to;
  std::multiset<PathFrame> above;
  for (const PathTime& outermost : root.callees) add_frames(outermost, above, to);
  return to;
}

ShareEstimate TimeProfile::share(uint64_t ns) const {
  const double micros = static_cast<double>(sampled_ns) / 1000;
  return share_of_time(static_cast<double>(ns) / 1000, micros, static_cast<double>(squares));
}

}  // namespace uptier
