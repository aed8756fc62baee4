// FastSampling: the commonest events with nothing else due, without leaving the integer registers.
//
// A sampled call. A stub's slow path would have to save the eight vector registers that may carry
// arguments before it calls C++. This path need not: its one function is compiled without vector
// instructions. It draws the gap as call_event() does (gap.h), at whatever interval the method's
// rate has, re-arms the countdown, and returns the instrumented entry.
//
// A burst. begin_burst() does what loop_event_plain() does where a stretch is over. Its end, and
// the frames that come to a burst or a stretch that is under way, are a few instructions of the
// loop routines (jit/code/loop_routines.h), which find the other copy's header in a LoopCell.
//
// Both return null having changed nothing where a flush, a change of rate or the end of a rung is
// due, or a limit is reached: then call_event() and loop_event() take the event.
//
// One event in kTimed of a thread is timed; at one in eight, reading the clock was an eighth
// of what take() takes.
//
//   Thread: take() and begin_burst() the context's own; entries, cells and rates are published by
//   whoever installs versions and sets rates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "sampler/context.h"
#include "sampler/cost.h"
#include "sampler/schedule.h"

namespace uptier::sampler {

// Where frames go that change copies at one loop header, and what counts that they did. The
// addresses are never null once the cell is in service.
struct LoopCell {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::atomic<const void*> instrumented{nullptr};
  std::atomic<const void*> plain{nullptr};
  uint32_t enter = kNone;  // offset in the slab of a word for frames that come into the copy
  uint32_t leave = kNone;  // likewise, that leave it
};
static_assert(sizeof(LoopCell) == 24);

class FastSampling {
 public:
  // `runtime` is what contexts carry; `methods` bounds the indices: room for that many costs memory
  // only where methods are added. Of no use while methods() is null: that memory is refused. The
  // schedule outlives this.
  FastSampling(const void* runtime, uint32_t methods, const Schedule& schedule);

  // Makes a method known: it starts at the schedule's rate. Before that it is not sampled.
  void add(uint32_t method) { methods_[method].rate.set(schedule_.rate); }

  // Says where sampled calls of a method go: its instrumented entry, or null while there is none;
  // and by LoopId where its loops do, or null where they have to ask. The cells stay until the
  // runtime ends.
  void set_entry(uint32_t method, const void* entry, const LoopCell* loops = nullptr) {
    methods_[method].entry.store(entry, std::memory_order_release);  // pairs with take()
    set_loops(method, loops);
  }
  void set_loops(uint32_t method, const LoopCell* loops) {
    methods_[method].loops.store(loops, std::memory_order_release);  // pairs with begin_burst()
  }

  // The rate of a method; all slow paths read it here.
  MethodRate& rate(uint32_t method) { return methods_[method].rate; }
  const MethodRate& rate(uint32_t method) const { return methods_[method].rate; }

  // Handles a countdown below zero. Returns the code to run, or null: not a plain sample.
  const void* take(uint32_t method, ThreadContext& context) noexcept;

  // Handles a plain copy's countdown that has come to 0 at a header. Returns where the frame goes
  // on, or null: it is not the plain begin of a burst.
  const void* begin_burst(uint32_t method, uint32_t loop, ThreadContext& context) noexcept;

  static constexpr uint64_t kTimed = 32;
  // What take() and begin_burst() took, of all threads. `events` is left out. Thread: any.
  CostCounts::Row timed(CostKind kind) const noexcept {
    const Timed& t = kind == CostKind::kLoop ? bursts_ : calls_;
    return {0, t.events.load(std::memory_order_relaxed), t.cycles.load(std::memory_order_relaxed)};
  }

  // What the loop routines find cells by: kMethodBytes a method, its cells' address at kLoopsAt.
  const void* methods() const { return methods_.get(); }
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

  struct Free {
    void operator()(PerMethod* p) const { std::free(p); }
  };

  const void* runtime_;
  const Schedule& schedule_;
  const Ladder& ladder_;
  std::unique_ptr<PerMethod[], Free> methods_;  // zero pages until they are written
  Timed calls_, bursts_;
};

// What the entry_slow routine calls: (method, FastSampling, context) -> address or null. Touches no
// vector register.
extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept;
// What the loop routine of plain copies calls, likewise.
extern "C" const void* uptier_begin_burst(uint32_t method, uint32_t loop, ThreadContext* context,
                                          const void* fast) noexcept;

}  // namespace uptier::sampler
