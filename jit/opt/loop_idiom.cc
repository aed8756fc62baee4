// Loop-idiom recognition. Applies to a loop of one block that stores the same value to one element
// after another, or copies elements one by one, and otherwise only computes variables that grow by
// constants (analysis/induction.h). One operation replaces all iterations but the last:
//
//                                      enter(p0, n0):  m = iterations followed by another for certain
//     loop(p, n):                                      branch m is large, bulk, loop(p0, n0)
//       store8 v, p                ->  bulk:           fill v, p0, m by 1
//       p' = add p, 1                                  jump loop(p0 + m, n0 - m)
//       n' = sub n, 1                  loop(p, n):     as it was
//       branch n', loop(p', n'), out
//
// The loop keeps all its exits, and everything that it computes for the code after it. A smaller m
// is correct as well, so m need not be exact:
//
//     while x != n, x < n    m = (n - x) / step          0 if x starts beyond n
//     while x != n, x > n    m = (x - n) / -step
//
// The operation stores element after element as the loop does, overlapping or not, and stops where
// the loop would fault. The one difference, an i32 index that wraps around on the way, is tested
// before. A copy to less than kLeastDistance after its source is correct but slow, so it is left to
// the loop. So are short runs: by the counts, if there are any, and by a test at run time.
#include <algorithm>

#include "jit/analysis/induction.h"
#include "jit/analysis/interval.h"
#include "jit/ir/semantics.h"
#include "jit/ir/tally.h"
#include "jit/opt/loop_preheader.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kLeastIdiomRounds = 32;
constexpr uint64_t kLeastDistance = 64;   // bytes
constexpr uint32_t kMostIdiomInsts = 40;  // of the loop

class BulkStorer {
 public:
  BulkStorer(Function& f, const BlockCounts& counts, bool counting)
      : f_(f), counts_(counts), counting_(counting) {}

  void run() {
    std::vector<Block> loops;
    for (Block b : f_.layout) {
      if (is_loop(b)) loops.push_back(b);
    }
    for (Block b : loops) {
      if (!find(b)) continue;
      if (preds_.empty()) preds_ = Predecessors(f_);
      if (is_long(b)) rewrite();
    }
  }

 private:
  // The start of an iteration's accesses: the address is base + index + offset.
  struct Place {
    Value base, index;
    uint64_t offset = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };

  bool is_loop(Block b) const {
    const Inst& t = f_.terminator(b);
    auto edges = f_.edges_of(t);
    bool turns = t.op == Opcode::kBranch && (edges[0].to == b) != (edges[1].to == b);
    return turns && f_.block(b).insts.size() <= kMostIdiomInsts && stores(b);
  }

  bool stores(Block b) const {
    return std::ranges::any_of(
        f_.block(b).insts, [&](InstId i) { return info(f_.inst(i).op).shape == Shape::kStore; });
  }

  // ---- Recognition ------------------------------------------------------------------------------

  bool find(Block b) {
    loop_ = b;
    const Inst& t = f_.terminator(b);
    turns_when_ = f_.edges_of(t)[0].to == b;
    back_ = f_.edges_of(t)[turns_when_ ? 0 : 1];
    Induction grows(f_, b, back_);
    for (Value p : f_.params(b)) {
      if (!grows.step(p)) return false;
    }
    return find_accesses() && find_run(grows) && find_count(grows);
  }

  // Finds the loads and stores, in order. Nothing else may have effects.
  bool find_accesses() {
    loads_.clear();
    stores_.clear();
    for (InstId id : f_.block(loop_).insts) {
      const Inst& i = f_.inst(id);
      Shape s = info(i.op).shape;
      if (s == Shape::kStore) {
        stores_.push_back(id);
      } else if (s == Shape::kLoad) {
        if ((i.flags & kMemInvariant) != 0) return false;
        loads_.push_back(id);
      } else if ((info(i.op).effects & ~kCommutes) != kPure && i.op != Opcode::kBranch &&
                 (counting_ || !is_block_probe(i))) {
        return false;
      }
      // A copy stores each element right after loading it, and loads it whole.
      bool pairs = loads_.empty() || loads_.size() - stores_.size() <= 1;
      if (!pairs) return false;
    }
    return loads_.empty() || (loads_.size() == stores_.size() && copies());
  }

