//   func @f(i32, i32):                    func @f(i32, i32):
//   b0(v0, v1): ... v1 ...        ->      b0(v0, v1): v2 = const 8; ... v2 ...
//
// Calls still pass the parameter, but nothing reads it. Frames that an exit makes get the constant
// as well, so baseline code continues with the value that the function was called with.
#include "jit/opt/passes.h"

namespace uptier::jit {

void specialize_params(Function& f, std::span<const ParamValue> values) {
  Block entry = f.entry();
  std::vector<Value> known(f.values.size());
  std::vector<InstId> first;
  for (const ParamValue& p : values) {
    Value v = f.params(entry)[p.param];
    Type t = f.type_of(v);
    first.push_back(f.add_inst({.op = Opcode::kConst, .type = t, .imm = p.bits}, t));
    known[v.index()] = f.inst(first.back()).result;
    f.value(known[v.index()]).block = entry;
  }
  auto resolve = [&](Value& v) {
    bool is_param = v.index() < known.size() && known[v.index()].valid();
    if (is_param) v = known[v.index()];
  };
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      for (Value& v : f.args(i)) resolve(v);
      for (Edge& e : f.edges_of(i)) {
        for (Value& v : f.list(e.args)) resolve(v);
      }
    }
  }
  // After the block's probe, which attributes the code that follows.
  auto& insts = f.block(entry).insts;
  bool probed = !insts.empty() && is_block_probe(f.inst(insts.front()));
  insts.insert(insts.begin() + (probed ? 1 : 0), first.begin(), first.end());
}

}  // namespace uptier::jit
