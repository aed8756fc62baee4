#include "jit/analysis/short_branches.h"

namespace uptier::jit {
namespace {

bool is_cheap(const Inst& i) {
  bool pure = (info(i.op).effects & ~kCommutes) == 0;
  bool slow = i.op == Opcode::kMul || i.op == Opcode::kMulHighS || i.op == Opcode::kMulHighU;
  return pure && is_int(i.type) && i.op <= Opcode::kGeU && !slow;
}

Block target(const Function& f, Block way) { return f.successors(way)[0].to; }

bool is_short(const Function& f, Block way, Block from, std::span<const uint32_t> arrivals) {
  if (way == from || arrivals[way.index()] != 1) return false;
  // A block that has lost its other predecessors may still have parameters.
  if (f.block(way).params.size != 0) return false;
  if (f.terminator(way).op != Opcode::kJump || target(f, way) == way) return false;
  uint32_t size = 0;
  for (InstId id : f.block(way).insts) {
    const Inst& i = f.inst(id);
    if (i.op == Opcode::kConst || i.op == Opcode::kJump || is_block_probe(i)) continue;
    if (!is_cheap(i) || ++size > kMostShortInsts) return false;
  }
  return true;
}

// Returns whether the two paths pass on only a few different integers.
bool selects_little(const Function& f, const Edge& yes, const Edge& no) {
  auto x = f.list(yes.args), y = f.list(no.args);
  uint32_t selects = 0;
  for (size_t n = 0; n < x.size(); ++n) {
    if (x[n] == y[n]) continue;
    if (is_float(f.type_of(x[n])) || ++selects > kMostShortSelects) return false;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> count_arrivals(const Function& f) {
  std::vector<uint32_t> arrivals(f.blocks.size());
  for (Block b : f.layout) {
    for (const Edge& e : f.successors(b)) ++arrivals[e.to.index()];
  }
  return arrivals;
}

std::optional<ShortBranch> short_branch(const Function& f, Block b,
                                        std::span<const uint32_t> arrivals) {
  if (f.terminator(b).op != Opcode::kBranch) return std::nullopt;
  const Edge &yes = f.successors(b)[0], &no = f.successors(b)[1];
  bool short_yes = is_short(f, yes.to, b, arrivals), short_no = is_short(f, no.to, b, arrivals);
  ShortBranch ways{b, b};
  if (short_yes && short_no && target(f, yes.to) == target(f, no.to)) {
    ways = {yes.to, no.to};
  } else if (short_yes && target(f, yes.to) == no.to) {
    ways.yes = yes.to;
  } else if (short_no && target(f, no.to) == yes.to) {
    ways.no = no.to;
  } else {
    return std::nullopt;
  }
  const Edge& from_yes = ways.yes != b ? f.successors(ways.yes)[0] : yes;
  const Edge& from_no = ways.no != b ? f.successors(ways.no)[0] : no;
  if (!selects_little(f, from_yes, from_no)) return std::nullopt;
  return ways;
}

}  // namespace uptier::jit
