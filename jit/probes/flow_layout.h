// FlowLayout: reads the flow counters of one method's slabs, while its plan is in use.
//
//   slab words --read--> counters --add up over threads--> counters --counts--> blocks and edges
//
// Reading needs offsets and widths; counting needs the graph. Between the two, counters are plain
// 64-bit sums that may be added, subtracted (the values at the last snapshot) and saturated,
// whatever their width in the slab.
//
// Exact if no frame is inside the copy. A frame that is still inside block b has come in and not
// gone out: pass it as if a trap had unwound it there, and the counts are exact again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/flow_graph.h"
#include "jit/probes/probe_plan.h"
#include "profile/data/flow.h"

namespace uptier::jit {

class FlowLayout {
 public:
  // Selects which of the two counters of kDual is read; all other modes have one.
  enum class Reading : uint8_t { kExact, kApproximate };

  FlowLayout() = default;
  // `plan` is of plan_probes for this very body.
  FlowLayout(const Function& f, const ProbePlan& plan)
      : FlowLayout(counted_flow(f, plan.flow), plan) {}
  // `flow` is the one that the plan was made from.
  FlowLayout(CountedFlow flow, const ProbePlan& plan);

  // Returns the counters of a slab: by block site - 1 in block mode, by edge of shape().graph in
  // edge mode (0 if an edge has no counter). Other threads may write words meanwhile. A slab that
  // is too short reads as if zeros followed it.
  std::vector<uint64_t> read(std::span<const uint64_t> slab,
                             Reading reading = Reading::kExact) const;

  // Returns all counts of the flow.
  //
  //   counters    of read(), or sums of several
  //   traps       frames that traps unwound, by block site - 1; may be shorter, or empty
  //   entries     calls that got as far as the first block; used only if needs_entries()
  //
  // In block mode the edges stay empty, and traps are not needed.
  profile::FlowCounts counts(std::span<const uint64_t> counters, std::span<const uint64_t> traps,
                             uint64_t entries = 0) const;
  // The same from one slab.
  profile::FlowCounts counts_of(std::span<const uint64_t> slab, std::span<const uint64_t> traps,
                                uint64_t entries = 0) const {
    return counts(read(slab), traps, entries);
  }

  // Returns whether the code has no counters, so that counts() needs the number of calls.
  bool needs_entries() const { return mode_ == FlowMode::kEdges && shape().entry_is_known(); }
  FlowMode mode() const { return mode_; }
  // Empty in block mode.
  const FlowShape& shape() const { return flow_.shape; }
  // Edges that are sites of kEdge: 1..real_edges(). 0 in block mode.
  uint32_t real_edges() const { return shape().real; }

 private:
  uint64_t counter(std::span<const uint64_t> slab, uint32_t offset) const;

  FlowMode mode_ = FlowMode::kBlocks;
  bool narrow_ = false;
  bool shared_ = false;
  bool dual_ = false;
  CountedFlow flow_;
  std::vector<uint32_t> offsets_;  // by block site - 1 or by edge
};

}  // namespace uptier::jit
