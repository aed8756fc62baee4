#include "tiering/runtime/warm_start.h"

#include <cassert>
#include <mutex>

#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/compile/system.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/imaged_callees.h"
#include "tiering/runtime/worker_wake.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

// Depth of callees of a hot method that are described ahead of it.
constexpr uint32_t kPrepareDepth = 4;

}  // namespace

bool WarmStart::warm(Method& m) {
  bool possible =
      engine_.saved->is_open() && engine_.options.tier == TierMode::kAuto && !m.info.own_code;
  bool unknown = possible && m.has_shape() && m.saved == nullptr;
  if (!possible || unknown || !hot_before(m)) return false;
  if (!engine_.compiler->describer().describe_ahead(m)) return false;
  HeldState lock(engine_.state_mutex);
  // A method that was evicted while optimized returns in another way (control/eviction.h).
  if (m.optimize_failed || m.wants_optimized) return false;
  if (m.saved == nullptr || !m.saved->holds()) return false;
  Decision d = engine_.observer->advisor.ask_saved(m, engine_.system->snapshot(m));
  return d.action == Action::kSpecialize && !d.osr_loop.valid();
}

// Holds one turn at a time. So a host that runs guest code while it describes a method never causes
// a circular wait; a recursive call finds the method already prepared.
void WarmStart::prepare(Method& m, uint32_t depth) {
  assert(depth <= kPrepareDepth + 1);
  bool possible =
      engine_.options.tier == TierMode::kAuto && engine_.bodies->wanted() && !m.info.own_code;
  if (!possible || depth > kPrepareDepth) return;
  if (m.prepared.exchange(true, std::memory_order_relaxed) || !hot_before(m)) return;
  std::vector<MethodId> next;
  {
    CompileTurn turn(engine_.turns, m);
    if (!turn || engine_.is_removed(m)) return;
    if (!engine_.compiler->describer().describe_ahead(m)) return;
    next = likely_inlinees(engine_, m);
  }
  for (MethodId id : next) {
    if (engine_.is_method(id)) prepare(engine_.method(id.index()), depth + 1);
  }
}

void WarmStart::trust_saved(Method& m) {
  HeldState lock(engine_.state_mutex);
  engine_.saved->trust(m);
}

void WarmStart::wake_for_known() {
  if (engine_.options.workers == 0 || engine_.options.tier != TierMode::kAuto) return;
  assert(engine_.saved->is_open());
  {
    HeldState lock(engine_.state_mutex);
    engine_.known_methods->list(engine_.methods, *engine_.saved->store(), [&](const Method& m) {
      state_lock.known_held();
      return !engine_.in_service->interprets_first_locked(m);
    });
  }
  engine_.worker_wake->wake();
}

bool WarmStart::hot_before(Method& m) {
  HeldState lock(engine_.state_mutex);
  return m.saved != nullptr || engine_.saved->is_hot(m);
}

}  // namespace uptier::tiering
