// Notes: how a thread hands over what it has counted: by its ring, without a lock.
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
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

// Returns what a thread has counted of a method; empty before it has a slab.
std::span<const uint64_t> counted_words(const Method& m, const sampler::MethodState& s) noexcept;

class Notes {
 public:
  // All outlive this.
  Notes(Engine& engine, GuestWaits& guest_waits) : engine_(engine), guest_waits_(guest_waits) {}

  // Returns a note of what a thread has counted of a method, but for the words of its slab.
  sampler::Note make_note(Method& m, AttachedThread& t, sampler::NoteKind kind) noexcept;
  // Puts a note into the ring and wakes the worker. `call`: the number of the call at which the note is
  // taken; 0 means now. Returns whether the worker will get the counters.
  bool post(Method& m, AttachedThread& t, sampler::NoteKind kind, uint32_t loop,
            uint64_t call = 0) noexcept;
  // A trap is about to unwind frames of an instrumented copy, all in one block.
  void frames_dropped(uint32_t method, SiteId block, uint64_t frames) noexcept;
  // The thread has taken more samples than it may: the method whose sample it was gets a wider rate.
  void brake(Method& m, sampler::Rate in_force) noexcept;

 private:
  uint64_t exact_calls(Method& m) const noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
};

}  // namespace uptier::tiering
