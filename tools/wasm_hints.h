// wasm_hints.h: writes a profile into a module as hints, for engines that read them.
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
// Calls with at least `executions` executions get hints of their targets. Targets below one percent, of
// other modules, or without room in the table are left out; the shares then add up to less than 100.
// Functions without a known first call (in files from before the order existed) come after the others,
// by executions. A function runs once if the profile has at least as many runs as calls of it, and no
// block of it ran more often than that.
//
// All numbers of a hint are LEB128, and its length is in bytes. This is the
// revision of compilation-hints with compilation_priority and optimization priority, where less is
// sooner and 127 is a function that runs once. (The first revisions called them compilation_order and
// hotness; more was hotter, and 0 ran once.)
//
// A branch is hinted if its likelier way has at least `share` of its executions, and that can be
// said with 95 % of confidence: the lower bound of Wilson's interval over the independent samples
//
//     n_eff = min(count, samples) / (1 - 1/w),    w = estimate / count
//
// which is infinite where every execution was observed (w = 1; see estimate_of). The proposal says
// "very likely" without a number. Branches with fewer than `executions` executions get no hint: neither
// way matters. Code that never ran gets the greatest frequency that the samples allow, see
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

// Returns the module with hints from the file's methods, order and number of runs. Fails if the module
// is not valid, or if the profile has none of its functions.
Result<std::vector<uint8_t>> add_hints(const std::vector<uint8_t>& module, const ProfileFile& file,
                                       const HintOptions& options, HintReport* report);

}  // namespace uptier::tools
