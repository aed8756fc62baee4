#include <algorithm>

#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {

Lowering::Lowering(const LowerInput& in) : in_(in), f_(in.function) {}

MachineFunction Lowering::run() {
  widths_ = find_widths(f_);
  plan_ = plan_blocks(f_, in_.loops, in_.frequencies);
  vregs_.resize(f_.values.size());
  folded_.resize(f_.insts.size());
  color_.resize(f_.insts.size());
  sum_of_.assign(f_.insts.size(), InstId::none());
  count_uses();
  m_.blocks.resize(plan_.order.size());
  block_end_.resize(plan_.order.size());
  for (auto place = static_cast<uint32_t>(plan_.order.size()); place-- > 0;) {
    plan_.order[place].block.valid() ? lower_block(place) : lower_split(place);
  }
  turn_round();
  add_loops();
  add_preds();
  m_.osr = in_.osr;
  return std::move(m_);
}

void Lowering::count_uses() {
  use_count_.assign(f_.values.size(), 0);
  for (Block b : f_.layout) {
    for (InstId i : f_.block(b).insts) {
      for (Value v : f_.args(f_.inst(i))) ++use_count_[v.index()];
    }
    for (const Edge& e : f_.successors(b)) {
      for (Value v : f_.list(e.args)) ++use_count_[v.index()];
    }
  }
}

// Returns whether loads must not be moved past the instruction.
bool Lowering::is_barrier(const Inst& i) const {
  uint8_t effects = info(i.op).effects;
  if (info(i.op).shape == Shape::kLoad) return (i.flags & kMemTraps) != 0;
  bool counts = count_offset(i).has_value() || observed_site(i).has_value();
  return (effects & (kWrites | kCanTrap)) != 0 || counts;
}

void Lowering::color_block(Block b) {
  uint32_t barriers = 0;
  for (InstId i : f_.block(b).insts) {
    color_[i.index()] = barriers;
    if (is_barrier(f_.inst(i))) ++barriers;
  }
}

// ---- Blocks -----------------------------------------------------------------------------------

void Lowering::lower_block(uint32_t place) {
  block_ = plan_.order[place].block;
  color_block(block_);
  pair_sums(block_);
  block_end_[place] = static_cast<uint32_t>(m_.insts.size());
  const auto& insts = f_.block(block_).insts;
  for (size_t n = insts.size(); n-- > 0;) lower_inst(insts[n]);
  MBlock& b = m_.blocks[place];
  b.params_at = static_cast<uint32_t>(m_.block_params.size());
  if (block_ == f_.entry()) {
    load_slab();
    lower_entry();
  } else {
    for (Value p : f_.params(block_)) m_.block_params.push_back(vreg(p));
    b.params = static_cast<uint32_t>(f_.params(block_).size());
  }
  close_block(place);
}

// Lowers the block of a split critical edge: passes the arguments.
void Lowering::lower_split(uint32_t place) {
  block_ = Block::none();
  here_ = f_.terminator(plan_.order[place].from).origin();
  block_end_[place] = static_cast<uint32_t>(m_.insts.size());
  begin(MOp::kJump, 8);
  add_edge(plan_.order[place].edge, false);
  emit();
  flush_group();
  close_block(place);
}

void Lowering::close_block(uint32_t place) {
  const BlockPlan::Entry& e = plan_.order[place];
  begin(MOp::kLabel, 8);
  emit();
  flush_group();
  MBlock& b = m_.blocks[place];
  b.begin = static_cast<uint32_t>(m_.insts.size());  // in the backward order; see turn_round
  b.frequency = e.frequency;
  b.cold = e.cold;
  b.align = e.block.valid() && in_.loops.is_header(e.block) && !e.cold;
}

void Lowering::lower_inst(InstId id) {
  const Inst& i = f_.inst(id);
  if (folded_[id.index()] || i.op == Opcode::kConst) return;
  bool effect = is_barrier(i) || (info(i.op).effects & (kEndsBlock | kPinned));
  if (!effect && (!i.result.valid() || !needed(i.result))) return;
  if (i.result.valid() && root(i.result) != i.result) return;
  current_color_ = color_[id.index()];
  here_ = i.origin();
  select(id);
  flush_group();
}

