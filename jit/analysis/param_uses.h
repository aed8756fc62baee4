// param_uses: the parameters of a function whose values are worth knowing, and probes for them.
//
// A constant changes the code that a parameter steers: how often loops repeat, which way branches
// and switches go, the operands of divisions, shifts and strides, the targets of indirect calls. A
// use counts ten times as much for each loop around it; a value computed from the parameter and
// constants alone counts as the parameter.
//
//   Thread: none of their own. Cost: linear in the function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// The most parameters of a method whose values are observed.
inline constexpr size_t kMostParamProbes = 3;
// Entries of their tables: we look for one value that nearly all calls have.
inline constexpr uint32_t kParamProbeTop = 4;

// Returns the parameters that are worth knowing, the best first, at most `most`. `f` is in build
// order, `forest` its loops.
std::vector<uint32_t> telling_params(const Function& f, const LoopForest& forest,
                                     size_t most = kMostParamProbes);

// Puts a value probe for each of them at the start of a function that has been numbered. Their
// sites come after all others, so those keep their numbers, and the CFG hash does not change.
// `forest` is the forest of `f`.
void place_param_probes(Function& f, const LoopForest& forest);

// A place where knowing a value as a constant would change the code, and how much.
struct TellingUse {
  Block block;
  double worth = 0;
};
// For each of some values of the function, returns these places, by the rules above.
std::vector<std::vector<TellingUse>> telling_uses(const Function& f, std::span<const Value> values);
// The same for a known range: comparisons, and arithmetic with overflow tests.
std::vector<std::vector<TellingUse>> ranged_uses(const Function& f, std::span<const Value> values);

// The sites of such probes.
struct ParamSite {
  uint32_t param = 0;
  SiteId site = 0;

  friend bool operator==(const ParamSite&, const ParamSite&) = default;
};
std::vector<ParamSite> param_sites(const Function& f);

}  // namespace uptier::jit
