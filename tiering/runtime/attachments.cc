#include "tiering/runtime/attachments.h"

#include <pthread.h>
#include <cassert>
#include <mutex>
#include <utility>

#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/model/tally_words.h"
#include "tiering/model/thread.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/flushes.h"
#include "tiering/runtime/loop_reports.h"
#include "tiering/runtime/say_noticed.h"
#include "tiering/runtime/warm_start.h"
#include "tiering/runtime/worker_wake.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {
namespace {

// Makes sure that thread_ends() is called when the calling thread ends, once for all runtimes it is
// attached to. Returns false if that is impossible. It does not use a thread_local with a
// destructor: if there is no memory for that, the C library ends the process.
bool watch_thread_end() noexcept {
  static constinit pthread_key_t key = 0;
  static const bool made = pthread_key_create(&key, [](void*) { Attachments::thread_ends(); }) == 0;
  return made && pthread_setspecific(key, &key) == 0;
}

}  // namespace

Status Attachments::attach() try {
  if (engine_.forked()) return engine_.forked_error();
  jit::StandardFloats floats;
  if (AttachedThread* t = engine_.here()) {
    t->depth++;
    return {};
  }
  if (!watch_thread_end()) return out_of_memory("attach");
  uint32_t number;
  {
    HeldState lock(engine_.state_mutex);
    number = engine_.threads.next_number();
  }
  Result<std::unique_ptr<AttachedThread>> made = AttachedThread::create(
      &engine_, engine_.options, number,
      [](void* engine) noexcept { static_cast<Engine*>(engine)->have_all_loops_ask(); });
  if (!made) return made.error();
  AttachedThread& t = **made;
  assert(t.number() == number && t.context().runtime == &engine_);
  t.depth = 1;
  t.epoch.store(engine_.reclaimer->epoch(), std::memory_order_seq_cst);
  {
    HeldState lock(engine_.state_mutex);
    engine_.events.add_thread(t.events, number);
    engine_.threads.make_room();  // so that the thread is in both lists, or in neither
    engine_.stops.add(t.stop, number);
    engine_.threads.add(std::move(*made));
    finishes([&] {
      state_lock.known_held();
      engine_.rates->thread_came();
    });
  }
  t.outer = sampler::exchange_context(&t.context());
  assert(engine_.here() == &t);
  {
    HeldState lock(engine_.state_mutex);
    engine_.stack_sampling->thread_came(t);
  }
  if (engine_.options.loops) prepare_loop_timer(t);
  bool known = engine_.saved->is_open() && engine_.methods.size() != 0;
  if (known && engine_.known_methods->claim_early_listing())
    finishes([&] { warm_start_.wake_for_known(); });
  return {};
} catch (const std::exception&) { return out_of_memory("attach"); }

void Attachments::detach() {
  AttachedThread* t = engine_.here();
  if (t == nullptr || --t->depth != 0) return;
  jit::StandardFloats floats;
  sampler::exchange_context(t->outer);
  leave(*t);
  engine_.worker_wake->wake();
  engine_.hosts->tell();
  if (engine_.options.workers == 0) say_noticed(engine_);
}

void Attachments::prepare_loop_timer(AttachedThread& t) {
  sampler::LoopTimer& timer = t.loops();
  timer.set_dual(engine_.options.loop_dual);
  timer.seed(engine_.options.seed + (uint64_t{t.number()} << 32));
  timer.set_costs(
      sampler::LoopTimer::measure(engine_.routines.loop_pair(), engine_.options.loop_dual));
  timer.set_clock(sampler::LoopTimer::CpuClock::of_thread(engine_.cycles_per_ns),
                  sampler::read_cycles());
  HeldState lock(engine_.state_mutex);
  timer.set_meter({engine_.loop_meter.begin, engine_.loop_meter.end, engine_.loop_meter.user});
  t.first_loops.resize(engine_.first_loops);
  timer.keep_first(t.first_loops.data(), engine_.first_loops);
}

void Attachments::leave(AttachedThread& t) noexcept {
  HeldState lock(engine_.state_mutex);
  assert(engine_.here() != &t);  // its context is no longer current
  finishes([&] {
    state_lock.known_held();
    engine_.stack_sampling->thread_goes(t);
  });
  flushes_.flush_thread_locked(t, sampler::NoteKind::kFlushFinal);
  engine_.rates->thread_goes(t);
  bool kept = finishes([&] { loop_reports_.add_executions_locked(t, engine_.gone_executions); });
  if (!kept) engine_.note_flush_lost();
  uint32_t count = engine_.methods.size();
  for (uint32_t i = 0; i < count; ++i) {
    finishes([&] {
      state_lock.known_held();
      engine_.observer->streams.end(engine_.method(i), t.number());
      if (!engine_.method(i).has_shape()) return;
      // The thread no longer runs, so its numbers are exact, not those of its last event.
      const sampler::MethodState& s = t.state(MethodId(i));
      sampler::Progress ran = sampler::progress_of(s);
      ran.calls = sampler::calls_so_far(s);
      ran.iterations = sampler::iterations_so_far(s);
      engine_.method(i).flushed.own().adaptation.gone += ran;
    });
  }
  if (!finishes([&] { engine_.tally_words->keep(t.context()); })) engine_.note_flush_lost();
  engine_.stops.remove(t.stop);
  engine_.threads.remove(t);
  engine_.in_service->reclaim_locked();
}

// The runtimes still exist, because a runtime outlives its attached threads. Without a worker,
// requests of this thread wait for the next flush: the host's own data for the thread may be gone
// already.
void Attachments::thread_ends() noexcept {
  while (true) {
    sampler::ThreadContext* c = sampler::current_context();
    if (c->runtime == nullptr || c->owner == nullptr) return;
    auto* engine = static_cast<Engine*>(c->runtime);
    auto* thread = static_cast<AttachedThread*>(c->owner);
    sampler::exchange_context(thread->outer);
    assert(engine->attachments != nullptr);
    engine->attachments->leave(*thread);
    if (engine->options.workers != 0) engine->worker_wake->wake();
  }
}

AttachedThread* Attachments::attached_to(const Runtime& r) noexcept {
  sampler::ThreadContext* c = sampler::current_context();
  if (c->runtime == nullptr || c->owner == nullptr) return nullptr;
  const Runtime* attached = &static_cast<Engine*>(c->runtime)->facade;
  return attached == &r ? static_cast<AttachedThread*>(c->owner) : nullptr;
}

}  // namespace uptier::tiering
