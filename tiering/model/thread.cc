#include "tiering/model/thread.h"

#include <pthread.h>

#include <algorithm>
#include <cassert>

#include "sampler/gap.h"

namespace uptier::tiering {
namespace {

// The calling thread's stack; both are 0 if its address is unknown.
struct StackBounds {
  uint64_t low = 0;
  uint64_t high = 0;
};

StackBounds stack_bounds() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  auto start = reinterpret_cast<uint64_t>(low);
  return {start, start + size};
}

// Returns the address below which compiled prologues trap: `stack_reserve` above the end of the
// stack, or `max_stack` below here, whichever is higher. 0 if the stack's address is unknown.
uint64_t stack_limit(const StackBounds& stack, const Options& o) {
  if (stack.high == 0) return 0;
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return std::max(stack.low + o.stack_reserve, here - std::min(here, o.max_stack));
}

}  // namespace

Result<std::unique_ptr<AttachedThread>> AttachedThread::create(void* runtime, const Options& o,
                                                               uint32_t number,
                                                               HaveLoopsAsk have_loops_ask) {
  auto methods = static_cast<uint32_t>(o.max_methods);
  auto context = sampler::Reservation::create(
      sampler::kTallyBytes + sampler::context_bytes(methods), "thread context");
  if (!context) return context.error();
  auto slabs = sampler::SlabArena::create(o.slab_budget);
  if (!slabs) return slabs.error();
  auto ring = sampler::SnapshotRing::create(o.ring_bytes);
  if (!ring) return ring.error();
  auto log = sampler::LogRing::create(static_cast<uint32_t>(o.log_records));
  if (!log) return log.error();
  auto alt_stack = jit::AltStack::create();
  if (!alt_stack) return alt_stack.error();

  std::unique_ptr<AttachedThread> t(
      new AttachedThread(number, sample_signal(o),
                         {std::move(*context), std::move(*slabs), std::move(*ring), std::move(*log),
                          std::move(*alt_stack)}));
  sampler::ThreadContext& c = t->context();
  StackBounds stack = stack_bounds();
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (stack.high != 0 && (here < stack.low || here >= stack.high)) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the thread is not on its own stack: attach there, and register this one by create_stack"};
  }
  if (stack.high != 0 && here <= stack.low + o.stack_reserve) {
    return Error{ErrorCode::kResourceExhausted,
                 "the thread has " + std::to_string(here - std::min(here, stack.low)) +
                     " bytes of stack left, and stack_reserve (" + std::to_string(o.stack_reserve) +
                     ") is reserved for host functions: nothing could be called"};
  }
  t->stacks.set_own(t.get(), stack.low, stack.high);
  c.stack_limit = stack_limit(stack, o);
  t->stop.set_up(c, t->stacks, have_loops_ask);
  c.owner = t.get();
  c.runtime = runtime;
  // Adjacent seeds and adjacent threads start far apart in the generator's orbit.
  uint64_t state = o.seed;
  state = sampler::next_random(state) + number;
  c.random = sampler::next_random(state);
  c.method_capacity = methods;
  c.thread_number = number;
  c.counter_random = c.random ^ 0xd1342543de82ef95ull;
  c.log = t->log_.get();
  c.loops = &t->loops_;
  return t;
}

AttachedThread::AttachedThread(uint32_t number, int sample_signal, Parts parts)
    : number_(number),
      context_memory_(std::move(parts.context)),
      slabs_(std::move(parts.slabs)),
      ring_(std::move(parts.ring)),
      log_(std::move(parts.log)),
      alt_stack_(std::move(parts.alt_stack)),
      unblocked_samples_(sample_signal) {
  if (pthread_getcpuclockid(pthread_self(), &cpu_clock_) != 0) cpu_clock_ = CLOCK_MONOTONIC;
  sampler_.set_up(walk_sampled_thread, this, cpu_clock_);
}

uint64_t AttachedThread::cpu_ns() const noexcept {
  timespec t{};
  clock_gettime(cpu_clock_, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

sampler::CostCounts AttachedThread::cost_counts() const noexcept {
  sampler::CostCounts c = cost_.counts();
  c.rows[static_cast<size_t>(sampler::CostKind::kLoop)].events +=
      context().quick_loop_events.load(std::memory_order_relaxed);
  return c;
}

void AttachedThread::enter_blocked(const void* top) noexcept {
  assert(top != nullptr && blocked.load(std::memory_order_relaxed) != kLookedAt);
  stack_top = reinterpret_cast<uintptr_t>(top);
  blocked.store(kBlocked, std::memory_order_release);  // pairs with begin_look()
}

void AttachedThread::leave_blocked() noexcept {
  uint32_t expected = kBlocked;
  while (!blocked.compare_exchange_weak(expected, kRunning, std::memory_order_acq_rel)) {
    if (expected == kRunning) return;
    if (expected == kLookedAt) blocked.wait(kLookedAt, std::memory_order_relaxed);
    expected = kBlocked;
  }
}

bool AttachedThread::begin_look() noexcept {
  uint32_t expected = kBlocked;
  return blocked.compare_exchange_strong(expected, kLookedAt, std::memory_order_acq_rel);
}

void AttachedThread::end_look() noexcept {
  assert(blocked.load(std::memory_order_relaxed) == kLookedAt);
  blocked.store(kBlocked, std::memory_order_release);
  blocked.notify_one();
}

}  // namespace uptier::tiering
