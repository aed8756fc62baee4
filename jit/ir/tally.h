// Two kinds of probes that only the optimizing compiler makes.
//
//   a tally     adds its operand, or 1, to a word of the thread: `aux` is its number
//   a remnant   replaces the probe of a block that was merged into another one: `aux` is the site, and
//               the tag says which share, in units of 1 / kWholeShare, of the executions of the
//               block that contains the remnant are executions of its site
#pragma once

#include <optional>

#include "jit/ir/function.h"

namespace uptier::jit {

// Flags in addition to those of function.h and turns.h.
inline constexpr uint8_t kProbeTally = 64;
inline constexpr uint8_t kProbeRemnant = 128;

inline bool is_tally(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeTally) != 0;
}
inline bool is_remnant(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeRemnant) != 0;
}

// Returns the share of a block's executions that are executions of the site of a probe in it;
// nothing if the probe stands for no block, or for one that another probe counts.
inline std::optional<float> part_of_block(const Inst& i) {
  if (is_remnant(i)) return static_cast<float>(probe_tag(i)) / kWholeShare;
  if (is_block_probe(i) && !resumes(i)) return 1;
  return std::nullopt;
}

// Returns a remnant for a block probe; `share` is in 0..1.
inline Inst remnant_of(const Inst& block_probe, float share) {
  Inst i = block_probe;
  i.flags = kProbeRemnant;
  auto tag = static_cast<uint64_t>(share * kWholeShare);
  i.imm = tag << 32 | static_cast<uint64_t>(ProbeKind::kEdge);
  return i;
}

}  // namespace uptier::jit
