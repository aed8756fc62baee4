#include "jit/baseline/flow_places.h"

#include "jit/analysis/flow_graph.h"

namespace uptier::jit::baseline {

FlowPlaces::FlowPlaces(const Function& f, const ProbePlan* plan,
                       std::span<const uint32_t> predecessors)
    : f_(f), plan_(plan) {
  if (plan == nullptr || plan->flow != FlowMode::kEdges) return;
  counts_edges_ = true;
  std::vector<uint32_t> numbers = edge_numbers(f);
  uint32_t real = 0;
  for (Block b : f.layout) real += f.terminator(b).edge_count;
  entry_ = plan->edges[real];
  at_return_.assign(f.blocks.size(), ProbePlan::kNone);
  at_start_.assign(f.blocks.size(), ProbePlan::kNone);
  along_.assign(f.edges.size(), ProbePlan::kNone);
  uint32_t next_return = real + 1;
  for (Block b : f.layout) {
    if (f.terminator(b).op == Opcode::kReturn) at_return_[b.index()] = plan->edges[next_return++];
    for (const Edge& e : f.successors(b)) place(e, numbers, predecessors);
  }
}

void FlowPlaces::place(const Edge& e, std::span<const uint32_t> numbers,
                       std::span<const uint32_t> predecessors) {
  auto index = static_cast<size_t>(&e - f_.edges.data());
  uint32_t offset = plan_->edges[numbers[index] - 1];
  bool header = f_.inst(f_.block(e.to).insts[0]).op == Opcode::kLoopHeader;
  bool only_way = predecessors[e.to.index()] == 1 && !header;
  (only_way ? at_start_[e.to.index()] : along_[index]) = offset;
}

uint32_t FlowPlaces::at_block(SiteId site) const {
  if (counts_edges_) return at_start_[f_.layout[site - 1].index()];
  if (plan_ == nullptr) return 8 * (site - 1);
  return site <= plan_->blocks.size() ? plan_->blocks[site - 1] : ProbePlan::kNone;
}

}  // namespace uptier::jit::baseline
