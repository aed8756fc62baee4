// FlowPlaces: where an instrumented copy counts control flow.
//
//   block mode   at the block's probe
//   edge mode    each chord of the plan, at a place that runs once for that edge and for no other:
//                  entry       in the prologue, after the stack check
//                  return      before the frame is left
//                  a -> b      at b's probe, if b has no other predecessor and no loop header;
//                              otherwise along the edge: at the end of a, or in a stub on the way
//
// Places are offsets in the slab, or ProbePlan::kNone if nothing is counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit::baseline {

class FlowPlaces {
 public:
  // Counts nothing.
  explicit FlowPlaces(const Function& f) : f_(f) {}
  // `plan`: null means one 64-bit counter for each block. `predecessors`: edges into a block, by
  // Block::index(). All must outlive this.
  FlowPlaces(const Function& f, const ProbePlan* plan, std::span<const uint32_t> predecessors);

  bool counts_edges() const { return counts_edges_; }
  uint32_t at_entry() const { return entry_; }
  uint32_t at_return(Block b) const {
    return counts_edges_ ? at_return_[b.index()] : ProbePlan::kNone;
  }
  uint32_t at_block(SiteId site) const;
  uint32_t along(const Edge& e) const {
    return counts_edges_ ? along_[static_cast<size_t>(&e - f_.edges.data())] : ProbePlan::kNone;
  }

 private:
  void place(const Edge& e, std::span<const uint32_t> numbers,
             std::span<const uint32_t> predecessors);

  const Function& f_;
  const ProbePlan* plan_ = nullptr;
  bool counts_edges_ = false;
  uint32_t entry_ = ProbePlan::kNone;
  std::vector<uint32_t> at_start_, at_return_;  // by Block::index()
  std::vector<uint32_t> along_;                 // by index in Function::edges
};

}  // namespace uptier::jit::baseline
