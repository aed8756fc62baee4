#include "jit/ir/number_sites.h"

#include <algorithm>

#include "jit/ir/cfg_hash.h"

namespace uptier::jit {
namespace {

bool starts_with_loop_header(const Function& f, Block b) {
  const auto& insts = f.block(b).insts;
  return !insts.empty() && f.inst(insts[0]).op == Opcode::kLoopHeader;
}

void place_block_probes(Function& f) {
  SiteId site = 1;
  for (Block b : f.layout) {
    auto& insts = f.block(b).insts;
    std::erase_if(insts, [&](InstId i) { return is_block_probe(f.inst(i)); });
    InstId probe = f.add_inst(
        {.op = Opcode::kProbe, .aux = site++, .imm = static_cast<uint64_t>(ProbeKind::kBlock)},
        Type::kNone);
    insts.insert(insts.begin() + (starts_with_loop_header(f, b) ? 1 : 0), probe);
  }
}

void number_calls_and_host_probes(Function& f) {
  f.block_sites = static_cast<uint32_t>(f.layout.size());
  SiteId next = f.block_sites + 1;
  auto each = [&](auto visit) {
    for (Block b : f.layout) {
      for (InstId i : f.block(b).insts) visit(f.inst(i));
    }
  };
  // Sites of the library's own probes come after those of the host.
  bool has[2] = {false, false};
  auto owner = [](const Inst& i) { return (i.flags & kProbeOwn) != 0 ? 1 : 0; };
  auto is_own_site = [](const Inst& i) { return i.op == Opcode::kProbe && !is_block_probe(i); };
  each([&](Inst& i) {
    Shape s = info(i.op).shape;
    bool is_call = s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
    if (is_call) i.site = next++;
    if (is_own_site(i)) has[owner(i)] = true;
  });
  for (int own : {0, 1}) {
    if (!has[own]) continue;
    each([&](Inst& i) {
      if (is_own_site(i) && owner(i) == own) i.aux = next++;
    });
  }
  f.site_count = next - 1;
}

// Loops whose header was unreachable are gone: the rest is numbered densely.
void number_loops(Function& f) {
  f.loop_count = 0;
  for (Block b : f.layout) {
    if (starts_with_loop_header(f, b)) f.inst(f.block(b).insts[0]).aux = f.loop_count++;
  }
}

bool is_whole(const Function& f, Block b) {
  if (!is_terminated(f, b)) return false;
  auto edges = f.successors(b);
  return std::all_of(edges.begin(), edges.end(),
                     [&](const Edge& e) { return e.to.index() < f.blocks.size(); });
}

}  // namespace

bool is_terminated(const Function& f, Block b) {
  const auto& insts = f.block(b).insts;
  return !insts.empty() && (info(f.inst(insts.back()).op).effects & kEndsBlock);
}

void number_sites(Function& f) {
  place_block_probes(f);
  number_calls_and_host_probes(f);
  number_loops(f);
  bool whole =
      std::all_of(f.layout.begin(), f.layout.end(), [&](Block b) { return is_whole(f, b); });
  f.cfg_hash = whole ? cfg_hash(f) : 0;
}

}  // namespace uptier::jit
