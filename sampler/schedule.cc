#include "sampler/schedule.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "sampler/loop_arm.h"

namespace uptier::sampler {
namespace {

void arm_calls(MethodState& s, uint64_t next) {
  if (s.flush_is_next != 0) next = s.calls + 1;
  assert(next > s.calls);
  auto gap = static_cast<uint32_t>(std::min(next - s.calls, longest_call_gap(s.calls)));
  store_seen(s.call_gap, gap);
  store_seen(s.call_countdown, static_cast<int32_t>(gap) - 1);
  assert(calls_so_far(s) == s.calls);
}

bool samples(Rate rate, const Schedule& schedule) {
  return schedule.sample_calls && rate.samples();
}

void put_in_force(MethodState& s, Rate rate) {
  s.rate = rate.word;
  s.samples_left = rate.decays() ? kSamplesPerRung : 0;
  s.behind = {};  // it was drawn by the law of the old rate
}

// The length of a stretch or burst without an end; its parts still end.
constexpr uint64_t kLongest = 0x7ffffff0;

// Says whether bursts at this rate follow each other without a stretch in between. Such a burst has
// no end, so it is counted by its length, as a number of bursts of the usual length.
bool is_endless(Rate rate) { return rate.state() == RateState::kEvery && !rate.decays(); }

// Counts the completed iterations of the armed part of a stretch or burst, including this arrival.
// The rate at which it was armed is still in force.
void close_part(MethodState& s) {
  uint64_t now = iterations_so_far(s);
  assert(now >= s.iterations);
  Rate rate{s.rate};
  if (s.loop_gap < 0 && is_endless(rate)) {
    store_seen(s.bursts, s.bursts + (now - s.iterations) / rate.burst());
  }
  store_seen(s.iterations, now);
  s.loop_gap = 0;
  s.loop_countdown = 0;
}

uint64_t next_call_flush(uint64_t at, const Schedule& s) {
  return next_flush_point(at, setting(s.flush_first), setting(s.flush_growth));
}
uint64_t next_loop_flush(uint64_t at, const Schedule& s) {
  return next_flush_point(at, setting(s.loop_flush_first), setting(s.flush_growth));
}

bool loop_flush_due(MethodState& s, const Schedule& schedule) {
  if (s.next_loop_flush == 0) s.next_loop_flush = setting(schedule.loop_flush_first);
  if (s.iterations < s.next_loop_flush) return false;
  while (s.next_loop_flush <= s.iterations && s.next_loop_flush != UINT64_MAX) {
    s.next_loop_flush = next_loop_flush(s.next_loop_flush, schedule);
  }
  return true;
}

// Moves planned flush points forward if the current schedule has earlier ones. Does nothing if the
// schedule has not changed: a planned point is then the next one after a past point.
void plan_flushes_anew(MethodState& s, const Schedule& schedule) {
  uint64_t first = setting(schedule.flush_first), loop_first = setting(schedule.loop_flush_first);
  s.next_flush = std::min(s.next_flush, std::max(first, next_call_flush(s.calls, schedule)));
  if (s.next_loop_flush == 0) return;
  s.next_loop_flush =
      std::min(s.next_loop_flush, std::max(loop_first, next_loop_flush(s.iterations, schedule)));
}

// A method whose first samples come late, because it was found or its copy was made late, flushes
// them as early as those of a new method. Otherwise they would wait until its calls have doubled.
void plan_first_flushes(MethodState& s, const Schedule& schedule, Rate rate, uint64_t calls) {
  if (s.sampled_calls != 0 || s.bursts != 0 || !samples(rate, schedule)) return;
  s.next_flush = std::min(s.next_flush, calls + setting(schedule.flush_first));
  if (s.next_loop_flush == 0) return;
  s.next_loop_flush =
      std::min(s.next_loop_flush, s.iterations + setting(schedule.loop_flush_first));
}

// Returns the gap from here to the next burst: the one drawn when the last burst began, if there is
// one.
uint64_t next_loop_gap(MethodState& s, const GapLaw& law, uint64_t& random) {
  uint64_t drawn = s.behind.gap;
  s.behind = {};
  return drawn != 0 ? drawn : law.draw(random);
}

// Handles an arrival at a loop header where a stretch or burst is over. `burst_due`: it was a
// stretch. `changed`: the wanted rate differs from the one in force, so the stretch after a burst
// is not drawn.
LoopEvent begin(MethodState& s, const Schedule& schedule, bool can_count, uint64_t& random,
                bool burst_due, bool changed) {
  LoopEvent e;
  Rate rate{s.rate};
  e.flush = loop_flush_due(s, schedule);
  if (!samples(rate, schedule)) {
    arm_loop(s, kLongest, false);
    return e;
  }
  const GapLaw& law = schedule.ladder.law(rate.rung());
  assert(rate.burst() != 0);
  uint64_t plain_slots = burst_due ? 0 : next_loop_gap(s, law, random) - 1;
  s.behind = {};
  e.due = plain_slots == 0;
  e.instrumented = e.due && can_count;
  if (e.instrumented) {
    bool endless = is_endless(rate);
    if (!endless) store_seen(s.bursts, s.bursts + 1);
    e.widen = s.samples_left != 0 && --s.samples_left == 0;
    arm_loop(s, endless ? kLongest : rate.burst(), true);
    if (!endless && !changed && !e.widen) draw_behind(s, law, rate.burst(), random);
    return e;
  }
  // A burst that has to be skipped takes up its slot, and the next stretch follows at once.
  if (e.due) plain_slots = law.draw(random);
  arm_loop(s, plain_slots * rate.burst(), false);
  return e;
}

// Handles an arrival at which the armed part is complete.
LoopEvent part_over(MethodState& s, const Schedule& schedule, Rate rate, bool can_count,
                    uint64_t& random) {
  assert(s.loop_gap != 0);  // a part was armed
  bool burst = s.loop_gap < 0;
  bool promised = s.behind.gap != 0;
  bool fit = std::abs(int64_t{s.loop_gap}) == kLongestPart && s.loop_left != 0;
  close_part(s);
  LoopEvent e;
  bool changed = rate.word != s.rate;
  if (s.loop_left == 0 || (burst && !can_count)) {
    fit |= burst && !promised;
    e = begin(s, schedule, can_count, random, !burst, changed);
    fit |= e.due && !e.instrumented;  // a burst that cannot run does not bind later decisions
  } else {
    e.flush = loop_flush_due(s, schedule);
    e.instrumented = burst;
    arm_loop(s, s.loop_left, burst);
  }
  e.change = changed && (fit || e.flush);
  e.flush |= e.change;
  return e;
}

// Handles the first arrival of all, or the first since a change of rate at a call. The check's own
// step is taken back.
LoopEvent first_arrival(MethodState& s, const Schedule& schedule, Rate rate, bool can_count,
                        uint64_t& random) {
  if (s.rate == 0) put_in_force(s, rate);
  s.loop_countdown = 0;
  store_seen(s.iterations, s.iterations + 1);
  return begin(s, schedule, can_count, random, false, rate.word != s.rate);
}

// Handles the actions of a plan that are due at `call`. `law` draws the next sampled call.
CallEvent take_due(CallPlan& plan, uint64_t call, const Schedule& s, const GapLaw& law,
                   bool sampled, uint64_t& random) {
  assert(call != 0);
  CallEvent e;
  e.call = call;
  if (call >= plan.next_flush) {
    e.flush = true;
    while (plan.next_flush <= call) { plan.next_flush = next_call_flush(plan.next_flush, s); }
  }
  if (call >= plan.next_sample) {
    e.sample = sampled;
    plan.next_sample = call + law.draw(random);
  }
  assert(call < plan.next_sample && call < plan.next_flush);  // both lie ahead
  return e;
}

// Arms the countdown for the plan in `s`.
void arm_plan(MethodState& s, bool sampled) {
  arm_calls(s, sampled ? std::min(s.next_sample, s.next_flush) : s.next_flush);
}

}  // namespace

Schedule Schedule::make(GapKind kind, uint32_t interval, uint32_t burst) {
  assert(interval != 0 && burst != 0);
  Schedule s;
  s.ladder = Ladder(kind);
  s.interval = interval;
  s.burst = burst;
  uint32_t rung = s.ladder.add(interval);
  s.rate = Rate::sampled(rung, burst).with_epoch(1);
  s.calls = s.ladder.law(rung);
  return s;
}

uint64_t next_flush_point(uint64_t at, uint64_t first, double growth) noexcept {
  assert(first != 0);
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
  // Positive gaps count down to 0, negative ones up to 0; in both cases this is the distance
  // covered.
  int64_t gone = int64_t{s.loop_gap} - s.loop_countdown;
  if (s.loop_gap < 0) gone = -gone;
  // If an interpreter writes its countdown, which it should not, the distance may be negative.
  return s.iterations + static_cast<uint64_t>(std::max<int64_t>(gone, 0));
}

CallEvent CallPlan::take(uint64_t call, const Schedule& s, uint64_t& random) noexcept {
  return take_due(*this, call, s, s.calls, s.sample_calls, random);
}

CallEvent call_event(MethodState& s, const Schedule& schedule, Rate rate,
                     uint64_t& random) noexcept {
  if (s.rate == 0) put_in_force(s, rate);
  const GapLaw& law = schedule.ladder.law(Rate{s.rate}.rung());
  CallPlan plan{s.next_sample, s.next_flush};
  bool fit = s.flush_is_next != 0;
  if (s.call_gap == 0) {  // the first call on this thread
    store_seen(s.calls, 1);
    plan = {law.draw(random), setting(schedule.flush_first)};
  } else {
    store_seen(s.calls, calls_so_far(s));
  }
  bool sampled = samples(Rate{s.rate}, schedule);
  CallEvent e = take_due(plan, s.calls, schedule, law, sampled, random);
  s.next_sample = plan.next_sample;
  s.next_flush = plan.next_flush;
  // If nothing else happens at this call, it is as good a moment as a flush point.
  fit |= e.flush || !e.sample;
  e.change = rate.word != s.rate && fit;
  e.flush |= e.change;
  s.flush_is_next = rate.word != s.rate && !fit ? 1 : 0;
  arm_plan(s, sampled);
  return e;
}

void commit_rate(MethodState& s, const Schedule& schedule, Rate rate, uint64_t& random,
                 CallEvent& e) noexcept {
  // Loops start again at the next arrival.
  close_part(s);
  put_in_force(s, rate);
  s.loop_left = 0;
  const GapLaw& law = schedule.ladder.law(rate.rung());
  bool sampled = samples(rate, schedule);
  plan_flushes_anew(s, schedule);
  plan_first_flushes(s, schedule, rate, s.calls);
  s.next_sample = s.calls - 1 + law.draw(random);
  assert(s.next_sample >= s.calls);
  e.sample = sampled && s.next_sample == s.calls;
  if (s.next_sample == s.calls) s.next_sample += law.draw(random);
  s.flush_is_next = 0;
  arm_plan(s, sampled);
}

LoopEvent loop_event_plain(MethodState& s, const Schedule& schedule, Rate rate, bool can_count,
                           uint64_t& random) noexcept {
  // The check has already subtracted this arrival from the countdown.
  if (s.loop_gap == 0) return first_arrival(s, schedule, rate, can_count, random);
  if (s.loop_gap > 0) {
    return s.loop_countdown > 0 ? LoopEvent{} : part_over(s, schedule, rate, can_count, random);
  }
  // A frame that runs plain while the method is in a burst joins the burst. This arrival moves the
  // burst one forward instead of back.
  s.loop_countdown += 2;
  if (!can_count) {  // the copy is gone, and so the burst ends
    close_part(s);
    return begin(s, schedule, can_count, random, false, rate.word != s.rate);
  }
  if (s.loop_countdown < 0) return {.instrumented = true};
  return part_over(s, schedule, rate, can_count, random);
}

LoopEvent loop_event_instrumented(MethodState& s, const Schedule& schedule, Rate rate,
                                  bool can_count, uint64_t& random) noexcept {
  if (s.loop_gap == 0) return first_arrival(s, schedule, rate, can_count, random);
  if (s.loop_gap < 0) return part_over(s, schedule, rate, can_count, random);
  // A sampled call reaches its first loop in the middle of a plain stretch. It counts like any
  // arrival, one down, after taking back the check's step up.
  s.loop_countdown -= 2;
  return s.loop_countdown > 0 ? LoopEvent{} : part_over(s, schedule, rate, can_count, random);
}

void commit_rate(MethodState& s, const Schedule& schedule, Rate rate, bool can_count,
                 uint64_t& random, LoopEvent& e) noexcept {
  bool counted = e.due && e.instrumented && !is_endless(Rate{s.rate});
  assert(!counted || s.bursts != 0);
  if (counted) store_seen(s.bursts, s.bursts - 1);  // it began at the old rate, just now
  put_in_force(s, rate);
  close_part(s);  // nothing of it has run
  plan_first_flushes(s, schedule, rate, s.call_gap == 0 ? 0 : calls_so_far(s));
  LoopEvent anew = begin(s, schedule, can_count, random, false, false);
  e.due = anew.due;
  e.instrumented = anew.instrumented;
  e.widen = anew.widen;
  // Sampled calls are drawn again from the next one on.
  if (s.call_gap == 0) return;  // there was no call yet
  store_seen(s.calls, calls_so_far(s));
  plan_flushes_anew(s, schedule);
  s.next_sample = s.calls + schedule.ladder.law(rate.rung()).draw(random);
  s.flush_is_next = 0;
  arm_plan(s, samples(rate, schedule));
}

}  // namespace uptier::sampler
