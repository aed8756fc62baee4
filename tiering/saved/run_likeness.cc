#include "tiering/saved/run_likeness.h"

#include <algorithm>
#include <cassert>

namespace uptier::tiering {

namespace {

constexpr double kAlike = 0.9;

struct Masses {
  double both = 0;
  double here = 0;
  double there = 0;

  double likeness() const {
    assert(both <= std::max(here, there) * (1 + 1e-9));
    double most = std::max(here, there);
    return most == 0 ? 1 : both / most;
  }
};

double common_mass(const MethodProfile& here, const MethodProfile& there, double runs) {
  if (here.schema.cfg_hash != there.schema.cfg_hash) return 0;
  double sum = 0;
  for (const Slot& slot : here.schema.slots) {
    const Slot* other = there.schema.find(slot.kind, slot.site);
    if (slot.kind != SlotKind::kBlock || other == nullptr) continue;
    sum += std::min(static_cast<double>(here.estimates[slot.word]),
                    static_cast<double>(there.estimates[other->word]) / runs);
  }
  return sum;
}

}  // namespace

bool is_like(const SeenRun& seen, const Profile& saved, double runs) {
  assert(runs >= 1);
  Masses masses;
  for (const auto& [key, fate] : seen.fates) {
    // Its profile was found under another name.
    bool moved = fate.keep && saved.find(key) == nullptr;
    if (moved) return false;
  }
  for (const auto& [key, m] : seen.run.methods) {
    if (saved.find(key) == nullptr) masses.here += block_mass(m);
  }
  for (const auto& [key, before] : saved.methods) {
    auto fate = seen.fates.find(key);
    bool met = fate != seen.fates.end();
    if (met && fate->second.cfg_hash != before.schema.cfg_hash) return false;
    double there = block_mass(before) / runs;
    masses.there += there;
    if (met && fate->second.keep) {
      masses.here += there;
      masses.both += there;
    } else if (const MethodProfile* fresh = seen.run.find(key)) {
      masses.here += block_mass(*fresh);
      masses.both += common_mass(*fresh, before, runs);
    }
  }
  return masses.likeness() >= kAlike;
}

}  // namespace uptier::tiering
