// Calls on threads that are not attached.
//
// Their stubs decrement a countdown of the context that all such threads share, and come here when it
// is due. What has been called since it was armed is counted here, by the runtime that it is due in;
// threads race on the words, so the number is near the truth.
#include <algorithm>
#include <atomic>

#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

constexpr int32_t kGap = 1 << 16;  // calls of a method between two events
constexpr int32_t kFarAway = 0x7ffffff0;

template <typename T>
std::atomic_ref<T> word(T& t) {
  return std::atomic_ref<T>(t);
}

// Calls since the countdown was armed with `gap`.
uint64_t calls_since(int64_t gap, int32_t countdown) {
  return static_cast<uint64_t>(std::max<int64_t>(gap - countdown, 0));
}

}  // namespace

// A method comes to a place: what is left of the one before, perhaps of another runtime's, is not its.
// Of a context that no such thread has ever counted in, no page is touched.
void RuntimeImpl::begin_unattached(uint32_t index) noexcept {
  sampler::ThreadContext& c = sampler::shared_context();
  if (c.samples_taken.load(std::memory_order_relaxed) == 0) return;
  sampler::MethodState& s = c.method(index);
  uint64_t armed_by = word(s.next_sample).exchange(0, std::memory_order_relaxed);
  if (armed_by == 0) return;
  int32_t countdown = word(s.call_countdown).exchange(0, std::memory_order_relaxed);
  uint32_t armed = word(s.call_gap).exchange(0, std::memory_order_relaxed);
  if (armed_by != born_ns_) return;
  calls_unattached_.fetch_add(calls_since(armed, countdown), std::memory_order_relaxed);
}

void RuntimeImpl::count_unattached(Method& m, sampler::ThreadContext& c) noexcept {
  sampler::MethodState& s = c.method(m.id.index());
  int32_t gap = always_instrumented_ ? 0 : kGap;
  uint64_t calls = 1;
  if (&c == &sampler::shared_context()) {
    int32_t countdown = word(s.call_countdown).exchange(gap, std::memory_order_relaxed);
    auto armed = word(s.call_gap).exchange(static_cast<uint32_t>(gap), std::memory_order_relaxed);
    word(s.next_sample).store(born_ns_, std::memory_order_relaxed);
    c.samples_taken.fetch_add(1, std::memory_order_relaxed);  // of this context: events
    calls = calls_since(armed, countdown);
  } else {  // the context of another runtime, which knows nothing of such calls
    s.call_countdown = always_instrumented_ ? 0 : kFarAway;
  }
  if (options_.gap == GapMode::kExact) return;  // the stub counts for all threads
  bool first = calls_unattached_.fetch_add(calls, std::memory_order_relaxed) == 0;
  if (first && options_.workers != 0) worker_.wake();  // it says so
}

uint64_t RuntimeImpl::calls_unattached_locked() const noexcept {
  uint64_t sum = calls_unattached_.load(std::memory_order_relaxed);
  for (uint32_t i = 0, n = sum == 0 ? 0 : methods_.size(); i < n; ++i) {
    sampler::MethodState& s = sampler::shared_context().method(i);
    if (word(s.next_sample).load(std::memory_order_relaxed) != born_ns_) continue;
    sum += calls_since(word(s.call_gap).load(std::memory_order_relaxed),
                       word(s.call_countdown).load(std::memory_order_relaxed));
  }
  return sum;
}

}  // namespace uptier::tiering
