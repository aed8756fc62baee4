#include "jit/opt/copy_tail.h"

#include <utility>

namespace uptier::jit {

bool may_copy_tail(const Function& f, Block b, uint32_t most) {
  uint32_t size = 0;
  for (InstId i : f.block(b).insts) {
    const Inst& inst = f.inst(i);
    Shape s = info(inst.op).shape;
    bool calls = s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
    if (calls || inst.op == Opcode::kLoopHeader || inst.op == Opcode::kFrameState) return false;
    size += inst.op != Opcode::kProbe && inst.op != Opcode::kConst;
  }
  return size <= most;
}

void copy_tail(Function& f, Block tail, Block into, std::vector<Redefinition>& redefined) {
  std::vector<std::pair<Value, Value>> map;
  {
    auto params = f.params(tail);
    auto args = f.list(f.successors(into)[0].args);
    for (size_t k = 0; k < params.size(); ++k) map.push_back({params[k], args[k]});
  }
  f.block(into).insts.pop_back();
  auto mapped = [&](Value v) {
    for (const auto& [from, to] : map) {
      if (from == v) return to;
    }
    return v;
  };
  auto copy_list = [&](ValueList l) {
    std::vector<Value> values;
    for (Value v : f.list(l)) values.push_back(mapped(v));
    return f.make_list(values);
  };
  const std::vector<InstId> insts = f.block(tail).insts;
  for (InstId id : insts) {
    Inst i = f.inst(id);
    Value result = i.result;
    i.result = Value::none();
    i.args = copy_list(i.args);
    if (i.edge_count != 0) {
      auto at = static_cast<uint32_t>(f.edges.size());
      for (uint32_t e = 0; e < i.edge_count; ++e) {
        Edge edge = f.edges[i.edges_at + e];
        f.edges.push_back({edge.to, copy_list(edge.args)});
      }
      i.edges_at = at;
    }
    InstId made = f.append(into, i, result.valid() ? f.type_of(result) : Type::kNone);
    if (result.valid()) map.push_back({result, f.inst(made).result});
  }
  for (const auto& [from, to] : map) redefined.push_back({from, into, to});
}

}  // namespace uptier::jit
