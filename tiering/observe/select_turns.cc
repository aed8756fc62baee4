#include "tiering/observe/select_turns.h"

#include <cassert>

namespace uptier::tiering {

jit::SelectTurns turns_at(const MethodProfile& p, SiteId site) {
  jit::SelectTurns t{site, {}};
  const Table* table = p.table(SlotKind::kValue, site);
  if (table == nullptr) return t;
  for (const auto& [key, entry] : *table) {
    if (key.value >= jit::kTurnValues) return {site, {}};
    t.counts[key.value] = entry.count;
  }
  return t;
}

void note_turns(const Method& m, const Estimates& estimates, jit::Function& f) {
  std::vector<SiteId> sites = jit::turn_sites(f);
  if (sites.empty()) return;
  MethodProfile now = estimates.profile_of(m);
  std::vector<jit::SelectTurns> seen;
  for (SiteId site : sites) {
    jit::SelectTurns t = turns_at(now, site);
    bool few = t.executions() < jit::kLeastTurns && m.saved != nullptr;
    seen.push_back(few ? turns_at(m.saved->profile, site) : t);
  }
  jit::note_turns(f, seen);
}

}  // namespace uptier::tiering
