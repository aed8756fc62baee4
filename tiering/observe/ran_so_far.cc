#include "tiering/observe/ran_so_far.h"

#include <algorithm>

namespace uptier::tiering {

uint64_t calls_so_far(const Method& m, const Threads& threads) {
  uint64_t calls = m.flushed->adaptation.gone.calls;
  for (const auto& t : threads) {
    const sampler::MethodState& s = t->state(m.id);
    auto load = [](const auto& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); };
    int64_t gap = load(s.call_gap);
    calls += load(s.calls);
    if (gap != 0) calls += std::clamp<int64_t>(gap - 1 - load(s.call_countdown), 0, gap);
  }
  return calls;
}

}  // namespace uptier::tiering
