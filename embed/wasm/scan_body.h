// scan_body.h: what must be known of a function body before its first block is built.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "embed/wasm/module_info.h"

namespace uptier::wasm {

// Facts of one body. Offsets are those of the instruction that opens a block, in rising order.
struct BodyFacts {
  bool accesses_memory = false;
  std::vector<uint32_t> repeating_loops;  // some branch goes back to them
  std::vector<uint32_t> ifs_with_else;

  bool repeats(uint32_t loop) const { return contains(repeating_loops, loop); }
  bool has_else(uint32_t if_op) const { return contains(ifs_with_else, if_op); }

 private:
  static bool contains(const std::vector<uint32_t>& sorted, uint32_t offset) {
    return std::binary_search(sorted.begin(), sorted.end(), offset);
  }
};

// Scans a validated body. Cost: linear. Branches in dead code count as well: a loop may be taken
// for a repeating one and never repeat.
BodyFacts scan_body(const ModuleInfo& info, const FunctionInfo& function);

}  // namespace uptier::wasm
