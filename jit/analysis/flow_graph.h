// flow_graph: a Function as the graph on which control flow is counted.
//
// The vertices are 0, the outside, and the block sites. The edges, in this order:
//
//   real      the edges of the terminators in (layout order, successor order); number n is at
//             n - 1, and these numbers are the sites of kEdge
//   entry     outside -> entry block
//   returns   block -> outside, for each block that returns, in layout order
//   arrivals  outside -> header, for each loop: a frame came into the copy here     (external)
//   leavings  header -> outside, for each loop: a frame left the copy here          (external)
//   traps     block -> outside, for each block: a trap unwound a frame in it        (external)
//
// External edges are counted by slow paths and by the walk of a trap, never by code. A frame that
// leaves at a header has not executed the header's block: the count of a block is the flow into it,
// less the flow that left there. A block that ends in `trap` has no way out except its trap edge.
//
// A body of one block without edges has two edges that run equally often, entry and return. Its
// entry is external as well, because the sampler, which sends calls into the copy, knows their
// number. So its code counts nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"
#include "profile/data/flow.h"

namespace uptier::jit {

struct FlowShape {
  profile::FlowGraph graph;
  uint32_t real = 0;              // edges of terminators
  std::vector<SiteId> returning;  // block sites, ascending
  std::vector<SiteId> headers;    // by LoopId: the block site

  // Indices in graph.edges.
  uint32_t entry() const { return real; }
  uint32_t first_return() const { return real + 1; }
  uint32_t first_arrival() const {
    return first_return() + static_cast<uint32_t>(returning.size());
  }
  uint32_t first_leaving() const { return first_arrival() + static_cast<uint32_t>(headers.size()); }
  uint32_t first_trap() const { return first_leaving() + static_cast<uint32_t>(headers.size()); }
  // Returns whether the number of calls must be supplied, see above.
  bool entry_is_known() const { return graph.edges[real].external; }

  friend bool operator==(const FlowShape&, const FlowShape&) = default;
};

// `f` is in build order and verified. Weights come from the shape alone: loops run ten times, paths
// that end in a trap hardly ever (see analysis/frequencies.h), so every build of a body gets the
// same graph. Critical edges, which cost a jump to count, and back edges weigh a quarter more than
// other edges of their frequency. Near linear.
FlowShape flow_graph(const Function& f);

// Returns, by index in Function::edges, the number of each real edge; 0 for edges of no block in
// the layout.
std::vector<uint32_t> edge_numbers(const Function& f);

}  // namespace uptier::jit
