// Schedule: decides when a call or a loop iteration is an event, and of which kind.
//
// Calls. One countdown runs to the nearer of two call numbers: the next sampled call and the next
// flush. It is due when it falls below zero, so a countdown armed with g - 1 fires at the g-th
// call, and
//
//     calls so far = calls at the last event + call_gap - 1 - call_countdown
//
// holds at every moment, without any other counter.
//
// Loops. The iterations of all loops of a method form one sequence of slots of `burst` iterations.
// A slot is a burst, which runs instrumented, or part of a stretch, which runs plain. Slots become
// bursts by the same law of gaps by which calls are sampled. So the same share of iterations as of
// calls is counted, 1/interval, and in random mode each slot is a burst or not independently of all
// others. A call that is sampled at its entry counts up to its first loop header and then joins the
// loop's own sequence. Hence block counts, scaled by the interval, are unbiased.
//
// A flush point ends the armed part of a stretch or burst, but not the stretch or burst itself:
// `loop_left` has the rest. So flushes happen at the exact iteration, whatever the gaps are.
//
// The stretch after a burst is drawn when the burst begins (`behind`), so that in the common case
// the end of the burst takes a few instructions: see loop_arm.h. The result is the same as if it
// were drawn at the end, because nothing reads it earlier.
//
// Changes of rate. Each event gets the rate that the method should have. If it differs from the one
// in force, and the moment is fit for a change, the event says `change` and asks for a flush. When
// the flush has been delivered, the slow path calls commit_rate(), which draws again from here on.
// If it is not called, everything stays at the old rate, and the next fit moment tries again. A
// moment is fit if it was fixed without regard to the next samples at the old rate:
// - calls: a flush point, or the call after a sampled one. (At the sampled call itself its counts
//   are still to come, and they belong to the old window.)
// - loops: a flush point, the end of a burst without a drawn stretch after it, the end of a
//   part of 65,536 iterations. Not the end of a stretch: the burst that is due there belongs to the
//   stretch before. No stretch is drawn after a burst if another rate is wanted when the burst
//   begins, or if it is the last burst of a decaying rate's rung.
//
// A change restarts calls and loops alike. Each thread notices it by itself, at the latest when the
// calls have grown by a quarter, or after 2^20 + 1 calls, or after 65,536 iterations and two
// bursts; earlier where samples are dense. Only frames that were in the instrumented copy remain at
// the old rate, up to the method's end or its next loop header.
//
//   Thread: the one whose MethodState it is.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sampler/context.h"
#include "sampler/gap.h"
#include "sampler/rate.h"

namespace uptier::sampler {

// A thread looks at a method's rate again, whatever its countdown is for, when its calls have grown
// by this fraction (1 in kRecheckPart), but after at least kRecheckFirst and at most kRecheckCalls
// calls.
inline constexpr uint64_t kRecheckPart = 4;
inline constexpr uint64_t kRecheckFirst = 1024;
inline constexpr uint64_t kRecheckCalls = uint64_t{1} << 20;

// Returns the largest gap from the event at call `calls` to the next. always_inline, because quick
// paths arm countdowns too, see loop_arm.h.
[[gnu::always_inline]] inline uint64_t longest_call_gap(uint64_t calls) noexcept {
  uint64_t part = calls / kRecheckPart;
  if (part < kRecheckFirst) return kRecheckFirst;
  return part < kRecheckCalls ? part : kRecheckCalls;
}

// Reads a setting that one thread changes while others read it; each setting is used by itself.
template <typename T>
T setting(const T& field) noexcept {
  T value;
  __atomic_load(&field, &value, __ATOMIC_RELAXED);
  return value;
}
template <typename T>
void change_setting(T& field, T value) noexcept {
  __atomic_store(&field, &value, __ATOMIC_RELAXED);
}

struct Schedule {
  Ladder ladder;
  Rate rate;               // for methods without a rate of their own
  GapLaw calls;            // the gap law of `rate`
  uint32_t interval = 16;  // the interval of `rate`
  uint32_t burst = 32;     // the burst of `rate`
  // Settings. Flush points planned with earlier settings stand until they are reached, or until the
  // method's rate is changed, even to the same one (MethodRate::renew). After that, a flush comes
  // no later than it would if the last flush had been at that moment.
  uint64_t flush_first = 32;         // calls
  double flush_growth = 2.0;         // >= 1
  uint64_t loop_flush_first = 4096;  // iterations
  bool sample_calls = true;          // false: everything is counted and flushed, never sampled

