#include "jit/opt/splice.h"

#include <algorithm>

#include "jit/frontend/attach_deopts.h"

namespace uptier::jit {
namespace {

bool is_invariant(const Inst& i) {
  return info(i.op).shape == Shape::kLoad && (i.flags & kMemInvariant) != 0;
}

// Returns the last block probe in a list of instructions, or null.
const Inst* last_block_probe(const Function& f, const std::vector<InstId>& insts) {
  for (size_t n = insts.size(); n-- > 0;) {
    if (is_block_probe(f.inst(insts[n]))) return &f.inst(insts[n]);
  }
  return nullptr;
}

class Splicer {
 public:
  Splicer(Function& f, const Function& callee, const InvariantPlaces& invariant, InstId state)
      : f_(f), from_(callee), invariant_(invariant), state_(state), values_(callee.values.size()) {}

  Spliced run(Block b, size_t position, MethodId method) {
    InstId call = f_.block(b).insts[position];
    add_body(f_.inst(call), method);
    Block rest = split_block(f_, b, position + 1);
    f_.block(b).insts.pop_back();
    take_result(call, rest);
    pass_arguments(call);
    make_blocks(b, rest);
    for (Block from : from_.layout) copy_block(from);
    return {body_, rest, made_};
  }

 private:
  void add_body(const Inst& call, MethodId method) {
    f_.inlined.push_back(
        {call.body, call.site, method, from_.block_sites, from_.site_count, from_.name, call.loc});
    body_ = static_cast<uint32_t>(f_.inlined.size());
  }

  // Turns the call's result into a parameter of the rest.
  void take_result(InstId call, Block rest) {
    rest_ = rest;
    Value result = f_.inst(call).result;
    if (!result.valid()) return;
    f_.value(result) = {f_.type_of(result), InstId::none(), rest, 0};
    f_.block(rest).params = f_.make_list({{result}});
  }

  void pass_arguments(InstId call) {
    auto params = from_.params(from_.entry());
    auto args = f_.args(f_.inst(call));
    for (size_t n = 0; n < params.size(); ++n) values_[params[n].index()] = args[n];
  }

  // The entry is appended to the caller's block; the other blocks are laid out between that and the
  // rest.
  void make_blocks(Block b, Block rest) {
    blocks_.resize(from_.blocks.size());
    blocks_[from_.entry().index()] = b;
    for (Block from : from_.layout) {
      if (from == from_.entry()) continue;
      Block to = f_.add_block();
      blocks_[from.index()] = to;
      made_.push_back(to);
      for (Value p : from_.params(from)) {
        values_[p.index()] = f_.add_block_param(to, from_.type_of(p));
      }
    }
    auto at = std::find(f_.layout.begin(), f_.layout.end(), rest);
    f_.layout.insert(at, made_.begin(), made_.end());
    // Numbers all results first, because a block may use a value from a block that is laid out
    // later.
    for (Block from : from_.layout) {
      for (InstId i : from_.block(from).insts) reserve_result(from_.inst(i));
    }
  }

  void reserve_result(const Inst& i) {
    if (!i.result.valid()) return;
    values_[i.result.index()] = Value(static_cast<uint32_t>(f_.values.size()));
    f_.values.push_back({from_.type_of(i.result), InstId::none(), Block::none(), 0});
  }

  void copy_block(Block from) {
    Block to = blocks_[from.index()];
    for (InstId i : from_.block(from).insts) {
      const Inst& inst = from_.inst(i);
      bool unwanted = inst.op == Opcode::kFrameState && !(is_call_state(inst) && state_.valid());
      if (unwanted || inst.op == Opcode::kLoopHeader) continue;
      inst.op == Opcode::kReturn ? jump_to_rest(to, inst) : copy(to, inst);
    }
  }

  void copy(Block to, const Inst& from) {
    Inst i = from;
    i.body = body_;
    i.args = map(from.args);
    copy_edges(i, from);
    copy_callee(i, from);
    if (i.op == Opcode::kGuard) i.imm = add_parents(from.imm, i);
    if (is_call_state(i)) i.aux = add_parents(from.aux, i);
    if (is_invariant(i) && (i.args.size != 1 || !invariant_.has(f_, i))) {
      i.flags &= static_cast<uint8_t>(~kMemInvariant);
    }
    InstId id(static_cast<uint32_t>(f_.insts.size()));
    if (i.result.valid()) {
      i.result = values_[from.result.index()];
      f_.value(i.result).inst = id;
      f_.value(i.result).block = to;
    }
    f_.insts.push_back(i);
    f_.block(to).insts.push_back(id);
  }

  void jump_to_rest(Block to, const Inst& from) {
    Inst jump{.op = Opcode::kJump, .loc = from.loc, .body = body_};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    bool passes = f_.block(rest_).params.size != 0;
    f_.edges.push_back({rest_, passes ? map(from.args) : ValueList{}});
    f_.append(to, jump, Type::kNone);
  }

