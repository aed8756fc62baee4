#include "jit/analysis/ranges.h"

#include <algorithm>
#include <span>

#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

// The depth to which a condition narrows the values that it is computed from.
constexpr uint32_t kMostRangeDepth = 4;
// The most constants of comparisons at which widening stops.
constexpr size_t kMostBounds = 200;
// After this many walks it stops only at zero and the ends of types: otherwise a function with many
// constants would take as many walks.
constexpr uint32_t kFineWalks = 5;
constexpr int64_t kEndsS[] = {INT64_MIN, INT32_MIN,     -1,       0, INT32_MAX - 1,
                              INT32_MAX, INT64_MAX - 1, INT64_MAX};
constexpr uint64_t kEndsU[] = {0,          1,         INT32_MAX,      UINT32_MAX - 1,
                               UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};

bool has_interval(Type t) { return is_int(t); }

Type source_type(const Function& f, const Inst& i) {
  return i.args.size == 0 ? Type::kNone : f.type_of(f.args(i)[0]);
}

// The values that a load can return.
Interval loaded(const Inst& i) {
  switch (i.op) {
    case Opcode::kLoad8S: return signed_interval(i.type, INT8_MIN, INT8_MAX);
    case Opcode::kLoad8U: return unsigned_interval(i.type, 0, UINT8_MAX);
    case Opcode::kLoad16S: return signed_interval(i.type, INT16_MIN, INT16_MAX);
    case Opcode::kLoad16U: return unsigned_interval(i.type, 0, UINT16_MAX);
    case Opcode::kLoad32S: return signed_interval(i.type, INT32_MIN, INT32_MAX);
    case Opcode::kLoad32U: return unsigned_interval(i.type, 0, UINT32_MAX);
    default: return full_interval(i.type);
  }
}

template <typename T>
void sort_unique(std::vector<T>& v) {
  std::ranges::sort(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

}  // namespace

Ranges::Ranges(const Function& f)
    : f_(f),
      control_(analyze_control_flow(f)),
      order_(control_.order()),
      steps_at_(f.blocks.size()),
      now_(f.values.size()),
      params_(f.values.size()),
      known_(f.values.size()),
      reached_(f.blocks.size()) {
  std::ranges::sort(order_, {}, [&](Block b) { return control_.dominators.enter[b.index()]; });
  for (size_t v = 0; v < f.values.size(); ++v) {
    if (has_interval(f.values[v].type)) now_[v] = full_interval(f.values[v].type);
  }
  settle_fixed();
}

// Finds values that never change once: constants, loads, calls. Walks look at the rest.
void Ranges::settle_fixed() {
  for (Block b : order_) {
    const auto first = static_cast<uint32_t>(steps_.size());
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      const bool result = i.result.valid();
      if (result && !has_interval(f_.type_of(i.result))) continue;
      if (result && is_fixed(i)) {
        now_[i.result.index()] = result_of(i);
      } else if (result || i.op == Opcode::kGuard || i.op == Opcode::kTrapIf || i.edge_count != 0) {
        steps_.push_back(id);
      }
    }
    steps_at_[b.index()] = {first, static_cast<uint32_t>(steps_.size()) - first};
  }
}

bool Ranges::is_fixed(const Inst& i) const {
  if (i.op == Opcode::kSelect) return false;
  const Shape s = info(i.op).shape;
  const bool of_floats = (s == Shape::kCompare || s == Shape::kTest) && !has_interval(i.type);
  return i.op == Opcode::kConst || s == Shape::kLoad || !evaluates(i.op) || of_floats;
}

const Inst* Ranges::def(Value v) const {
  InstId i = f_.value(v).inst;
  return i.valid() ? &f_.inst(i) : nullptr;
}

// ---- Walks ------------------------------------------------------------------------------------

void Ranges::solve() {
  collect_bounds();
  reached_[f_.entry().index()] = true;
  for (Value p : f_.params(f_.entry())) {
    params_[p.index()] = now_[p.index()];
    known_[p.index()] = true;
  }
  for (walks_ = 0, changed_ = true; changed_; ++walks_) {
    changed_ = false;
    if (walks_ == kMostWalks) give_up();
    walk();
  }
}

