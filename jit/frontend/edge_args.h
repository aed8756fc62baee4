// EdgeArgs: the arguments of each edge of a function that is being built.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"

namespace uptier {

// Indexed by edge and by the index of the parameter.
class EdgeArgs {
 public:
  void reserve(size_t edges) { lists_.reserve(edges); }
  void add_edge() { lists_.emplace_back(); }
  // Returns the argument, none if it was not set.
  Value get(uint32_t edge, uint32_t index) const {
    const jit::ValueList& l = lists_[edge];
    return index < l.size ? pool_[l.at + index] : Value::none();
  }
  void set(uint32_t edge, uint32_t index, Value v);
  // Takes over the memory of another EdgeArgs, which is empty afterwards, except tables of more
  // than `most` bytes.
  void take_room(EdgeArgs& other, size_t most);

 private:
  std::vector<jit::ValueList> lists_;  // by edge
  std::vector<Value> pool_;
};

}  // namespace uptier
