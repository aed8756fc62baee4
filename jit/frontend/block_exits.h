// BlockExits: guards that exit to baseline code at the start of a block.
#pragma once

#include <span>
#include <vector>

#include "jit/frontend/attach_deopts.h"

namespace uptier::jit {

class BlockExits {
 public:
  // `f` is as it was built, except for attach_deopts.
  BlockExits(Function& f, const DeoptContext& c);

  // Returns a block's place in the build order.
  uint32_t position(Block b) const { return position_[b.index()]; }
  // Makes a guard on a constant that exits to the start of `b`: it always fails, or always `holds`.
  // Appends the constant and the guard to `out`; the caller places them.
  void add(Block b, GuardReason reason, bool holds, std::vector<InstId>& out);
  // Makes a guard on `condition` that exits to the start of `b` for value site `n` of
  // value_probes(). It is placed there, or, if `passed` is given, on an edge that passes these
  // values for b's parameters. `in_loop`: whether it is executed repeatedly.
  void add_value(Block b, Value condition, uint32_t n, std::span<const Value> passed, bool in_loop,
                 std::vector<InstId>& out);
  bool in_loop(Block b) const { return in_loop_[b.index()]; }
  // Makes an instruction of the block and returns its result.
  Value make(Block b, const Inst& i, Type result, std::vector<InstId>& out);

 private:
  struct Exit {
    uint32_t number;
    bool in_loop;
    bool stressed;
  };
  void leave(Block b, InstId guard, const Exit& e, std::span<const Value> passed);

  Function& f_;
  const DeoptContext& c_;
  uint32_t blocks_;  // of the function as it was built
  std::vector<uint32_t> position_;
  std::vector<bool> in_loop_;
};

}  // namespace uptier::jit