void Ranges::walk() {
  start();
  for (Block b : order_) {
    if (!enter(b)) continue;
    for (InstId i : steps_of(b)) step(i);
  }
}

void Ranges::start() {
  if (!scopes_.empty()) restore(0);
  scopes_.clear();
}

// Collects the constants that conditions compare with, and their neighbours.
void Ranges::collect_bounds() {
  bounds_s_.assign(std::begin(kEndsS), std::end(kEndsS));
  bounds_u_.assign(std::begin(kEndsU), std::end(kEndsU));
  for (Block b : order_) {
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      if (info(i.op).shape != Shape::kCompare || !has_interval(i.type)) continue;
      for (Value v : f_.args(i)) {
        const Inst* c = def(v);
        bool counts = c != nullptr && c->op == Opcode::kConst && bounds_s_.size() < kMostBounds;
        if (!counts) continue;
        Interval k = interval_of(c->type, c->imm);
        for (uint64_t d : {~uint64_t{0}, uint64_t{0}, uint64_t{1}}) {
          bounds_s_.push_back(static_cast<int64_t>(static_cast<uint64_t>(k.min_s) + d));
          bounds_u_.push_back(k.min_u + d);
        }
      }
    }
  }
  sort_unique(bounds_s_);
  sort_unique(bounds_u_);
}

void Ranges::give_up() {
  for (Block b : order_) {
    changed_ = true;
    reached_[b.index()] = true;
    for (Value p : f_.params(b)) {
      Type t = f_.type_of(p);
      params_[p.index()] = has_interval(t) ? full_interval(t) : Interval{};
      known_[p.index()] = true;
    }
  }
}

void Ranges::restore(size_t saved) {
  while (saved_.size() > saved) {
    now_[saved_.back().value.index()] = saved_.back().was;
    saved_.pop_back();
  }
}

// Restores the intervals known above the block.
void Ranges::leave_scopes(Block b) {
  while (!scopes_.empty() && !control_.dominates(scopes_.back().block, b)) {
    restore(scopes_.back().saved);
    scopes_.pop_back();
  }
}

// Returns whether the block may run.
bool Ranges::enter(Block b) {
  leave_scopes(b);
  if (!reached_[b.index()]) return false;
  scopes_.push_back({b, saved_.size()});
  for (Value p : f_.params(b)) now_[p.index()] = params_[p.index()];
  const auto& preds = control_.preds[b.index()];
  if (preds.size() != 1) return true;
  const Inst& t = f_.terminator(preds[0].from);
  if (t.op == Opcode::kBranch) assume(f_.args(t)[0], preds[0].edge == t.edges_at);
  if (t.op == Opcode::kSwitch && preds[0].edge != t.edges_at + t.edge_count - 1) {
    narrow(f_.args(t)[0], interval_of(Type::kI32, preds[0].edge - t.edges_at), 0);
  }
  return true;
}

void Ranges::step(InstId id) {
  const Inst& i = f_.inst(id);
  if (i.result.valid()) {
    now_[i.result.index()] = result_of(i);
  } else if (i.op == Opcode::kGuard || i.op == Opcode::kTrapIf) {
    assume(f_.args(i)[0], i.op == Opcode::kGuard);
  } else if (i.edge_count != 0) {
    take_edges(i);
  }
}

Interval Ranges::selected(const Inst& i) {
  auto args = f_.args(i);
  Interval arms[2];
  for (bool first : {true, false}) {
    size_t saved = saved_.size();
    assume(args[0], first);
    arms[first ? 0 : 1] = at(args[first ? 1 : 2]);
    restore(saved);
  }
  if (auto known = holds(args[0])) return arms[*known ? 0 : 1];
  return join(arms[0], arms[1]);
}

