#include "tiering/observe/known_counts.h"

#include <cmath>

#include "uptier/profile_query.h"

namespace uptier::tiering {
namespace {

// Sampled calls and bursts from which on this run is believed.
constexpr uint64_t kLeastObserved = 256;

// A gauge is the greatest value seen, however many runs there were.
uint64_t estimate_at(const MethodProfile& p, SiteId site, double runs) {
  std::optional<ProfileAnswer> a = uptier::query(p, SlotKind::kCounter, site);
  if (!a) a = uptier::query(p, SlotKind::kGauge, site), runs = 1;
  const auto* counter = a ? std::get_if<CounterAnswer>(&a->what) : nullptr;
  if (counter == nullptr || runs == 1) return counter == nullptr ? 0 : counter->estimate;
  return static_cast<uint64_t>(std::llround(static_cast<double>(counter->estimate) / runs));
}

}  // namespace

std::vector<jit::KnownCount> counts_in(const MethodProfile& p, const jit::Function& f,
                                       double runs) {
  std::vector<jit::KnownCount> known;
  for (SiteId site : jit::asked_counts(f)) known.push_back({site, estimate_at(p, site, runs)});
  return known;
}

void note_counts(const Method& m, const Observer& observer, jit::Function& f) {
  if (jit::asked_counts(f).empty()) return;
  MethodProfile now = observer.profile_of(m);
  bool few = now.sampled_calls + now.bursts < kLeastObserved && m.saved != nullptr;
  jit::note_counts(f, few ? counts_in(m.saved->profile, f, m.saved->runs) : counts_in(now, f, 1));
}

void note_wild_counts(jit::Function& f) {
  std::vector<jit::KnownCount> known;
  for (SiteId site : jit::asked_counts(f))
    known.push_back({site, site * 0x9e3779b97f4a7c15 >> site % 64});
  jit::note_counts(f, known);
}

}  // namespace uptier::tiering
