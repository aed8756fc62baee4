#include "tiering/runtime/looks.h"

#include <cassert>
#include <mutex>

#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/worker_wake.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

void Looks::begin_look(Places::Look& look) {
  AttachedThread* t = engine_.here();
  HeldState lock(engine_.state_mutex);
  if (t == nullptr) return engine_.places.begin_look(look);
  look.of_thread = &t->looks;
  if (t->looks.depth++ == 0) engine_.places.begin_look(t->looks.first);
}

void Looks::end_look(Places::Look& look) {
  HeldState lock(engine_.state_mutex);
  ThreadLooks* looks = look.of_thread;
  if (looks == nullptr) return end_look_locked(look);
  assert(looks->depth != 0);
  if (--looks->depth == 0) end_look_locked(looks->first);
}

void Looks::drop_to(AttachedThread& t, uint32_t depth) noexcept {
  if (t.looks.depth == depth) return;
  HeldState lock(engine_.state_mutex);
  assert(depth < t.looks.depth);
  t.looks.depth = depth;
  if (depth == 0) end_look_locked(t.looks.first);
}

void Looks::end_look_locked(Places::Look& look) noexcept {
  engine_.places.end_look(look);
  // Code that waits to be freed may have waited for this look.
  if (engine_.hosts->wait_to_leave()) engine_.in_service->reclaim_locked();
}

void Looks::wake_worker() noexcept { engine_.worker_wake->wake(); }

}  // namespace uptier::tiering
