// Site tables: how often each value was seen at one site, on words of a slab.
//
//   word 0       other: events whose value has no entry (any more)
//   word 1       of the window: slow events | of them, misses << 32
//   word 2       all events when the window began
//   words 3..6   value tables only: the sum of what is in `other` (128 bits, two's complement), the
//                greatest and, complemented, the least of it, both with the sign bit flipped
//   then         top entries {value, count}; those with count 0 are free and behind the others
//   then         32 bits an entry: its events of late, and << 20 the looks back that these are of,
//                both in units of 1/64
//
// Laws:
//   - other + the counts = the events: every event adds 1 to exactly one of them, and whatever
//     moves a count moves it whole
//   - a count never exceeds the events of its value: what is not known to be its own is in other
//   - all words 0 is the empty table
//   - while an entry changes its place, word 1 has kTableBusy in it; whoever copies a table of
//     another thread's (copy_table) sees by that, and by words 1 and 2, whether it held still
//
// Code counts a hit of the first entry itself; everything else comes here ("slow events"). After
// kTableWindow of them the table looks back at all events since the last look:
//   - over half were misses: the quarter of the entries that is seen least goes to other, so that new
//     ones get in; a recent-weighted table also moves half of each count that stays (odd: the larger half), so
//     that what was seen long ago does not hold its entry forever (and see age_table)
//   - else, over half were slow: the entry hit last becomes the first; and if all entries are
//     taken, that which is seen least goes to other when there were eight times as many misses
//
// How often an entry is seen is its events of late over the looks back that these are of, and four
// more, so that a new entry has to show itself; of both a 32nd is forgotten at each look back. Its
// count would not do: that tells how long the entry has been there, and what happened to come first
// would keep out what is more frequent for ever.
//
// An entry whose count overtakes that of the first one changes places with it at once.
//
// Compiled without vector instructions (sampler/CMakeLists.txt): code calls it with values live in
// vector registers.
//
//   Thread: the owner of the slab.
#pragma once

#include <cstdint>

#include "sampler/probe_call.h"

namespace uptier::sampler {

struct TableEntry {
  uint64_t key = 0;
  uint64_t count = 0;

  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

inline constexpr uint32_t kTableWindow = 64;  // slow events; twice an ordinary table's size
// Set in word 1 while entries are moved; never in a copy that the owner has made.
inline constexpr uint64_t kTableBusy = uint64_t{1} << 31;

// Positions of words.
inline constexpr uint32_t kTableOther = 0;
inline constexpr uint32_t kTableSlow = 1;
inline constexpr uint32_t kTableMark = 2;
inline constexpr uint32_t kTableSumLow = 3;
inline constexpr uint32_t kTableSumHigh = 4;
inline constexpr uint32_t kTableGreatest = 5;
inline constexpr uint32_t kTableLeast = 6;

struct TableShape {
  uint32_t top = 16;    // entries, at least 1
  bool sums = false;    // a value table
  bool recent = false;  // recent-weighted

  uint32_t entries_at() const { return sums ? 7 : 3; }
  uint32_t marks_at() const { return entries_at() + 2 * top; }
  uint32_t words() const { return marks_at() + (top + 1) / 2; }
  // One word for ProbeCall::extra, and back.
  uint32_t packed() const { return top | (recent ? 1u << 31 : 0); }
  static TableShape unpack(uint64_t extra, bool sums) {
    auto bits = static_cast<uint32_t>(extra);
    return {bits & 0x7fffffff, sums, bits >> 31 != 0};
  }
};

// Maps signed order to unsigned order, so that 0 is neutral for both extremes.
constexpr uint64_t flip_sign(uint64_t v) { return v ^ (uint64_t{1} << 63); }

// Counts one event. Any event, also a hit of the first entry. Cost: linear in top; a look back is
// quadratic.
void count_in_table(uint64_t* words, const TableShape& shape, uint64_t key) noexcept;

// Lets a recent-weighted table forget, as time passes: half of each count goes to other (odd: the
// larger half) if there were kTableWindow events since the last look back, and this is one. So an
// event weighs half as much after each flush of a site that goes on. Depends on the words alone: who
// has a copy of them can do the same to it. The owner, when it has flushed. O(top).
void age_table(uint64_t* words, const TableShape& shape) noexcept;

// Copies the `words` of a table that its owner may be counting in to `out`. Returns false where it
// would not hold still: then `out` may have an entry twice, or not at all. Hits of the first entry
// in compiled code are not told of: a key is always that of its count, which may be one event old.
//
//   Thread: any, as long as the slab is there.
bool copy_table(const uint64_t* words, const TableShape& shape, uint64_t* out) noexcept;

// For compiled code: `extra` is TableShape::packed().
extern "C" void uptier_probe_target(uint64_t* slab, const ProbeCall* call,
                                    ThreadContext* context) noexcept;
extern "C" void uptier_probe_value(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept;

}  // namespace uptier::sampler
