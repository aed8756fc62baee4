#include "jit/opt/rewriter.h"

#include <algorithm>

namespace uptier::jit {

Value Rewriter::resolve(Value v) {
  if (v.index() >= alias_.size()) return v;
  Value root = v;
  while (root.index() < alias_.size() && alias_[root.index()].valid()) root = alias_[root.index()];
  while (v != root) {  // compress the path
    Value next = alias_[v.index()];
    alias_[v.index()] = root;
    v = next;
  }
  return root;
}

void Rewriter::resolve_args(InstId i) {
  Inst& inst = f_.inst(i);
  for (Value& v : f_.args(inst)) v = resolve(v);
  for (Edge& e : f_.edges_of(inst)) {
    for (Value& v : f_.list(e.args)) v = resolve(v);
  }
}

Value Rewriter::emit(Inst i, std::initializer_list<Value> args, Type result) {
  i.args = f_.make_list({args.begin(), args.size()});
  InstId id = f_.add_inst(i, result);
  Value v = f_.inst(id).result;
  if (v.valid()) f_.value(v).block = block_;
  out_.push_back(id);
  return v;
}

void Rewriter::become_constant(InstId i, uint64_t bits) {
  Inst& inst = f_.inst(i);
  Type t = f_.type_of(inst.result);
  inst = {.op = Opcode::kConst, .type = t, .loc = inst.loc, .result = inst.result, .imm = bits};
}

void Rewriter::become(InstId i, Opcode op, std::initializer_list<Value> args) {
  ValueList& list = f_.inst(i).args;
  if (f_.inst(i).op == Opcode::kSelect) f_.inst(i).imm = 0;  // its profile
  f_.inst(i).op = op;
  if (list.capacity < args.size()) {
    list = f_.make_list({args.begin(), args.size()});
    return;
  }
  std::copy(args.begin(), args.end(), f_.pool.begin() + list.at);
  list.size = static_cast<uint32_t>(args.size());
}

void Rewriter::finish() {
  for (Block b : f_.layout) {
    for (InstId i : f_.block(b).insts) resolve_args(i);
  }
}

}  // namespace uptier::jit