void Lowering::select(InstId id) {
  const Inst& i = f_.inst(id);
  switch (info(i.op).shape) {
    case Shape::kKnownCount:  // already a constant, see analysis/known_counts.h
    case Shape::kConst: break;
    case Shape::kUnary: is_float(i.type) ? lower_float_unary(i) : lower_unary(i); break;
    case Shape::kBinary: is_float(i.type) ? lower_float_binary(i) : lower_binary(i); break;
    case Shape::kCompare:
    case Shape::kTest: lower_set(i); break;
    case Shape::kConvert: lower_convert(i); break;
    case Shape::kSelect: lower_select(i); break;
    case Shape::kLoad: lower_load(i); break;
    case Shape::kStore: lower_store(i); break;
    case Shape::kCall:
    case Shape::kCallIndirect:
    case Shape::kCallHost: lower_call(i); break;
    case Shape::kJump: lower_jump(i); break;
    case Shape::kBranch: lower_branch(i); break;
    case Shape::kSwitch: lower_switch(i); break;
    case Shape::kReturn: lower_return(i); break;
    case Shape::kTrap:
      begin(MOp::kTrap, 8, i.origin());
      cur_.trap = static_cast<TrapCode>(i.aux);
      emit();
      break;
    case Shape::kTrapIf: lower_trap_if(id); break;
    case Shape::kGuard: lower_guard(id); break;
    case Shape::kProbe: lower_probe(i); break;
    case Shape::kBulk: lower_bulk(i); break;
    case Shape::kLoopHeader:
    case Shape::kFrameMemory:  // compile_optimized() has refused it
    case Shape::kFrameState: break;
  }
}

// ---- Instructions -----------------------------------------------------------------------------

void Lowering::begin(MOp op, unsigned width, Origin loc) {
  cur_ = MInst{};
  cur_.op = op;
  cur_.width = static_cast<uint8_t>(width);
  cur_.loc = loc;
  cur_operands_.clear();
}

uint8_t Lowering::add(Vreg v, Role role, Policy policy, Location fixed) {
  cur_operands_.push_back({.vreg = v, .fixed = fixed, .role = role, .policy = policy});
  return static_cast<uint8_t>(cur_operands_.size() - 1);
}

void Lowering::emit() {
  cur_.operands_at = static_cast<uint32_t>(m_.operands.size());
  bool many = cur_operands_.size() > 200;
  cur_.operand_count = many ? 0 : static_cast<uint8_t>(cur_operands_.size());
  cur_.many = many ? static_cast<uint32_t>(cur_operands_.size()) : 0;
  m_.operands.insert(m_.operands.end(), cur_operands_.begin(), cur_operands_.end());
  group_.push_back(cur_);
}

void Lowering::flush_group() {
  m_.insts.insert(m_.insts.end(), group_.rbegin(), group_.rend());
  if (in_.origins) m_.origins.insert(m_.origins.end(), group_.size(), here_);
  group_.clear();
}

std::optional<uint64_t> Lowering::constant_of(Value v) const {
  // A renamed constant has the same bits: wrap only cuts them off, and extend_u keeps them.
  const Inst* i = def(root(v), Opcode::kConst);
  if (!i) return std::nullopt;
  return is_wide_value(v) || is_float(f_.type_of(v)) ? i->imm : static_cast<uint32_t>(i->imm);
}

