// FastSampling: handles the commonest events, if nothing else is due, with integer registers only.
//
// A sampled call: a stub's slow path would have to save the eight vector registers that may carry
// arguments before it calls C++. This path need not, because take() is compiled without vector
// instructions. It draws the gap as call_event() does (gap.h), with the interval of the method's
// rate, re-arms the countdown, and returns the instrumented entry.
//
// A burst: begin_burst() does what loop_event_plain() does at the end of a stretch. The end of a
// burst, and frames that reach a header during a burst or a stretch, are handled by a few
// instructions of the loop routines (jit/code/loop_routines.h), which find the header in the other
// copy by a LoopCell.
//
// Both return null, and change nothing, if a flush, a change of rate or the end of a rung is due,
// or if a limit is reached. Then call_event() and loop_event() handle the event.
//
// One event in kTimed on a thread is timed. With one in eight, reading the clock took an eighth of
// the time of take().
//
//   Thread: take() and begin_burst(): the context's own thread. Entries, cells and rates are published
//   by the threads that install versions and set rates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sampler/context.h"
#include "sampler/cost.h"
#include "sampler/reservation.h"
#include "sampler/schedule.h"

namespace uptier::sampler {

// The targets of frames that change copies at one loop header, and the counters of such changes.
// The addresses are never null once the cell is in service.
struct LoopCell {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::atomic<const void*> instrumented{nullptr};
  std::atomic<const void*> plain{nullptr};
  uint32_t enter = kNone;  // slab offset of the counter of frames that enter the copy
  uint32_t leave = kNone;  // slab offset of the counter of frames that leave the copy
};
static_assert(sizeof(LoopCell) == 24);

class FastSampling {
 public:
  // `runtime` is the pointer that contexts carry. `methods` bounds the indices; room for them takes
  // memory only where methods are added. If methods() is null, memory was refused and the object is
  // unusable. The schedule outlives this.
  FastSampling(const void* runtime, uint32_t methods, const Schedule& schedule);

  // Adds a method, which starts at the schedule's rate. It is not sampled before.
  void add(uint32_t method) { methods_[method].rate.set(schedule_.rate); }

  // Sets the target of a method's sampled calls: its instrumented entry, or null while there is
  // none. Also sets the targets of its loops, by LoopId, or null if loops have to take the slow
  // path. The cells stay until the runtime ends.
  void set_entry(uint32_t method, const void* entry, const LoopCell* loops = nullptr) {
    methods_[method].entry.store(entry, std::memory_order_release);  // pairs with take()
    set_loops(method, loops);
  }
  void set_loops(uint32_t method, const LoopCell* loops) {
    methods_[method].loops.store(loops, std::memory_order_release);  // pairs with begin_burst()
  }

  // Returns the rate of a method. All slow paths read it here.
  MethodRate& rate(uint32_t method) { return methods_[method].rate; }
  const MethodRate& rate(uint32_t method) const { return methods_[method].rate; }

  // Handles a countdown below zero. Returns the code to run, or null if this is not a plain sample.
  const void* take(uint32_t method, ThreadContext& context) noexcept;

  // Handles a plain copy's countdown that has reached 0 at a header. Returns the address where the
  // frame continues, or null if this is not the plain begin of a burst.
  const void* begin_burst(uint32_t method, uint32_t loop, ThreadContext& context) noexcept;

  static constexpr uint64_t kTimed = 32;
  // Returns the cycles of take() or begin_burst(), over all threads, without `events`. Thread: any.
  CostCounts::Row timed(CostKind kind) const noexcept {
    const Timed& t = kind == CostKind::kLoop ? bursts_ : calls_;
    return {0, t.events.load(std::memory_order_relaxed), t.cycles.load(std::memory_order_relaxed)};
  }

  // The loop routines find cells here: kMethodBytes per method, the address of its cells at
  // kLoopsAt.
  const void* methods() const { return methods_; }
  static constexpr uint32_t kMethodBytes = 24, kLoopsAt = 16;

 private:
  struct PerMethod {
    std::atomic<const void*> entry{nullptr};
    MethodRate rate;
    std::atomic<const LoopCell*> loops{nullptr};
  };
  static_assert(sizeof(PerMethod) == kMethodBytes && offsetof(PerMethod, loops) == kLoopsAt);
  struct Timed {
    std::atomic<uint64_t> events{0}, cycles{0};
  };
  static void stop(Timed& t, uint64_t started) noexcept;

  const void* runtime_;
  const Schedule& schedule_;
  const Ladder& ladder_;
  Reservation memory_;            // of methods_: zero pages until they are written
  PerMethod* methods_ = nullptr;  // null: refused
  Timed calls_, bursts_;
};

// Called by the entry_slow routine: (method, FastSampling, context) -> address or null. Touches no
// vector register.
extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept;
// Called by the loop routine of plain copies; touches no vector register either.
extern "C" const void* uptier_begin_burst(uint32_t method, uint32_t loop, ThreadContext* context,
                                          const void* fast) noexcept;

}  // namespace uptier::sampler
