// lower: selects machine instructions for IR, by folding trees of operations into single x86
// instructions.
//
// Blocks are walked from the last to the first, and each backwards, so that an operation is seen
// after all its uses. An operation whose uses have all been folded into others is never emitted,
// and neither is a dead one. These may be folded:
//
//   - pure operations, anywhere
//   - a load with a single use, into an instruction of its block, if nothing that may trap or write
//     lies in between
//
// A probe that counts is a barrier too: an instruction that may trap must not cross the counter.
//
// Constants are not values here: each use makes its own, as an immediate, a pool operand, or by a
// move. Zero-extending an i32 is free: a use that needs a clean upper half requests it from the
// definition, and nearly every 32-bit instruction provides it anyway.
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
  // The machine has shlx, shrx, sarx and rorx.
  bool has_bmi2 = false;
  // Counters of block probes, by block site - 1: offsets in the slab. Empty: they do not count.
  std::span<const uint32_t> counters = {};
  // Counters of block probes in inlined bodies; null: they do not count.
  const std::vector<InlinedCount>* inlined = nullptr;
  // Counters of all other probes; null: they do not count.
  const ProbePlan* sites = nullptr;
  // Counters of other probes in inlined bodies; null: they do not count.
  const std::vector<InlinedProbe>* inlined_probes = nullptr;
  bool origins = false;  // make MachineFunction::origins
};

MachineFunction lower(const LowerInput& in);

}  // namespace uptier::jit::x64
