#include "jit/opt/loop_preheader.h"

#include <algorithm>

#include "jit/ir/semantics.h"

namespace uptier::jit {

LoopPreheader::LoopPreheader(Function& f, Block loop, std::span<const Predecessor> preds)
    : f_(f), loop_(loop), entry_(add_block()), at_(entry_) {
  for (uint32_t n = 0; n < f.block(loop).params.size; ++n) {
    Value p = f.params(loop)[n];
    first_[p.index()] = f.add_block_param(entry_, f.type_of(p));
  }
  for (const Predecessor& p : preds) {
    if (p.from != loop) f.edges[p.edge].to = entry_;
  }
}

Block LoopPreheader::add_block() {
  Block b = f_.add_block();
  f_.layout.insert(std::ranges::find(f_.layout, loop_), b);
  return b;
}

Value LoopPreheader::first(Value v) {
  if (f_.value(v).block != loop_) return v;
  if (auto it = first_.find(v.index()); it != first_.end()) return it->second;
  InstId from = f_.value(v).inst;
  Inst i = f_.inst(from);
  std::vector<Value> args;
  for (uint32_t n = 0; n < i.args.size; ++n) args.push_back(first(f_.args(f_.inst(from))[n]));
  i.args = f_.make_list(args);
  i.result = Value::none();
  Value made = f_.inst(f_.append(at_, i, f_.type_of(v))).result;
  first_[v.index()] = made;
  return made;
}

Value LoopPreheader::emit(Opcode op, Type t, std::initializer_list<Value> args) {
  Inst i{.op = op, .type = t};
  i.args = f_.make_list({args.begin(), args.size()});
  return f_.inst(f_.append(at_, i, result_type(f_, i))).result;
}

Value LoopPreheader::constant(Type t, uint64_t bits) {
  return f_.inst(f_.append(at_, {.op = Opcode::kConst, .type = t, .imm = clip(t, bits)}, t)).result;
}

void LoopPreheader::end(Inst terminator, std::initializer_list<Edge> edges) {
  terminator.edges_at = static_cast<uint32_t>(f_.edges.size());
  terminator.edge_count = static_cast<uint32_t>(edges.size());
  f_.edges.insert(f_.edges.end(), edges);
  f_.append(at_, terminator, Type::kNone);
}

}  // namespace uptier::jit
