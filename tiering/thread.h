// AttachedThread: what a runtime keeps for a thread that runs its methods.
//
// Everything that slow paths need is made at attach: context, slab arena, snapshot ring, alternate
// signal stack. Nothing of it is allocated later.
//
//   Thread: its own thread, except `ring` (consumer side) and `epoch`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "jit/code/faults.h"
#include "sampler/context.h"
#include "sampler/reservation.h"
#include "sampler/slab_arena.h"
#include "sampler/snapshot_ring.h"
#include "uptier/options.h"

namespace uptier::tiering {

class RuntimeImpl;

class AttachedThread {
 public:
  static Result<std::unique_ptr<AttachedThread>> create(RuntimeImpl& runtime,
                                                        const Options& options, uint32_t number);

  sampler::ThreadContext& context() {
    return *static_cast<sampler::ThreadContext*>(context_memory_.data());
  }
  sampler::MethodState& state(MethodId m) { return context().method(m.index()); }
  uint32_t number() const { return number_; }
  sampler::SnapshotRing& ring() { return *ring_; }
  sampler::SlabArena& slabs() { return slabs_; }

  // Attach calls minus detach calls; the thread's own.
  uint32_t depth = 0;
  // The context that was current before, for nesting runtimes on one thread.
  sampler::ThreadContext* outer = nullptr;
  // The reclamation epoch at the thread's last quiescent point; see reclaim.h.
  std::atomic<uint64_t> epoch{0};
  // Losses that only this thread counts.
  std::atomic<uint64_t> samples_without_copy{0};
  std::atomic<uint64_t> slabs_refused{0};
  std::atomic<uint64_t> flushes_delayed{0};

 private:
  AttachedThread(uint32_t number, sampler::Reservation context, sampler::SlabArena slabs,
                 std::unique_ptr<sampler::SnapshotRing> ring, jit::AltStack alt_stack)
      : number_(number),
        context_memory_(std::move(context)),
        slabs_(std::move(slabs)),
        ring_(std::move(ring)),
        alt_stack_(std::move(alt_stack)) {}

  uint32_t number_;
  sampler::Reservation context_memory_;
  sampler::SlabArena slabs_;
  std::unique_ptr<sampler::SnapshotRing> ring_;
  jit::AltStack alt_stack_;
};

}  // namespace uptier::tiering
