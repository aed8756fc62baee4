// Threads come and go.
#include <pthread.h>

#include <algorithm>

#include "profile/base/wall.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

namespace {

// Has thread_ends() called when the calling thread ends, once for all that it attaches to. Returns
// whether it will be. Not by a thread_local with a destructor: where memory for that is refused, the
// C library ends the process.
bool watch_thread_end() noexcept {
  static constinit pthread_key_t key = 0;
  static const bool made = pthread_key_create(&key, [](void*) { RuntimeImpl::thread_ends(); }) == 0;
  return made && pthread_setspecific(key, &key) == 0;
}

}  // namespace

// A thread that ends attached hands over what it has counted, to all runtimes that it is attached
// to: they are there, for a runtime outlives the threads that are attached to it.
void RuntimeImpl::thread_ends() noexcept {
  while (true) {
    sampler::ThreadContext* c = sampler::current_context();
    if (c->runtime == nullptr || c->owner == nullptr) return;
    auto* runtime = static_cast<RuntimeImpl*>(c->runtime);
    auto* thread = static_cast<AttachedThread*>(c->owner);
    sampler::exchange_context(thread->outer);
    runtime->leave(*thread);
    // Without a worker it waits for the next flush: what the host keeps for the thread may be gone.
    if (runtime->options_.workers != 0) runtime->wake_worker();
  }
}

Error RuntimeImpl::forked_error() {
  return {ErrorCode::kForked,
          "the runtime is the parent process's: a child of fork() may exit, exec, and make "
          "runtimes of its own"};
}

AttachedThread* RuntimeImpl::attached_to(const Runtime& r) noexcept {
  sampler::ThreadContext* c = sampler::current_context();
  if (c->runtime == nullptr || c->owner == nullptr) return nullptr;
  const Runtime* here = static_cast<RuntimeImpl*>(c->runtime);
  return here == &r ? static_cast<AttachedThread*>(c->owner) : nullptr;
}

Status RuntimeImpl::attach() try {
  if (forked()) return forked_error();
  if (Status s = events_.check_change("attach"); !s) return s;
  jit::StandardFloats floats;
  if (AttachedThread* t = here()) {
    t->depth++;
    return {};
  }
  if (!watch_thread_end()) return out_of_memory("attach");
  uint32_t number;
  {
    std::lock_guard lock(state_mutex_);
    number = threads_.next_number();
  }
  Result<std::unique_ptr<AttachedThread>> made = AttachedThread::create(
      this, options_, number,
      [](void* runtime) noexcept { static_cast<RuntimeImpl*>(runtime)->have_all_loops_ask(); });
  if (!made) return made.error();
  AttachedThread& t = **made;
  t.depth = 1;
  t.epoch.store(reclaimer_.epoch(), std::memory_order_seq_cst);
  {
    std::lock_guard lock(state_mutex_);
    events_.add_thread(t.events, number);
    threads_.make_room();  // so that the thread is in both lists, or in none
    stops_.add(t.stop, number);
    threads_.add(std::move(*made));
    finishes([&] { rates_.thread_came(); });
  }
  t.outer = sampler::exchange_context(&t.context());
  if (options_.loops) prepare_loop_timer(t);
  bool known = saved_.is_open() && methods_.size() != 0;
  if (known && known_.claim_early_listing()) finishes([&] { wake_for_known(); });
  return {};
} catch (const std::exception&) { return out_of_memory("attach"); }

// On the thread itself, whose context is current.
void RuntimeImpl::prepare_loop_timer(AttachedThread& t) {
  sampler::LoopTimer& timer = t.loops();
  timer.set_dual(options_.loop_dual);
  timer.seed(options_.seed + (uint64_t{t.number()} << 32));
  timer.set_costs(sampler::LoopTimer::measure(routines_.loop_pair(), options_.loop_dual));
  timer.set_clock(sampler::LoopTimer::CpuClock::of_thread(cycles_per_ns_), sampler::read_cycles());
  std::lock_guard lock(state_mutex_);
  timer.set_meter({loop_meter_.begin, loop_meter_.end, loop_meter_.user});
  t.first_loops.resize(first_loops_);
  timer.keep_first(t.first_loops.data(), first_loops_);
}

