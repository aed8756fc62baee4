// The words of one loop in a slab, 64 bits each; all 0 is a loop that was never entered.
//
//   0 entries         executions whose entry was seen
//   1 iterations      visits of the header
//   2 timed           executions timed from entry to exit, and kept (loop_pace.h)
//   3 timed_iterations, 4 cycles, 5 exclusive_cycles, 6 7 squares (128 bits), of all timed ones
//   8 state           entries until the next timed one (-1: this one) - (those on the stack << 32)
//   9 pace            see LoopPace::store
//   10..15            words 2..7 as they were when the window began
//   16 17             for the current tile: see LoopTimer::record
//   18..21            remainders of words 2..5, as a number of executions: see LoopTimer::record_part
//   22                cycles that are not in the squares yet: see LoopTimer::record_part
//   23 countdown, 24 executions, 25 cycles    in dual mode only, see loop_timer.h
//
// The first eight words are published.
//
//   Thread: the owner of the slab.
#pragma once

#include <cstdint>

namespace uptier::sampler {

inline constexpr uint32_t kLoopEntries = 0;
inline constexpr uint32_t kLoopIterations = 1;
inline constexpr uint32_t kLoopTimed = 2;
inline constexpr uint32_t kLoopTimedIterations = 3;
inline constexpr uint32_t kLoopCycles = 4;
inline constexpr uint32_t kLoopExclusive = 5;
inline constexpr uint32_t kLoopSquaresLow = 6;
inline constexpr uint32_t kLoopSquaresHigh = 7;
inline constexpr uint32_t kLoopPublicWords = 8;
inline constexpr uint32_t kLoopState = 8;
inline constexpr uint32_t kLoopPace = 9;
inline constexpr uint32_t kLoopWindow = 10;
inline constexpr uint32_t kLoopTileMean = 16;
inline constexpr uint32_t kLoopTileSum = 17;
inline constexpr uint32_t kLoopParts = 18;
inline constexpr uint32_t kLoopPartCycles = 22;
inline constexpr uint32_t kLoopWords = 23;
inline constexpr uint32_t kLoopCountdown = 23;
inline constexpr uint32_t kLoopAllTimed = 24;
inline constexpr uint32_t kLoopAllCycles = 25;
inline constexpr uint32_t kLoopDualWords = 26;

inline constexpr int64_t kOneOpen = int64_t{1} << 32;
constexpr uint64_t loop_open(uint64_t state) {
  return static_cast<uint64_t>(-((static_cast<int64_t>(state) + 1) >> 32));
}

// Begins a window of a loop. The owner calls it at its flushes.
void rearm_loop(uint64_t* words) noexcept;

}  // namespace uptier::sampler
