// cluster_calls: an order for placing code, so that callers and callees are close together.
//
// Call-chain clustering (C3 of hfsort; Ottoni and Maher, CGO 2017, section 3): every function
// starts as a cluster of its own. By falling weight, each function's cluster is put after the
// cluster of its heaviest caller, if
//
//   both together take at most `most_bytes`, and
//   the caller's cluster stays within kDiluted of its density (weight / bytes)
//
// Finally the clusters are sorted by falling density, so that the hottest code occupies the fewest
// pages. Callees follow their caller, since calls go forward.
//
// A pure function of its arguments; ties go to the smaller number. Weights are advice: any weights
// give a permutation. Cost: sorting, and the sum of the arcs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace uptier::profile {

struct PlacedFunction {
  double weight = 0;  // how much it runs
  uint64_t bytes = 1;
};

// Calls from one function to another, by their numbers.
struct CallArc {
  uint32_t caller = 0;
  uint32_t callee = 0;
  uint64_t calls = 0;
};

// Returns the clusters, each with its functions in order. Arcs that name no function, and arcs of a
// function to itself, are ignored.
std::vector<std::vector<uint32_t>> cluster_calls(std::span<const PlacedFunction> functions,
                                                 std::span<const CallArc> arcs,
                                                 uint64_t most_bytes);

}  // namespace uptier::profile
