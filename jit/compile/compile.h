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
  // How many of them one observed execution stands for: what is rarer may have gone unseen.
  double sample = 1;
  // The loop at whose header the code is entered from a baseline frame; none: normal entry.
  LoopId osr_loop = LoopId::none();
  // The frame is one of the host's interpreter instead: the code is called with the method's
  // arguments and the address of the slots of the loop's frame state.
  bool from_host = false;
  // An instrumented copy counts every block that the passes leave, in MethodState::optimized_slab:
  // the method's own where `probes` says, those of inlined bodies after them, in the words that
  // CodeTables::inlined_counts says, and what `inlined_sites` asks for in those that
  // CodeTables::inlined_probes says. There are no checks in it: a call that is sampled counts to its
  // end, its loops included.
  Copy copy = Copy::kPlain;
  // Where it counts, by plan_probes for this very body: one 64-bit counter of the thread's own a
  // block; null: block k at 8 * (k - 1). Plain copies do not depend on it.
  const ProbePlan* probes = nullptr;
  // What it observes of inlined bodies beside their blocks, where there is a plan; null:
  // nothing. Selections and loops are not among it, and no table is recent-weighted.
  const SiteProbeRequest* inlined_sites = nullptr;
  // What its indirect calls were seen to reach.
  std::span<const SiteTargets> targets = {};
  // What its value probes see, if they go on seeing what they saw: see opt/value_speculation.h. Not used
  // in instrumented copies, nor where exits cannot leave.
  std::span<const SiteValues> values = {};
  // What its parameters are when it is called; a guard has seen to that. Not with an osr_loop.
  std::span<const ParamValue> params = {};
  // Whose bodies may take the place of calls; null: none.
  InlineeSource* inlinees = nullptr;
  // Those with guards may, too. Off, they stay calls, and the compiler has less to do.
  bool inline_guards = false;
  // Receives how often the blocks of each inlined body were taken to run, by entry of
  // CodeTables::inlined and block site - 1, in the unit of `block_counts`; may be null. Nothing where
  // that is empty.
  std::vector<std::vector<float>>* inlined_blocks = nullptr;
  // What the code counts of itself, see opt/place_tallies.h. Nothing in instrumented copies.
  TallyRequest tallies = {};
  // Hears of the passes; may be null.
  PassObserver* observer = nullptr;
  // May end the compilation; null: nothing does.
  CompileLimit* limit = nullptr;
  // Guards leave for the host's interpreter, with what their frame_states name, instead of for
  // baseline code.
  bool to_host = false;
  // Blocks that never ran, by `block_counts`, become exits; not in instrumented copies. `kept`: by
  // block site - 1, not 0 for those that stay all the same; may be short.
  bool uncommon_traps = false;
  std::span<const uint8_t> kept = {};
  // Words, by LoopId, that the headers of long loops compare with 0 (see poll_loops.h), and ask
  // whether to leave when it is something else; best in the code space's data. Null: none does.
  const PollWord* poll = nullptr;
  // So do the headers of all loops. For tests.
  bool poll_all = false;
  // Guards that hold, and the starts of all blocks, ask the runtime whether to leave. For tests.
  bool ask_to_leave = false;
};

// Errors: kUnsupported names the operation (or a plan that optimized code cannot count by),
// kResourceExhausted the budget, kInvalidInput a bug that the verifier or the assembler caught; in
// each case nothing was installed.
Result<std::unique_ptr<Code>> compile_baseline(const CompileInput& in, const BaselineRequest& r);
Result<std::unique_ptr<Code>> compile_optimized(const CompileInput& in, const OptimizeRequest& r);

}  // namespace uptier::jit
