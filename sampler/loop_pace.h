// LoopPace: which executions of a loop are timed, and kept.
//
// Entries are taken in tiles, and 2^level tiles are a stratum. Of each stratum one tile, drawn at
// random, is timed and recorded; so the records of a window (what lies between two flushes) are
// spread over it evenly, and nothing can alias. A number of entries before a tile are timed but not
// recorded: the first times after a pause hold the mispredicted branches and cold lines of the
// probes themselves, much of a short execution and nothing of a long one. At level 0 every entry is
// recorded, and none is for warming up. A tile that must wait (put_off) begins anew with that.
//
// The level follows from how much there is: when a window has `records` of them, and either they
// tell its sum within 1 in 90 (tells_enough) or there are kMostTimes as many, half of the sums that
// came on in it are dropped and the level rises, so that all that is left is of one density; each
// flush lowers it again by one. Hence a window of executions that are alike has at most `records`,
// one of others at most kMostTimes as many; if it is as long as those before it, at least a quarter
// of that; a program's life has a logarithmic number of both.
// What an execution was that was drawn at a lower level is that part of a record that the level says:
// 2^(the level it was drawn at - the present one).
//
// Source: stratified sampling with one element per stratum, Cochran 1977, 5A.6 and 8.5.
//
//   Thread: the owner of the slab. Compiled without vector instructions where compiled code is on
//   the stack: always inline.
#pragma once

#include <cassert>
#include <cstdint>

#include "sampler/gap.h"
#include "sampler/loop_words.h"

namespace uptier::sampler {

struct LoopPace {
  struct Tile {
    uint32_t run;   // entries; never fewer than before
    uint32_t warm;  // before it; run + warm < 256
  };
  static constexpr uint32_t kMostTimes = 8;  // of `records`, where executions differ much
  static constexpr uint32_t kMaxLevel = 23;  // two strata of the longest tiles fit the state word

  uint32_t level = 0;
  uint32_t left = 0;      // entries to be timed before the next pause; those of a tile are recorded
  uint32_t drawn_at = 0;  // the level at which these were drawn
  uint32_t tiles = 0;     // of the stratum, after the one that is drawn
  uint32_t missed = 0;    // times in a row that an entry that was drawn was put off; at most 3
  bool shares = false;    // timed executions of other sites have been seen in those of this one

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

  // Takes an entry that was drawn. Returns the entries that pass before the next.
  [[gnu::always_inline]] uint32_t take(Tile tile, uint64_t& random, bool& recorded) {
    assert(tile.run != 0 && tile.run + tile.warm < 256 && level <= kMaxLevel);
    if (left == 0) left = tile.run;  // the first of all
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

// Puts off an entry that was drawn: the tile begins again later, after its warming up. Returns the
// entries that pass before the next is drawn; twice as many on average when that is in vain again.
[[gnu::always_inline]] inline uint32_t put_off(LoopPace& pace, LoopPace::Tile tile,
                                               uint64_t& random) {
  pace.left = tile.run + tile.warm;
  assert(pace.missed <= 3);
  uint32_t mean = 64u << pace.missed;
  if (pace.missed != 3) ++pace.missed;
  return mean / 2 + static_cast<uint32_t>(next_random(random) >> 32) % mean;
}

// Whether the records of the window, which came in tiles, give its sum within a standard error of
// 1 in 90: then those of all windows, which get twice as long, give that of all within 1 in 160.
[[gnu::always_inline]] inline bool tells_enough(const uint64_t* words) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t* begin = words + kLoopWindow;
  auto wide = [](const uint64_t* w) { return Wide{w[1]} << 64 | w[0]; };
  uint64_t timed = words[kLoopTimed] - begin[0];
  Wide squares = wide(words + kLoopSquaresLow) - wide(begin + 4);
  Wide sum = words[kLoopCycles] - begin[2], square = sum * sum;
  return squares * timed <= square + (square >> 13) * timed;
}

// Drops half of the window's sums, and raises the level.
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

// The same when there are `records` in the window, and enough or kMostTimes as many.
[[gnu::always_inline]] inline void widen_loop(uint64_t* words, uint32_t records) {
  uint64_t timed = words[kLoopTimed] - words[kLoopWindow];
  if (timed < 2 || timed < records) return;
  if (timed < uint64_t{LoopPace::kMostTimes} * records && !tells_enough(words)) return;
  if (LoopPace::of(words).level != LoopPace::kMaxLevel) halve_loop(words);
}

}  // namespace uptier::sampler
