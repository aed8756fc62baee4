// scan_body.h: what must be known of a function body before its first block is built.
//
// Learned while the body is validated, so that it is not read once more for it: the reader of the
// module tells what opens and ends blocks and where branches go, in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace uptier::wasm {

// Facts of one body. Offsets are those of the instruction that opens a block, in rising order.
// Branches in dead code count as well: a loop may be taken for a repeating one and never repeat.
struct BodyFacts {
  struct Blocks {
    std::vector<uint32_t> repeating_loops;  // some branch goes back to them
    std::vector<uint32_t> ifs_with_else;

    bool operator==(const Blocks&) const = default;
  };
  bool accesses_memory = false;
  std::unique_ptr<const Blocks> blocks;  // null where there are none: most bodies are small

  bool repeats(uint32_t loop) const { return blocks && contains(blocks->repeating_loops, loop); }
  bool has_else(uint32_t if_op) const { return blocks && contains(blocks->ifs_with_else, if_op); }
  friend bool operator==(const BodyFacts& a, const BodyFacts& b) {
    bool same = a.accesses_memory == b.accesses_memory && !a.blocks == !b.blocks;
    return same && (!a.blocks || *a.blocks == *b.blocks);
  }

 private:
  static bool contains(const std::vector<uint32_t>& sorted, uint32_t offset) {
    return std::binary_search(sorted.begin(), sorted.end(), offset);
  }
};

// Gathers the facts of one body after the other. The input need not be valid.
class BodyScan {
 public:
  enum class Kind : uint8_t { kBlock, kLoop, kIf };

  void access_memory() { accesses_memory_ = true; }
  void open(Kind kind, uint32_t at) { open_.push_back({kind, at}); }
  void branch(uint32_t depth) {
    if (depth < open_.size()) open_[open_.size() - 1 - depth].has_target = true;
  }
  void otherwise() {
    if (!open_.empty()) open_.back().has_else = true;
  }
  void end();
  // Returns the facts since the last call, and starts again.
  BodyFacts take();

 private:
  // A block that is open at the place of the scan; not the function itself.
  struct OpenBlock {
    Kind kind;
    uint32_t at;
    bool has_target = false;
    bool has_else = false;
  };
  std::vector<OpenBlock> open_;
  bool accesses_memory_ = false;
  BodyFacts::Blocks blocks_;
};

}  // namespace uptier::wasm
