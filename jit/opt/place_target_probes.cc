#include "jit/opt/place_target_probes.h"

#include "jit/frontend/attach_deopts.h"

namespace uptier::jit {
namespace {

bool is_planned(const Function& f, const ProbePlan& plan, const Inst& call) {
  if (call.op != Opcode::kCallIndirect) return false;
  return planned_site(f, &plan, call) != nullptr;
}

}  // namespace

void place_target_probes(Function& f, const ProbePlan& plan) {
  for (Block b : f.layout) {
    std::vector<InstId>& insts = f.block(b).insts;
    for (size_t n = 0; n < insts.size(); ++n) {
      const Inst& call = f.inst(insts[n]);
      if (!is_planned(f, plan, call)) continue;
      Inst probe{.op = Opcode::kProbe, .flags = kProbeOwn, .aux = call.site, .loc = call.loc};
      probe.imm = static_cast<uint64_t>(ProbeKind::kCallTarget);
      probe.args = f.make_list({{f.args(call)[0]}});
      // Call states are directly in front of their calls.
      size_t at = n;
      while (at > 0 && is_call_state(f.inst(insts[at - 1]))) --at;
      InstId made = f.add_inst(probe, Type::kNone);
      insts.insert(insts.begin() + static_cast<ptrdiff_t>(at), made);
      ++n;
    }
  }
}

}  // namespace uptier::jit
