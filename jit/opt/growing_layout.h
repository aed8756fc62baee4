// GrowingLayout: collects blocks that a pass inserts after others, and writes them to the layout at
// once.
//
// It is a linked list, because an insertion into Function::layout moves half of it.
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

class GrowingLayout {
 public:
  // The layout must not change until write().
  explicit GrowingLayout(Function& f) : f_(f) {}

  // `b` is in the layout or was inserted before; `made` is new. Constant time.
  void put_behind(Block b, Block made) {
    next_.resize(f_.blocks.size());
    next_[made.index()] = next_[b.index()];
    next_[b.index()] = made;
  }

  // Writes the layout.
  void write() {
    if (next_.empty()) return;
    std::vector<Block> all;
    all.reserve(f_.blocks.size());
    for (Block b : f_.layout) {
      all.push_back(b);
      for (Block n = next_[b.index()]; n.valid(); n = next_[n.index()]) all.push_back(n);
    }
    f_.layout = std::move(all);
    next_.clear();
  }

 private:
  Function& f_;
  std::vector<Block> next_;  // by Block::index(): the inserted block that follows it, or none
};

}  // namespace uptier::jit