std::optional<int32_t> Lowering::imm_of(Value v) const {
  auto c = constant_of(v);
  if (!c) return std::nullopt;
  if (!is_wide_value(v)) return static_cast<int32_t>(*c);
  auto s = static_cast<int64_t>(*c);
  if (s < INT32_MIN || s > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(s);
}

Vreg Lowering::new_vreg(Type t) {
  m_.vregs.push_back({t});
  return Vreg(static_cast<uint32_t>(m_.vregs.size() - 1));
}

Vreg Lowering::vreg(Value v) {
  Value r = root(v);
  Vreg& known = vregs_[r.index()];
  if (!known.valid()) known = new_vreg(f_.type_of(r));
  return known;
}

Vreg Lowering::use(Value v) {
  auto c = constant_of(v);
  if (!c) return vreg(v);
  Type t = f_.type_of(v);
  Vreg made = new_vreg(t);
  MInst i;
  i.op = is_float(t) ? MOp::kFConst : MOp::kConst;
  i.width = is_wide(t) ? 8 : 4;
  i.imm = *c;
  i.d = 0;
  i.operands_at = static_cast<uint32_t>(m_.operands.size());
  i.operand_count = 1;
  m_.operands.push_back({.vreg = made, .role = Role::kDef});
  group_.push_back(i);
  return made;
}

uint32_t Lowering::constant_index(uint64_t bits) {
  m_.constants.push_back(bits);
  return static_cast<uint32_t>(m_.constants.size() - 1);
}

// ---- The whole function -----------------------------------------------------------------------

void Lowering::turn_round() {
  std::reverse(m_.insts.begin(), m_.insts.end());
  std::reverse(m_.origins.begin(), m_.origins.end());
  std::reverse(m_.probes.begin(), m_.probes.end());
  auto total = static_cast<uint32_t>(m_.insts.size());
  for (MProbe& p : m_.probes) p.inst = total - p.inst;
  for (uint32_t p = 0; p < m_.blocks.size(); ++p) {
    m_.blocks[p].begin = total - m_.blocks[p].begin;
    m_.blocks[p].end = total - block_end_[p];
  }
}

void Lowering::add_loops() {
  const auto& loops = in_.loops.loops;
  m_.loops.resize(loops.size());
  for (size_t l = 0; l < loops.size(); ++l) {
    uint32_t header = plan_.place[loops[l].header.index()];
    m_.loops[l] = {header, header + 1, loops[l].parent};
  }
  for (uint32_t p = 0; p < plan_.order.size(); ++p) {
    const BlockPlan::Entry& e = plan_.order[p];
    for (uint32_t l = e.loop; l != kNoLoop; l = loops[l].parent) {
      bool header_cold = in_.frequencies.cold[loops[l].header.index()];
      if (e.cold == header_cold) m_.loops[l].end = std::max(m_.loops[l].end, p + 1);
    }
  }
  for (uint32_t p = 0; p < plan_.order.size(); ++p) {
    uint32_t l = plan_.order[p].loop;
    while (l != kNoLoop && (p < m_.loops[l].begin || p >= m_.loops[l].end)) l = loops[l].parent;
    m_.blocks[p].loop = l;
  }
}

void Lowering::add_preds() {
  for (uint32_t p = 0; p < m_.blocks.size(); ++p) {
    for (const MEdge& e : m_.edges_of(m_.terminator(m_.blocks[p]))) {
      auto& preds = m_.blocks[e.to].preds;
      if (preds.empty() || preds.back() != p) preds.push_back(p);
    }
  }
}

// Adds an edge to the current instruction. `split`: to the edge's own block, if it has one.
void Lowering::add_edge(uint32_t edge, bool split) {
  const Edge& e = f_.edges[edge];
  if (cur_.edge_count++ == 0) cur_.edges_at = static_cast<uint32_t>(m_.edges.size());
  if (split && plan_.edge_place[edge] != UINT32_MAX) {
    m_.edges.push_back({plan_.edge_place[edge], 0});
    return;
  }
  m_.edges.push_back({plan_.place[e.to.index()], static_cast<uint32_t>(m_.edge_args.size())});
  for (Value v : f_.list(e.args)) {
    auto c = constant_of(v);
    m_.edge_args.push_back(c ? MArg{Vreg::none(), constant_index(*c)} : MArg{vreg(v), 0});
  }
}

void Lowering::lower_jump(const Inst& i) {
  begin(MOp::kJump, 8);
  add_edge(i.edges_at, false);
  emit();
}

MachineFunction lower(const LowerInput& in) { return Lowering(in).run(); }

}  // namespace uptier::jit::x64
