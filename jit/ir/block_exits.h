// BlockExits: guards that leave for baseline code at the start of a block.
#pragma once

#include <vector>

#include "jit/ir/attach_deopts.h"

namespace uptier::jit {

class BlockExits {
 public:
  // `f` as it was built, but for what attach_deopts did.
  BlockExits(Function& f, const DeoptContext& c);

  // Returns a block's place in the build order.
  uint32_t position(Block b) const { return position_[b.index()]; }
  // Makes a guard on a constant that leaves at the start of `b`: fails always, or `holds`. Appends
  // the constant and the guard to `out`; they are not placed otherwise.
  void add(Block b, GuardReason reason, bool holds, std::vector<InstId>& out);
  // Makes an instruction of the block and returns its result.
  Value make(Block b, const Inst& i, Type result, std::vector<InstId>& out);

 private:
  Function& f_;
  const DeoptContext& c_;
  std::vector<uint32_t> position_;
  std::vector<bool> in_loop_;
};

}  // namespace uptier::jit
