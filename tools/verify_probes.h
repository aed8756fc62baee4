// verify_probes.h: checks the law of block probes (jit/probes/probe_law.h) on a run of a WebAssembly program.
//
//   as built, interpreted             -> executions of each block: the truth
//   after each pass, interpreted      -> must be the same, or unknown
//   machine code, in single steps     -> the starts of its rows must be the same, or unknown
//
// Bodies are optimized with the true counts as their profile, callees inlined. The code is made by a
// runtime with tier=optimized; its second run is stepped, so that nothing is compiled meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "uptier/result.h"

namespace uptier::tools {

struct ProbeCheck {
  struct Step {
    std::string pass;    // "code" for the machine code
    uint64_t lost = 0;   // executions that became unknown in this step
    std::string broken;  // the law is broken: in which function, and how; empty: it holds
  };

  std::vector<Step> steps;  // by pass, in order; a pass that runs several times counts once
  uint64_t executions = 0;  // of all blocks, as built
  uint64_t code_lost = 0;   // of them, those that no row of the machine code counts
  // Of them, those of blocks that are partial, or unknown in some body: nobody can tell how many are missing.
  uint64_t code_doubtful = 0;
  uint64_t code_steps = 0;  // instructions that were stepped

  bool holds() const;
};

// Runs the program with these arguments. Errors: kCorruptInput, kInvalidInput: the module; kUnsupported: it
// cannot be checked (it traps, it ends with an error, its answers differ).
Result<ProbeCheck> verify_probes(const std::string& file, const std::vector<uint8_t>& bytes,
                                 const std::vector<std::string>& arguments);

// Prints the result. Returns the exit code: 1 if the law is broken.
int show_verify_probes(const CompileCommand& c, const std::vector<uint8_t>& bytes);

}  // namespace uptier::tools
