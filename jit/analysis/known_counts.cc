#include "jit/analysis/known_counts.h"

#include <algorithm>

namespace uptier::jit {
namespace {

void each_that_asks(const Function& f, auto visit) {
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      if (f.inst(id).op == Opcode::kKnownCount) visit(id);
    }
  }
}

}  // namespace

std::vector<SiteId> asked_counts(const Function& f) {
  std::vector<SiteId> sites;
  each_that_asks(f, [&](InstId id) {
    if (f.inst(id).aux != 0) sites.push_back(f.inst(id).aux);
  });
  std::ranges::sort(sites);
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  return sites;
}

void note_counts(Function& f, std::span<const KnownCount> known) {
  each_that_asks(f, [&](InstId id) {
    Inst& i = f.inst(id);
    auto at = std::ranges::find(known, i.aux, &KnownCount::site);
    i.imm = at == known.end() ? 0 : at->count;
  });
}

void settle_counts(Function& f) {
  each_that_asks(f, [&](InstId id) {
    f.inst(id).op = Opcode::kConst;
    f.inst(id).aux = 0;
  });
}

}  // namespace uptier::jit
