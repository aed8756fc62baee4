// param_uses: which parameters of a function are worth knowing the value of, and probes for them.
//
// What a constant would change is the code that a parameter steers: how often loops go round, which
// way branches and switches go, what divisions, shifts and strides are by, where indirect calls go.
// A use counts ten times as much for each loop around it; what is computed from the parameter and
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

// Parameters of a method whose values are observed, at most.
inline constexpr size_t kMostParamProbes = 3;
// Entries of their tables: what is looked for is one value that nearly all calls have.
inline constexpr uint32_t kParamProbeTop = 4;

// Returns the parameters that are worth knowing, most first, `most` at most. `f` in build order,
// `forest` its loops.
std::vector<uint32_t> telling_params(const Function& f, const LoopForest& forest,
                                     size_t most = kMostParamProbes);

// Puts a value probe for each of them at the start of a function that has been numbered. Their
// sites come after all others, so those keep their numbers, and the CFG hash does not change.
// `forest` is that of `f`.
void place_param_probes(Function& f, const LoopForest& forest);

// A place where a constant in the place of a value would change the code, and how much.
struct TellingUse {
  Block block;
  double worth = 0;
};
// Returns those of each of some values of the function, by the rules above.
std::vector<std::vector<TellingUse>> telling_uses(const Function& f, std::span<const Value> values);
// The same of what a range would change: comparisons, and arithmetic that asks whether it fits.
std::vector<std::vector<TellingUse>> ranged_uses(const Function& f, std::span<const Value> values);

// The sites of such probes.
struct ParamSite {
  uint32_t param = 0;
  SiteId site = 0;

  friend bool operator==(const ParamSite&, const ParamSite&) = default;
};
std::vector<ParamSite> param_sites(const Function& f);

}  // namespace uptier::jit
