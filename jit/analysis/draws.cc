#include "jit/analysis/draws.h"

namespace uptier::jit {
namespace {

using profile::Draw;

bool is_header(const Function& f, Block b) {
  return f.inst(f.block(b).insts[0]).op == Opcode::kLoopHeader;
}

// Marks the blocks reachable from `waiting`; with `stops`, does not continue past any other header.
void mark(const Function& f, std::vector<Block> waiting, bool stops, std::vector<bool>& reached) {
  while (!waiting.empty()) {
    Block b = waiting.back();
    waiting.pop_back();
    if (reached[b.index()]) continue;
    reached[b.index()] = true;
    for (const Edge& e : f.successors(b)) {
      if (!stops || !is_header(f, e.to)) waiting.push_back(e.to);
    }
  }
}

Draw draw_of(bool header, bool by_call, bool by_iteration) {
  if (header) return Draw::kHeader;
  if (by_call == by_iteration) return Draw::kEither;
  return by_call ? Draw::kCall : Draw::kIteration;
}

}  // namespace

SiteDraws find_draws(const Function& f) {
  std::vector<bool> by_call(f.blocks.size()), by_iteration(f.blocks.size());
  std::vector<Block> headers;
  for (Block b : f.layout) {
    if (is_header(f, b)) headers.push_back(b);
  }
  mark(f, {f.entry()}, true, by_call);
  mark(f, headers, false, by_iteration);
  SiteDraws d;
  d.sites.resize(f.site_count - f.block_sites);
  for (Block b : f.layout) {
    Draw draw = draw_of(is_header(f, b), by_call[b.index()], by_iteration[b.index()]);
    d.blocks.push_back(draw);
    // The arrivals at a header are counted by its block alone, not by the sites in that block.
    Draw inside = draw == Draw::kHeader ? Draw::kIteration : draw;
    for (InstId i : f.block(b).insts) {
      const Inst& inst = f.inst(i);
      SiteId site = inst.op == Opcode::kProbe ? inst.aux : inst.site;
      if (site > f.block_sites) d.sites[site - f.block_sites - 1] = inside;
    }
    for (size_t e = 0; e < f.successors(b).size(); ++e) d.edges.push_back(inside);
  }
  return d;
}

}  // namespace uptier::jit
