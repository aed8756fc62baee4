#include "tiering/observe/drift_detector.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>

#include "tiering/observe/inlined_bodies.h"

namespace uptier::tiering {
namespace {

double sum_of(const std::vector<double>& counts) {
  double sum = 0;
  for (double c : counts) sum += c;
  return sum;
}

// The distance of two profiles over the words in `observed`, and the word whose share changed most.
struct Difference {
  double distance = 0;
  double share = 0;  // of a, in these words
  size_t word = SIZE_MAX;
  double before = 0, now = 0;
};

Difference difference(std::vector<double> a, std::vector<double> b,
                      const std::vector<bool>& observed) {
  assert(a.size() <= observed.size() && b.size() <= observed.size());
  Difference d;
  a.resize(observed.size());
  b.resize(observed.size());
  double all = sum_of(a);
  for (size_t i = 0; i < observed.size(); ++i) {
    if (!observed[i]) a[i] = b[i] = 0;
  }
  double total_a = sum_of(a), total_b = sum_of(b);
  if (total_a <= 0 || total_b <= 0) return d;
  d.share = total_a / all;
  double shared = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double before = a[i] / total_a, now = b[i] / total_b;
    shared += std::min(before, now);
    if (d.word != SIZE_MAX && std::abs(now - before) <= std::abs(d.now - d.before)) continue;
    d.word = i;
    d.before = before;
    d.now = now;
  }
  d.distance = std::max(0.0, 1 - shared);
  return d;
}

std::string reason(const char* what, const Difference& d, double allowed,
                   const std::string& block) {
  char text[128];
  std::snprintf(text, sizeof text,
                ": optimized code lies %.2f %% from it, noise explains %.2f %%; ", 100 * d.distance,
                100 * allowed);
  char shares[64];
  std::snprintf(shares, sizeof shares, " was %.1f %%, is %.1f %%", 100 * d.before, 100 * d.now);
  return what + std::string(text) + block + shares;
}

void add_to(std::vector<double>& sum, std::span<const double> counts) {
  if (sum.size() < counts.size()) sum.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

}  // namespace

bool DriftDetector::learn_window(Method& m, CopyWindows& o, const Version& copy,
                                 const sampler::Window& w) {
  assert(copy.copy == Copy::kInstrumented && copy.tier == Tier::kOptimized);
  o.samples += w.samples;
  std::vector<double> came(w.counts.begin(), w.counts.end());
  add_to(o.recent, came);
  double before = o.convergence.last_distance();
  uint32_t windows = o.convergence.windows();
  sampler::Verdict v = o.convergence.add(w);
  if (v == sampler::Verdict::kDrifted) {
    Difference d = difference(o.known, o.recent, o.observed);
    decisions_.log(m, "re_instrument",
                   reason("drift from earlier windows", d, o.convergence.last_allowed(),
                          block_name(methods_, m, copy, d.word)));
    // Learn again without this window, which may mix both behaviors.
    o.known.clear();
    o.recent.clear();
    if (m.saved != nullptr) m.saved->drifted = true;
    o.drift = 0;
    o.misled = true;  // the profile has been reported as out of date
    return false;
  }
  bool over = o.known.empty() || o.convergence.windows() != windows ||
              o.convergence.last_distance() != before;
  if (!over) return false;
  add_to(o.known, o.recent);
  o.recent.clear();
  return true;
}

bool DriftDetector::compare_with_profile(Method& m, CopyWindows& o, const Version& v,
                                         const Version& copy) {
  bool enough =
      !v.made_from.empty() && o.convergence.windows() >= sampler::Convergence::kLeastWindows;
  if (!enough) return false;
  Origin from = origin_of(m, v, copy, o);
  Difference d = difference(from.counts, o.known, from.known);
  if (d.share <= 0) return false;
  assert(from.counts.size() == from.known.size() && o.known.size() <= from.known.size());
  double error = o.error();
  double allowed = std::max(policy_.epsilon, from.error / d.share + error);
  if (d.distance > allowed && !o.misled) {
    o.misled = true;
    if (m.saved != nullptr) m.saved->drifted = true;
    decisions_.log(m, "re_instrument",
                   reason("drift from the profile it was made from", d, allowed,
                          block_name(methods_, m, copy, d.word)));
  }
  // The cause of the difference from the new profile does not matter: the code is laid out for that
  // profile, and only the current behavior is uncertain.
  o.drift = std::max(0.0, d.distance - error);
  if (o.drift >= policy_.epsilon) return true;
  o.misled = o.told = false;
  return false;
}

}  // namespace uptier::tiering
