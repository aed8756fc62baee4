// Cost: what instrumentation takes of a program's time, measured where it happens.
//
// A slow path in eight reads the cycle counter before and after (CostMeter), what two reads cost by
// themselves is subtracted, and times that hold an interruption are left out and counted. What lies
// outside of slow paths cannot be timed there: the mispredicted branches on the way in and out, the
// saved registers, and the counting itself. It is modelled (CostModel):
//
//     spent = calls * (outside + inside of a call)
//             + bursts * events a burst * (outside of loops + inside of a loop event)
//             + flushes * inside of a flush + counted * count_ns + values * value_ns
//
// where `inside` is what the meters measured. A burst has one event, its begin, and one more for
// each call that joins it: a method that returns after a few iterations has a burst in several
// calls. Its end is one more where it is not a quick one; quick ends are no events, and what they
// take is part of what lies outside of a begin. How many events there are is measured, too: as a
// mean over all methods.
//
//   Thread: CostMeter: written by its own thread, read by the worker; counters are relaxed because
//   each is read for itself. CostModel and CycleClock: values.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace uptier::sampler {

enum class CostKind : uint8_t { kCall, kLoop, kFlush };
inline constexpr size_t kCostKinds = 3;

// The processor's cycle counter, 9.5 ns a read (rdtsc; constant and the same on all cores since
// 2008).
uint64_t read_cycles() noexcept;

struct CycleClock {
  uint64_t (*read)() noexcept = read_cycles;
  double ns_per_cycle = 1;
  uint64_t read_cost = 0;  // cycles between two reads with nothing between them

  // Measures read_cycles against the monotonic clock, to one in 1,000. Takes 0.1 ms.
  static CycleClock calibrate();
};

// What meters have gathered; sums over threads are meaningful.
struct CostCounts {
  struct Row {
    uint64_t events = 0;
    uint64_t timed = 0;
    uint64_t cycles = 0;  // of the timed ones, reads subtracted
  };
  std::array<Row, kCostKinds> rows;
  uint64_t interrupted = 0;  // times left out

  CostCounts& operator+=(const CostCounts& o);
  CostCounts operator-(const CostCounts& o) const;
};

// Times one event in `kEvery` of a thread.
class CostMeter {
 public:
  static constexpr uint64_t kEvery = 8;
  static constexpr uint64_t kInterrupted = 100'000;  // cycles; no slow path takes that long itself

  explicit CostMeter(const CycleClock& clock) : clock_(clock) {}

  // Begins an event: a cycle count to give to stop(), or 0 when this one is not timed.
  uint64_t start(CostKind kind) noexcept {
    uint64_t n = bump(rows_[static_cast<size_t>(kind)].events, 1);
    return n % kEvery == 0 ? clock_.read() : 0;
  }
  void stop(CostKind kind, uint64_t started) noexcept {
    if (started != 0) stop_slow(kind, started);
  }
  CostCounts counts() const noexcept;

 private:
  struct Row {
    std::atomic<uint64_t> events{0}, timed{0}, cycles{0};
  };
  // One writer: a load and a store, no locked instruction. Returns the value before.
  static uint64_t bump(std::atomic<uint64_t>& a, uint64_t by) noexcept {
    uint64_t before = a.load(std::memory_order_relaxed);
    a.store(before + by, std::memory_order_relaxed);
    return before;
  }
  void stop_slow(CostKind kind, uint64_t started) noexcept;

  const CycleClock& clock_;
  std::array<Row, kCostKinds> rows_;
  std::atomic<uint64_t> interrupted_{0};
};

struct CostModel {
  // Around a sampled call: mispredicted jumps, registers saved, and an instrumented copy that is not
  // in the caches. A rough constant, from runs on loaded machines against runs that never sample,
  // less the time inside (docs/notes/0029): on one, at interval 256, some 45 ns on bintrees and 40
  // to 75 on objects and mix; on another, at 16 and 128, 5 to 30 on bintrees, compress and
  // nbody, 55 to 85 on objects. Not measured while running.
  double outside_ns = 40;
  // The same of a loop event, a burst's quick end included: 15 to 30 ns at interval 16, some 40 at
  // 128 (onecall, spectral, nbody).
  double outside_loop_ns = 40;
  // Inside, until meters say better. Plain samples are timed by FastSampling::take.
  std::array<double, kCostKinds> inside_ns = {15, 25, 200};
  // One counter's increment: docs say 0.27 for a line that is near; twice that, for code that is
  // cold.
  double count_ns = 0.5;
  // One value entered into its table. Exhaustive copies of `phases`, 27 million of them, with and
  // without (`uptier run --tier=instrumented`, `-O value_versions=off`).
  double value_ns = 14;
  double events_per_burst = 1;

  // Moves `inside_ns` towards what was measured since the last update, an eighth of the way a time
  // and none with fewer than 8 times.
  void update(const CostCounts& since, const CycleClock& clock);
  // Moves `events_per_burst` likewise; by nothing with fewer than 8 bursts.
  void update_bursts(uint64_t loop_events, uint64_t bursts);
  // Returns what was spent. In instrumented copies: `counted` increments, and `values` entered.
  double spent_ns(uint64_t calls, uint64_t bursts, uint64_t flushes, double counted,
                  double values) const;
};

}  // namespace uptier::sampler
