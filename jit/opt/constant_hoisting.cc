// Constant hoisting. A loop of one block that stores a 64-bit constant keeps it in a register:
//
//     loop(i):                               t = bitcast.i64 (const.f64 k)
//       store k, base[i]                ->   loop(i):
//       ...                                    store t, base[i]
//
// The code generator makes constants again at each use (x64/lower.h). As an immediate or a memory
// operand a constant is free. But a store takes only 32 bits, so a 64-bit constant costs an
// instruction of ten bytes in each iteration. The code generator does not look through the bitcast;
// a pass that does must not run after this one.
//
// The pass picks the constants that are stored most often, as many as leave registers free. A
// constant that gets no register after all is read from the frame, which takes no longer than
// making it again.
#include <algorithm>

#include "jit/opt/loop_preheader.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr size_t kMostLiveIntegers = 9;  // as in strength_reduction
constexpr size_t kMostLoopInsts = 200;   // of the loop

class ConstantKeeper {
 public:
  explicit ConstantKeeper(Function& f) : f_(f) {}

  void run() {
    std::vector<Block> loops;
    for (Block b : f_.layout) {
      if (is_loop(b)) loops.push_back(b);
    }
    for (Block b : loops) keep(b);
  }

 private:
  struct Stored {
    uint64_t bits = 0;
    std::vector<InstId> by = {};
  };

  bool is_loop(Block b) const {
    auto edges = f_.successors(b);
    bool turns = edges.size() == 2 && (edges[0].to == b) != (edges[1].to == b);
    return turns && f_.block(b).insts.size() <= kMostLoopInsts;
  }

  void keep(Block b) {
    std::vector<Stored> all = stored_in(b);
    if (all.empty()) return;
    std::ranges::stable_sort(all, std::greater<>{}, [](const Stored& s) { return s.by.size(); });
    size_t live = live_in(b);
    all.resize(std::min(all.size(), kMostLiveIntegers - std::min(live, kMostLiveIntegers)));
    if (all.empty()) return;
    Predecessors preds(f_);
    LoopPreheader e(f_, b, preds[b.index()]);
    for (const Stored& s : all) {
      Value k = e.emit(Opcode::kBitcast, Type::kI64, {e.constant(Type::kF64, s.bits)});
      for (InstId id : s.by) store(id, k);
    }
    std::vector<Value> params(f_.params(e.block()).begin(), f_.params(e.block()).end());
    e.end({.op = Opcode::kJump}, {{b, f_.make_list(params)}});
  }

  std::vector<Stored> stored_in(Block b) const {
    std::vector<Stored> all;
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      if (i.op != Opcode::kStore) continue;
      const Inst* c = constant(f_.args(i)[0]);
      if (c == nullptr || (i.type != Type::kI64 && i.type != Type::kF64)) continue;
      auto value = static_cast<int64_t>(c->imm);
      if (value >= INT32_MIN && value <= INT32_MAX) continue;
      auto at = std::ranges::find(all, c->imm, &Stored::bits);
      if (at == all.end()) at = all.insert(all.end(), {c->imm});
      at->by.push_back(id);
    }
    return all;
  }

  // Makes a new list of arguments, because instructions may share lists.
  void store(InstId id, Value v) {
    std::vector<Value> args(f_.args(f_.inst(id)).begin(), f_.args(f_.inst(id)).end());
    args[0] = v;
    f_.inst(id).args = f_.make_list(args);
    f_.inst(id).type = Type::kI64;
  }

  const Inst* constant(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.inst(i).op == Opcode::kConst ? &f_.inst(i) : nullptr;
  }

  // Returns the number of integers that the loop keeps alive: values from outside, and its
  // parameters.
  size_t live_in(Block b) const {
    std::vector<Value> live;
    auto use = [&](Value v) {
      if (f_.value(v).block != b && constant(v) == nullptr) live.push_back(v);
    };
    for (InstId id : f_.block(b).insts) {
      for (Value v : f_.args(f_.inst(id))) use(v);
    }
    for (const Edge& e : f_.successors(b)) {
      for (Value v : f_.list(e.args)) use(v);
    }
    std::ranges::sort(live, {}, [](Value v) { return v.index(); });
    live.erase(std::ranges::unique(live).begin(), live.end());
    live.insert(live.end(), f_.params(b).begin(), f_.params(b).end());
    auto integer = [&](Value v) { return !is_float(f_.type_of(v)); };
    return static_cast<size_t>(std::ranges::count_if(live, integer));
  }

  Function& f_;
};

}  // namespace

void constant_hoisting(Function& f) { ConstantKeeper(f).run(); }

}  // namespace uptier::jit
