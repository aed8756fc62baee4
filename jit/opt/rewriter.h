// Rewriter: shared by passes that replace values.
//
// A pass walks the blocks in reverse postorder and visits each instruction once. It may emit new
// instructions before the one it visits, and may declare a value equal to an earlier one. Operands are
// resolved before an instruction is visited, and those on back edges at the end.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "jit/analysis/control_flow.h"
#include "jit/ir/function.h"

namespace uptier::jit {

class Rewriter {
 public:
  explicit Rewriter(Function& f) : f_(f) {}

  // Calls `visit(InstId)` for each instruction; it returns whether the instruction stays.
  template <typename Visit>
  void run(const std::vector<Block>& order, Visit visit) {
    for (Block b : order) {
      block_ = b;
      // Copied instead of moved, so that the block's memory is used again.
      old_.assign(f_.block(b).insts.begin(), f_.block(b).insts.end());
      out_.clear();
      for (InstId i : old_) {
        if (replaces_) resolve_args(i);
        if (visit(i)) out_.push_back(i);
      }
      f_.block(b).insts.assign(out_.begin(), out_.end());
    }
    if (replaces_) finish();
  }

  // Replaces `v` by `same` from here on.
  void replace(Value v, Value same) {
    replaces_ = true;
    if (alias_.size() <= v.index()) alias_.resize(f_.values.size());
    alias_[v.index()] = resolve(same);
  }
  Value resolve(Value v);

  // Adds an instruction before the visited one. Invalidates references to instructions.
  Value emit(Inst i, std::initializer_list<Value> args, Type result);
  Value emit(Opcode op, Type t, std::initializer_list<Value> args) {
    return emit({.op = op, .type = t}, args, t);
  }
  Value constant(Type t, uint64_t bits) {
    return emit({.op = Opcode::kConst, .type = t, .imm = bits}, {}, t);
  }
  // Turns the instruction into a constant.
  void become_constant(InstId i, uint64_t bits);
  // Turns the instruction into another operation with the same result.
  void become(InstId i, Opcode op, std::initializer_list<Value> args);

  // Returns the defining instruction, or null for a block parameter.
  const Inst* def(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() ? &f_.inst(i) : nullptr;
  }
  // Returns the defining instruction if it is `op`, else null.
  const Inst* def(Value v, Opcode op) const {
    const Inst* i = def(v);
    return i && i->op == op ? i : nullptr;
  }
  std::optional<uint64_t> constant_of(Value v) const {
    const Inst* i = def(v, Opcode::kConst);
    return i ? std::optional(i->imm) : std::nullopt;
  }
  Function& f() { return f_; }
  Block block() const { return block_; }

 private:
  void resolve_args(InstId i);
  void finish();

  Function& f_;
  Block block_;
  std::vector<InstId> old_, out_;  // of the current block
  bool replaces_ = false;          // whether any value was replaced; many passes find none
  std::vector<Value> alias_;       // by Value::index(), up to the last one replaced
};

}  // namespace uptier::jit
