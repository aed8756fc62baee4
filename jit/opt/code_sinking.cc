// Code sinking. Code from a stack machine often computes an operand before a call and uses it after
// the call. Each such value needs a callee-saved register or a slot across the call. Moving an
// operation on a single value past the call costs nothing: either the operand or the result lives
// across it anyway.
#include <algorithm>

#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

class Sinker {
 public:
  explicit Sinker(Function& f) : f_(f), uses_(f.values.size()), user_(f.values.size(), kNowhere) {}

  void run() {
    for (Block b : f_.layout) count_uses(b);
    for (Block b : f_.layout) {
      if (has_call(b)) sink(b);
    }
  }

 private:
  static bool is_call(const Inst& i) {
    Shape s = info(i.op).shape;
    return s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
  }

  bool has_call(Block b) const {
    const auto& insts = f_.block(b).insts;
    return std::any_of(insts.begin(), insts.end(), [&](InstId i) { return is_call(f_.inst(i)); });
  }

  void count_uses(Block b) {
    for (InstId i : f_.block(b).insts) {
      for (Value v : f_.args(f_.inst(i))) {
        ++uses_[v.index()];
        user_[v.index()] = i.index();
      }
    }
    for (const Edge& e : f_.successors(b)) {
      // An edge argument counts twice, so that its definition is not moved.
      for (Value v : f_.list(e.args)) uses_[v.index()] += 2;
    }
  }

  bool may_sink(const Inst& i) const {
    uint8_t effects = info(i.op).effects;
    bool pure = (effects & ~kCommutes) == 0 && i.op != Opcode::kConst;
    if (!pure || !i.result.valid() || uses_[i.result.index()] != 1) return false;
    uint32_t values = 0;
    for (Value v : f_.args(i)) {
      InstId def = f_.value(v).inst;
      if (!def.valid() || f_.inst(def).op != Opcode::kConst) ++values;
    }
    return values <= 1;
  }

  void sink(Block b) {
    auto& insts = f_.block(b).insts;
    // calls[k]: number of calls in the block before instruction k.
    std::vector<uint32_t> calls(insts.size());
    place_.clear();
    for (uint32_t k = 0, n = 0; k < insts.size(); ++k) {
      calls[k] = n;
      if (is_call(f_.inst(insts[k]))) ++n;
      place_.push_back({insts[k].index(), k});
    }
    std::sort(place_.begin(), place_.end());
    before_.assign(insts.size(), {});
    std::vector<bool> moved(insts.size());
    for (uint32_t k = 0; k < insts.size(); ++k) {
      if (!may_sink(f_.inst(insts[k]))) continue;
      uint32_t user = place_of(user_[f_.inst(insts[k]).result.index()]);
      if (user == kNowhere || calls[user] == calls[k]) continue;
      before_[user].push_back(k);
      moved[k] = true;
    }
    std::vector<InstId> out;
    for (uint32_t k = 0; k < insts.size(); ++k) {
      if (!moved[k]) emit(k, insts, out);
    }
    insts = std::move(out);
  }

  uint32_t place_of(uint32_t inst) const {
    auto it = std::lower_bound(place_.begin(), place_.end(), std::pair(inst, 0u));
    return it != place_.end() && it->first == inst ? it->second : kNowhere;
  }

  // A chain of sunk operations is as long as an expression, so it is followed by a worklist instead
  // of recursion.
  void emit(uint32_t k, const std::vector<InstId>& insts, std::vector<InstId>& out) {
    std::vector<uint32_t> chain{k};
    for (size_t n = 0; n < chain.size(); ++n) {
      for (uint32_t e : before_[chain[n]]) chain.push_back(e);
    }
    for (size_t n = chain.size(); n-- > 0;) out.push_back(insts[chain[n]]);
  }

  Function& f_;
  std::vector<uint32_t> uses_;  // by Value::index()
  std::vector<uint32_t> user_;  // by Value::index(): the last instruction that uses it
  std::vector<std::pair<uint32_t, uint32_t>> place_;  // of the block: instruction, place
  std::vector<std::vector<uint32_t>> before_;         // by place: operations to insert before it
};

}  // namespace

void code_sinking(Function& f) { Sinker(f).run(); }

}  // namespace uptier::jit
