#include "tiering/runtime/shutdown.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <mutex>
#include <string>

#include "jit/code/code_space.h"
#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/flushes.h"
#include "tiering/runtime/saving.h"
#include "tiering/runtime/say_noticed.h"
#include "tiering/runtime/worker_thread.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

// Otherwise other threads would run code and use counters that no longer exist.
void Shutdown::die_if_in_use() {
  HeldState lock(engine_.state_mutex);
  AttachedThread* mine = engine_.here();
  auto others = [&](const auto& t) { return t.get() != mine; };
  auto n = std::ranges::count_if(engine_.threads, others);
  if (n == 0) return;
  engine_.log.say(LogLevel::kError, "a runtime is destroyed that " + std::to_string(n) +
                                        " other threads are attached to: each must detach before");
  std::abort();
}

// Reports scopes of the calling thread that would use the destroyed runtime.
void Shutdown::say_scopes() const {
  const AttachedThread* t = engine_.here();
  if (t == nullptr) return;
  bool blocked = t->blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning;
  if (t->scopes == 0 && !blocked) return;
  engine_.log.say(LogLevel::kError,
                  t->scopes != 0 ? "a runtime is destroyed inside of a ThreadScope of the thread: "
                                   "the scope has to end before"
                                 : "a runtime is destroyed by a thread that says that it is "
                                   "blocked (BlockedScope, begin_blocked)");
}

// Writes the order of first calls to the trace, including methods without data.
void Shutdown::tell_first_calls_locked() {
  Observer& observer = *engine_.observer;
  if (!observer.trace.on()) return;
  CallProfile calls;
  for (const auto& m : engine_.methods.all()) {
    engine_.known_methods->tell_first_call(*m, calls);
    auto first = calls.first.find(m->info.key);
    if (first == calls.first.end()) continue;
    observer.trace.tell_first_call(*m, first->second.positions);
    calls.first.erase(first);
  }
}

void Shutdown::run() {
  jit::StandardFloats floats;
  die_if_in_use();
  finishes([&] { say_scopes(); });
  engine_.worker_thread->stop();
  say_noticed(engine_);
  if (AttachedThread* t = engine_.here()) sampler::exchange_context(t->outer);
  assert(engine_.worker_thread->stopping());
  engine_.hosts->leave_all();
  end_records();
  engine_.events.deliver_all();
  free_all();
}

// Makes the last flushes, saves the profile, and ends the trace.
void Shutdown::end_records() {
  bool saved = false;
  {
    HeldState lock(engine_.state_mutex);
    for (auto& t : engine_.threads) {
      flushes_.flush_thread_locked(*t, sampler::NoteKind::kFlushFinal);
    }
    saved = engine_.saved->was_saved();
  }
  if (!saved) saving_.save_at_end();
  HeldState lock(engine_.state_mutex);
  const bool told = finishes([&] {
    state_lock.known_held();
    tell_first_calls_locked();
  });
  if (!told) engine_.observer->trace.note_lost_event();
  engine_.observer->trace.finish();
  engine_.events.emit({.kind = EventKind::kEnded});
}

void Shutdown::free_all() {
  HeldState lock(engine_.state_mutex);
  engine_.threads.clear();
  if (engine_.space != nullptr) engine_.space->release_all();  // null: start() did not get it
  for (auto& m : engine_.methods.all()) {
    for (auto& v : m->versions) v->free();
  }
  engine_.methods.clear();
}

}  // namespace uptier::tiering
