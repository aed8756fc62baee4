#include "jit/ir/attach_deopts.h"
#include "jit/ir/select_probes.h"
#include "jit/opt/passes.h"

namespace uptier::jit {

void strip_patchpoints(Function& f) {
  for (Block b : f.layout) {
    std::erase_if(f.block(b).insts, [&](InstId i) {
      Inst& inst = f.inst(i);
      if (is_call_state(inst)) return false;
      if (inst.op == Opcode::kProbe || inst.op == Opcode::kFrameState) inst.args.size = 0;
      // What such a probe has seen is in its selection.
      return inst.op == Opcode::kLoopHeader || counts_turns(inst);
    });
  }
}

}  // namespace uptier::jit
