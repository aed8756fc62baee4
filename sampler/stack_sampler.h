// StackSampler: samples the call stack of one thread by processor time.
//
//   signal of the clock -> take() -> walk, at once -> StackRecord -> ring -> a reader, later
//
// The law of take(): no lock, no allocation, and nothing from the C library but system calls. It
// reads the thread's own stack and the data that the walk is given. The walk is supplied from
// above: this floor knows no code.
//
// A walk follows addresses found on the stack, and some may be stale: unused code may be freed at
// that moment. So is_walking() says that a walk is in progress. A thread that frees code first
// makes the code unfindable, then waits for the end of walks, then destroys it.
//
//   Thread: prepare() and change(): any, one at a time. take(): the owner, in its signal handler. read(): any,
//   one at a time. The rest: any.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "sampler/stack_clock.h"
#include "sampler/stack_record.h"
#include "sampler/stack_ring.h"

namespace uptier::sampler {

// Sets leaf, gap and frames of an empty record. `machine` is the handler's third argument.
// Async-signal-safe.
using StackWalk = void (*)(void* owner, void* machine, StackRecord& out) noexcept;

class StackSampler {
 public:
  // Sets up the calling thread; call it once. `walk` is called with `owner`.
  void set_up(StackWalk walk, void* owner, clockid_t cpu_clock) noexcept;
  // Makes the clock and the ring unless they exist. Errors: kResourceExhausted.
  Status prepare(SampleEngine engine, int signal, uint64_t ring_bytes);
  bool prepared() const noexcept { return ring_ != nullptr && clock_.made(); }
  // Starts, changes the rate, or (0) stops. Requires prepared().
  void change(uint64_t hz) noexcept;
  SampleEngine engine() const noexcept { return clock_.engine(); }

  bool is_mine(const siginfo_t& info) const noexcept { return clock_.is_mine(info); }
  // Handles the signal. `elsewhere`: the thread is, or may be, in another runtime's code.
  void take(const siginfo_t& info, void* machine, bool elsewhere) noexcept;

  // Takes the oldest record. Returns false if there is none.
  bool read(StackRecord& r) noexcept { return ring_ != nullptr && ring_->pop(r); }
  bool is_walking() const noexcept { return walking_.load(std::memory_order_seq_cst); }

  // Sampled and lost time.
  struct Counts {
    uint64_t asked_ns = 0;  // processor time while sampling was on
    uint64_t dropped = 0;   // samples that found the ring full, and the time they stood for
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
  StackRecord record_;  // used by the owner, in its handler
};

}  // namespace uptier::sampler
