// FastSampling: the commonest event, a sampled call with nothing else due, without leaving the
// integer registers.
//
// A stub's slow path would have to save the eight vector registers that may carry arguments before
// it calls C++. This path need not: its one function is compiled without vector instructions. It
// draws the gap as call_event() does (gap.h), at whatever interval the method's rate has, re-arms
// the countdown, and returns the instrumented entry; or it returns null having changed nothing:
// where a flush, a change of rate or the end of a rung is due, call_event() takes the event.
//
// One sample in CostMeter::kEvery of a thread is timed, as the slower paths are by CostMeter.
//
//   Thread: take() the context's own; entries and rates are published by whoever installs versions
//   and sets rates.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "sampler/context.h"
#include "sampler/cost.h"
#include "sampler/schedule.h"

namespace uptier::sampler {

class FastSampling {
 public:
  // `runtime` is what contexts carry; `methods` bounds the indices: room for that many costs memory
  // only where methods are added. The schedule outlives this.
  FastSampling(const void* runtime, uint32_t methods, const Schedule& schedule);

  // Makes a method known: it starts at the schedule's rate. Before that it is not sampled.
  void add(uint32_t method) { methods_[method].rate.set(schedule_.rate); }

  // Says where sampled calls of a method go: its instrumented entry, or null while there is none.
  void set_entry(uint32_t method, const void* entry) {
    methods_[method].entry.store(entry, std::memory_order_release);  // pairs with take()
  }

  // The rate of a method; all slow paths read it here.
  MethodRate& rate(uint32_t method) { return methods_[method].rate; }
  const MethodRate& rate(uint32_t method) const { return methods_[method].rate; }

  // Handles a countdown below zero. Returns the code to run, or null: not a plain sample.
  const void* take(uint32_t method, ThreadContext& context) noexcept;

  // What take() took, of all threads. `events` is left out. Thread: any.
  CostCounts::Row timed() const noexcept {
    return {0, timed_.load(std::memory_order_relaxed), cycles_.load(std::memory_order_relaxed)};
  }

 private:
  struct PerMethod {
    std::atomic<const void*> entry{nullptr};
    MethodRate rate;
  };

  struct Free {
    void operator()(PerMethod* p) const { std::free(p); }
  };

  const void* runtime_;
  const Schedule& schedule_;
  const Ladder& ladder_;
  std::unique_ptr<PerMethod[], Free> methods_;  // zero pages until they are written
  std::atomic<uint64_t> timed_{0}, cycles_{0};
};

// What the entry_slow routine calls: (method, FastSampling, context) -> address or null. Touches no
// vector register.
extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept;

}  // namespace uptier::sampler
