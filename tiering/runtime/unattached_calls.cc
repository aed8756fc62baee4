#include "tiering/runtime/unattached_calls.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/worker_thread.h"

namespace uptier::tiering {
namespace {

constexpr int32_t kGap = 1 << 16;  // calls of a method between two events
constexpr int32_t kNever = 0x7ffffff0;

template <typename T>
std::atomic_ref<T> word(T& t) {
  return std::atomic_ref<T>(t);
}

// Returns the calls since the countdown was armed with `gap`.
uint64_t calls_since(int64_t gap, int32_t countdown) {
  return static_cast<uint64_t>(std::max<int64_t>(gap - countdown, 0));
}

}  // namespace

void UnattachedCalls::count(Method& m, sampler::ThreadContext& c) noexcept {
  assert(engine_.here() == nullptr);
  sampler::MethodState& s = c.method(m.id.index());
  int32_t gap = engine_.always_instrumented ? 0 : kGap;
  uint64_t calls = 1;
  if (&c == &sampler::shared_context()) {
    int32_t countdown = word(s.call_countdown).exchange(gap, std::memory_order_relaxed);
    auto armed = word(s.call_gap).exchange(static_cast<uint32_t>(gap), std::memory_order_relaxed);
    word(s.next_sample).store(engine_.born_ns, std::memory_order_relaxed);
    c.samples_taken.fetch_add(1, std::memory_order_relaxed);  // in this context: number of events
    calls = calls_since(armed, countdown);
  } else {  // it belongs to another runtime, which does not count such calls
    s.call_countdown = engine_.always_instrumented ? 0 : kNever;
  }
  if (engine_.options.gap == GapMode::kExact) return;  // the stub counts for all threads
  bool first = engine_.calls_unattached.fetch_add(calls, std::memory_order_relaxed) == 0;
  // The worker writes a message.
  if (first && engine_.options.workers != 0) engine_.worker_thread->wake();
}

// Does nothing if no unattached thread has counted, so that no page of the context is touched.
void UnattachedCalls::begin(uint32_t index) noexcept {
  sampler::ThreadContext& c = sampler::shared_context();
  if (c.samples_taken.load(std::memory_order_relaxed) == 0) return;
  sampler::MethodState& s = c.method(index);
  uint64_t armed_by = word(s.next_sample).exchange(0, std::memory_order_relaxed);
  if (armed_by == 0) return;
  int32_t countdown = word(s.call_countdown).exchange(0, std::memory_order_relaxed);
  uint32_t armed = word(s.call_gap).exchange(0, std::memory_order_relaxed);
  if (armed_by != engine_.born_ns) return;
  engine_.calls_unattached.fetch_add(calls_since(armed, countdown), std::memory_order_relaxed);
}

uint64_t UnattachedCalls::calls_locked() const noexcept {
  uint64_t sum = engine_.calls_unattached.load(std::memory_order_relaxed);
  for (uint32_t i = 0, n = sum == 0 ? 0 : engine_.methods.size(); i < n; ++i) {
    sampler::MethodState& s = sampler::shared_context().method(i);
    if (word(s.next_sample).load(std::memory_order_relaxed) != engine_.born_ns) continue;
    sum += calls_since(word(s.call_gap).load(std::memory_order_relaxed),
                       word(s.call_countdown).load(std::memory_order_relaxed));
  }
  return sum;
}

}  // namespace uptier::tiering
