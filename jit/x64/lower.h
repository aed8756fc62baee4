// lower: from IR to machine instructions, by folding trees of operations into what x86 can do at
// once.
//
// Blocks are walked from the last to the first and each backwards, so that an operation is seen
// after all its uses: one whose uses have all been folded into others is never emitted, and neither
// is a dead one. What may be folded:
//
//   - pure operations, anywhere
//   - a load with a single use, into an instruction of its block, when nothing that may trap or
//     write stands between
//
// A probe that counts is a barrier too: what traps must do so on its side of the count.
//
// Constants are no values here: each use makes its own, as an immediate, a pool operand, or by a
// move. An i32 is zero-extended for free: whatever needs a clean upper half asks for it at the
// definition, where nearly every 32-bit instruction gives it anyway.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jit/analysis/frequencies.h"
#include "jit/code/code.h"
#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"
#include "jit/x64/instructions.h"

namespace uptier::jit::x64 {

struct LowerInput {
  const Function& function;  // laid out by layout_blocks
  const LoopNest& loops;
  const Frequencies& frequencies;
  // OSR: the parameters lie in the baseline frame, at these displacements from rbp.
  bool osr = false;
  std::span<const int32_t> frame_slots = {};
  // Whether shlx, shrx, sarx and rorx exist.
  bool has_bmi2 = false;
  // Where block probes count, by block site - 1: offsets in the slab. Empty: they do not.
  std::span<const uint32_t> counters = {};
  // Likewise those of inlined bodies; null: they do not.
  const std::vector<InlinedCount>* inlined = nullptr;
  // Where all other probes count; null: they do not.
  const ProbePlan* sites = nullptr;
  // Likewise those of inlined bodies.
  const std::vector<InlinedProbe>* inlined_probes = nullptr;
};

MachineFunction lower(const LowerInput& in);

}  // namespace uptier::jit::x64
