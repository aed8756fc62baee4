#include "jit/opt/passes.h"

namespace uptier::jit {

void remove_unreachable(Function& f) {
  std::vector<bool> seen(f.blocks.size());
  std::vector<Block> work{f.entry()};
  seen[f.entry().index()] = true;
  while (!work.empty()) {
    Block b = work.back();
    work.pop_back();
    for (const Edge& e : f.successors(b)) {
      if (seen[e.to.index()]) continue;
      seen[e.to.index()] = true;
      work.push_back(e.to);
    }
  }
  std::erase_if(f.layout, [&](Block b) { return !seen[b.index()]; });
}

}  // namespace uptier::jit
