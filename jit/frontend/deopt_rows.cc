#include "jit/frontend/deopt_rows.h"

#include <utility>

#include "jit/analysis/loop_forest.h"

namespace uptier::jit {

std::vector<int32_t> slots_of(const std::vector<Value>& values, const FrameLayout& frame) {
  std::vector<int32_t> slots;
  for (Value v : values) slots.push_back(frame.slot[v.index()]);
  return slots;
}

std::vector<bool> blocks_in_loops(const Function& f) {
  std::vector<bool> in(f.blocks.size());
  LoopForest forest = find_loop_forest(f);
  for (Block b : f.layout) in[b.index()] = forest.innermost[b.index()].valid();
  return in;
}

void attach(Function& f, InstId guard, Deopt d, const std::vector<Value>& values) {
  std::vector<Value> args{f.args(f.inst(guard))[0]};
  args.insert(args.end(), values.begin(), values.end());
  f.deopts.push_back(std::move(d));
  f.inst(guard).imm = f.deopts.size();
  f.inst(guard).args = f.make_list(args);
}

}  // namespace uptier::jit
