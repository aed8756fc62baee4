// GuestCalls: what a call does whose countdown is due, or that finds no code.
//
// Each path is idempotent in what it finds: a countdown that another thread has re-armed means "go on".
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
#pragma once

#include <cstdint>

#include "uptier/ids.h"

namespace uptier::tiering {

class AttachedThread;
class CallEvents;
class Counters;
struct Engine;
class GuestWaits;
struct Method;
class Notes;
class OptimizedSamples;
class UnattachedCalls;

class GuestCalls {
 public:
  // All outlive this.
  GuestCalls(Engine& engine, GuestWaits& guest_waits, Notes& notes, Counters& counters,
             OptimizedSamples& optimized_samples, UnattachedCalls& unattached_calls,
             CallEvents& call_events)
      : engine_(engine),
        guest_waits_(guest_waits),
        notes_(notes),
        counters_(counters),
        optimized_samples_(optimized_samples),
        unattached_calls_(unattached_calls),
        call_events_(call_events) {}

  // Returns where a call goes on: what the entry stub of the method with this index asks for.
  const void* enter(uint32_t index) noexcept;
  // Returns code of the method to run now, made if need be; null when there is none to be had. What is
  // returned stays until this thread is quiescent, whatever others evict meanwhile.
  const void* code_for_call(Method& m) noexcept;
  // Whether all calls are counted and the thread cannot count: then it must not run code that counts.
  bool must_run_plain(Method& m, AttachedThread& t) noexcept;
  // Returns code that does not count, made if need be; null when there is none to be had.
  const void* run_plain(Method& m, AttachedThread& t) noexcept;

 private:
  // The call ends with the trap kNoCode. Returns where it goes on.
  const void* refuse_call(MethodId m) noexcept;
  // A call is to be observed. `plain`: where it goes if it cannot be.
  const void* run_sample(Method& m, AttachedThread& t, const void* plain) noexcept;
  void ask_until_it_can_count(Method& m, AttachedThread& t) noexcept;
  // A flush may have installed something better (workers = 0): the call that brought it profits.
  const void* best_entry(Method& m, const void* otherwise) const noexcept;
  // Applies the stress plan: where the cell leads to one of two versions, returns the other one.
  const void* flip_target(Method& m, AttachedThread& t) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
  Counters& counters_;
  OptimizedSamples& optimized_samples_;
  UnattachedCalls& unattached_calls_;
  CallEvents& call_events_;
};

}  // namespace uptier::tiering
