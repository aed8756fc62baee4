#include "jit/frontend/number_sites.h"

#include <algorithm>

#include "jit/analysis/cfg_hash.h"
#include "jit/ir/is_call.h"

namespace uptier::jit {
namespace {

class SiteNumbering {
 public:
  explicit SiteNumbering(Function& f) : f_(f), next_(static_cast<SiteId>(f.layout.size()) + 1) {}

  // Returns the number of calls.
  uint32_t run() {
    f_.block_sites = static_cast<uint32_t>(f_.layout.size());
    f_.loop_count = 0;
    SiteId site = 1;
    for (Block b : f_.layout) {
      number_calls(b);
      place_block_probe(b, site++);
    }
    uint32_t calls = next_ - site;
    // Sites of the library's own probes come after those of the host.
    for (uint32_t owner = 0; owner < kProbeOwners; ++owner) {
      if (has_[owner]) number_probes(owner);
    }
    f_.site_count = next_ - 1;
    return calls;
  }

 private:
  // Also records which kinds of probes there are.
  void number_calls(Block b) {
    auto& insts = f_.block(b).insts;
    bool has_block_probe = false;
    for (InstId id : insts) {
      Inst& i = f_.inst(id);
      if (is_call(i.op)) {
        i.site = next_++;
      } else if (i.op == Opcode::kProbe) {
        (is_block_probe(i) ? has_block_probe : has_[owner_of_probe(i)]) = true;
      }
    }
    if (!has_block_probe) return;
    std::erase_if(insts, [&](InstId i) { return is_block_probe(f_.inst(i)); });
  }

  // Loops whose header was unreachable are gone: the others are numbered densely.
  void place_block_probe(Block b, SiteId site) {
    InstId probe = f_.add_inst(
        {.op = Opcode::kProbe, .aux = site, .imm = static_cast<uint64_t>(ProbeKind::kBlock)},
        Type::kNone);
    auto& insts = f_.block(b).insts;
    bool is_header = !insts.empty() && f_.inst(insts[0]).op == Opcode::kLoopHeader;
    if (is_header) f_.inst(insts[0]).aux = f_.loop_count++;
    insts.insert(insts.begin() + (is_header ? 1 : 0), probe);
  }

  void number_probes(uint32_t owner) {
    for (Block b : f_.layout) {
      for (InstId id : f_.block(b).insts) {
        Inst& i = f_.inst(id);
        bool its = i.op == Opcode::kProbe && !is_block_probe(i) && owner_of_probe(i) == owner;
        if (its) i.aux = next_++;
      }
    }
  }

  Function& f_;
  SiteId next_;
  bool has_[kProbeOwners] = {};  // probes, by owner
};

bool is_whole(const Function& f, Block b) {
  if (!is_terminated(f, b)) return false;
  auto edges = f.successors(b);
  return std::all_of(edges.begin(), edges.end(),
                     [&](const Edge& e) { return e.to.index() < f.blocks.size(); });
}

}  // namespace

void number_sites(Function& f) {
  uint32_t calls = SiteNumbering(f).run();
  bool whole =
      std::all_of(f.layout.begin(), f.layout.end(), [&](Block b) { return is_whole(f, b); });
  f.cfg_hash = whole ? cfg_hash(f, calls) : 0;
}

}  // namespace uptier::jit
