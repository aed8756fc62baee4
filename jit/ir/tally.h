// Three kinds of probes that only the optimizing compiler makes.
//
//   a tally     adds its operand, or 1, to a word of the thread: `aux` is its number
//   a remnant   replaces the probe of a block that was merged into another one: `aux` is the site, and
//               the tag says which share, in units of 1 / kWholeShare, of the executions of the
//               block that contains the remnant are executions of its site
//   a rounds    replaces many iterations of a loop: its operand is their number, an i64. `aux` and
//               the tag are like those of a remnant, for a block of the loop
#pragma once

#include <optional>

#include "jit/ir/function.h"

namespace uptier::jit {

// Flags in addition to those of function.h and turns.h.
inline constexpr uint8_t kProbeRounds = 32;
inline constexpr uint8_t kProbeTally = 64;
inline constexpr uint8_t kProbeRemnant = 128;

inline bool is_tally(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeTally) != 0;
}
inline bool is_remnant(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeRemnant) != 0;
}
inline bool is_rounds(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeRounds) != 0;
}
// Returns which share of a block's executions, or of the rounds, such a probe stands for.
inline float share_of(const Inst& i) { return static_cast<float>(probe_tag(i)) / kWholeShare; }

// Returns the share of a block's executions that are executions of the site of a probe in it;
// nothing if the probe stands for no block, or for one that another probe counts.
inline std::optional<float> part_of_block(const Inst& i) {
  if (is_remnant(i)) return share_of(i);
  if (is_block_probe(i) && !resumes(i)) return 1;
  return std::nullopt;
}

// Returns a probe for the block of another one; `share` is in 0..1.
inline Inst share_probe(const Inst& of, uint8_t flag, float share) {
  Inst i = of;
  i.flags = flag;
  auto tag = static_cast<uint64_t>(share * kWholeShare);
  i.imm = tag << 32 | static_cast<uint64_t>(ProbeKind::kEdge);
  return i;
}
inline Inst remnant_of(const Inst& block_probe, float share) {
  return share_probe(block_probe, kProbeRemnant, share);
}

}  // namespace uptier::jit
