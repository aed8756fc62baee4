// LoopPace: decides which executions of a loop are timed, and which times are recorded.
//
// Entries are grouped into tiles, and 2^level tiles form a stratum. One tile of each stratum, drawn
// at random, is timed and recorded. So the records of a window (between two flushes) are spread
// over it evenly, and nothing can alias. Some entries before a tile are timed but not recorded, to
// warm up: the first times after a pause include the mispredicted branches and cold lines of the
// probes themselves, which are much of a short execution and nothing of a long one. At level 0
// every entry is recorded, and none is for warming up. A tile that must wait (put_off) starts again
// with its warming up.
//
// The level follows from the number of records. If a window has `records` of them, and they either
// give its sum within 1 in 90 (tells_enough) or are kMostTimes as many, half of the sums added in
// it are dropped and the level rises, so that all remaining records have one density. Each flush
// lowers the level again by one. Hence a window of executions that are alike has at most `records`,
// any other at most kMostTimes as many, and a window as long as those before it has at least a
// quarter of that. The life of a program has a logarithmic number of windows and of records.
//
// An execution drawn at a lower level counts as the fraction 2^(its level - the current level) of a
// record.
//
// Source: stratified sampling with one element per stratum, Cochran 1977, 5A.6 and 8.5.
//
//   Thread: the owner of the slab. Always inline, so that it is compiled without vector instructions
//   where compiled code is on the stack.
#pragma once

#include <cassert>
#include <cstdint>

#include "sampler/gap.h"
#include "sampler/loop_words.h"

namespace uptier::sampler {

struct LoopPace {
  struct Tile {
    uint32_t run;   // entries; never decreases
    uint32_t warm;  // entries before it, for warming up; run + warm < 256
  };
  static constexpr uint32_t kMostTimes = 8;  // multiples of `records`, where executions differ much
  static constexpr uint32_t kMaxLevel = 23;  // so that two strata of the longest tiles fit the
                                             // state word

  uint32_t level = 0;
  uint32_t left = 0;      // entries still to be timed before the next pause; those of a tile are
                          // recorded
  uint32_t drawn_at = 0;  // the level at which the tile was drawn
  uint32_t tiles = 0;     // of the stratum, after the drawn one
  uint32_t missed = 0;    // times in a row that a drawn entry was put off; at most 3
  bool shares = false;    // executions of other sites were timed inside those of this one

  [[gnu::always_inline]] static LoopPace of(const uint64_t* words) {
    uint64_t w = words[kLoopPace];
    auto byte = [w](int i) { return static_cast<uint32_t>(w >> 8 * i & 0xff); };
    return {byte(0), byte(1), byte(2), static_cast<uint32_t>(w >> 32), byte(3) & 7, byte(3) >= 8};
  }
  [[gnu::always_inline]] void store(uint64_t* words) const {
    uint64_t rest = missed | (shares ? 8 : 0);
    words[kLoopPace] =
        uint64_t{tiles} << 32 | rest << 24 | uint64_t{drawn_at} << 16 | uint64_t{left} << 8 | level;
  }

  // Takes an entry that was drawn. Returns the number of entries to skip before the next one.
  [[gnu::always_inline]] uint32_t take(Tile tile, uint64_t& random, bool& recorded) {
    assert(tile.run != 0 && tile.run + tile.warm < 256 && level <= kMaxLevel);
    if (left == 0) left = tile.run;  // the very first entry
    recorded = left <= tile.run;
    missed = 0;
    if (--left != 0) return 0;
    uint32_t size = uint32_t{1} << level;
    auto at = static_cast<uint32_t>(level == 0 ? 0 : next_random(random) & (size - 1));
    uint32_t pause = (tiles + at) * tile.run;
    uint32_t warm = pause < tile.warm ? pause : tile.warm;
    assert(at < size);
    tiles = size - 1 - at;
    left = tile.run + warm;
    drawn_at = level;
    return pause - warm;
  }
};

// Puts off an entry that was drawn: the tile starts again later, with its warming up. Returns the
// number of entries to skip before the next draw; its mean doubles each time in a row, up to eight
// times.
[[gnu::always_inline]] inline uint32_t put_off(LoopPace& pace, LoopPace::Tile tile,
                                               uint64_t& random) {
  pace.left = tile.run + tile.warm;
  assert(pace.missed <= 3);
  uint32_t mean = 64u << pace.missed;
  if (pace.missed != 3) ++pace.missed;
  return mean / 2 + static_cast<uint32_t>(next_random(random) >> 32) % mean;
}

// Says whether the records of the window, which came in tiles, give its sum within a standard error
// of 1 in 90. Since windows get twice as long each time, the windows together then give the total
// within 1 in 160.
[[gnu::always_inline]] inline bool tells_enough(const uint64_t* words) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t* begin = words + kLoopWindow;
  auto wide = [](const uint64_t* w) { return Wide{w[1]} << 64 | w[0]; };
  uint64_t timed = words[kLoopTimed] - begin[0];
  Wide squares = wide(words + kLoopSquaresLow) - wide(begin + 4);
  Wide sum = words[kLoopCycles] - begin[2], square = sum * sum;
  return squares * timed <= square + (square >> 13) * timed;
}

// Drops half of the window's sums and raises the level.
[[gnu::always_inline]] inline void halve_loop(uint64_t* words) {
  uint64_t* begin = words + kLoopWindow;
  uint64_t timed = words[kLoopTimed] - begin[0], kept = timed / 2;
  for (uint32_t i = 0; timed != 0 && i < kLoopSquaresLow - kLoopTimed; ++i) {
    uint64_t sum = words[kLoopTimed + i] - begin[i];
    words[kLoopTimed + i] = begin[i] + sum / timed * kept + sum % timed * kept / timed;
  }
  __extension__ using Wide = __int128;
  __extension__ using Bits = unsigned __int128;
  auto wide = [](const uint64_t* w) { return static_cast<Wide>(Bits{w[1]} << 64 | w[0]); };
  uint64_t* squares = words + kLoopSquaresLow;
  Wide from = wide(begin + 4), sum = from + (wide(squares) - from) / 2;
  squares[0] = static_cast<uint64_t>(sum);
  squares[1] = static_cast<uint64_t>(sum >> 64);
  words[kLoopPartCycles] /= 2;
  LoopPace pace = LoopPace::of(words);
  ++pace.level;
  pace.store(words);
}

// Does that if the window has at least `records`, and they are enough or kMostTimes as many.
[[gnu::always_inline]] inline void widen_loop(uint64_t* words, uint32_t records) {
  uint64_t timed = words[kLoopTimed] - words[kLoopWindow];
  if (timed < 2 || timed < records) return;
  if (timed < uint64_t{LoopPace::kMostTimes} * records && !tells_enough(words)) return;
  if (LoopPace::of(words).level != LoopPace::kMaxLevel) halve_loop(words);
}

}  // namespace uptier::sampler
