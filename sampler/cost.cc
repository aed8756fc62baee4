#include "sampler/cost.h"

#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <cassert>

namespace uptier::sampler {
namespace {

uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

uint64_t read_cycles() noexcept { return __rdtsc(); }

namespace {

// Both clocks at one moment, as closely as possible: of a few tries, the one with the least cycles
// between the readings before and after, so that an interruption in between does no harm.
struct Moment {
  uint64_t ns = 0, cycles = 0;

  static Moment now() {
    Moment best;
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
      uint64_t before = read_cycles();
      uint64_t ns = monotonic_ns();
      uint64_t gone = read_cycles() - before;
      if (gone >= closest) continue;
      closest = gone;
      best = {ns, before + gone / 2};
    }
    return best;
  }
};

}  // namespace

CycleClock CycleClock::calibrate() {
  constexpr uint64_t kMeasured = 100'000;  // ns
  CycleClock c;
  c.read_cost = UINT64_MAX;
  Moment from = Moment::now();
  while (monotonic_ns() - from.ns < kMeasured) {
    uint64_t before = c.read();
    c.read_cost = std::min(c.read_cost, c.read() - before);
  }
  Moment to = Moment::now();
  uint64_t cycles = std::max<uint64_t>(1, to.cycles - from.cycles);
  assert(to.ns > from.ns);
  c.ns_per_cycle = static_cast<double>(to.ns - from.ns) / static_cast<double>(cycles);
  return c;
}

CostCounts& CostCounts::operator+=(const CostCounts& o) {
  for (size_t i = 0; i < kCostKinds; ++i) {
    rows[i].events += o.rows[i].events;
    rows[i].timed += o.rows[i].timed;
    rows[i].cycles += o.rows[i].cycles;
  }
  interrupted += o.interrupted;
  return *this;
}

CostCounts CostCounts::operator-(const CostCounts& o) const {
  CostCounts d;
  for (size_t i = 0; i < kCostKinds; ++i) {
    assert(rows[i].events >= o.rows[i].events && rows[i].timed >= o.rows[i].timed);
    d.rows[i].events = rows[i].events - o.rows[i].events;
    d.rows[i].timed = rows[i].timed - o.rows[i].timed;
    d.rows[i].cycles = rows[i].cycles - o.rows[i].cycles;
  }
  d.interrupted = interrupted - o.interrupted;
  return d;
}

void CostMeter::stop_slow(CostKind kind, uint64_t started) noexcept {
  uint64_t now = clock_.read();
  uint64_t gone = now > started + clock_.read_cost ? now - started - clock_.read_cost : 0;
  if (gone > kInterrupted) {
    bump(interrupted_, 1);
    return;
  }
  assert(static_cast<size_t>(kind) < kCostKinds);
  Row& row = rows_[static_cast<size_t>(kind)];
  bump(row.timed, 1);
  bump(row.cycles, gone);
}

CostCounts CostMeter::counts() const noexcept {
  CostCounts c;
  for (size_t i = 0; i < kCostKinds; ++i) {
    c.rows[i].events = rows_[i].events.load(std::memory_order_relaxed);
    c.rows[i].timed = rows_[i].timed.load(std::memory_order_relaxed);
    c.rows[i].cycles = rows_[i].cycles.load(std::memory_order_relaxed);
  }
  c.interrupted = interrupted_.load(std::memory_order_relaxed);
  return c;
}

void CostModel::update(const CostCounts& since, const CycleClock& clock) {
  for (size_t i = 0; i < kCostKinds; ++i) {
    const CostCounts::Row& row = since.rows[i];
    if (row.timed < 8) continue;
    double mean = static_cast<double>(row.cycles) / static_cast<double>(row.timed);
    inside_ns[i] += (mean * clock.ns_per_cycle - inside_ns[i]) / 8;
  }
}

// Some events belong to no burst, above all where bursts are rare: hence the bound.
void CostModel::update_bursts(uint64_t loop_events, uint64_t bursts) {
  constexpr double kMostEvents = 34;  // a burst of 32 calls of one iteration each
  if (bursts < 8) return;
  double mean = static_cast<double>(loop_events) / static_cast<double>(bursts);
  events_per_burst += (std::clamp(mean, 1.0, kMostEvents) - events_per_burst) / 8;
}

double CostModel::spent_ns(uint64_t calls, uint64_t bursts, uint64_t flushes, double counted,
                           double values) const {
  auto inside = [this](CostKind k) { return inside_ns[static_cast<size_t>(k)]; };
  return static_cast<double>(calls) * (outside_ns + inside(CostKind::kCall)) +
         static_cast<double>(bursts) * events_per_burst *
             (outside_loop_ns + inside(CostKind::kLoop)) +
         static_cast<double>(flushes) * inside(CostKind::kFlush) + counted * count_ns +
         values * value_ns;
}

}  // namespace uptier::sampler
