// Ranges: which intervals the integer values of a function lie in, found round loops and after the
// conditions that lead to a place.
//
//   i = 0; while (i < n) { a[i]; i = i + 1 }      at a[i]: i in [0, 2^31 - 2], if n is not known
//
// Blocks are walked along the tree of dominators, so that what a way in, a guard or a trap_if says
// holds for as long as the walk is below it. A parameter starts with nothing and is joined with
// what every edge that may be taken passes to it; one that keeps growing steps on to the next bound
// that some comparison of the function names, and after a few walks to the end of its type or to
// zero. Walks are repeated until one changes nothing: then
// all intervals are right, whatever the order they were found in. After kMostWalks of them
// parameters are taken for anything.
//
//   Thread: none of its own. Cost: near linear for each walk; three or four with loops.
// After: Cousot and Cousot, "Abstract Interpretation", 1977 (widening to thresholds); Harrison,
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
  // of each block that may run, in order, while at() tells what is known before it.
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

  // What is known of a value, where the walk stands.
  const Interval& at(Value v) const { return now_[v.index()]; }
  // Whether a condition is known to hold, or not to, where the walk stands.
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
  std::vector<Block> order_;   // dominators first, each with all it dominates
  std::vector<InstId> steps_;  // what a walk has to look at, of each block in turn
  std::vector<std::pair<uint32_t, uint32_t>> steps_at_;  // by Block::index(): first, how many
  std::vector<Interval> now_;                            // by Value::index(): where the walk stands
  std::vector<Interval> params_;   // by Value::index(): joined so far, of block parameters
  std::vector<bool> known_;        // by Value::index(): whether the parameter has got anything
  std::vector<bool> reached_;      // by Block::index()
  std::vector<Saved> saved_;       // what conditions have narrowed, to be put back
  std::vector<Scope> scopes_;      // the blocks that the walk is in
  std::vector<int64_t> bounds_s_;  // where widening stops, in order
  std::vector<uint64_t> bounds_u_;
  uint32_t walks_ = 0;
  bool changed_ = false;
};

}  // namespace uptier::jit