  bool copies() const {
    for (size_t n = 0; n < loads_.size(); ++n) {
      const Inst &l = f_.inst(loads_[n]), &s = f_.inst(stores_[n]);
      if (f_.args(s)[0] != l.result || ((l.flags ^ s.flags) & kMemTraps) != 0) return false;
      if (access_size(l.op, l.type) != access_size(s.op, s.type)) return false;
    }
    // Nothing else in the loop may use the loaded values.
    for (InstId id : f_.block(loop_).insts) {
      if (info(f_.inst(id).op).shape == Shape::kStore) continue;
      for (Value v : f_.args(f_.inst(id))) {
        const ValueData& d = f_.value(v);
        if (d.inst.valid() && std::ranges::find(loads_, d.inst) != loads_.end()) return false;
      }
    }
    return true;
  }

  static Place place(const Function& f, const Inst& i) {
    auto args = f.args(i).subspan(info(i.op).shape == Shape::kStore ? 1 : 0);
    return {args[0], args.size() > 1 ? args[1] : Value::none(), i.imm};
  }

  // Returns whether the accesses of an iteration, and those of successive iterations, form one run
  // of elements.
  bool is_run(const Induction& grows, const std::vector<InstId>& accesses) const {
    const Inst& first = f_.inst(accesses[0]);
    Place at = place(f_, first);
    for (InstId id : accesses) {
      const Inst& i = f_.inst(id);
      if (access_size(i.op, i.type) != width_ || i.flags != first.flags) return false;
      if (place(f_, i) != at) return false;
      at.offset += width_;
    }
    uint64_t round = width_ * accesses.size();
    auto base = grows.step(at.base);
    auto index = at.index.valid() ? grows.step(at.index) : 0;
    return base && index && *base + *index == round && (*base == 0 || *index == 0);
  }

  bool find_run(const Induction& grows) {
    const Inst& first = f_.inst(stores_[0]);
    width_ = access_size(first.op, first.type);
    if (!is_run(grows, stores_)) return false;
    if (!loads_.empty()) return is_run(grows, loads_);
    // All stores must have the same value: defined outside, or the same constant.
    for (InstId id : stores_) {
      Value v = f_.args(f_.inst(id))[0], w = f_.args(first)[0];
      if (v != w && (!constant_of(v) || constant_of(v) != constant_of(w))) return false;
    }
    Value v = f_.args(first)[0];
    return !grows.inside(v) || constant_of(v);
  }

  std::optional<uint64_t> constant_of(Value v) const {
    InstId i = f_.value(v).inst;
    bool constant = i.valid() && f_.inst(i).op == Opcode::kConst;
    return constant ? std::optional(f_.inst(i).imm) : std::nullopt;
  }

  // ---- The number of iterations -----------------------------------------------------------------

  static Opcode negated(Opcode op) {
    using enum Opcode;
    switch (op) {
      case kEq: return kNe;
      case kNe: return kEq;
      case kLtS: return kGeS;
      case kLtU: return kGeU;
      case kGtS: return kLeS;
      case kGtU: return kLeU;
      case kLeS: return kGtS;
      case kLeU: return kGtU;
      case kGeS: return kLtS;
      case kGeU: return kLtU;
      default: return kTrap;
    }
  }

  // Finds the test of the loop. Without a `limit_`, the limit is 0.
  bool find_count(const Induction& grows) {
    Value c = f_.args(f_.terminator(loop_))[0];
    InstId id = f_.value(c).inst;
    bool turns = turns_when_;
    test_ = Opcode::kNe;
    varies_ = c;
    limit_ = Value::none();
    if (id.valid() && grows.inside(c)) {
      const Inst& i = f_.inst(id);
      if (i.op == Opcode::kEqz && is_int(i.type)) {
        varies_ = f_.args(i)[0];
        turns = !turns;
      } else if (i.op >= Opcode::kEq && i.op <= Opcode::kGeU && is_int(i.type)) {
        test_ = i.op;
        varies_ = f_.args(i)[0];
        limit_ = f_.args(i)[1];
      }
    }
    if (!turns) test_ = negated(test_);
    if (limit_.valid() && grows.step(limit_) != 0u) {
      std::swap(varies_, limit_);
      if (test_ != Opcode::kNe && test_ != Opcode::kEq) test_ = mirrored(test_);
    }
    auto step = grows.step(varies_);
    if (!step || *step == 0 || (limit_.valid() && grows.step(limit_) != 0u)) return false;
    return is_step(*step);
  }

