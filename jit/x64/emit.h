// emit: machine instructions with locations to bytes.
//
//   push rbp; mov rbp, rsp; push used callee-saved registers; sub rsp
//   [stack check]
//   [parameters that are taken to be known, to words of the frame that nothing else uses]
//   body, hot blocks first
//   add rsp; pop ...; pop rbp; ret          at each return
//
// The first two lines stand where FramePlan says, and a return in front of them is a `ret` alone.
//
// Where a parameter is taken to have a value, code has the value as a constant, and the parameter
// itself would be nowhere. It may be a reference, and the call the last that holds it, so it is kept
// where a collector that looks at stacks finds it.
//
// A guard that fails jumps after the body, to a call of Routines::leave: five bytes, whose return
// address finds the exit's row in the tables.
//
// An OSR version is entered by a jump, with rbp the baseline frame; its own frame lies below that
// one, and both go with `mov rsp, rbp; pop rbp; ret`.
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
  uint32_t baseline_frame = 0;     // OSR: bytes below rbp that are not ours
  const PollWord* poll = nullptr;  // the words that loop headers ask; null: they ask nothing
  const std::vector<InlinedCount>* inlined_counts = nullptr;  // what the machine counts of these
  const std::vector<InlinedProbe>* inlined_probes = nullptr;  // likewise
  std::span<const ParamValue> params = {};                    // taken to be known
  const TallyTable* tallies = nullptr;                        // what the machine counts in
};

// Errors: those of CodeBuffer::publish, and kUnsupported for a frame beyond a mebibyte.
Result<std::unique_ptr<Code>> emit(const EmitInput& in);

// Returns whether shlx and its like exist on this machine.
bool has_bmi2();

}  // namespace uptier::jit::x64
