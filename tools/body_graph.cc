#include "tools/body_graph.h"

#include <algorithm>

#include "embed/wasm/vmctx.h"
#include "jit/analysis/flow_graph.h"
#include "jit/analysis/memory_place.h"
#include "tools/commands.h"

namespace uptier::tools {
namespace {

bool is_cover_store(const jit::Inst& inst) {
  return inst.op == Opcode::kStore8 &&
         alias_class_of(inst.flags) == alias_class_of(wasm::kInCovered);
}

uint32_t cover_place(const Functions& fs, uint32_t index, const jit::Inst& store) {
  const uint64_t block = jit::place_of(fs.module.functions[index], store).offset;
  return fs.begins[index] + static_cast<uint32_t>(block);
}

BodyGraph graph_of(const Functions& fs, uint32_t index) {
  const jit::Function& f = fs.module.functions[index];
  BodyGraph g;
  g.name = f.name;
  g.cfg_hash = f.cfg_hash;
  if (!fs.keys.empty()) g.key = fs.keys[index];
  std::vector<uint32_t> position = jit::layout_positions(f);
  g.blocks.resize(f.layout.size());
  for (uint32_t i = 0; i < f.layout.size(); ++i) {
    BodyGraph::Block& b = g.blocks[i];
    for (jit::InstId id : f.block(f.layout[i]).insts) {
      const jit::Inst& inst = f.inst(id);
      if (b.location == 0) b.location = inst.loc;
      if (is_cover_store(inst)) b.covered_by = cover_place(fs, index, inst);
      if (inst.op == Opcode::kLoopHeader) g.loops.push_back({i + 1, inst.loc});
      if (inst.op == Opcode::kCall || inst.op == Opcode::kCallIndirect) {
        BodyGraph::Call call{i + 1, inst.loc, inst.site, {}};
        if (inst.op == Opcode::kCall) call.callee = f.callees[inst.imm].method.index();
        g.calls.push_back(call);
      }
    }
    const jit::Inst& last = f.terminator(f.layout[i]);
    b.is_branch = last.op == Opcode::kBranch;
    b.branch_location = last.loc;
    b.inverted =
        b.is_branch && std::binary_search(fs.inverted.begin(), fs.inverted.end(), last.loc);
    b.first_edge = static_cast<uint32_t>(g.edges.size());
    b.edge_count = last.edge_count;
    for (const jit::Edge& e : f.edges_of(last)) {
      g.edges.push_back({i + 1, position[e.to.index()] + 1});
    }
  }
  g.blocks[0].entered_by = 1;
  for (const BodyGraph::Edge& e : g.edges) ++g.blocks[e.to - 1].entered_by;
  return g;
}

}  // namespace

std::vector<BodyGraph> body_graphs(const Functions& functions) {
  std::vector<BodyGraph> graphs;
  for (uint32_t i = 0; i < functions.module.functions.size(); ++i) {
    graphs.push_back(graph_of(functions, i));
  }
  return graphs;
}

Result<std::vector<BodyGraph>> read_body_graphs(const std::string& file) {
  Result<std::vector<uint8_t>> bytes = read_file(file);
  if (!bytes) return bytes.error();
  Result<Functions> functions = read_functions(file, *bytes);
  if (!functions) return functions.error();
  return body_graphs(*functions);
}

const MethodProfile* profile_of(const Profile& profile, const BodyGraph& body) {
  if (body.key) {
    if (const MethodProfile* m = profile.find(*body.key)) {
      return m->schema.cfg_hash == body.cfg_hash && m->check().ok() ? m : nullptr;
    }
  }
  const MethodProfile* found = nullptr;
  for (const auto& [key, m] : profile.methods) {
    if (m.name != body.name || m.schema.cfg_hash != body.cfg_hash || !m.check().ok()) continue;
    if (found != nullptr) return nullptr;
    found = &m;
  }
  return found;
}

const MethodProfile* whole_profile_of(const profile::FoldedMethods& folded, const Profile& profile,
                                      const BodyGraph& body) {
  const MethodProfile* own = profile_of(profile, body);
  const auto at = body.key ? folded.methods.find(*body.key) : folded.methods.end();
  if (at != folded.methods.end() && at->second.schema.cfg_hash == body.cfg_hash) return &at->second;
  return own;
}

namespace {

std::optional<Counted> counted(const MethodProfile& m, SlotKind kind, SiteId site) {
  const Slot* slot = m.schema.find(kind, site);
  if (slot == nullptr) return std::nullopt;
  return Counted{m.counts[slot->word], m.estimates[slot->word]};
}

uint64_t less(uint64_t all, uint64_t part) { return all > part ? all - part : 0; }

}  // namespace

std::optional<Counted> block_count(const MethodProfile& m, uint32_t block) {
  return counted(m, SlotKind::kBlock, block);
}

std::optional<Counted> edge_count(const MethodProfile& m, const BodyGraph& body, uint32_t edge) {
  if (auto own = counted(m, SlotKind::kEdge, edge + 1)) return own;
  const BodyGraph::Edge& e = body.edges[edge];
  const BodyGraph::Block& from = body.blocks[e.from - 1];
  if (from.edge_count == 1) return block_count(m, e.from);
  if (body.blocks[e.to - 1].entered_by == 1) return block_count(m, e.to);
  if (from.edge_count != 2) return std::nullopt;
  const uint32_t other = from.first_edge + (edge == from.first_edge ? 1 : 0);
  if (body.blocks[body.edges[other].to - 1].entered_by != 1) return std::nullopt;
  const auto all = block_count(m, e.from), rest = block_count(m, body.edges[other].to);
  if (!all || !rest) return std::nullopt;
  return Counted{less(all->count, rest->count), less(all->estimate, rest->estimate)};
}

}  // namespace uptier::tools
