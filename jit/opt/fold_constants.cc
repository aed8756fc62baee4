#include "jit/ir/dominators.h"
#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

// Folds the instruction when all operands are constants. One that would trap stays as it is.
void fold(Rewriter& r, InstId id) {
  Function& f = r.f();
  const Inst& i = f.inst(id);
  if (!evaluates(i.op) || i.args.size == 0) return;
  uint64_t operands[3];
  uint32_t n = 0;
  for (Value v : f.args(i)) {
    auto c = r.constant_of(v);
    if (!c) return;
    operands[n++] = *c;
  }
  Type source = f.type_of(f.args(i)[0]);
  Evaluation e = evaluate(i.op, i.type, source, {operands, n});
  if (e.trap == TrapCode::kNone) r.become_constant(id, e.bits);
}

}  // namespace

void fold_constants(Function& f) {
  Rewriter r(f);
  r.run(compute_dominators(f).order, [&](InstId i) {
    if (f.inst(i).op == Opcode::kTrapIf) return r.constant_of(f.args(f.inst(i))[0]) != 0u;
    if (f.inst(i).op == Opcode::kSelect) {
      auto args = f.args(f.inst(i));
      auto c = r.constant_of(args[0]);
      if (c || args[1] == args[2]) {
        r.replace(f.inst(i).result, c && *c == 0 ? args[2] : args[1]);
        return false;
      }
    }
    fold(r, i);
    return true;
  });
}

}  // namespace uptier::jit