void RuntimeImpl::detach() {
  AttachedThread* t = here();
  if (t == nullptr || is_in_subscriber("detach") || --t->depth != 0) return;
  const Delivery delivery(*this);
  jit::StandardFloats floats;
  sampler::exchange_context(t->outer);
  leave(*t);
  wake_worker();
  hosts_.tell();
  if (options_.workers == 0) say_noticed();
}

// The last that is heard of a thread.
void RuntimeImpl::leave(AttachedThread& t) noexcept {
  std::lock_guard lock(state_mutex_);
  flush_thread_locked(t, sampler::NoteKind::kFlushFinal);
  rates_.thread_goes(t);
  if (!finishes([&] { add_executions_locked(t, gone_executions_); })) note_flush_lost();
  uint32_t count = methods_.size();
  for (uint32_t i = 0; i < count; ++i) {
    finishes([&] {
      observer_.streams.end(method(i), t.number());
      if (!method(i).has_shape()) return;
      method(i).flushed.own().adaptation.gone += sampler::progress_of(t.state(MethodId(i)));
    });
  }
  stops_.remove(t.stop);
  threads_.remove(t);
  in_service_->reclaim_locked();
}

void RuntimeImpl::quiescent() noexcept {
  if (AttachedThread* t = here()) pass_quiescent(*t);
  hosts_.tell();
}

void RuntimeImpl::pass_quiescent(AttachedThread& t) noexcept {
  // Release: every use of old code by this thread comes before; seq_cst orders the load of the
  // epoch before the thread's next load of a cell.
  if (t.stacks.any_suspended()) return back_in_host(t);
  t.epoch.store(reclaimer_.epoch(), std::memory_order_seq_cst);
  if (!reclaimer_.has_limbo()) return;
  std::lock_guard lock(state_mutex_);
  in_service_->reclaim_locked();
}

void RuntimeImpl::begin_blocked() noexcept {
  AttachedThread* t = here();
  if (t == nullptr) return;
  t->enter_blocked(__builtin_frame_address(0));
  if (!reclaimer_.has_limbo()) return;
  std::lock_guard lock(state_mutex_);
  in_service_->reclaim_locked();
}

void RuntimeImpl::end_blocked() noexcept {
  if (AttachedThread* t = here()) t->leave_blocked();
}

void RuntimeImpl::flush() {
  if (forked() || is_in_build("flush")) return;
  jit::StandardFloats floats;
  finishes([&] { flush_and_wait(); });
  events_.deliver_all();
  hosts_.tell();
  say_noticed();
}

void RuntimeImpl::flush_and_wait() {
  std::unique_lock lock(state_mutex_);
  if (AttachedThread* t = here()) flush_thread_locked(*t, sampler::NoteKind::kFlushDemand);
  drain_locked();
  if (options_.workers == 0) {
    lock.unlock();
    return run_queue();
  }
  while (requests_.size() != 0 || !worker_.idle_locked()) worker_.await_idle(lock);
}

}  // namespace uptier::tiering

namespace uptier {

// A scope that outlives its runtime finds the thread attached to it no more (~RuntimeImpl has said
// so), or to one that was made at its address and knows of no scope.
void ThreadScope::begin() noexcept {
  tiering::AttachedThread* t = status_.ok() ? tiering::RuntimeImpl::attached_to(runtime_) : nullptr;
  watched_ = t != nullptr;
  if (watched_) ++t->scopes;
}

bool ThreadScope::ends_inside() const noexcept {
  if (!watched_) return true;
  tiering::AttachedThread* t = tiering::RuntimeImpl::attached_to(runtime_);
  if (t == nullptr || t->scopes == 0) return false;
  --t->scopes;
  return true;
}

void BlockedScope::begin() noexcept {
  watched_ = tiering::RuntimeImpl::attached_to(runtime_) != nullptr;
}

bool BlockedScope::ends_inside() const noexcept {
  return !watched_ || tiering::RuntimeImpl::attached_to(runtime_) != nullptr;
}

}  // namespace uptier