  ValueList map(ValueList list) {
    scratch_.clear();
    for (Value v : from_.list(list)) scratch_.push_back(values_[v.index()]);
    return f_.make_list(scratch_);
  }

  void copy_edges(Inst& i, const Inst& from) {
    if (from.edge_count == 0) return;
    i.edges_at = static_cast<uint32_t>(f_.edges.size());
    for (const Edge& e : from_.edges_of(from)) {
      ValueList args = map(e.args);
      f_.edges.push_back({blocks_[e.to.index()], args});
    }
  }

  // An exit from the body leaves for the frames of its callers too. Returns the deopt number in the
  // form that instructions hold (index + 1). Adds the values of the callers' frames to the operands
  // of `i`.
  uint32_t add_parents(uint64_t number, Inst& i) {
    Deopt d = from_.deopts[number - 1];
    for (DeoptFrame& frame : d.frames) frame.body = body_;
    const Inst& state = f_.inst(state_);
    const auto& parents = f_.deopts[state.aux - 1].frames;
    d.frames.insert(d.frames.end(), parents.begin(), parents.end());
    auto own = f_.list(i.args);
    std::vector<Value> values(own.begin(), own.end());
    auto theirs = f_.args(state);
    values.insert(values.end(), theirs.begin(), theirs.end());
    i.args = f_.make_list(values);
    f_.deopts.push_back(std::move(d));
    return static_cast<uint32_t>(f_.deopts.size());
  }

  // Signatures and callees are numbered per function, so their numbers change.
  void copy_callee(Inst& i, const Inst& from) {
    Shape s = info(from.op).shape;
    if (s != Shape::kCall && s != Shape::kCallIndirect && s != Shape::kCallHost) return;
    SignatureId signature = f_.intern(from_.signature_of(from));
    i.aux = signature.index();
    if (s == Shape::kCall) {
      Callee c = from_.callees[from.imm];
      c.signature = signature;
      i.imm = callee_index(c);
    } else if (s == Shape::kCallHost) {
      i.imm = f_.host_callees.size();
      f_.host_callees.push_back(from_.host_callees[from.imm]);
      f_.host_callees.back().signature = signature;
    }
  }

  uint64_t callee_index(const Callee& c) {
    auto same = [&](const Callee& o) {
      return o.method == c.method && o.signature == c.signature && o.name == c.name;
    };
    auto at = std::find_if(f_.callees.begin(), f_.callees.end(), same);
    if (at == f_.callees.end()) at = f_.callees.insert(at, c);
    return static_cast<uint64_t>(at - f_.callees.begin());
  }

  Function& f_;
  const Function& from_;
  const InvariantPlaces& invariant_;
  InstId state_;
  std::vector<Value> values_;  // by Value::index() of the callee
  std::vector<Block> blocks_;  // by Block::index() of the callee
  std::vector<Block> made_;
  std::vector<Value> scratch_;
  Block rest_;
  uint32_t body_ = 0;
};

}  // namespace

InvariantPlaces::InvariantPlaces(const Function& f) {
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) {
      const Inst& inst = f.inst(i);
      if (is_invariant(inst) && inst.args.size == 1) places_.insert(key(f, inst));
    }
  }
}

bool can_splice(const Function& callee) {
  for (const HostCallee& c : callee.host_callees) {
    if (c.address == nullptr) return false;
  }
  for (Block b : callee.layout) {
    for (InstId i : callee.block(b).insts) {
      const Inst& inst = callee.inst(i);
      if (inst.op == Opcode::kGuard && inst.imm == 0) return false;
    }
  }
  return true;
}

Block split_block(Function& f, Block b, size_t position) {
  Block rest = f.add_block();
  auto& mine = f.block(b).insts;
  auto& theirs = f.block(rest).insts;
  if (const Inst* probe = last_block_probe(f, {mine.begin(), mine.begin() + position})) {
    Inst again{.op = Opcode::kProbe, .aux = probe->aux};
    again.flags = kProbeResumes;
    again.body = probe->body;
    again.imm = probe->imm;
    theirs.push_back(f.add_inst(again, Type::kNone));
  }
  theirs.insert(theirs.end(), mine.begin() + static_cast<ptrdiff_t>(position), mine.end());
  mine.resize(position);
  for (InstId i : theirs) {
    if (Value r = f.inst(i).result; r.valid()) f.value(r).block = rest;
  }
  auto at = std::find(f.layout.begin(), f.layout.end(), b);
  f.layout.insert(at + 1, rest);
  return rest;
}

Spliced splice(Function& f, Block b, size_t position, const Function& callee, MethodId method,
               const InvariantPlaces& invariant, InstId state) {
  return Splicer(f, callee, invariant, state).run(b, position, method);
}

}  // namespace uptier::jit
