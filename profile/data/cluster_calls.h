// cluster_calls: in which order code is placed, so that what calls each other lies together.
//
// Call-chain clustering (C3 of hfsort; Ottoni and Maher, CGO 2017, section 3): every function
// starts as a cluster of its own. By falling weight, each function's cluster is put after that of
// its heaviest caller, if
//
//   both together take `most_bytes` at most, and
//   the caller's cluster stays within kDiluted of its density (weight / bytes)
//
// and at last the clusters stand by falling density, so that what runs most fills the fewest pages.
// A caller is followed by its callees, as calls go forward.
//
// A pure function of its arguments; ties go to the lesser number. Weights are advice: any give a
// permutation. Cost: sorting, and the sum of the arcs.
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

// Returns the clusters, each with its functions in order. Arcs that name no function, and of a
// function to itself, are left out.
std::vector<std::vector<uint32_t>> cluster_calls(std::span<const PlacedFunction> functions,
                                                 std::span<const CallArc> arcs,
                                                 uint64_t most_bytes);

}  // namespace uptier::profile
