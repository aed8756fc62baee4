// Site counts: decodes the words of a site, for publishing.
//
// Pure; reads a copy of a slab, taken by its owner. The layouts are defined in site_tables.h,
// loop_words.h and the structs below.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampler/site_tables.h"

namespace uptier::sampler {

// A sum in two's complement.
struct WideSum {
  uint64_t low = 0;
  uint64_t high = 0;

  friend bool operator==(const WideSum&, const WideSum&) = default;
};

// Without events, `least` and `greatest` are swapped ends of the range, which is neutral when
// counts are merged.
struct ValueCounts {
  uint64_t count = 0;
  WideSum sum;
  int64_t least = INT64_MAX;
  int64_t greatest = INT64_MIN;
  uint64_t other = 0;
  std::vector<TableEntry> entries;  // most frequent first, then by key; none with count 0

  friend bool operator==(const ValueCounts&, const ValueCounts&) = default;
};

// Returns the contents of a table; for a target table, the sum and the extremes are meaningless.
ValueCounts read_table(std::span<const uint64_t> words, const TableShape& shape);

// The words of a range site, which code updates by itself:
//   [count, sum (128 bits, unsigned), greatest, complement of the least] of flip_sign(value)
inline constexpr uint32_t kRangeCount = 0;
inline constexpr uint32_t kRangeSumLow = 1;
inline constexpr uint32_t kRangeSumHigh = 2;
inline constexpr uint32_t kRangeGreatest = 3;
inline constexpr uint32_t kRangeLeast = 4;
inline constexpr uint32_t kRangeWords = 5;

ValueCounts read_range(std::span<const uint64_t> words);

}  // namespace uptier::sampler
