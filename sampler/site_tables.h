// Site tables: how often each value was seen at one site, stored in words of a slab.
//
//   word 0       other: events whose value has no entry (any more)
//   word 1       of the window: slow events | misses among them << 32
//   word 2       all events when the window began
//   words 3..6   value tables only: the sum of the values in `other` (128 bits, two's complement),
//                their greatest and, complemented, their least, both with the sign bit flipped
//   then         top entries {value, count}; entries with count 0 are free and come last
//   then         32 bits per entry: its recent events, and << 20 the looks back they span, both in
//                units of 1/64
//
// Laws:
// - other + the counts = the events: every event adds 1 to exactly one of them, and moving a count
//   moves all of it
// - a count never exceeds the events of its value: events of unknown values are in other
// - all words 0 is the empty table
// - while an entry moves, word 1 has kTableBusy set; a thread that copies another thread's table
//   (copy_table) sees by that, and by words 1 and 2, whether the table changed meanwhile
//
// Code counts a hit of the first entry itself; all other events come here ("slow events"). After
// kTableWindow of them the table looks back at all events since the last look:
// - if over half were misses, the least frequent quarter of the entries goes to other, to make room
//   for new ones; a recent-weighted table also moves half of each remaining count to other (odd:
//   the larger half), so that old values do not hold their entries forever (and see age_table)
// - else, if over half were slow, the entry hit last becomes the first; and if all entries are
//   taken, the least frequent one goes to other if there were eight times as many misses
//
// The frequency of an entry is its recent events divided by the looks back they span plus four, so
// that a new entry has to prove itself; a 32nd of both is forgotten at each look back. The count
// would not do: it grows with the age of the entry, so the values that happened to come first would
// keep out more frequent ones for ever.
//
// An entry whose count exceeds the first entry's count changes places with it at once.
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
// Set in word 1 while entries are moved; never set in a copy that the owner has made.
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

// Counts one event of any kind, including a hit of the first entry. Cost: linear in top; a look
// back is quadratic.
void count_in_table(uint64_t* words, const TableShape& shape, uint64_t key) noexcept;

// Lets a recent-weighted table forget as time passes: if there were kTableWindow events since the
// last look back, half of each count goes to other (odd: the larger half), and this counts as a
// look back. So an event weighs half as much after each flush of a busy site. Depends on the words
// only, so the reader of a copy can do the same to it. Called by the owner, after a flush. O(top).
void age_table(uint64_t* words, const TableShape& shape) noexcept;

// Copies the `words` of a table, in which its owner may be counting, to `out`. Returns false if the
// table kept changing: then `out` may have an entry twice, or not at all. Hits of the first entry
// in compiled code are not detected: each count belongs to its key, but may be one event old.
//
//   Thread: any, as long as the slab is there.
bool copy_table(const uint64_t* words, const TableShape& shape, uint64_t* out) noexcept;

// For compiled code: `extra` is TableShape::packed().
extern "C" void uptier_probe_target(uint64_t* slab, const ProbeCall* call,
                                    ThreadContext* context) noexcept;
extern "C" void uptier_probe_value(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept;

}  // namespace uptier::sampler
