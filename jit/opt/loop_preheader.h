// LoopPreheader: a new block before a loop of one block, for code that runs once before the loop.
//
//     incoming edges -> entry(p0) -> loop(p) -> exits
//                                     ^----'
//
// The block takes over the incoming edges, and has as many parameters as the loop. The caller ends
// the block.
//
//   Thread: none of its own. Cost: proportional to the number of incoming edges.
#pragma once

#include <initializer_list>
#include <span>
#include <unordered_map>

#include "jit/ir/function.h"

namespace uptier::jit {

class LoopPreheader {
 public:
  // `preds`: the predecessors of the loop.
  LoopPreheader(Function& f, Block loop, std::span<const Predecessor> preds);

  Block block() const { return entry_; }

  // Returns a value of the loop as it is in the first iteration, and computes it in this block if
  // necessary. Only for parameters, constants and pure operations.
  Value first(Value v);

  // Adds an instruction at the end of this block, or of the one given to append_to().
  Value emit(Opcode op, Type t, std::initializer_list<Value> args);
  Value constant(Type t, uint64_t bits);
  void end(Inst terminator, std::initializer_list<Edge> edges);
  void append_to(Block b) { at_ = b; }

  // Adds a block between this one and the loop in the layout.
  Block add_block();

 private:
  Function& f_;
  Block loop_, entry_, at_;
  std::unordered_map<uint32_t, Value> first_;  // by Value::index()
};

}  // namespace uptier::jit
