// Arms the countdown of loops: the common part of slow paths and quick paths (schedule.h has the
// law).
//
// always_inline: the quick paths are compiled without vector registers, and must not share a body
// with code that uses them.
//
//   Thread: the one whose MethodState it is.
#pragma once

#include <cstdint>

#include "sampler/context.h"
#include "sampler/gap.h"

namespace uptier::sampler {

// The longest part of a stretch or burst, in iterations. After that many iterations at the latest,
// a loop checks whether there is better code to continue in, and whether its rate has changed.
inline constexpr int64_t kLongestPart = 1 << 16;

// Arms a stretch or burst of `length` iterations from here, or up to the next flush point if that
// is nearer.
[[gnu::always_inline]] inline void arm_loop(MethodState& s, uint64_t length, bool burst) noexcept {
  uint64_t part = s.next_loop_flush - s.iterations;
  if (part > uint64_t{kLongestPart}) part = kLongestPart;
  if (part > length) part = length;
  s.loop_left = length - part;
  s.loop_gap = static_cast<int32_t>(part);
  if (burst) s.loop_gap = -s.loop_gap;
  s.loop_countdown = s.loop_gap;
  s.behind.length = 0;
}

// Draws the gap after a burst of `burst` iterations that has just been armed. If only a stretch of
// one part follows, `behind.length` is its length, and end_burst() may begin it.
[[gnu::always_inline]] inline void draw_behind(MethodState& s, const GapLaw& law, uint32_t burst,
                                               uint64_t& random) noexcept {
  s.behind.gap = law.draw(random);
  uint64_t length = uint64_t{s.behind.gap - 1} * burst;
  // Below the longest part: otherwise the end of the stretch would look like the end of a part.
  bool plain = s.loop_left == 0 && length + burst < uint64_t{kLongestPart} &&
               s.iterations + burst + length <= s.next_loop_flush;
  s.behind.length = plain ? static_cast<uint32_t>(length) : 0;
}

// Ends a burst whose countdown has reached 0 and begins the stretch of `behind.length`, which is
// not 0. `iterations` stays as it is: the gap from there now covers both. The loop routines do the
// same in code (jit/code/loop_routines.h).
[[gnu::always_inline]] inline void end_burst(MethodState& s) noexcept {
  auto length = static_cast<int32_t>(s.behind.length);
  s.loop_countdown = length;
  s.loop_gap = length - s.loop_gap;
  s.behind = {};
}

}  // namespace uptier::sampler
