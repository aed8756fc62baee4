// LoopPreheader: a new block before a loop of one block, for code that runs once before the loop.
//
//     ways in -> entry(p0) -> loop(p) -> ways out
//                              ^----'
//
// The block takes over the ways in, and has as many parameters as the loop. The caller ends the block.
//
//   Thread: none of its own. Cost: proportional to the ways in.
#pragma once

#include <initializer_list>
#include <span>
#include <unordered_map>

#include "jit/ir/function.h"

namespace uptier::jit {

class LoopPreheader {
 public:
  // `preds`: of the loop.
  LoopPreheader(Function& f, Block loop, std::span<const Predecessor> preds);

  Block block() const { return entry_; }

  // Returns what a value of the loop is in the first round, made in the block where it has to be:
  // of parameters, constants and pure operations only.
  Value first(Value v);

  // Adds at the end of the block, or of another after append_to().
  Value emit(Opcode op, Type t, std::initializer_list<Value> args);
  Value constant(Type t, uint64_t bits);
  void end(Inst terminator, std::initializer_list<Edge> edges);
  void append_to(Block b) { at_ = b; }

  // Makes a block between this one and the loop in the layout.
  Block add_block();

 private:
  Function& f_;
  Block loop_, entry_, at_;
  std::unordered_map<uint32_t, Value> first_;  // by Value::index()
};

}  // namespace uptier::jit
