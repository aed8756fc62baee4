// flow.h: which edges of a body must be counted, and how the other counts follow from them.
//
// The vertices are 0, which stands for everything outside of the body, and the block sites
// 1..blocks. The flow into a vertex equals the flow out of it, so around any cycle of edges one
// count follows from the others: only the edges outside a spanning tree, the chords, need a
// counter. Calls and returns are edges from and to vertex 0, which closes the graph.
//
// Source: Knuth, The Art of Computer Programming, vol. 1, 2.3.4.1 (Kirchhoff's law); Ball and
// Larus, Optimally Profiling and Tracing Programs, TOPLAS 16(4), 1994, section 3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace uptier::profile {

struct FlowEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t weight = 0;    // the expected frequency, in any unit
  bool external = false;  // counted outside of the body's code, so always a chord

  friend bool operator==(const FlowEdge&, const FlowEdge&) = default;
};

// Parallel edges, self loops and vertices without edges are allowed. An edge that names a vertex
// greater than `blocks` is a bug (assert).
struct FlowGraph {
  uint32_t blocks = 0;
  std::vector<FlowEdge> edges;

  friend bool operator==(const FlowGraph&, const FlowGraph&) = default;
};

// Returns for each edge whether it is a chord: external, or outside a spanning tree (a forest if
// the other edges do not connect the graph) of the greatest weight. Among edges of equal weight,
// earlier ones go into the tree first, so the choice is a function of the graph. O(E log E).
std::vector<bool> choose_chords(const FlowGraph& graph);

struct FlowCounts {
  std::vector<uint64_t> blocks;  // of block site i + 1: the sum over the edges that enter it
  std::vector<uint64_t> edges;   // as in the graph
  bool clamped = false;          // some count is not exact, see reconstruct

  friend bool operator==(const FlowCounts&, const FlowCounts&) = default;
};

// Computes all counts from the counts of the chords.
//
//   chords                 the result of choose_chords for the graph
//   chord_counts_by_edge   one for each edge; ignored for edges that are not chords
//
// Exact if every counted walk began and ended at vertex 0. A frame that is still inside has entered
// blocks that it has not left. A count that would be negative becomes 0, one beyond 2^64-1
// saturates, and in either case `clamped` is set. The error ends up at vertex 0, whose own balance
// is never used. O(V + E).
FlowCounts reconstruct(const FlowGraph& graph, const std::vector<bool>& chords,
                       std::span<const uint64_t> chord_counts_by_edge);

// Returns the block sites, ascending, whose incoming edges do not add up to their outgoing ones.
// Empty for exact counts; a block with frames inside appears here only if it was clamped.
std::vector<uint32_t> imbalanced_blocks(const FlowGraph& graph, const FlowCounts& counts);

}  // namespace uptier::profile
