#include "tiering/runtime/live_maker.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "jit/code/code_space.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/requests.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/model/version.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

CompileState state_of(const Method& m) UPTIER_REQUIRES(state_lock) {
  const std::vector<bool>& at_loops = m.shape->osr_requested;
  if (m.removed) return CompileState::kRemoved;
  if (m.optimized_requested || std::ranges::count(at_loops, true) != 0) {
    return CompileState::kWaiting;
  }
  if (m.failed.load(std::memory_order_relaxed) || m.optimize_failed) return CompileState::kFailed;
  if (m.guard_banned || m.is_unstable()) return CompileState::kGivenUp;
  return m.unlinked ? CompileState::kEvicted : CompileState::kReady;
}

Tier serves(const Method& m) UPTIER_REQUIRES(state_lock) {
  Tier best = Tier::kHost;
  for (const auto& v : m.versions) {
    const bool called = !v->osr_loop.valid() && !v->retired && !v->enterable && !v->moved;
    if (called) best = std::max(best, v->tier);
  }
  return best;
}

LiveRow live_row(TimeRow&& r) {
  LiveRow live;
  live.place = r.place;
  live.method = r.method;
  live.key = r.key;
  live.name = std::move(r.name);
  live.tier = r.tier;
  live.copy = r.copy;
  live.osr = r.osr;
  live.inlined = r.inlined;
  live.samples = r.samples;
  live.ns = static_cast<uint64_t>(r.ns);
  return live;
}

}  // namespace

void LiveMaker::add_compiling(LiveRow& row) const {
  const Method* m = row.place == TimePlace::kMethod ? engine_.known(row.method) : nullptr;
  if (m == nullptr) {
    row.state = row.place == TimePlace::kMethod ? CompileState::kRemoved : CompileState::kReady;
    return;
  }
  row.serves = serves(*m);
  row.state = state_of(*m);
}

LiveTime LiveMaker::live_time() const {
  LiveTime live;
  live.process = static_cast<uint64_t>(::getpid());
  live.age_ns = now_ns() - engine_.born_ns;
  HeldState lock(engine_.state_mutex);
  TimeReport time = engine_.stack_sampling->report(StackSampling::Paths::kNone);
  live.hz = time.hz;
  live.asked_ns = static_cast<uint64_t>(time.asked_ns);
  live.sampled_ns = static_cast<uint64_t>(time.sampled_ns);
  live.squares = static_cast<uint64_t>(time.squares / 1e6);  // from ns^2
  live.samples = time.samples;
  live.dropped = time.dropped;
  live.waiting = engine_.requests->size();
  live.code_bytes = engine_.space->bytes_in_service();
  live.rows.reserve(time.rows.size());
  for (TimeRow& r : time.rows) add_compiling(live.rows.emplace_back(live_row(std::move(r))));
  return live;
}

}  // namespace uptier::tiering
