#include "tiering/control/finding.h"

namespace uptier::tiering {

void Finding::find(const std::vector<MethodId>& met) {
  if (live_.find == FindMode::kCounts) return;
  for (MethodId id : met) {
    Method* m = methods_.known(id);
    if (m == nullptr || m->removed) continue;
    if (!m->found.exchange(true, std::memory_order_relaxed)) {
      observer_.decisions.log(*m, "find", "a stack sample was in it");
    }
    rates_.want_copy(*m);
  }
}

// A method that is observed already stays found.
void Finding::change() {
  for (const auto& m : methods_.all()) {
    bool known = m->sampled || m->instrumented.load(std::memory_order_relaxed) != nullptr ||
                 m->optimized.load(std::memory_order_relaxed) != nullptr;
    m->found = live_.find != FindMode::kSamples || known;
  }
}

}  // namespace uptier::tiering
