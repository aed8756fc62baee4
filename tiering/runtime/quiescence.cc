#include "tiering/runtime/quiescence.h"

#include <cassert>
#include <mutex>

#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/model/still_here.h"
#include "tiering/runtime/engine.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"

namespace uptier::tiering {

void Quiescence::pass_quiescent(AttachedThread& t) noexcept {
  assert(&t == engine_.here());
  // Release: all uses of old code by this thread come before. seq_cst orders the load of the epoch
  // before the thread's next load of a cell.
  if (t.stacks.any_suspended()) return back_in_host(t);
  t.epoch.store(engine_.reclaimer->epoch(), std::memory_order_seq_cst);
  if (!engine_.reclaimer->has_limbo()) return;
  HeldState lock(engine_.state_mutex);
  engine_.in_service->reclaim_locked();
}

void Quiescence::begin_blocked() noexcept {
  AttachedThread* t = engine_.here();
  if (t == nullptr) return;
  t->enter_blocked(__builtin_frame_address(0));
  if (!engine_.reclaimer->has_limbo()) return;
  HeldState lock(engine_.state_mutex);
  engine_.in_service->reclaim_locked();
}

void Quiescence::end_blocked() noexcept {
  if (AttachedThread* t = engine_.here()) t->leave_blocked();
}

// Frames of compiled code may still be on the stack: entry() is called without an Activation, and
// its code may have called the host function that called invoke. So the stack is scanned.
void Quiescence::back_in_host(AttachedThread& t) noexcept {
  if (!engine_.reclaimer->has_limbo()) return;
  assert(t.blocked.load(std::memory_order_relaxed) == AttachedThread::kRunning);
  StillHere still(&t);
  HeldState lock(engine_.state_mutex);
  finishes([&] { engine_.reclaimer->pass_if_unneeded(t); });
  engine_.in_service->reclaim_locked();
}

}  // namespace uptier::tiering
