#include "sampler/stack_sampler.h"

#include <unistd.h>

#include <cassert>
#include <utility>

#include "sampler/cost.h"

namespace uptier::sampler {

void StackSampler::set_up(StackWalk walk, void* owner, clockid_t cpu_clock) noexcept {
  assert(walk_ == nullptr && walk != nullptr);
  walk_ = walk;
  owner_ = owner;
  cpu_clock_ = cpu_clock;
  thread_ = static_cast<int>(::gettid());
}

// The ring is made first: signals come only after the clock has been started.
Status StackSampler::prepare(SampleEngine engine, int signal, uint64_t ring_bytes) {
  assert(walk_ != nullptr);
  if (ring_ == nullptr) {
    Result<std::unique_ptr<StackRing>> ring = StackRing::create(ring_bytes);
    if (!ring) return ring.error();
    ring_ = std::move(*ring);
  }
  return clock_.made() ? Status() : clock_.make(engine, thread_, cpu_clock_, signal);
}

void StackSampler::change(uint64_t hz) noexcept {
  assert(hz == 0 || prepared());
  if (hz == 0) return clock_.stop();
  clock_.start(1'000'000'000 / hz);
}

void StackSampler::take(const siginfo_t& info, void* machine, bool elsewhere) noexcept {
  record_.weight_ns = clock_.take(info);
  if (record_.weight_ns == 0) return;
  record_.cycles = read_cycles();
  record_.leaf = SampleLeaf::kOutside;
  record_.gap = SampleGap::kNone;
  record_.count = 0;
  if (elsewhere) {
    record_.gap = SampleGap::kOtherRuntime;
  } else {
    walking_.store(true, std::memory_order_seq_cst);  // before the walk reads any code
    walk_(owner_, machine, record_);
    walking_.store(false, std::memory_order_release);
  }
  ring_->push(record_);
}

StackSampler::Counts StackSampler::counts() const noexcept {
  Counts c;
  c.asked_ns = clock_.asked_ns();
  if (ring_ == nullptr) return c;
  c.dropped = ring_->dropped();
  c.dropped_ns = ring_->dropped_ns();
  return c;
}

}  // namespace uptier::sampler
