#include "jit/frontend/ssa_construction.h"

#include <algorithm>
#include <string>

namespace uptier {

using jit::InstId;

// ---- Dominators -------------------------------------------------------------------------------

// Returns the nearest common ancestor of both in the dominator tree; none if it is not known, or
// would take too long.
Block SsaConstruction::common_dominator(Block a, Block b) {
  while (a != b) {
    if (blocks[a.index()].depth < blocks[b.index()].depth) std::swap(a, b);
    const BlockState& s = blocks[a.index()];
    if (!s.sealed || steps_left == 0) return Block::none();
    --steps_left;
    a = s.dominator;
    if (!a.valid()) return a;
  }
  return a;
}

// Starts to fill `b`. Its dominator follows from the edges that lead to it so far.
void SsaConstruction::begin(Block b) {
  BlockState& s = blocks[b.index()];
  s.begun_at = ++clock;
  s.known_preds = s.pred_count;
  steps_left += kStepsPerBlock;
  if (s.pred_count == 0) {
    in_order &= clock == 1;  // the entry
    return;
  }
  // From the last to the first: along a chain of branches to `b`, each step is short.
  Block d = incoming[s.last_pred].from;
  for (uint32_t e = incoming[s.last_pred].before; e != kEnd && d.valid(); e = incoming[e].before) {
    d = common_dominator(incoming[e].from, d);
  }
  s.dominator = d;
  s.depth = d.valid() ? blocks[d.index()].depth + 1 : 0;
}

// Seals `b`. If an edge that was added since `b` was begun does not come from below `b`, the
// dominator may be wrong and is forgotten.
void SsaConstruction::close(Block b) {
  BlockState& s = blocks[b.index()];
  uint32_t late = s.begun_at == 0 ? 0 : s.pred_count - s.known_preds;
  uint32_t e = s.last_pred;
  for (; late != 0; --late, e = incoming[e].before) {
    if (common_dominator(incoming[e].from, b) != b) s.dominator = Block::none();
  }
  s.sealed = true;
}

// Returns a block at whose end `x` has the same value as at the start of `b`; none if that is not
// known.
Block SsaConstruction::same_above(Variable x, const BlockState& b) const {
  if (!in_order || !b.sealed || !b.dominator.valid()) return Block::none();
  bool same = defined_at[x.index()] <= blocks[b.dominator.index()].begun_at;
  return same ? b.dominator : Block::none();
}

// ---- Variables --------------------------------------------------------------------------------

// Returns the value of `x` at the end of `b`.
Value SsaConstruction::lookup(Variable x, Block b) {
  const Value* known = defs.find(x, b);
  return known != nullptr ? *known : lookup_slow(x, b);
}

// Walks up through single predecessors, or to a dominator with the same value. If paths join
// otherwise, it makes a parameter; fill_pending() fills its edges, so no recursion is needed
// however long the function is. A walk longer than the number of blocks goes around an unreachable
// loop, where any value will do.
Value SsaConstruction::lookup_slow(Variable x, Block b) {
  walked.clear();
  const Value* known = nullptr;
  for (; known == nullptr; known = defs.find(x, b)) {
    walked.push_back(b);
    const BlockState& s = blocks[b.index()];
    bool single = s.sealed && s.pred_count == 1;
    Block above = single ? incoming[s.first_pred].from : same_above(x, s);
    if (!above.valid() || walked.size() > blocks.size()) break;
    b = above;
  }
  Value v = known != nullptr ? *known : make_at_start(x, b);
  if (!spend(walked.size())) return Value::none();
  // The block that was asked about comes last, since it will be asked about again.
  for (size_t n = walked.size(); n-- > 0;) defs.set(x, walked[n], v);
  return v;
}

// Returns a value for `x` that is defined at the start of `b`.
Value SsaConstruction::make_at_start(Variable x, Block b) {
  BlockState& s = blocks[b.index()];
  Type t = variables[x.index()];
  if (s.sealed && s.pred_count <= 1) return zero_at_start(b, t);
  Value p = f.add_block_param(b, t);
  if (s.sealed) {
    pending.push_back({x, p});
    return p;
  }
  auto at = static_cast<uint32_t>(waiting.size());
  waiting.push_back({x, p});
  (s.first_waiting == kEnd ? s.first_waiting : waiting[s.last_waiting].next) = at;
  s.last_waiting = at;
  return p;
}

// Nothing reaches `b` with a value: a Variable starts as zero.
Value SsaConstruction::zero_at_start(Block b, Type t) {
  InstId id = f.add_inst({.op = Opcode::kConst, .type = t}, t);
  f.value(f.inst(id).result).block = b;
  zeros.emplace_back(b, id);
  return f.inst(id).result;
}

void SsaConstruction::fill_pending() {
  while (!pending.empty() && misuse.ok()) {
    auto [x, p] = pending.back();
    pending.pop_back();
    fill_edges(x, p);
  }
}

void SsaConstruction::fill_edges(Variable x, Value param) {
  uint32_t index = f.value(param).index;
  uint32_t edge = blocks[f.value(param).block.index()].first_pred;
  for (; edge != kEnd; edge = incoming[edge].next) {
    Value v = lookup(x, incoming[edge].from);
    edge_args.set(edge, index, v);
    if (!spend(1)) return;
  }
}

// The body must be described again, in the plain form. Until the host is done, nothing is added.
bool SsaConstruction::give_up() {
  too_much = true;
  current = Block::none();
  if (misuse) {
    misuse = Error{ErrorCode::kResourceExhausted,
                   f.name + ": too many values live in too many blocks (" + std::to_string(steps) +
                       " steps of search)"};
  }
  return false;
}

void SsaConstruction::place_zeros() {
  std::ranges::reverse(zeros);
  std::ranges::stable_sort(zeros, {}, [](const auto& z) { return z.first.index(); });
  std::vector<InstId> front;
  for (size_t from = 0, to = 0; from < zeros.size(); from = to) {
    Block b = zeros[from].first;
    for (front.clear(); to < zeros.size() && zeros[to].first == b; ++to) {
      front.push_back(zeros[to].second);
    }
    auto& insts = f.block(b).insts;
    insts.reserve(insts.size() + front.size() + 1);  // as in leave_block()
    insts.insert(insts.begin(), front.begin(), front.end());
  }
  zeros.clear();
}

}  // namespace uptier
