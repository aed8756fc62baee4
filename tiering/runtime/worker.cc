#include "tiering/runtime/worker.h"

#include <cassert>
#include <mutex>
#include <optional>
#include <utility>

#include "jit/code/code_space.h"
#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/compile/requests.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/compilations.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/first_calls.h"
#include "tiering/runtime/note_intake.h"
#include "tiering/runtime/say_noticed.h"
#include "tiering/runtime/worker_thread.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

// Notes of a thread that are taken between two requests.
constexpr uint32_t kNotesForEachRequest = 32;
// The worker waits this long, or for its first work, before it measures the machine.
constexpr uint64_t kBeforeMeasuringMs = 2;

}  // namespace

bool Worker::expects_known() const {
  HeldState lock(engine_.state_mutex);
  const ProfileStore* store = engine_.saved->store();
  return engine_.options.tier == TierMode::kAuto && store != nullptr && store->report().runs != 0;
}

void Worker::measure_machine() {
  engine_.machine->calibrate(engine_.helpers, *engine_.space, engine_.state_mutex,
                             engine_.rates->measure_clock(engine_.state_mutex));
}

void Worker::await_work() {
  bool ticks = engine_.rates->ticks() || engine_.frames.wait() || engine_.stack_sampling->ticks();
  engine_.worker_thread->await_wake(ticks ? 10 : engine_.relay->wait_ms());
}

void Worker::work_here() noexcept {
  assert(engine_.options.workers == 0);
  finishes([&] {
    jit::StandardFloats floats;
    {
      HeldState lock(engine_.state_mutex);
      note_intake_.drain_locked();
      engine_.rates->tick_if_due();
    }
    run_queue();
    engine_.relay->if_due();
    engine_.events.deliver();
  });
}

void Worker::run_queue() {
  while (!engine_.worker_thread->stopping()) {
    engine_.events.deliver();
    engine_.state_mutex.give_way();
    std::optional<Plan> plan;
    {
      HeldState lock(engine_.state_mutex);
      // Newer flushes may be more urgent than the waiting requests. But threads may flush as fast as this
      // reads, and then nothing would ever be compiled.
      note_intake_.drain_some_locked(kNotesForEachRequest);
      plan = engine_.requests->pop();
      if (!plan && note_intake_.drain_locked()) plan = engine_.requests->pop();
    }
    if (plan) {
      compilations_.compile_and_install(*plan);
    } else if (!first_calls_.compile_known()) {
      return;
    }
  }
}

// The worker emits nothing before it gets the mutex, so the trace begins first.
Status Worker::start() {
  assert(engine_.in_service != nullptr);  // Engine::start() has been called
  HeldState lock(engine_.state_mutex);
  auto run = [](void* worker) -> void* {
    static_cast<Worker*>(worker)->run();
    return nullptr;
  };
  if (engine_.options.workers == 0 || engine_.worker_thread->start(run, this)) {
    engine_.observer->trace.begin();
    return {};
  }
  engine_.saved->close();  // no run to be saved
  lacks_thread_ = true;
  return Error{ErrorCode::kResourceExhausted, "the system refused a thread for the worker"};
}

// With a saved profile, measuring waits until the known methods have been compiled, since the
// program is waiting for them. Until then decisions use assumed rates. If memory runs out, work is
// left for the next round.
void Worker::run() {
  assert(engine_.options.workers != 0);
  jit::StandardFloats floats;
  bool measured = !expects_known();
  if (measured) {
    // A process that ends at once measures nothing.
    engine_.worker_thread->await_wake(kBeforeMeasuringMs);
    if (!engine_.worker_thread->stopping()) finishes([&] { measure_machine(); });
  } else {
    await_work();
  }
  while (!engine_.worker_thread->stopping()) {
    engine_.state_mutex.give_way();
    finishes([&] {
      HeldState lock(engine_.state_mutex);
      engine_.worker_thread->begin_locked();
      note_intake_.drain_locked();
      if (measured) engine_.rates->tick_if_due();
    });
    finishes([&] { run_queue(); });
    if (!std::exchange(measured, true)) finishes([&] { measure_machine(); });
    finishes([&] { engine_.relay->if_due(); });
    {
      HeldState lock(engine_.state_mutex);
      engine_.worker_thread->rest_locked();
      engine_.in_service->reclaim_locked();
    }
    say_noticed(engine_);
    engine_.worker_thread->tell_idle();
    engine_.events.emit_here({.kind = EventKind::kWorkerPaused});
    await_work();
    engine_.events.emit_here({.kind = EventKind::kWorkerResumed});
  }
}

}  // namespace uptier::tiering
