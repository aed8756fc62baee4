// GuestCalls: handles calls whose countdown is due, or whose method has no code.
//
// Each path is idempotent: a countdown that another thread has re-armed means that nothing is left
// to do.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
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

  // Returns the address where a call continues; called by the entry stub of the method with this
  // index.
  const void* enter(uint32_t index) noexcept;
  // Returns code of the method to run now, and makes it if necessary; null if that is impossible.
  // The code stays until this thread is quiescent, even if it is evicted meanwhile.
  const void* code_for_call(Method& m) noexcept;
  // Says whether all calls are counted and the thread has no counters: then it must not run code
  // that counts.
  bool must_run_plain(Method& m, AttachedThread& t) noexcept;
  // Returns code that does not count, and makes it if necessary; null if that is impossible.
  const void* run_plain(Method& m, AttachedThread& t) noexcept;

 private:
  // Ends the call with the trap kNoCode. Returns the address where it continues.
  const void* refuse_call(MethodId m) noexcept;
  // Observes a call. `plain`: the code to run if that is impossible.
  const void* run_sample(Method& m, AttachedThread& t, const void* plain) noexcept;
  void ask_until_it_can_count(Method& m, AttachedThread& t) noexcept;
  // A flush may have installed better code (workers = 0): the call that caused it uses that code.
  const void* best_entry(Method& m, const void* otherwise) const noexcept;
  // Applies stress: if the cell leads to one of two versions, returns the other one.
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