  // Returns whether the test ends a sequence in the direction of the step, which must be a power of
  // two.
  bool is_step(uint64_t step) {
    using enum Opcode;
    Type t = f_.type_of(varies_);
    down_ = (step >> (is_wide(t) ? 63 : 31)) != 0;
    uint64_t size = clip(t, down_ ? 0 - step : step);
    if (!std::has_single_bit(size)) return false;
    shift_ = static_cast<uint64_t>(std::countr_zero(size));
    bool up = test_ == kLtS || test_ == kLtU || test_ == kLeS || test_ == kLeU;
    bool falls = test_ == kGtS || test_ == kGtU || test_ == kGeS || test_ == kGeU;
    return test_ == kNe || (down_ ? falls : up);
  }

  bool is_long(Block b) const {
    uint32_t entries = 0;
    float entered = 0;
    for (const Predecessor& p : preds_[b.index()]) {
      if (p.from == b) continue;
      ++entries;
      if (makes_bulk(p.from)) return false;
      const Inst* probe = last_block_probe(f_, p.from);
      if (probe != nullptr) entered += counts_.at(*probe);
    }
    const Inst* probe = first_block_probe(f_, b);
    if (counts_.empty() || probe == nullptr) return entries != 0;
    bool seen = counts_.seen(*probe) >= kLeastSeen;
    return entries != 0 && seen && counts_.at(*probe) >= kLeastIdiomRounds * entered;
  }

  bool makes_bulk(Block b) const {
    return std::ranges::any_of(f_.block(b).insts,
                               [&](InstId i) { return info(f_.inst(i).op).shape == Shape::kBulk; });
  }

  // ---- The new blocks ---------------------------------------------------------------------------

  void rewrite() {
    Induction grows(f_, loop_, back_);
    std::vector<uint64_t> steps;
    for (Value p : f_.params(loop_)) steps.push_back(*grows.step(p));
    std::vector<Value> indices;
    for (const auto* accesses : {&stores_, &loads_}) {
      if (accesses->empty()) continue;
      Value i = place(f_, f_.inst((*accesses)[0])).index;
      if (i.valid() && f_.type_of(i) == Type::kI32 && grows.step(i) != 0u) indices.push_back(i);
    }
    LoopPreheader e(f_, loop_, preds_[loop_.index()]);
    Value many = rounds(e);
    Value go = e.emit(Opcode::kSub, Type::kI64, {many, e.constant(Type::kI64, kLeastIdiomRounds)});
    go = e.emit(Opcode::kLtU, Type::kI64,
                {go, e.constant(Type::kI64, (uint64_t{1} << 32) - kLeastIdiomRounds)});
    Value bytes = times(e, Type::kI64, many, width_ * stores_.size());
    for (Value i : indices) {
      Value end = e.emit(Opcode::kAdd, Type::kI64, {wide(e, e.first(i)), bytes});
      Value limit = e.constant(Type::kI64, uint64_t{1} << 32);
      go = both(e, go, e.emit(Opcode::kLeU, Type::kI64, {end, limit}));
    }
    const Inst store = f_.inst(stores_[0]);
    Value to = address(e, place(f_, store)), from;
    if (loads_.empty()) {
      from = wide(e, e.first(f_.args(store)[0]));
    } else {
      from = address(e, place(f_, f_.inst(loads_[0])));
      Value distance = e.emit(Opcode::kSub, Type::kI64, {to, from});
      Value least = e.constant(Type::kI64, kLeastDistance);
      go = both(e, go, e.emit(Opcode::kGeU, Type::kI64, {distance, least}));
    }
    Block bulk = e.add_block();
    Inst branch{.op = Opcode::kBranch};
    branch.args = f_.make_list({{go}});
    std::vector<Value> same(f_.params(e.block()).begin(), f_.params(e.block()).end());
    e.end(branch, {{bulk, {}}, {loop_, f_.make_list(same)}});
    e.append_to(bulk);
    store_all(bulk, store, from, to, times(e, Type::kI64, many, stores_.size()));
    if (!counting_) probe_rounds(bulk, many);
    std::vector<Value> later;
    for (size_t n = 0; n < steps.size(); ++n) {
      later.push_back(advanced(e, f_.params(loop_)[n], steps[n], many));
    }
    e.end({.op = Opcode::kJump}, {{loop_, f_.make_list(later)}});
  }

  static Value both(LoopPreheader& e, Value a, Value b) {
    return e.emit(Opcode::kAnd, Type::kI32, {a, b});
  }

