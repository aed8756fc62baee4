// Ranges: intervals of the integer values of a function, through loops and after the conditions
// that lead to a place.
//
//   i = 0; while (i < n) { a[i]; i = i + 1 }      at a[i]: i in [0, 2^31 - 2], if n is not known
//
// Blocks are walked along the dominator tree, so the fact that an edge, a guard or a trap_if
// implies holds while the walk is below it. A parameter starts empty and is joined with the values
// passed on every edge that may be taken. If it keeps growing, it is widened to the next bound that
// some comparison of the function names, and after a few walks to zero or the end of its type.
// Walks are repeated until one changes nothing: then all intervals are right, in whatever order
// they were found. If kMostWalks walks do not suffice, parameters get the full interval.
//
//   Thread: none of its own. Cost: near linear for each walk; three or four with loops.
// Source: Cousot and Cousot, "Abstract Interpretation", 1977 (widening to thresholds); Harrison,
// "Compiler Analysis of the Value Ranges for Variables", 1977.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "jit/analysis/control_flow.h"
#include "jit/analysis/interval.h"
#include "jit/ir/function.h"

namespace uptier::jit {

class Ranges {
 public:
  explicit Ranges(const Function& f);

  // Finds the intervals, then walks once more and calls `visit(Block, InstId)` for each instruction
  // of each block that may run, in order; at() then returns the facts known before that
  // instruction.
  template <typename Visit>
  void run(Visit visit) {
    solve();
    start();
    for (Block b : order_) {
      if (!enter(b)) continue;
      std::span<const InstId> steps = steps_of(b);
      for (InstId i : f_.block(b).insts) {
        visit(b, i);
        if (steps.empty() || steps.front() != i) continue;
        step(i);
        steps = steps.subspan(1);
      }
    }
  }

  // The known interval of a value, at the walk's current position.
  const Interval& at(Value v) const { return now_[v.index()]; }
  // Returns whether a condition holds, if that is known at the walk's current position.
  std::optional<bool> holds(Value condition) const;

  static constexpr uint32_t kMostWalks = 12;

 private:
  struct Saved {
    Value value;
    Interval was;
  };
  struct Scope {
    Block block;
    size_t saved;
  };

  void settle_fixed();
  bool is_fixed(const Inst& i) const;
  std::span<const InstId> steps_of(Block b) const {
    const auto [at, size] = steps_at_[b.index()];
    return std::span(steps_).subspan(at, size);
  }
  void solve();
  void collect_bounds();
  void walk();
  void start();
  bool enter(Block b);
  void leave_scopes(Block b);
  void step(InstId i);
  void take_edges(const Inst& t);
  void take(const Inst& t, uint32_t edge);
  void give_up();
  Interval grown(Type t, const Interval& was, const Interval& to) const;
  Interval result_of(const Inst& i);
  Interval selected(const Inst& i);

  void assume(Value condition, bool holds, uint32_t depth = 0);
  void assume_comparison(Opcode op, Type t, Value a, Value b, bool holds, uint32_t depth);
  void narrow(Value v, const std::optional<Interval>& to, uint32_t depth);
  void narrow_source(Value v, uint32_t depth);
  const Inst* def(Value v) const;
  void restore(size_t saved);

  const Function& f_;
  ControlFlow control_;
  std::vector<Block> order_;   // dominators first, each followed by all it dominates
  std::vector<InstId> steps_;  // instructions that a walk must visit, block by block
  std::vector<std::pair<uint32_t, uint32_t>> steps_at_;  // by Block::index(): first, number
  std::vector<Interval> now_;      // by Value::index(): at the walk's position
  std::vector<Interval> params_;   // by Value::index(): joined so far, of block parameters
  std::vector<bool> known_;        // by Value::index(): whether the parameter has a value yet
  std::vector<bool> reached_;      // by Block::index()
  std::vector<Saved> saved_;       // intervals narrowed by conditions, to be restored
  std::vector<Scope> scopes_;      // the blocks that the walk is in
  std::vector<int64_t> bounds_s_;  // bounds where widening stops, in order
  std::vector<uint64_t> bounds_u_;
  uint32_t walks_ = 0;
  bool changed_ = false;
};

}  // namespace uptier::jit
