#include "tiering/control/newer_code.h"

#include <algorithm>
#include <cassert>

#include "tiering/base/clock.h"

namespace uptier::tiering {

namespace {

constexpr uint64_t kPatience = 10;

const Version* newest_for_loops(const Method& m) {
  const Version* newest = m.optimized.load(std::memory_order_relaxed);
  for (uint32_t l = 0; l < m.shape->loop_count; ++l) {
    const Version* v = m.shape->osr[l].load(std::memory_order_relaxed);
    if (v != nullptr && (newest == nullptr || v->serial > newest->serial)) newest = v;
  }
  return newest;
}

}  // namespace

// Returns when code may be made for a frame of old code; 0: now.
uint64_t NewerCode::due_ns(const Method& m) const {
  if (std::ranges::find(m.shape->osr_requested, true) != m.shape->osr_requested.end()) return 1;
  const Version* newest = newest_for_loops(m);
  if (!options_.measure_rates || newest == nullptr) return 0;
  uint64_t due = newest->installed_ns + kPatience * newest->compile_ns;
  return due <= now_ns() ? 0 : due;
}

bool NewerCode::cannot_follow(const Method& m, uint32_t loop) const {
  return m.removed || m.guard_banned || m.optimize_failed ||
         m.shape->osr_versions[loop] >= policy_.max_recompiles || system_.budget_spent();
}

void NewerCode::want(Method& m, uint32_t loop) {
  assert(loop < m.shape->loop_count);
  if (cannot_follow(m, loop))
    return m.shape->osr_asked[loop].store(false, std::memory_order_relaxed);
  if (uint64_t due = due_ns(m)) {
    return frames_.want_newer({&m, loop, due, m.shape->osr_outs.load(std::memory_order_relaxed)});
  }
  observer_.decisions.log(m, "osr_out", "a frame of older code is in loop " + std::to_string(loop));
  Plan plan{.method = m.id, .tier = Tier::kOptimized};
  plan.osr_loop = LoopId(loop);
  plan.use_profile = observer_.estimates.samples_of(m) != 0;
  requests_.add(m, plan, 1e18);
}

void NewerCode::want_if_due() {
  frames_.take_newer([&](const WantedFrames::Newer& w) {
    state_lock.known_held();
    Method& m = *w.method;
    if (m.shape->osr_outs.load(std::memory_order_relaxed) == w.osr_outs) return want(m, w.loop);
    // The frame found another way out.
    m.shape->osr_asked[w.loop].store(false, std::memory_order_relaxed);
  });
}

}  // namespace uptier::tiering