  static Value times(LoopPreheader& e, Type t, Value v, uint64_t k) {
    if (k == 1) return v;
    bool power = std::has_single_bit(k);
    auto by = power ? static_cast<uint64_t>(std::countr_zero(k)) : k;
    return e.emit(power ? Opcode::kShl : Opcode::kMul, t, {v, e.constant(t, by)});
  }

  // Returns the bits of a value as an i64.
  Value wide(LoopPreheader& e, Value v) const {
    Type t = f_.type_of(v);
    if (t == Type::kI64) return v;
    if (t == Type::kI32) return e.emit(Opcode::kExtendU, Type::kI64, {v});
    if (t == Type::kF32) return wide(e, e.emit(Opcode::kBitcast, Type::kI32, {v}));
    return e.emit(Opcode::kBitcast, Type::kI64, {v});
  }

  Value address(LoopPreheader& e, const Place& p) const {
    Value at = wide(e, e.first(p.base));
    if (p.index.valid()) at = e.emit(Opcode::kAdd, Type::kI64, {at, wide(e, e.first(p.index))});
    if (p.offset == 0) return at;
    return e.emit(Opcode::kAdd, Type::kI64, {at, e.constant(Type::kI64, p.offset)});
  }

  // Returns the number of iterations that are certainly followed by another.
  Value rounds(LoopPreheader& e) const {
    Type t = f_.type_of(varies_);
    Value x = e.first(varies_);
    bool to_zero = !limit_.valid() && down_;
    Value n = limit_.valid() ? e.first(limit_) : to_zero ? Value::none() : e.constant(t, 0);
    Value way = to_zero ? x : e.emit(Opcode::kSub, t, {down_ ? x : n, down_ ? n : x});
    if (shift_ != 0) way = e.emit(Opcode::kShrU, t, {way, e.constant(t, shift_)});
    if (test_ != Opcode::kNe) {
      Value before = e.emit(test_, t, {x, n}), none = e.constant(t, 0);
      way = e.emit(Opcode::kSelect, t, {before, way, none});
    }
    return wide(e, way);
  }

  void store_all(Block bulk, const Inst& store, Value from, Value to, Value many) {
    Inst i{.op = loads_.empty() ? Opcode::kFill : Opcode::kCopy,
           .loc = store.loc,
           .body = store.body,
           .imm = width_};
    i.flags = store.flags & (kMemTraps | alias_class(kAliasClasses - 1));
    bool differ =
        !loads_.empty() && alias_class_of(f_.inst(loads_[0]).flags) != alias_class_of(store.flags);
    if (differ) i.flags &= kMemTraps;
    i.args = f_.make_list({{from, to, many}});
    f_.append(bulk, i, Type::kNone);
  }

  // The probes of the loop no longer see these rounds.
  void probe_rounds(Block bulk, Value many) {
    const std::vector<InstId> insts = f_.block(loop_).insts;
    for (InstId id : insts) {
      std::optional<float> part = part_of_block(f_.inst(id));
      if (!part) continue;
      Inst rounds = share_probe(f_.inst(id), kProbeRounds, *part);
      rounds.args = f_.make_list({{many}});
      f_.append(bulk, rounds, Type::kNone);
    }
  }

  // Returns the value of a loop parameter after `many` iterations.
  Value advanced(LoopPreheader& e, Value p, uint64_t step, Value many) const {
    Type t = f_.type_of(p);
    if (step == 0) return e.first(p);
    Value n = t == Type::kI32 ? e.emit(Opcode::kWrap, t, {many}) : many;
    bool falls = (step >> (is_wide(t) ? 63 : 31)) != 0;
    n = times(e, t, n, falls ? clip(t, 0 - step) : step);
    return e.emit(falls ? Opcode::kSub : Opcode::kAdd, t, {e.first(p), n});
  }

  Function& f_;
  const BlockCounts& counts_;
  const bool counting_;
  Predecessors preds_;
  // The loop being examined.
  Block loop_;
  Edge back_;
  bool turns_when_ = true;  // the loop continues if its condition has this value
  std::vector<InstId> loads_, stores_;
  uint64_t width_ = 0;  // of an element
  Opcode test_ = Opcode::kNe;
  Value varies_, limit_;  // the loop continues while varies_ `test_` limit_; none: 0
  bool down_ = false;
  uint64_t shift_ = 0;
};

}  // namespace

void loop_idiom(Function& f, const BlockCounts& counts, bool counting) {
  BulkStorer(f, counts, counting).run();
}

}  // namespace uptier::jit
