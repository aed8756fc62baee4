#include "sampler/schedule.h"

#include <algorithm>

namespace uptier::sampler {
namespace {

// The longest gap that a 32-bit countdown holds with room for the check's own step.
constexpr int64_t kLongest = 0x7ffffff0;

void arm_calls(MethodState& s, uint64_t next) {
  s.call_gap = static_cast<uint32_t>(std::min<uint64_t>(next - s.calls, kLongest));
  s.call_countdown = static_cast<int32_t>(s.call_gap) - 1;
}

// A part of a stretch or burst is no longer than this many iterations: a loop asks that often at
// least whether there is better code to go on in.
constexpr int64_t kLongestPart = 1 << 16;

// Counts what has gone of the armed part of a stretch or burst, this arrival included.
void close_part(MethodState& s) {
  s.iterations = iterations_so_far(s);
  s.loop_gap = 0;
  s.loop_countdown = 0;
}

// Arms a stretch or burst of `length` iterations from here, up to the next flush point at most.
void arm_loop(MethodState& s, uint64_t length, bool burst) {
  uint64_t part = std::min({length, s.next_loop_flush - s.iterations, uint64_t{kLongestPart}});
  s.loop_left = length - part;
  s.loop_gap = static_cast<int32_t>(part);
  if (burst) s.loop_gap = -s.loop_gap;
  s.loop_countdown = s.loop_gap;
}

bool loop_flush_due(MethodState& s, const Schedule& schedule) {
  if (s.next_loop_flush == 0) s.next_loop_flush = schedule.loop_flush_first;
  if (s.iterations < s.next_loop_flush) return false;
  while (s.next_loop_flush <= s.iterations) {
    s.next_loop_flush =
        next_flush_point(s.next_loop_flush, schedule.loop_flush_first, schedule.flush_growth);
  }
  return true;
}

// An arrival at a loop header where a stretch or burst is over. `burst_due`: it was a stretch.
LoopEvent begin(MethodState& s, const Schedule& schedule, bool can_count, uint64_t& random,
                bool burst_due) {
  LoopEvent e;
  e.flush = loop_flush_due(s, schedule);
  if (!schedule.sample_calls) {
    arm_loop(s, kLongest, false);
    return e;
  }
  uint64_t plain_slots = burst_due ? 0 : schedule.calls.draw(random) - 1;
  e.due = plain_slots == 0;
  e.instrumented = e.due && can_count;
  if (e.instrumented) {
    ++s.bursts;
    arm_loop(s, schedule.interval == 1 ? kLongest : schedule.burst, true);
    return e;
  }
  // A burst that has to be skipped takes its slot, and the next stretch follows at once.
  if (e.due) plain_slots = schedule.calls.draw(random);
  arm_loop(s, plain_slots * schedule.burst, false);
  return e;
}

// An arrival at which the armed part is complete.
LoopEvent part_over(MethodState& s, const Schedule& schedule, bool can_count, uint64_t& random) {
  bool burst = s.loop_gap < 0;
  close_part(s);
  if (s.loop_left == 0 || (burst && !can_count)) {
    return begin(s, schedule, can_count, random, !burst);
  }
  LoopEvent e;
  e.flush = loop_flush_due(s, schedule);
  e.instrumented = burst;
  arm_loop(s, s.loop_left, burst);
  return e;
}

// The first arrival of all; the check's own step is taken back.
LoopEvent first_arrival(MethodState& s, const Schedule& schedule, bool can_count,
                        uint64_t& random) {
  s.loop_countdown = 0;
  ++s.iterations;
  return begin(s, schedule, can_count, random, false);
}

}  // namespace

Schedule Schedule::make(GapKind kind, uint32_t interval, uint32_t burst) {
  Schedule s;
  s.interval = interval;
  s.burst = burst;
  s.calls = GapLaw::make(kind, interval);
  return s;
}

uint64_t next_flush_point(uint64_t at, uint64_t first, double growth) noexcept {
  if (growth <= 1.0) return at + first;
  double next = static_cast<double>(at) * growth;
  if (next >= 0x1p63) return UINT64_MAX;
  return std::max(at + 1, static_cast<uint64_t>(next));
}

uint64_t calls_so_far(const MethodState& s) noexcept {
  if (s.call_gap == 0) return s.calls;
  return s.calls + s.call_gap - 1 - static_cast<int64_t>(s.call_countdown);
}

uint64_t iterations_so_far(const MethodState& s) noexcept {
  // Positive gaps count down to 0, negative ones up to 0; either way this is the distance gone.
  int64_t gone = int64_t{s.loop_gap} - s.loop_countdown;
  return s.iterations + static_cast<uint64_t>(s.loop_gap < 0 ? -gone : gone);
}

CallEvent CallPlan::take(uint64_t call, const Schedule& s, uint64_t& random) noexcept {
  CallEvent e;
  e.call = call;
  if (call >= next_flush) {
    e.flush = true;
    while (next_flush <= call) {
      next_flush = next_flush_point(next_flush, s.flush_first, s.flush_growth);
    }
  }
  if (call >= next_sample) {
    e.sample = s.sample_calls;
    next_sample = call + s.calls.draw(random);
  }
  return e;
}

CallEvent call_event(MethodState& s, const Schedule& schedule, uint64_t& random) noexcept {
  CallPlan plan{s.next_sample, s.next_flush};
  if (s.call_gap == 0) {  // the first call on this thread
    s.calls = 1;
    plan = {schedule.calls.draw(random), schedule.flush_first};
  } else {
    s.calls = calls_so_far(s);
  }
  CallEvent e = plan.take(s.calls, schedule, random);
  s.next_sample = plan.next_sample;
  s.next_flush = plan.next_flush;
  arm_calls(s, plan.next(schedule));
  return e;
}

LoopEvent loop_event_plain(MethodState& s, const Schedule& schedule, bool can_count,
                           uint64_t& random) noexcept {
  // The check has taken one from the countdown: this very arrival.
  if (s.loop_gap == 0) return first_arrival(s, schedule, can_count, random);
  if (s.loop_gap > 0) {
    return s.loop_countdown > 0 ? LoopEvent{} : part_over(s, schedule, can_count, random);
  }
  // A frame that runs plain while the method is in a burst: it joins, and this arrival moves the
  // burst one on instead of back.
  s.loop_countdown += 2;
  if (!can_count) {  // the copy has gone, and the burst with it
    close_part(s);
    return begin(s, schedule, can_count, random, false);
  }
  if (s.loop_countdown < 0) return {.due = false, .instrumented = true, .flush = false};
  return part_over(s, schedule, can_count, random);
}

LoopEvent loop_event_instrumented(MethodState& s, const Schedule& schedule, bool can_count,
                                  uint64_t& random) noexcept {
  if (s.loop_gap == 0) return first_arrival(s, schedule, can_count, random);
  if (s.loop_gap < 0) return part_over(s, schedule, can_count, random);
  // A sampled call meets its first loop in the middle of a plain stretch: it counts like any
  // arrival, one down, after taking back the check's one up.
  s.loop_countdown -= 2;
  return s.loop_countdown > 0 ? LoopEvent{} : part_over(s, schedule, can_count, random);
}

}  // namespace uptier::sampler