Interval Ranges::result_of(const Inst& i) {
  if (i.op == Opcode::kConst) return interval_of(i.type, i.imm);
  if (i.op == Opcode::kSelect) return selected(i);
  if (info(i.op).shape == Shape::kLoad) return loaded(i);
  if (!evaluates(i.op)) return full_interval(f_.type_of(i.result));
  Interval operands[3];
  auto args = f_.args(i);
  for (size_t n = 0; n < args.size(); ++n) operands[n] = at(args[n]);
  bool compares = info(i.op).shape == Shape::kCompare || info(i.op).shape == Shape::kTest;
  if (compares && !has_interval(i.type)) return unsigned_interval(Type::kI32, 0, 1);
  return interval_of(i.op, i.type, source_type(f_, i), {operands, args.size()});
}

// ---- Edges ------------------------------------------------------------------------------------

void Ranges::take_edges(const Inst& t) {
  std::optional<bool> known;
  if (t.op == Opcode::kBranch) known = holds(f_.args(t)[0]);
  const Interval way = t.op == Opcode::kSwitch ? at(f_.args(t)[0]) : Interval{};
  for (uint32_t e = 0; e < t.edge_count; ++e) {
    bool taken = !known || *known == (e == 0);
    if (t.op == Opcode::kSwitch) {
      bool last = e + 1 == t.edge_count;
      taken = last ? way.max_u >= e : way.min_u <= e && e <= way.max_u;
    }
    if (taken) take(t, e);
  }
}

// Joins the values passed along an edge with the intervals of the target's parameters.
void Ranges::take(const Inst& t, uint32_t edge) {
  const Edge& e = f_.edges_of(t)[edge];
  size_t saved = saved_.size();
  if (t.op == Opcode::kBranch && e.args.size != 0) assume(f_.args(t)[0], edge == 0);
  if (!reached_[e.to.index()]) {
    reached_[e.to.index()] = true;
    changed_ = true;
  }
  auto params = f_.params(e.to);
  auto args = f_.list(e.args);
  for (size_t n = 0; n < params.size(); ++n) {
    Type type = f_.type_of(params[n]);
    if (!has_interval(type)) continue;
    uint32_t p = params[n].index();
    Interval passed = at(args[n]);
    Interval all = known_[p] ? join(params_[p], passed) : passed;
    if (known_[p] && all == params_[p]) continue;
    params_[p] = known_[p] && walks_ > 0 ? grown(type, params_[p], all) : all;
    known_[p] = true;
    changed_ = true;
  }
  restore(saved);
}

// Widens to the next bound if an end has moved.
Interval Ranges::grown(Type t, const Interval& was, const Interval& to) const {
  Interval i = to;
  bool fine = walks_ < kFineWalks;
  std::span<const int64_t> s = fine ? std::span<const int64_t>(bounds_s_) : kEndsS;
  std::span<const uint64_t> u = fine ? std::span<const uint64_t>(bounds_u_) : kEndsU;
  if (to.min_s < was.min_s) i.min_s = *(std::ranges::upper_bound(s, to.min_s) - 1);
  if (to.max_s > was.max_s) i.max_s = *std::ranges::lower_bound(s, to.max_s);
  if (to.min_u < was.min_u) i.min_u = *(std::ranges::upper_bound(u, to.min_u) - 1);
  if (to.max_u > was.max_u) i.max_u = *std::ranges::lower_bound(u, to.max_u);
  const Interval full = full_interval(t);
  return {std::max(i.min_s, full.min_s), std::min(i.max_s, full.max_s),
          std::max(i.min_u, full.min_u), std::min(i.max_u, full.max_u)};
}

// ---- Conditions -------------------------------------------------------------------------------

std::optional<bool> Ranges::holds(Value condition) const {
  const Interval& c = at(condition);
  if (c.min_u > 0) return true;
  if (c.max_u == 0) return false;
  const Inst* i = def(condition);
  if (i == nullptr || !has_interval(i->type)) return std::nullopt;
  if (i->op == Opcode::kEqz) {
    return decide(Opcode::kEq, at(f_.args(*i)[0]), interval_of(i->type, 0), i->type);
  }
  if (info(i->op).shape != Shape::kCompare) return std::nullopt;
  return decide(i->op, at(f_.args(*i)[0]), at(f_.args(*i)[1]), i->type);
}

