#include "sampler/site_counts.h"

#include <algorithm>
#include <cassert>

namespace uptier::sampler {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

int64_t unflip(uint64_t rank) { return static_cast<int64_t>(flip_sign(rank)); }

WideSum wide(Uint128 v) { return {static_cast<uint64_t>(v), static_cast<uint64_t>(v >> 64)}; }

}  // namespace

ValueCounts read_table(std::span<const uint64_t> words, const TableShape& shape) {
  assert(words.size() >= shape.words());
  ValueCounts c;
  Uint128 sum = 0;
  c.count = c.other = words[kTableOther];
  if (shape.sums && c.other != 0) {
    sum = Uint128{words[kTableSumHigh]} << 64 | words[kTableSumLow];
    c.greatest = unflip(words[kTableGreatest]);
    c.least = unflip(~words[kTableLeast]);
  }
  for (uint32_t i = 0; i < shape.top; ++i) {
    TableEntry e{words[shape.entries_at() + 2 * i], words[shape.entries_at() + 2 * i + 1]};
    if (e.count == 0) continue;
    auto value = static_cast<int64_t>(e.key);
    sum += static_cast<Uint128>(Int128{value} * static_cast<Int128>(e.count));
    c.count += e.count;
    c.least = std::min(c.least, value);
    c.greatest = std::max(c.greatest, value);
    c.entries.push_back(e);
  }
  c.sum = wide(sum);
  std::sort(c.entries.begin(), c.entries.end(), [](const TableEntry& a, const TableEntry& b) {
    return a.count != b.count ? a.count > b.count : a.key < b.key;
  });
  return c;
}

ValueCounts read_range(std::span<const uint64_t> words) {
  ValueCounts c;
  assert(words.size() > kRangeCount);
  c.count = words[kRangeCount];
  if (c.count == 0) return c;
  Uint128 ranks = Uint128{words[kRangeSumHigh]} << 64 | words[kRangeSumLow];
  c.sum = wide(ranks - (Uint128{c.count} << 63));
  c.greatest = unflip(words[kRangeGreatest]);
  c.least = unflip(~words[kRangeLeast]);
  return c;
}

}  // namespace uptier::sampler
