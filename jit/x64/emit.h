// emit: writes machine instructions with locations as bytes.
//
//   push rbp; mov rbp, rsp; push used callee-saved registers; sub rsp
//   [stack check]
//   [words of the frame = parameters with assumed values]
//   body, hot blocks first
//   add rsp; pop ...; pop rbp; ret          at each return
//
// The first two lines are emitted where FramePlan makes the frame. A return without a frame is a
// single `ret`.
//
// If a version assumes the value of a parameter, its code contains the value as a constant, and the
// parameter itself would be nowhere. But it may be the last copy of a reference. So it is stored in
// the frame, where a collector that scans stacks finds it.
//
// A failing guard jumps to a call of Routines::leave after the body. The call takes five bytes, and
// its return address identifies the exit's row in the tables.
//
// An OSR version is entered by a jump, with rbp at the baseline frame. Its own frame lies below
// that one, and `mov rsp, rbp; pop rbp; ret` removes both.
#pragma once

#include <memory>
#include <span>

#include "jit/code/code.h"
#include "jit/code/compile_input.h"
#include "jit/code/poll_words.h"
#include "jit/ir/param_value.h"
#include "jit/probes/plan_sites.h"
#include "jit/regalloc/allocation.h"
#include "jit/x64/instructions.h"

namespace uptier::jit::x64 {

struct EmitInput {
  const CompileInput& compile;
  const Function& function;  // after the passes
  const MachineFunction& machine;
  const Allocation& allocation;
  bool osr = false;
  uint32_t baseline_frame = 0;     // OSR: bytes below rbp that belong to the baseline frame
  const PollWord* poll = nullptr;  // the words that loop headers poll; null: they do not poll
  // Counters of inlined bodies, for the tables.
  const std::vector<InlinedCount>* inlined_counts = nullptr;
  // Other probes of inlined bodies, for the tables.
  const std::vector<InlinedProbe>* inlined_probes = nullptr;
  std::span<const ParamValue> params = {};  // assumed to have these values
  const TallyTable* tallies = nullptr;      // the words that the code counts in
  bool block_rows = true;                   // the code gets CodeTables::probes
};

// Errors: those of CodeBuffer::publish, and kUnsupported for a frame beyond a mebibyte.
Result<std::unique_ptr<Code>> emit(const EmitInput& in);

// Returns whether this machine has shlx, shrx and sarx.
bool has_bmi2();

}  // namespace uptier::jit::x64
