#include "tiering/observe/known_counts.h"

#include <cmath>

#include "uptier/profile_query.h"

namespace uptier::tiering {
namespace {

// This run is trusted from so many sampled calls and bursts on.
constexpr uint64_t kLeastObserved = 256;

// Returns one run's share of a sum over `runs` runs; the sum may be UINT64_MAX.
uint64_t share_of(uint64_t sum, double runs) {
  double share = std::round(static_cast<double>(sum) / runs);
  return share < 0x1p64 ? static_cast<uint64_t>(share) : UINT64_MAX;
}

uint64_t estimate_of(const std::optional<ProfileAnswer>& a) {
  const auto* counter = a ? std::get_if<CounterAnswer>(&a->what) : nullptr;
  return counter == nullptr ? 0 : counter->estimate;
}

// A gauge is the greatest value seen, whatever the number of runs.
uint64_t estimate_at(const MethodProfile& p, SiteId site, double runs) {
  if (auto a = uptier::query(p, SlotKind::kGauge, site)) return estimate_of(a);
  uint64_t sum = estimate_of(uptier::query(p, SlotKind::kCounter, site));
  return runs == 1 ? sum : share_of(sum, runs);
}

}  // namespace

std::vector<jit::KnownCount> counts_in(const MethodProfile& p, const jit::Function& f,
                                       double runs) {
  std::vector<jit::KnownCount> known;
  for (SiteId site : jit::asked_counts(f)) known.push_back({site, estimate_at(p, site, runs)});
  return known;
}

void note_counts(const Method& m, const Estimates& estimates, jit::Function& f) {
  if (jit::asked_counts(f).empty()) return;
  MethodProfile now = estimates.profile_of(m);
  bool few = now.sampled_calls + now.bursts < kLeastObserved && m.saved != nullptr;
  jit::note_counts(f, few ? counts_in(m.saved->profile, f, m.saved->runs) : counts_in(now, f, 1));
}

void note_wild_counts(jit::Function& f, uint64_t salt) {
  std::vector<jit::KnownCount> known;
  for (SiteId site : jit::asked_counts(f)) {
    uint64_t n = (site + 64 * salt) * 0x9e3779b97f4a7c15;
    known.push_back({site, n >> n % 64});
  }
  jit::note_counts(f, known);
}

}  // namespace uptier::tiering
