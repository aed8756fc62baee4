// compile.h: from a Function to Code, for both compilers.
//
//   compile_baseline   linear time, one of two copies that share a frame (see analysis/frame_layout.h)
//   compile_optimized  own passes and register allocation; entered normally, or by OSR at one loop
//
// Both are pure in their inputs: same Function, same request, same bytes (relative to their base).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/baseline/baseline_request.h"
#include "jit/code/code.h"
#include "jit/code/compile_input.h"
#include "jit/code/poll_words.h"
#include "jit/code/recorded_code.h"
#include "jit/ir/param_value.h"
#include "jit/opt/compile_limit.h"
#include "jit/opt/inlinee.h"
#include "jit/opt/pass_observer.h"
#include "jit/probes/plan_sites.h"
#include "uptier/result.h"

namespace uptier::jit {

struct OptimizeRequest {
  // Estimated executions of each block by site (index 0 is site 1); empty: no profile.
  std::span<const uint64_t> block_counts = {};
  // The number of executions that one observed execution stands for: rarer blocks may have gone
  // unseen.
  double sample = 1;
  // The loop at whose header the code is entered from a baseline frame; none: normal entry.
  LoopId osr_loop = LoopId::none();
  // The frame is one of the host's interpreter instead: the code is called with the method's
  // arguments and the address of the slots of the loop's frame state.
  bool from_host = false;
  // An instrumented copy counts every block that the passes keep, in MethodState::optimized_slab:
  // the method's own blocks at the places in `probes`; blocks of inlined bodies after them, at the
  // places in CodeTables::inlined_counts; and the observations of `inlined_sites` at the places in
  // CodeTables::inlined_probes. It contains no checks: a sampled call counts until it returns,
  // including its loops.
  Copy copy = Copy::kPlain;
  // The places of its counters, from plan_probes for this very body: one 64-bit counter of the
  // thread's own for each block; null: block k at 8 * (k - 1). Plain copies ignore it.
  const ProbePlan* probes = nullptr;
  // Its observations of inlined bodies in addition to their blocks, if there is a plan; null: none.
  // Conditions of selects and loops are not observed, and no table is recent-weighted.
  const SiteProbeRequest* inlined_sites = nullptr;
  // The observed targets of its indirect calls.
  std::span<const SiteTargets> targets = {};
  // The values that its value probes have seen, if they are stable: see opt/value_speculation.h.
  // Not used in instrumented copies, nor if exits cannot leave.
  std::span<const SiteValues> values = {};
  // Known values of its parameters; a guard has checked them before the call. Not with an osr_loop.
  std::span<const ParamValue> params = {};
  // The source of bodies that may be inlined; null: none.
  InlineeSource* inlinees = nullptr;
  // Also inlines bodies with guards. If off, their calls stay, and compiling takes less time.
  bool inline_guards = false;
  // Receives the assumed execution counts of the blocks of each inlined body, by entry of
  // CodeTables::inlined and block site - 1, in the unit of `block_counts`; may be null. Left empty
  // if `block_counts` is empty.
  std::vector<std::vector<float>>* inlined_blocks = nullptr;
  // The counters of the code itself, see opt/place_tallies.h. None in instrumented copies.
  TallyRequest tallies = {};
  // Is notified of the passes; may be null.
  PassObserver* observer = nullptr;
  // May end the compilation; null: nothing does.
  CompileLimit* limit = nullptr;
  // Guards exit to the host's interpreter, with the values that their frame_states name, instead of
  // to baseline code.
  bool to_host = false;
  // Blocks that never ran, by `block_counts`, become exits; not in instrumented copies. `kept`: by
  // block site - 1, not 0 for blocks that are compiled all the same; may be short.
  bool uncommon_traps = false;
  std::span<const uint8_t> kept = {};
  // Words, by LoopId, that the headers of long loops compare with 0 (see poll_loops.h); if a word
  // is not 0, the header asks whether to exit. Best in the code space's data. Null: no header
  // polls.
  const PollWord* poll = nullptr;
  // The headers of all loops poll. For tests.
  bool poll_all = false;
  // Guards that hold, and the starts of all blocks, ask the runtime whether to exit. For tests.
  bool ask_to_leave = false;
};

// Errors: kUnsupported names the operation (or a plan whose counters optimized code cannot use),
// kResourceExhausted the budget, kInvalidInput a bug that the verifier or the assembler caught; in
// each case nothing was installed.
Result<std::unique_ptr<Code>> compile_baseline(const CompileInput& in, const BaselineRequest& r);
// The same without a place, for another process (recorded_code.h): plain copies only. Errors: also
// kUnsupported for a body that holds something of this process that has no name: a constant ref, or
// the thread's fuel.
Result<RecordedCode> record_baseline(const CompileInput& in, const BaselineRequest& r);
Result<std::unique_ptr<Code>> compile_optimized(const CompileInput& in, const OptimizeRequest& r);

}  // namespace uptier::jit