// Records that a condition holds, or does not, until the scope is left.
void Ranges::assume(Value condition, bool holds, uint32_t depth) {
  narrow(condition,
         where(Opcode::kNe, holds, Type::kI32, at(condition), interval_of(Type::kI32, 0)),
         kMostRangeDepth);
  const Inst* i = def(condition);
  if (i == nullptr || depth == kMostRangeDepth || !has_interval(i->type)) return;
  auto args = f_.args(*i);
  bool both = i->op == Opcode::kAnd ? holds : i->op == Opcode::kOr && !holds;
  if (both) {
    assume(args[0], holds, depth + 1);
    assume(args[1], holds, depth + 1);
  } else if (i->op == Opcode::kEqz && i->type == Type::kI32) {
    assume(args[0], !holds, depth + 1);
  } else if (i->op == Opcode::kEqz) {
    narrow(args[0], where(Opcode::kEq, holds, i->type, at(args[0]), interval_of(i->type, 0)),
           depth);
  } else if (i->op >= Opcode::kEq && i->op <= Opcode::kGeU) {
    assume_comparison(i->op, i->type, args[0], args[1], holds, depth);
  }
}

void Ranges::assume_comparison(Opcode op, Type t, Value a, Value b, bool holds, uint32_t depth) {
  Interval x = at(a), y = at(b);
  narrow(a, where(op, holds, t, x, y), depth);
  narrow(b, where(mirrored(op), holds, t, y, x), depth);
}

// An empty interval is ignored: then control never comes here.
void Ranges::narrow(Value v, const std::optional<Interval>& to, uint32_t depth) {
  if (!to || *to == at(v)) return;
  saved_.push_back({v, at(v)});
  now_[v.index()] = *to;
  if (depth < kMostRangeDepth) narrow_source(v, depth + 1);
}

// Narrows the operands of a value from its narrower result.
void Ranges::narrow_source(Value v, uint32_t depth) {
  const Inst* i = def(v);
  if (i == nullptr || i->args.size == 0) return;
  auto args = f_.args(*i);
  Value x = args[0];
  auto keep = [&](Value of, const Interval& may) {
    Type t = f_.type_of(of);
    if (has_interval(t)) narrow(of, meet(t, at(of), may), depth);
  };
  const Interval to = at(v);
  auto inverse = [&](Opcode op, const Interval& a, const Interval& b) {
    const Interval operands[] = {a, b};
    return interval_of(op, i->type, i->type, operands);
  };
  switch (i->op) {
    case Opcode::kAdd:
    case Opcode::kAddTrap:
      keep(x, inverse(Opcode::kSub, to, at(args[1])));
      keep(args[1], inverse(Opcode::kSub, to, at(x)));
      break;
    case Opcode::kSub:
    case Opcode::kSubTrap:
      keep(x, inverse(Opcode::kAdd, to, at(args[1])));
      keep(args[1], inverse(Opcode::kSub, at(x), to));
      break;
    case Opcode::kExtendS:
    case Opcode::kExtendU: {
      const Interval operand[] = {to};
      keep(x, interval_of(Opcode::kWrap, Type::kI32, Type::kI64, operand));
      break;
    }
    case Opcode::kWrap: {
      // Nothing was lost if the operand is known to fit.
      Interval from = f_.type_of(x) == Type::kI64 ? at(x) : full_interval(Type::kI64);
      bool is_signed = from.min_s >= INT32_MIN && from.max_s <= INT32_MAX;
      if (is_signed)
        keep(x, signed_interval(Type::kI64, to.min_s, to.max_s));
      else if (from.max_u <= UINT32_MAX)
        keep(x, unsigned_interval(Type::kI64, to.min_u, to.max_u));
      break;
    }
    default: break;
  }
}

}  // namespace uptier::jit