  static Schedule make(GapKind kind, uint32_t interval, uint32_t burst);
};

// Returns the flush point after `at`, given the first one: at * growth, rounded down, but later
// than `at`; if growth is 1, at + first.
uint64_t next_flush_point(uint64_t at, uint64_t first, double growth) noexcept;

// The actions due at a call. `call` is its number, from 1.
struct CallEvent {
  uint64_t call = 0;
  bool sample = false;
  bool flush = false;
  bool change = false;  // call commit_rate() once the flush has been delivered
};

// Handles a countdown that fell below zero and arms it again. Without sample_calls, the next event
// is the next flush. `rate` comes from the method's MethodRate, or else from the schedule.
CallEvent call_event(MethodState& s, const Schedule& schedule, Rate rate,
                     uint64_t& random) noexcept;
inline CallEvent call_event(MethodState& s, const Schedule& schedule, uint64_t& random) noexcept {
  return call_event(s, schedule, schedule.rate, random);
}

// Puts `rate` in force. Call it after an event with `change` whose flush was delivered, before
// anything else is done with `e`: its `sample` is decided again.
void commit_rate(MethodState& s, const Schedule& schedule, Rate rate, uint64_t& random,
                 CallEvent& e) noexcept;

// Stores a field that the worker may read concurrently. One writer, so an addition is a load and a
// store.
template <typename T>
[[gnu::always_inline]] inline void store_seen(T& field, std::type_identity_t<T> value) noexcept {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}

// The progress of a thread in a method, as another thread sees it: calls at the last call event,
// iterations at the last loop event. Each number is right by itself, and none decreases, except
// when a change of rate takes back a burst.
struct Progress {
  uint64_t calls = 0;
  uint64_t iterations = 0;
  uint64_t sampled_calls = 0;
  uint64_t bursts = 0;
};
// Thread: any.
inline Progress progress_of(const MethodState& s) noexcept {
  auto load = [](const uint64_t& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); };
  return {load(s.calls), load(s.iterations), load(s.sampled_calls), load(s.bursts)};
}

// Counts a sampled call that goes to the instrumented copy. Returns whether a decaying rate has
// taken its samples at this rung; if so, the caller calls MethodRate::widen.
[[gnu::always_inline]] inline bool count_sample(MethodState& s) noexcept {
  store_seen(s.sampled_calls, s.sampled_calls + 1);
  return s.samples_left != 0 && --s.samples_left == 0;
}

// Says whether a thread has used up its allowance.
[[gnu::always_inline]] inline bool limit_reached(const ThreadContext& c) noexcept {
  uint64_t limit = c.sample_limit.load(std::memory_order_relaxed);
  return limit != 0 && c.samples_taken.load(std::memory_order_relaxed) >= limit;
}

// Counts a sampled call or burst of a thread. Returns whether it exceeds the allowance. It is taken
// all the same, since estimates would be biased otherwise, and the caller calls MethodRate::brake.
[[gnu::always_inline]] inline bool spend_sample(ThreadContext& c) noexcept {
  bool over = limit_reached(c);
  // One writer, so no read-modify-write is needed.
  c.samples_taken.store(c.samples_taken.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  return over;
}

// The numbers of the calls with something due: the rule of call_event without its countdown, for
// countdowns that threads share.
struct CallPlan {
  uint64_t next_sample = 0;
  uint64_t next_flush = 0;

  uint64_t next(const Schedule& s) const noexcept {
    return s.sample_calls && next_sample < next_flush ? next_sample : next_flush;
  }
  // Returns the actions due at `call`, and moves both points past it.
  CallEvent take(uint64_t call, const Schedule& s, uint64_t& random) noexcept;
};

// Returns the number of calls so far.
uint64_t calls_so_far(const MethodState& s) noexcept;
// Returns the number of loop iterations so far.
uint64_t iterations_so_far(const MethodState& s) noexcept;

// The actions due at a loop header.
struct LoopEvent {
  bool due = false;           // a burst begins or would begin here
  bool instrumented = false;  // go on in the instrumented copy
  bool flush = false;
  bool change = false;  // call commit_rate() once the flush has been delivered
  bool widen = false;   // a decaying rate has taken its samples at this rung: call
                        // MethodRate::widen
};

// Call it when a plain copy's check found the countdown, after its decrement, at or below zero.
// `can_count`: there is an instrumented copy to go to and a slab to count in. Without them, a burst
// that is due is skipped, and a burst that has begun ends.
LoopEvent loop_event_plain(MethodState& s, const Schedule& schedule, Rate rate, bool can_count,
                           uint64_t& random) noexcept;
// Call it when an instrumented copy's check found the countdown, after its increment, at or above
// zero.
LoopEvent loop_event_instrumented(MethodState& s, const Schedule& schedule, Rate rate,
                                  bool can_count, uint64_t& random) noexcept;
// The same as commit_rate() above; `due`, `instrumented` and `widen` are decided again.
void commit_rate(MethodState& s, const Schedule& schedule, Rate rate, bool can_count,
                 uint64_t& random, LoopEvent& e) noexcept;

inline LoopEvent loop_event_plain(MethodState& s, const Schedule& schedule, bool can_count,
                                  uint64_t& random) noexcept {
  return loop_event_plain(s, schedule, schedule.rate, can_count, random);
}
inline LoopEvent loop_event_instrumented(MethodState& s, const Schedule& schedule, bool can_count,
                                         uint64_t& random) noexcept {
  return loop_event_instrumented(s, schedule, schedule.rate, can_count, random);
}

}  // namespace uptier::sampler
