// probe_samples: stack samples over probed code, in the two text forms that llvm-profgen reads.
//
//   to_unsymbolized   flat, for --unsymbolized-profile: a number of lines, then "start-end:count" for
//                     each; a number of lines, then "source->target:count" for each
//   to_perfscript     with contexts, for --perfscript: in the form of `perf script` with branch stacks
//
// A sample in a block counts for the block and for each call in it. So the flat form has a range for the
// first instruction of the block, and for each call instruction; the calls of known functions are
// branches as well. The form with contexts has a record for each:
//
//     COUNT
//             0                      the leaf: profgen puts the target of the first branch in its place
//             RETURN                 of each caller, innermost first
//      0xA/0xA/P/-/-/0 0x0/0xA/P/-/-/0      newest first: a range from A to A, the block's first instruction
//
// and the same with a single branch, from the call to its target, for a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uptier::profile {

// A call in a sampled block.
struct SampledCall {
  uint64_t address = 0;  // of the instruction
  uint64_t returns = 0;  // the address after it
  uint64_t target = 0;   // where the callee's code begins; 0: not known
};

// The kind of a block's first instruction, as far as it matters here.
enum class FirstInstruction : uint8_t { kOther, kCall, kReturn };

// The code from one row of a block to the next row, with the calls in it, by rising address.
struct SampledBlock {
  uint64_t start = 0;  // 0: no block starts here, one goes on
  FirstInstruction first = FirstInstruction::kOther;
  std::vector<SampledCall> calls;  // if `first` is kCall, the first call is there
};

struct ProbeSample {
  std::vector<uint32_t> blocks;   // in ProbeSamples::blocks: those that the sample counts for
  std::vector<uint64_t> callers;  // return addresses, innermost first
  uint64_t count = 0;
};

struct ProbeSamples {
  std::vector<SampledBlock> blocks;
  std::vector<ProbeSample> samples;
};

std::string to_unsymbolized(const ProbeSamples& samples);
std::string to_perfscript(const ProbeSamples& samples);

}  // namespace uptier::profile
