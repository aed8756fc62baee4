#include "tiering/runtime/removal.h"

#include <algorithm>
#include <cassert>
#include <mutex>

#include "jit/code/stubs.h"
#include "profile/base/wall.h"
#include "sampler/fast_sample.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/compile/requests.h"
#include "tiering/model/event_of.h"
#include "tiering/model/looking_around.h"
#include "tiering/model/still_here.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/flushes.h"
#include "tiering/runtime/looks.h"
#include "tiering/runtime/note_intake.h"
#include "tiering/saved/known_methods.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

void Removal::remove_methods(std::span<const MethodId> methods) {
  if (engine_.forked() || engine_.is_in_build("remove_methods")) return;
  take_out(methods, HostUse::kOver);
  engine_.hosts->tell();
  engine_.hosts->await_tellers(methods);
}

void Removal::retire_methods(std::span<const MethodId> methods) {
  if (engine_.forked() || engine_.is_in_build("retire_methods")) return;
  take_out(methods, HostUse::kUntilGone);
  engine_.hosts->tell();
}

// Hosts may be destroyed when it returns, so it must not fail: work that needs memory can be
// skipped.
void Removal::take_out(std::span<const MethodId> all, HostUse after) {
  StillHere still(engine_.here());
  LookingAround looking(*engine_.looks);  // keeps the methods from being forgotten meanwhile
  MethodId room[64];
  do {  // also for an empty list: reclaims code that is no longer used
    auto some = all.first(std::min(all.size(), std::size(room)));
    all = all.subspan(some.size());
    std::span<const MethodId> ids = refuse_calls(some, after, room);
    await_compilations(ids);
    retire_code(ids, after);
  } while (!all.empty());
}

std::span<const MethodId> Removal::refuse_calls(std::span<const MethodId> all, HostUse after,
                                                std::span<MethodId> room) {
  size_t count = 0;
  HeldState lock(engine_.state_mutex);
  note_intake_.drain_locked();
  for (MethodId id : all) {
    Method* m = engine_.known(id);
    if (m == nullptr) continue;
    if (engine_.is_method(id)) {
      room[count++] = id;
      finishes([&] {
        state_lock.known_held();
        flushes_.flush_removed_locked(*m, after);
      });
      take_out_locked(*m, after);
    } else if (after == HostUse::kOver && m->host_use == HostUse::kUntilGone) {
      room[count++] = id;
      m->host_use = HostUse::kTold;
    }
  }
  assert(count <= room.size());
  return room.first(count);
}

void Removal::await_compilations(std::span<const MethodId> ids) {
  for (MethodId id : ids) CompileTurn wait(engine_.turns, engine_.method(id.index()));
}

void Removal::retire_code(std::span<const MethodId> ids, HostUse after) {
  HeldState lock(engine_.state_mutex);
  for (MethodId id : ids) {
    Method& m = engine_.method(id.index());
    assert(m.removed && !engine_.is_method(id));
    engine_.bodies->forget_locked(m);
    finishes([&] {
      state_lock.known_held();
      engine_.in_service->withdraw_locked(m);
    });
    for (auto& v : m.versions) {
      if (!v->retired) engine_.reclaimer->retire(*v);
      // Nothing runs it, and its host may be destroyed.
      if (after == HostUse::kOver) v->give_back();
    }
    if (m.host_use == HostUse::kTold) engine_.hosts->tell_later_locked(m);
  }
  engine_.in_service->reclaim_locked();
}

void Removal::take_out_locked(Method& m, HostUse after) {
  assert(!m.removed && m.host_use == HostUse::kServes && after != HostUse::kServes);
  m.removed = true;
  m.retired = after == HostUse::kUntilGone;
  m.host_use = after;
  engine_.methods.take_out(m);
  engine_.events.emit(event_of(EventKind::kRemoved, m, m.retired ? "retired" : "removed"));
  if (m.key_made) engine_.observer->directory.keys().give_back(m.info.key);
  m.looked_at = true;
  ++m.holds;
  engine_.fast->set_entry(m.id.index(), nullptr);
  engine_.stubs->set_target(m.id, engine_.stubs->tail(m.id));
  engine_.requests->remove(m.id);
  engine_.known_methods->forget(m);
  engine_.frames.forget(m);
  engine_.reclaimer->leave(m);
  assert(!engine_.is_method(m.id));
  engine_.places.note_removed(m);
}

}  // namespace uptier::tiering
