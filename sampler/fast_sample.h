// FastSampling: the commonest event, a sampled call with nothing else due, without leaving the
// integer registers.
//
// A stub's slow path would have to save the eight vector registers that may carry arguments before
// it calls C++. This path need not: its one function is compiled without vector instructions. It
// draws the gap from a table of 256 strata of the same law (gap.h), re-arms the countdown, and
// returns the instrumented entry; or it returns null having changed nothing, and call_event() does
// the same event with the same random draw.
//
//   Thread: take() the context's own; the entries are published by whoever installs versions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "sampler/context.h"
#include "sampler/gap.h"

namespace uptier::sampler {

// The geometric law by strata: the top 8 of the random bits choose one, the next 32 decide between
// its two gaps. Strata that hold more than two gaps (the far tail; all of them for intervals in the
// hundreds, where a sample is rare enough to cost what it likes) are left to GapLaw::draw.
class GapTable {
 public:
  explicit GapTable(const GapLaw& law);

  // Returns the gap for 64 random bits, or 0 where only GapLaw::draw knows.
  uint32_t draw(uint64_t bits) const noexcept {
    const Stratum& s = strata_[bits >> 56];
    auto fraction = static_cast<uint32_t>(bits >> 24);
    return s.low + (fraction >= s.split ? s.step : 0);
  }

 private:
  struct Stratum {
    uint32_t low = 0;
    uint32_t split = 0;
    uint32_t step = 0;
  };
  std::array<Stratum, 256> strata_;
};

class FastSampling {
 public:
  // `runtime` is what contexts carry; `methods` bounds the indices.
  FastSampling(const void* runtime, uint32_t methods, const GapLaw& law);

  // Says where sampled calls of a method go: its instrumented entry, or null while there is none.
  void set_entry(uint32_t method, const void* entry) {
    entries_[method].store(entry, std::memory_order_release);  // pairs with take()
  }

  // Handles a countdown below zero. Returns the code to run, or null: not a plain sample.
  const void* take(uint32_t method, ThreadContext& context) const noexcept;

 private:
  const void* runtime_;
  GapTable gaps_;
  std::unique_ptr<std::atomic<const void*>[]> entries_;
};

// What the entry_slow routine calls: (method, FastSampling, context) -> address or null. Touches no
// vector register.
extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept;

}  // namespace uptier::sampler
