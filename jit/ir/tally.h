// Two kinds of probes that the optimizing compiler makes for itself.
//
//   a tally     adds its operand, or 1, to a word of the thread: `aux` is its number
//   a remnant   what is left of a block that is executed together with another: `aux` is the site,
//               the tag says how many of kWholeShare executions of the block it lies in are its own
#pragma once

#include <optional>

#include "jit/ir/function.h"

namespace uptier::jit {

// Flags beside those of function.h and turns.h.
inline constexpr uint8_t kProbeTally = 64;
inline constexpr uint8_t kProbeRemnant = 128;

inline bool is_tally(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeTally) != 0;
}
inline bool is_remnant(const Inst& i) {
  return i.op == Opcode::kProbe && (i.flags & kProbeRemnant) != 0;
}

// Returns what part of a block's executions are executions of the site of a probe in it; nothing if
// the probe stands for no block, or for one that is told by another probe.
inline std::optional<float> part_of_block(const Inst& i) {
  if (is_remnant(i)) return static_cast<float>(probe_tag(i)) / kWholeShare;
  if (is_block_probe(i) && !resumes(i)) return 1;
  return std::nullopt;
}

// Returns a remnant for a block probe; `share` 0..1.
inline Inst remnant_of(const Inst& block_probe, float share) {
  Inst i = block_probe;
  i.flags = kProbeRemnant;
  auto tag = static_cast<uint64_t>(share * kWholeShare);
  i.imm = tag << 32 | static_cast<uint64_t>(ProbeKind::kEdge);
  return i;
}

}  // namespace uptier::jit
