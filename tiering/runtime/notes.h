// Notes: passes the counts of a thread on, through its ring, without a lock.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/context.h"
#include "sampler/rate.h"
#include "sampler/snapshot_ring.h"
#include "uptier/ids.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class GuestWaits;
struct Method;

// Returns a thread's counters of a method; empty before it has a slab.
std::span<const uint64_t> counted_words(const Method& m, const sampler::MethodState& s) noexcept;

class Notes {
 public:
  // All outlive this.
  Notes(Engine& engine, GuestWaits& guest_waits) : engine_(engine), guest_waits_(guest_waits) {}

  // Returns a note with a thread's progress in a method, without the words of its slab.
  sampler::Note make_note(Method& m, AttachedThread& t, sampler::NoteKind kind) noexcept;
  // Puts a note into the ring and wakes the worker. `call`: the number of the call at which the
  // note is taken; 0: now. Returns whether the worker will get the counters.
  bool post(Method& m, AttachedThread& t, sampler::NoteKind kind, uint32_t loop,
            uint64_t call = 0) noexcept;
  // A trap is about to unwind frames of an instrumented copy, all in one block.
  void frames_dropped(uint32_t method, SiteId block, uint64_t frames) noexcept;
  // The thread has exceeded its allowance: widens the rate of the method that was sampled.
  void brake(Method& m, sampler::Rate in_force) noexcept;

 private:
  uint64_t exact_calls(Method& m) const noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
};

}  // namespace uptier::tiering
