#include "jit/analysis/loops.h"

namespace uptier::jit {
namespace {

uint32_t outermost(const LoopNest& n, uint32_t l) {
  while (n.loops[l].parent != kNoLoop) l = n.loops[l].parent;
  return l;
}

// Claims for loop `l` every block that reaches `work` without passing the header. Blocks of inner
// loops are already claimed: their outermost loop becomes a child, and the walk continues above it.
void claim(LoopNest& n, const ControlFlow& d, uint32_t l, std::vector<Block> work) {
  Block header = n.loops[l].header;
  auto push_preds = [&](Block b) {
    for (const Predecessor& p : d.preds[b.index()]) work.push_back(p.from);
  };
  while (!work.empty()) {
    Block b = work.back();
    work.pop_back();
    uint32_t of = n.loop_of[b.index()];
    if (of == kNoLoop) {
      n.loop_of[b.index()] = l;
      if (b != header) push_preds(b);
      continue;
    }
    of = outermost(n, of);
    if (of == l) continue;
    n.loops[of].parent = l;
    push_preds(n.loops[of].header);
  }
}

}  // namespace

bool LoopNest::contains(uint32_t l, Block b) const {
  if (l == kNoLoop) return true;
  for (uint32_t i = loop_of[b.index()]; i != kNoLoop; i = loops[i].parent) {
    if (i == l) return true;
  }
  return false;
}

LoopNest find_loops(const Function& f, const ControlFlow& d) {
  LoopNest n;
  n.loop_of.assign(f.blocks.size(), kNoLoop);
  // Inner headers come later in reverse postorder than the headers around them.
  for (size_t i = d.order().size(); i-- > 0;) {
    Block header = d.order()[i];
    std::vector<Block> sources;
    for (const Predecessor& p : d.preds[header.index()]) {
      if (d.dominates(header, p.from)) sources.push_back(p.from);
    }
    if (sources.empty()) continue;
    n.loops.push_back({header, kNoLoop, 1});
    auto l = static_cast<uint32_t>(n.loops.size() - 1);
    // A header that is in no inner loop belongs to its own loop; claim() needs it marked first.
    if (n.loop_of[header.index()] == kNoLoop) n.loop_of[header.index()] = l;
    claim(n, d, l, std::move(sources));
  }
  for (size_t l = n.loops.size(); l-- > 0;) {
    uint32_t up = n.loops[l].parent;
    if (up != kNoLoop) n.loops[l].depth = n.loops[up].depth + 1;
  }
  return n;
}

}  // namespace uptier::jit
