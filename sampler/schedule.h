// Schedule: when a call or a loop iteration is an event, and which.
//
// Calls. One countdown runs to the nearer of two call numbers: the next sampled call and the next
// flush. It is due when it falls below zero, so a countdown armed with g - 1 fires at the g-th
// call, and
//
//     calls so far = calls at the last event + call_gap - 1 - call_countdown
//
// holds at every moment without any other counter.
//
// Loops. The iterations of all loops of a method form one sequence of slots of `burst` iterations.
// A slot is a burst, which runs instrumented, or part of a stretch, which runs plain; which slots
// are bursts follows the same law of gaps as which calls are sampled. So the same share of
// iterations as of calls is counted, 1/interval, and in random mode every slot is a burst or not
// independent of all others. A call that is sampled at its entry counts up to its first loop header
// and then joins the loop's own sequence. Hence block counts, scaled by `interval`, are unbiased.
//
// A flush point ends the armed part of a stretch or burst but not the stretch or burst itself:
// `loop_left` says what follows, so flushes come to the iteration, whatever the gaps are.
//
//   Thread: the one whose MethodState it is.
#pragma once

#include <cstdint>

#include "sampler/context.h"
#include "sampler/gap.h"

namespace uptier::sampler {

struct Schedule {
  GapLaw calls;  // and of the slots of loops
  uint32_t interval = 16;
  uint32_t burst = 32;
  uint64_t flush_first = 32;         // calls
  double flush_growth = 2.0;         // >= 1
  uint64_t loop_flush_first = 4096;  // iterations
  bool sample_calls = true;          // false: all is counted and flushed, never sampled

  static Schedule make(GapKind kind, uint32_t interval, uint32_t burst);
};

// Returns the flush point after `at`, given the first one: at * growth, rounded down, but later
// than `at`; with growth 1, at + first.
uint64_t next_flush_point(uint64_t at, uint64_t first, double growth) noexcept;

// What is due at a call. `call` is its number, from 1.
struct CallEvent {
  uint64_t call = 0;
  bool sample = false;
  bool flush = false;
};

// Handles a countdown that fell below zero and arms it again. Without sample_calls the next event
// is the next flush.
CallEvent call_event(MethodState& s, const Schedule& schedule, uint64_t& random) noexcept;

// The numbers of the calls at which something is due; call_event's rule without its countdown, for
// countdowns that threads share.
struct CallPlan {
  uint64_t next_sample = 0;
  uint64_t next_flush = 0;

  uint64_t next(const Schedule& s) const noexcept {
    return s.sample_calls && next_sample < next_flush ? next_sample : next_flush;
  }
  // Says what is due at `call` and moves both points past it.
  CallEvent take(uint64_t call, const Schedule& s, uint64_t& random) noexcept;
};

// Returns the number of calls so far.
uint64_t calls_so_far(const MethodState& s) noexcept;
// Returns the number of loop iterations so far.
uint64_t iterations_so_far(const MethodState& s) noexcept;

// What is due at a loop header.
struct LoopEvent {
  bool due = false;           // a burst begins or would begin here
  bool instrumented = false;  // go on in the instrumented copy
  bool flush = false;
};

// A plain copy's check found the countdown, after its decrement, at or below zero. `can_count`:
// there is an instrumented copy to go to and a slab to count in; without, a burst that is due is
// skipped, and one that is under way ends.
LoopEvent loop_event_plain(MethodState& s, const Schedule& schedule, bool can_count,
                           uint64_t& random) noexcept;
// An instrumented copy's check found the countdown, after its increment, at or above zero.
LoopEvent loop_event_instrumented(MethodState& s, const Schedule& schedule, bool can_count,
                                  uint64_t& random) noexcept;

}  // namespace uptier::sampler
