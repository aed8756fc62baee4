#include "jit/opt/copy_loop.h"

#include <algorithm>
#include <unordered_map>

namespace uptier::jit {
namespace {

bool is_free(Opcode op) {
  return op == Opcode::kConst || op == Opcode::kProbe || op == Opcode::kJump ||
         op == Opcode::kFrameState;
}

class LoopCopier {
 public:
  LoopCopier(Function& f, std::span<const Block> blocks, std::vector<Redefinition>& redefined)
      : f_(f), loop_(blocks.begin(), blocks.end()), redefined_(redefined) {
    for (uint32_t n = 0; n < loop_.size(); ++n) place_[loop_[n].index()] = n;
  }

  LoopCopies run(uint32_t copies) {
    for (uint32_t c = 0; c < copies; ++c) made_.push_back(make_blocks());
    lay_out();
    std::vector<Predecessor> to_header = edges_in();
    for (uint32_t c = 0; c < copies; ++c) {
      fill(made_[c], c + 1 < copies ? made_[c + 1][0] : loop_[0]);
    }
    for (const Predecessor& p : to_header) f_.edges[p.edge].to = made_[0][0];
    return {std::move(made_), std::move(to_header)};
  }

 private:
  bool inside(Block b) const { return place_.contains(b.index()); }

  std::vector<Block> make_blocks() {
    std::vector<Block> copy;
    for (size_t n = 0; n < loop_.size(); ++n) copy.push_back(f_.add_block());
    return copy;
  }

  void lay_out() {
    std::vector<Block> all;
    for (const auto& copy : made_) all.insert(all.end(), copy.begin(), copy.end());
    auto header = std::find(f_.layout.begin(), f_.layout.end(), loop_[0]);
    f_.layout.insert(header, all.begin(), all.end());
  }

  // Returns the edges to the header from outside of the loop. The copies have no edges yet.
  std::vector<Predecessor> edges_in() const {
    std::vector<Predecessor> in;
    for (Block b : f_.layout) {
      if (inside(b) || f_.block(b).insts.empty()) continue;
      const Inst& t = f_.terminator(b);
      for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
        if (f_.edges[e].to == loop_[0]) in.push_back({b, e});
      }
    }
    return in;
  }

  // Fills the blocks of one copied iteration, which continues at `next`.
  void fill(const std::vector<Block>& copy, Block next) {
    map_.clear();
    for (size_t n = 0; n < loop_.size(); ++n) define(loop_[n], copy[n]);
    for (size_t n = 0; n < loop_.size(); ++n) {
      for (size_t k = 0; k < f_.block(copy[n]).insts.size(); ++k) {
        finish(f_.block(copy[n]).insts[k], copy, next);
      }
    }
  }

  // Copies a block and its definitions; the operands are still the original ones.
  void define(Block from, Block to) {
    const size_t params = f_.params(from).size();
    for (size_t n = 0; n < params; ++n) {
      Value p = f_.params(from)[n];
      again(p, to, f_.add_block_param(to, f_.type_of(p)));
    }
    const std::vector<InstId> insts = f_.block(from).insts;
    for (InstId id : insts) {
      Inst i = f_.inst(id);
      Value result = i.result;
      i.result = Value::none();
      InstId made = f_.append(to, i, result.valid() ? f_.type_of(result) : Type::kNone);
      if (result.valid()) again(result, to, f_.inst(made).result);
    }
  }

  void again(Value v, Block in, Value copy) {
    map_[v.index()] = copy;
    redefined_.push_back({v, in, copy});
  }

  void finish(InstId id, const std::vector<Block>& copy, Block next) {
    ValueList args = mapped(f_.inst(id).args);
    Inst& i = f_.inst(id);
    i.args = args;
    if (i.edge_count == 0) return;
    auto at = static_cast<uint32_t>(f_.edges.size());
    for (uint32_t e = 0; e < i.edge_count; ++e) {
      Edge edge = f_.edges[i.edges_at + e];
      if (edge.to == loop_[0]) {
        edge.to = next;
      } else if (auto p = place_.find(edge.to.index()); p != place_.end()) {
        edge.to = copy[p->second];
      }
      edge.args = mapped(edge.args);
      f_.edges.push_back(edge);
    }
    i.edges_at = at;
  }

  ValueList mapped(ValueList l) {
    std::vector<Value> values;
    for (Value v : f_.list(l)) {
      auto it = map_.find(v.index());
      values.push_back(it == map_.end() ? v : it->second);
    }
    return f_.make_list(values);
  }

  Function& f_;
  std::vector<Block> loop_;
  std::vector<Redefinition>& redefined_;
  std::unordered_map<uint32_t, uint32_t> place_;  // by Block::index(): in loop_
  std::vector<std::vector<Block>> made_;          // by copy, then as in loop_
  std::unordered_map<uint32_t, Value> map_;       // of the copy being filled
};

}  // namespace

uint32_t size_of_copy(const Function& f, std::span<const Block> blocks, uint32_t most) {
  uint32_t size = 1;
  for (Block b : blocks) {
    for (InstId id : f.block(b).insts) {
      Opcode op = f.inst(id).op;
      Shape s = info(op).shape;
      bool calls = s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
      if (calls || op == Opcode::kLoopHeader) return 0;
      size += !is_free(op);
    }
    if (size > most) return 0;
  }
  return size;
}

LoopCopies copy_loop(Function& f, std::span<const Block> blocks, uint32_t copies,
                     std::vector<Redefinition>& redefined) {
  return LoopCopier(f, blocks, redefined).run(copies);
}

}  // namespace uptier::jit
