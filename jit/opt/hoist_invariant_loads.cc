// Hoists invariant loads to the entry. kMemInvariant promises that the place can be read at any
// time while the function runs, so only the pointer must be known first. Reading once gives one
// long-lived value, which the register allocator may keep or spill. It could not undo a load in
// every loop.
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

bool can_hoist(const Function& f, const Inst& i) {
  bool invariant = info(i.op).shape == Shape::kLoad && (i.flags & kMemInvariant) != 0;
  return invariant && i.args.size == 1 && f.value(f.args(i)[0]).block == f.entry();
}

}  // namespace

void hoist_invariant_loads(Function& f) {
  Block entry = f.entry();
  std::vector<InstId> hoisted;
  for (Block b : f.layout) {
    if (b == entry) continue;
    std::erase_if(f.block(b).insts, [&](InstId i) {
      if (!can_hoist(f, f.inst(i))) return false;
      f.value(f.inst(i).result).block = entry;
      hoisted.push_back(i);
      return true;
    });
  }
  auto& insts = f.block(entry).insts;
  insts.insert(insts.end() - 1, hoisted.begin(), hoisted.end());
}

}  // namespace uptier::jit
