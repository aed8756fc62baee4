// Turns: how often the condition of a select or branch was the same as the time before.
//
// A probe with kProbeTurns counts by 2 * (the last value) + (this value), each 0 or 1, in the words
// [last, n0, n1, n2, n3] of the thread's slab. Counts 0 and 3 are executions in which the condition
// had the same value as in the execution before, 1 and 2 executions in which it changed. For the
// places of such probes see frontend/select_probes.h.
//
//   Thread: none of their own.
#pragma once

#include <array>
#include <cstdint>

#include "jit/ir/function.h"

namespace uptier::jit {

// The values that such a site can have, and its words in the slab: the last condition, the counts.
inline constexpr uint32_t kTurnValues = 4;
inline constexpr uint32_t kTurnCounts = 1;
inline constexpr uint32_t kTurnWords = kTurnCounts + kTurnValues;

// The flag of such a probe, in addition to kProbeOwn. A plan has a value site without a table for
// it.
inline constexpr uint8_t kProbeTurns = 4;
// Also set for a probe before a branch; the sites of these probes come after all others.
inline constexpr uint8_t kProbeOfBranch = 8;
inline bool counts_turns(const Inst& i) {
  return i.op == Opcode::kProbe && !is_block_probe(i) && (i.flags & kProbeTurns) != 0;
}

// The counts of one site: executions by 2 * (the last time) + now.
struct SelectTurns {
  SiteId site = 0;
  std::array<uint64_t, kTurnValues> counts{};

  uint64_t executions() const { return counts[0] + counts[1] + counts[2] + counts[3]; }
  friend bool operator==(const SelectTurns&, const SelectTurns&) = default;
};

// The four counts as a select or branch holds them in Inst::imm: 16 bits each, in proportion; 0:
// not known.
uint64_t pack_turns(const std::array<uint64_t, kTurnValues>& counts);
std::array<uint64_t, kTurnValues> turns_of(const Inst& i);

// Returns a lower bound of the mispredictions of a predictor that knows the last value and how
// often each value follows the other: min(n0, n1) + min(n2, n3). The same for the opposite
// condition. A processor may know more: a condition that is true every third time counts as one
// third here, but is predicted.
uint64_t misses_of(const std::array<uint64_t, kTurnValues>& counts);

}  // namespace uptier::jit
