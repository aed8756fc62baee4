// StackSampler: samples where one thread spends its processor time.
//
//   clock's signal -> take() -> walk, at once -> StackRecord -> ring -> whoever reads it, later
//
// The law of take(): no lock, no allocation, nothing of the C library but system calls; it reads the thread's
// own stack and what the walk is given. The walk comes from above: this floor knows no code.
//
// A walk looks at code by addresses that it found on the stack, some of which may be stale: code that nobody
// runs may go just then. So is_walking() says that a walk is under way, and whoever takes code away waits for
// its end between making the code unfindable and destroying it.
//
//   Thread: prepare() and change(): any, one at a time. take(): the owner, in its signal handler. read(): one
//   at a time, any. The rest: any.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "sampler/stack_clock.h"
#include "sampler/stack_record.h"
#include "sampler/stack_ring.h"

namespace uptier::sampler {

// Fills in leaf, gap and frames of a record that has none. `machine`: the handler's third argument.
// Async-signal-safe.
using StackWalk = void (*)(void* owner, void* machine, StackRecord& out) noexcept;

class StackSampler {
 public:
  // Of the calling thread, once. `owner` is what `walk` is called with.
  void set_up(StackWalk walk, void* owner, clockid_t cpu_clock) noexcept;
  // Makes clock and ring unless they are there. Errors: kResourceExhausted.
  Status prepare(SampleEngine engine, int signal, uint64_t ring_bytes);
  bool prepared() const noexcept { return ring_ != nullptr && clock_.made(); }
  // Begins, goes on at another rate, or (0) stops. It is prepared.
  void change(uint64_t hz) noexcept;
  SampleEngine engine() const noexcept { return clock_.engine(); }

  bool is_mine(const siginfo_t& info) const noexcept { return clock_.is_mine(info); }
  // The signal has come. `elsewhere`: the thread is in another runtime's code, or may be.
  void take(const siginfo_t& info, void* machine, bool elsewhere) noexcept;

  // Takes the oldest record. Returns false when there is none.
  bool read(StackRecord& r) noexcept { return ring_ != nullptr && ring_->pop(r); }
  bool is_walking() const noexcept { return walking_.load(std::memory_order_seq_cst); }

  // What was asked for, and lost.
  struct Counts {
    uint64_t asked_ns = 0;  // processor time while it sampled
    uint64_t dropped = 0;   // samples that found no room in the ring, and what they stood for
    uint64_t dropped_ns = 0;
  };
  Counts counts() const noexcept;

 private:
  StackWalk walk_ = nullptr;
  void* owner_ = nullptr;
  clockid_t cpu_clock_ = 0;
  int thread_ = 0;  // the kernel's number
  StackClock clock_;
  std::unique_ptr<StackRing> ring_;
  std::atomic<bool> walking_{false};
  StackRecord record_;  // the owner's, in its handler
};

}  // namespace uptier::sampler
