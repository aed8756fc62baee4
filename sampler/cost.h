// Cost: the share of a program's time that instrumentation takes, measured in place.
//
// One slow path in eight reads the cycle counter before and after (CostMeter). The cost of the two
// reads is subtracted; times that contain an interruption are left out and counted. The costs
// outside of the slow paths cannot be timed there: the mispredicted branches on the way in and out,
// the saved registers, and the counting itself. They are modelled (CostModel):
//
//     spent = calls * (outside + inside of a call)
//             + bursts * events a burst * (outside of loops + inside of a loop event)
//             + flushes * inside of a flush + counted * count_ns + values * value_ns
//
// where `inside` is the measured part. A burst has one event, its begin, and one more for each call
// that joins it: in a method that returns after a few iterations, a burst spans several calls. The
// end of a burst is one more event unless it is a quick one; quick ends are no events, and their
// cost belongs to the cost outside of a begin. The number of events per burst is measured, too, as
// a mean over all methods.
//
//   Thread: CostMeter: written by its own thread, read by the worker; counters are relaxed because
//   each is used by itself. CostModel and CycleClock: values.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace uptier::sampler {

enum class CostKind : uint8_t { kCall, kLoop, kFlush };
inline constexpr size_t kCostKinds = 3;

// The processor's cycle counter (rdtsc; constant rate and the same on all cores since 2008). A read
// takes 9.5 ns.
uint64_t read_cycles() noexcept;

struct CycleClock {
  uint64_t (*read)() noexcept = read_cycles;
  double ns_per_cycle = 1;
  uint64_t read_cost = 0;  // cycles between two reads with nothing between them

  // Measures read_cycles against the monotonic clock, to 1 in 1,000. Takes 0.1 ms.
  static CycleClock calibrate();
};

// Readings of meters; they may be summed over threads.
struct CostCounts {
  struct Row {
    uint64_t events = 0;
    uint64_t timed = 0;
    uint64_t cycles = 0;  // of the timed ones, reads subtracted
  };
  std::array<Row, kCostKinds> rows;
  uint64_t interrupted = 0;  // times left out because of an interruption

  CostCounts& operator+=(const CostCounts& o);
  CostCounts operator-(const CostCounts& o) const;
};

// Times one event in `kEvery` on a thread.
class CostMeter {
 public:
  static constexpr uint64_t kEvery = 8;
  static constexpr uint64_t kInterrupted = 100'000;  // cycles; no slow path takes that long itself

  explicit CostMeter(const CycleClock& clock) : clock_(clock) {}

  // Begins an event. Returns a cycle count to pass to stop(), or 0 if this event is not timed.
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
  // One writer, so a load and a store suffice, and no locked instruction is needed. Returns the
  // value before.
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
  // Cost around a sampled call: mispredicted jumps, saved registers, and an instrumented copy that
  // is not in the caches. A rough constant, not measured at run time. It comes from runs on loaded
  // machines, compared with runs that never sample, less the time inside (docs/notes/0029): on one
  // machine, at interval 256, some 45 ns on bintrees and 40 to 75 on objects and mix; on another,
  // at 16 and 128, 5 to 30 on bintrees, compress and nbody, 55 to 85 on objects.
  double outside_ns = 40;
  // The same for a loop event, including a burst's quick end: 15 to 30 ns at interval 16, some 40
  // at 128 (onecall, spectral, nbody).
  double outside_loop_ns = 40;
  // Start values, until there are measurements. FastSampling::take times plain samples.
  std::array<double, kCostKinds> inside_ns = {15, 25, 200};
  // One counter increment: docs say 0.27 ns for a line in the cache; doubled, for code that is
  // cold.
  double count_ns = 0.5;
  // Entering one value into its table. Measured on exhaustive copies of `phases`, 27 million
  // values, with and without value tables (`uptier run --tier=instrumented`, `-O
  // value_versions=off`).
  double value_ns = 14;
  double events_per_burst = 1;

  // Moves `inside_ns` an eighth of the way towards the measurements since the last update. Rows
  // with fewer than 8 measurements are left alone.
  void update(const CostCounts& since, const CycleClock& clock);
  // Moves `events_per_burst` in the same way, if there are at least 8 bursts.
  void update_bursts(uint64_t loop_events, uint64_t bursts);
  // Returns the time that was spent. `counted` and `values` are the increments and the entered
  // values of instrumented copies.
  double spent_ns(uint64_t calls, uint64_t bursts, uint64_t flushes, double counted,
                  double values) const;
};

}  // namespace uptier::sampler
