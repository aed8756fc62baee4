// wasm_hints.h: a module with what a profile says of it, for engines that listen to hints.
//
// Four custom sections go before the code section, in place of those the module has:
//
//   metadata.code.branch_hint   at br_if and if: the condition is likely 1, or likely 0
//   metadata.code.instr_freq    at call, call_indirect and loop: floor(log2(n / N)) + 32, in 1..64,
//                               for n executions in N calls of the function
//   metadata.code.call_targets  at call_indirect: pairs of a function's index and its share of the
//                               calls in percent, rounded down, the greatest share first
//   metadata.code.compilation_priority
//                               at offset 0 of functions that were called: the place of its first
//                               call among those of all, from 0; and of the hottest functions,
//                               which make up kHotShare of all executions together, how hot,
//                               floor(log2(greatest / n)): 0 is optimized first. 127 says that the
//                               function runs once
//
// A call of `executions` or more has its targets hinted. Those below one percent, those of another
// module and those that the table had no room for are missing: the shares then add up to less than
// 100. A function that no run is known to have called first (files of before there was an order)
// comes behind those, by executions. It runs once if the profile knows as many runs as calls of it
// or more, and no block of it ran more often than that.
//
// All numbers of a hint are LEB128, and its length is in bytes. That is compilation-hints as it
// stands since compilation_order was renamed to compilation_priority and hotness to optimization
// priority, where less is sooner and 127 is a function that runs once (in the first revisions more
// was hotter and 0 ran once).
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
#include <string>
#include <vector>

#include "uptier/profile_file.h"
#include "uptier/result.h"

namespace uptier::tools {

inline constexpr double kHotShare = 0.99;

struct HintOptions {
  double share = 0.9;
  uint64_t executions = 16;
  std::string name = "module";  // in errors
};

struct HintReport {
  uint64_t functions = 0;    // that the profile knows
  uint64_t unknown = 0;      // that it does not know, or of other code
  uint64_t likely = 0;       // branches whose condition is likely 1
  uint64_t unlikely = 0;     // likely 0
  uint64_t unclear = 0;      // branches without a hint
  uint64_t frequencies = 0;  // instructions with one
  uint64_t targeted = 0;     // indirect calls with targets
  uint64_t prioritized = 0;  // functions with a priority
};

// Returns the module with its hints; the methods, the order and the number of runs are of use.
// Fails for what is no valid module, and for a profile that knows none of its functions.
Result<std::vector<uint8_t>> add_hints(const std::vector<uint8_t>& module, const ProfileFile& file,
                                       const HintOptions& options, HintReport* report);

}  // namespace uptier::tools
