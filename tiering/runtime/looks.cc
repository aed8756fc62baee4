#include "tiering/runtime/looks.h"

#include <mutex>

#include "tiering/base/waited_mutex.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/worker_wake.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

void Looks::begin_look(Places::Look& look) {
  std::lock_guard lock(engine_.state_mutex);
  engine_.places.begin_look(look);
}

void Looks::end_look(Places::Look& look) {
  std::lock_guard lock(engine_.state_mutex);
  engine_.places.end_look(look);
  // Code that waits to be freed may have waited for this.
  if (engine_.hosts->wait_to_leave()) engine_.in_service->reclaim_locked();
}

void Looks::wake_worker() noexcept { engine_.worker_wake->wake(); }

}  // namespace uptier::tiering
