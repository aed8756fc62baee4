// LoopProbes: the observations of loops by an instrumented copy: on the edges that enter and leave
// a loop, at its header, and where the function is entered and returns.
#pragma once

#include <cstdint>
#include <optional>

#include "jit/analysis/loop_forest.h"
#include "jit/baseline/target_assembler.h"
#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit::baseline {

class LoopProbes {
 public:
  // `plan`: null observes nothing. All must outlive this.
  LoopProbes(const Function& f, const ProbePlan* plan, TargetAssembler& a);

  bool any() const { return forest_.has_value(); }
  // Returns whether an edge enters or leaves an observed loop.
  bool crosses(Block from, Block to) const;
  void cross(Block from, Block to);
  void enter_function() { enter(function_loop()); }
  // A return of block `b`, which leaves all loops around it.
  void leave_all(Block b);
  void count_iteration(LoopId l) { a_.count_iteration(words_of(l)); }
  // Records where the code of each loop lies: call these at the start and the end of each block's
  // code.
  void begin_ranges(Block b);
  void extend_ranges(Block b);

 private:
  LoopId function_loop() const { return LoopId(f_.loop_count); }
  uint32_t words_of(LoopId l) const;
  uint32_t extra_of(LoopId l) const;
  void enter(LoopId l);
  void leave(LoopId l);

  const Function& f_;
  const ProbePlan* plan_;
  TargetAssembler& a_;
  std::optional<LoopForest> forest_;  // set if loops are observed
};

}  // namespace uptier::jit::baseline
