// wasm_hints.h: a module with what a profile says of it, for engines that listen to hints.
//
// Two custom sections go before the code section, in place of those the module has:
//
//   metadata.code.branch_hint   at br_if and if: the condition is likely 1, or likely 0
//   metadata.code.instr_freq    at call, call_indirect and loop: floor(log2(n / N)) + 32, in 1..64,
//                               for n executions in N calls of the function
//
// A branch is hinted if its likelier way has at least `share` of its executions, and that can be
// said with 95 % of confidence: the lower bound of Wilson's interval over the independent samples
//
//     n_eff = min(count, samples) / (1 - 1/w),    w = estimate / count
//
// which is infinite where every execution was observed (w = 1; see estimate_of). The proposal says
// "very likely" and no number. What has run less than `executions` times is not hinted: neither
// way matters. What never ran has the greatest frequency that the samples allow, see
// MethodProfile::estimate. Instructions of the first block run once a call, which needs no hint.
//
// A branch to a loop executes the loop instruction again, so that n of a loop is its iterations.
// Source: github.com/WebAssembly/branch-hinting, github.com/WebAssembly/compilation-hints
// (Overview.md of each); E. B. Wilson, JASA 22 (1927).
#pragma once

#include <cstdint>
#include <vector>

#include "uptier/profile.h"
#include "uptier/result.h"

namespace uptier::tools {

struct HintOptions {
  double share = 0.9;
  uint64_t executions = 16;
};

struct HintReport {
  uint64_t functions = 0;    // that the profile knows
  uint64_t unknown = 0;      // that it does not know, or of other code
  uint64_t likely = 0;       // branches whose condition is likely 1
  uint64_t unlikely = 0;     // likely 0
  uint64_t unclear = 0;      // branches without a hint
  uint64_t frequencies = 0;  // instructions with one
};

// Returns the module with its hints. Fails for what is no valid module, and for a profile that
// knows none of its functions.
Result<std::vector<uint8_t>> add_hints(const std::vector<uint8_t>& module, const Profile& profile,
                                       const HintOptions& options, HintReport* report);

}  // namespace uptier::tools
