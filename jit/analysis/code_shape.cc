#include "jit/analysis/code_shape.h"

#include "jit/ir/turns.h"

namespace uptier::jit {
namespace {

// FNV-1a, as in the CFG hash: files hold these hashes of names, so the recipe must not change.
struct Fnv {
  uint64_t state = 0xcbf29ce484222325ull;
  void add(uint8_t byte) { state = (state ^ byte) * 0x100000001b3ull; }
};

uint64_t hash_of(const Signature& s) {
  Fnv h;
  for (const Type t : s.params) h.add(static_cast<uint8_t>(t));
  h.add(0xff);
  h.add(static_cast<uint8_t>(s.result));
  return h.state;
}

// Fills in the features that identify an instruction; returns false if it is no anchor.
bool describe(const Function& f, const Inst& i, const NameOf& name_of, Anchor& anchor) {
  anchor.site = i.site;
  switch (i.op) {
    case Opcode::kCall:
      anchor.kind = AnchorKind::kCall;
      anchor.target = name_hash(name_of(f.callees[i.imm].method));
      return true;
    case Opcode::kCallIndirect:
      anchor.kind = AnchorKind::kIndirectCall;
      anchor.target = hash_of(f.signature_of(i));
      return true;
    case Opcode::kCallHost:
      anchor.kind = AnchorKind::kHostCall;
      anchor.target = name_hash(f.host_callees[i.imm].name);
      return true;
    case Opcode::kProbe:
      // Probes of short branches exist only once something of the method was observed.
      if (is_block_probe(i) || (i.flags & kProbeOfBranch) != 0) return false;
      anchor.kind = AnchorKind::kProbe;
      anchor.target = i.imm;
      anchor.site = i.aux;
      return true;
    case Opcode::kLoopHeader:
      anchor.kind = AnchorKind::kLoop;
      anchor.target = 0;
      anchor.site = i.aux + 1;
      return true;
    default: return false;
  }
}

}  // namespace

CodeShape code_shape(const Function& f, const NameOf& name_of) {
  const std::vector<uint32_t> position = layout_positions(f);
  CodeShape shape;
  shape.cfg_hash = f.cfg_hash;
  shape.successors.reserve(f.layout.size());
  for (const Block b : f.layout) {
    shape.successors.add_list();
    for (const Edge& e : f.successors(b)) shape.successors.add(position[e.to.index()] + 1);
    for (const InstId i : f.block(b).insts) {
      Anchor anchor;
      anchor.block = static_cast<SiteId>(shape.successors.size());
      if (describe(f, f.inst(i), name_of, anchor)) shape.anchors.push_back(anchor);
    }
  }
  return shape;
}

std::vector<DirectCall> direct_calls(const Function& f) {
  std::vector<DirectCall> calls;
  SiteId block = 0;
  for (const Block b : f.layout) {
    ++block;
    for (const InstId i : f.block(b).insts) {
      const Inst& inst = f.inst(i);
      if (inst.op == Opcode::kCall) calls.push_back({block, f.callees[inst.imm].method});
    }
  }
  return calls;
}

}  // namespace uptier::jit
