#include "jit/frontend/attach_deopts.h"
#include "jit/frontend/select_probes.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

// A probe of kind kHit does not read its value.
bool reads_value(const Function& f, const ProbePlan* observed, const Inst& probe) {
  return probe_kind(probe) != ProbeKind::kHit && planned_site(f, observed, probe) != nullptr;
}

}  // namespace

void strip_patchpoints(Function& f) { strip_unobserved(f, nullptr); }

void strip_unobserved(Function& f, const ProbePlan* observed) {
  for (Block b : f.layout) {
    std::erase_if(f.block(b).insts, [&](InstId i) {
      Inst& inst = f.inst(i);
      if (is_call_state(inst)) return false;
      bool probe = inst.op == Opcode::kProbe && !reads_value(f, observed, inst);
      if (probe || inst.op == Opcode::kFrameState) inst.args.size = 0;
      // The counts of such a probe are already in its selection or branch.
      return inst.op == Opcode::kLoopHeader || counts_turns(inst);
    });
  }
}

}  // namespace uptier::jit
