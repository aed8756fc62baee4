#include "jit/analysis/trip_count.h"

#include <algorithm>
#include <unordered_map>

#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

class TripCounter {
 public:
  TripCounter(const Function& f, const ControlFlow& c, const LoopNest& n, uint32_t loop)
      : f_(f), control_(c), loops_(n), loop_(loop), header_(n.loops[loop].header) {}

  std::optional<uint32_t> run(uint32_t most) {
    if (!find_edges() || !enter()) return std::nullopt;
    find_chain();
    for (uint32_t round = 1; round <= most; ++round) {
      if (leaves()) return round;
      if (!go_round()) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool find_edges() {
    uint32_t back = 0;
    for (const Predecessor& p : control_.preds[header_.index()]) {
      if (loops_.contains(loop_, p.from)) {
        ++back;
        latch_ = p.from;
        back_ = p.edge;
      } else {
        in_.push_back(p.edge);
      }
    }
    return back == 1;
  }

  std::optional<uint64_t> look(Value v) const {
    if (auto it = known_.find(v.index()); it != known_.end()) return it->second;
    InstId i = f_.value(v).inst;
    bool constant = i.valid() && f_.inst(i).op == Opcode::kConst;
    return constant ? std::optional(f_.inst(i).imm) : std::nullopt;
  }

  // Returns whether anything is known of the first iteration.
  bool enter() {
    auto params = f_.params(header_);
    for (size_t n = 0; n < params.size(); ++n) know(params[n], in_, n);
    return !known_.empty();
  }

  // Finds the blocks that every iteration passes, in order.
  void find_chain() {
    for (Block b = latch_; b != header_; b = control_.idom(b)) chain_.push_back(b);
    chain_.push_back(header_);
    std::reverse(chain_.begin(), chain_.end());
  }

  bool leaves() {
    for (Block b : chain_) {
      if (b != header_) join(b);
      for (InstId i : f_.block(b).insts) compute(f_.inst(i));
      auto way = way_of(f_.terminator(b));
      if (way && !loops_.contains(loop_, *way)) return true;
    }
    return false;
  }

  void join(Block b) {
    std::vector<uint32_t> in;
    for (const Predecessor& p : control_.preds[b.index()]) in.push_back(p.edge);
    auto params = f_.params(b);
    for (size_t n = 0; n < params.size(); ++n) know(params[n], in, n);
  }

  // A block's parameter `n` is known if all edges to the block pass the same constant.
  void know(Value param, const std::vector<uint32_t>& edges, size_t n) {
    uint64_t bits = 0;
    for (uint32_t e : edges) {
      auto c = look(f_.list(f_.edges[e].args)[n]);
      if (!c || (e != edges[0] && *c != bits)) return;
      bits = *c;
    }
    known_[param.index()] = bits;
  }

  void compute(const Inst& i) {
    if (!i.result.valid() || !evaluates(i.op) || i.args.size == 0) return;
    uint64_t operands[3];
    for (uint32_t n = 0; n < i.args.size; ++n) {
      auto c = look(f_.args(i)[n]);
      if (!c) return;
      operands[n] = *c;
    }
    Evaluation e = evaluate(i.op, i.type, f_.type_of(f_.args(i)[0]), {operands, i.args.size});
    if (e.trap == TrapCode::kNone) known_[i.result.index()] = e.bits;
  }

  std::optional<Block> way_of(const Inst& t) const {
    if (t.op != Opcode::kBranch && t.op != Opcode::kSwitch) return std::nullopt;
    auto c = look(f_.args(t)[0]);
    if (!c) return std::nullopt;
    uint64_t way = t.op == Opcode::kSwitch ? std::min<uint64_t>(*c, t.edge_count - 1) : *c == 0;
    return f_.edges_of(t)[way].to;
  }

  // Returns whether anything new is known of the next iteration.
  bool go_round() {
    std::unordered_map<uint32_t, uint64_t> next;
    auto params = f_.params(header_);
    bool moved = false;
    for (size_t n = 0; n < params.size(); ++n) {
      auto c = look(f_.list(f_.edges[back_].args)[n]);
      if (!c) continue;
      next[params[n].index()] = *c;
      moved |= look(params[n]) != c;
    }
    known_ = std::move(next);
    return moved;
  }

  const Function& f_;
  const ControlFlow& control_;
  const LoopNest& loops_;
  uint32_t loop_;
  Block header_, latch_;
  uint32_t back_ = 0;         // the back edge
  std::vector<uint32_t> in_;  // edges from outside
  std::vector<Block> chain_;
  std::unordered_map<uint32_t, uint64_t> known_;  // by Value::index(): in this iteration
};

}  // namespace

std::optional<uint32_t> count_trips(const Function& f, const ControlFlow& c, const LoopNest& n,
                                    uint32_t loop, uint32_t most) {
  return TripCounter(f, c, n, loop).run(most);
}

}  // namespace uptier::jit
