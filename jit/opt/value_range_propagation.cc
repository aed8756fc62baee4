// Value range propagation. The intervals of values allow these changes:
//
//   comparison, overflow test with a known result                      a constant
//   shr_s, shr_u by a constant that leaves no bits                     0
//   branch, switch with a known outcome                                a jump
//   trap_if, guard that never fail                                     removed
//   add_trap, sub_trap, mul_trap that never trap                       add, sub, mul
//   div_s, rem_s, extend_s, shr_s of values that are never negative    div_u, rem_u, extend_u, shr_u
//   x lt_u y (le_u ...) if neither is negative                         x lt_s y
//   and, with a mask of ones that covers x; sext8 and the like, if x   x
//   fits already
//   i32 index of an access that is x + c or x << c and does not wrap   the same of extend_u x, which
//   around                                                             the address folds
//
// Comparisons become signed so that a bounds check is the same condition as the test of the loop
// around it. Then conditional_elimination knows its outcome.
#include <algorithm>

#include "jit/analysis/ranges.h"
#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kMostSums = 2;  // folded into one index: a shift and an addition

enum class Change : uint8_t { kNone, kConstant, kSame, kOpcode, kDrop, kWay, kWiden };

struct Decision {
  Change change = Change::kNone;
  Opcode op = Opcode::kConst;  // kOpcode
  uint64_t bits = 0;           // kConstant; kWay: the edge that is taken; kWiden: number of sums
};

class RangeSettler {
 public:
  explicit RangeSettler(Function& f) : f_(f), ranges_(f), decisions_(f.insts.size()) {}

  bool run() {
    ranges_.run([&](Block, InstId i) { decide(i); });
    if (!changed_) return false;
    Rewriter r(f_);
    std::vector<Block> order = compute_dominators(f_).order;
    r.run(order, [&](InstId i) { return apply(r, i); });
    if (ways_) simplify_cfg(f_);
    return true;
  }

 private:
  void decide(InstId id) {
    const Inst& i = f_.inst(id);
    Shape s = info(i.op).shape;
    bool access = s == Shape::kLoad || s == Shape::kStore;
    Decision d = access ? of_access(i) : i.result.valid() ? of_result(i) : of_way(i);
    if (d.change == Change::kNone) return;
    changed_ = true;
    ways_ |= d.change == Change::kWay;
    decisions_[id.index()] = d;
  }

  const Interval& arg(const Inst& i, uint32_t n) const { return ranges_.at(f_.args(i)[n]); }
  bool non_negative(const Inst& i) const {
    return arg(i, 0).non_negative() && (i.args.size < 2 || arg(i, 1).non_negative());
  }

  // Decides branches, traps and guards by their conditions.
  Decision of_way(const Inst& i) const {
    if (i.op == Opcode::kSwitch) return of_switch(i);
    bool asks = i.op == Opcode::kBranch || i.op == Opcode::kTrapIf || i.op == Opcode::kGuard;
    if (!asks) return {};
    auto known = ranges_.holds(f_.args(i)[0]);
    if (!known) return {};
    if (i.op == Opcode::kBranch) return {Change::kWay, i.op, *known ? 0u : 1u};
    bool stays = i.op == Opcode::kGuard && i.imm != 0 && f_.deopts[i.imm - 1].asks();
    bool passes = *known == (i.op == Opcode::kGuard);
    return passes && !stays ? Decision{Change::kDrop} : Decision{};
  }

  Decision of_switch(const Inst& i) const {
    const Interval& x = arg(i, 0);
    uint64_t last = i.edge_count - 1;
    if (last != 0 && x.min_u >= last) return {Change::kWay, i.op, last};
    return x.constant() && last != 0 ? Decision{Change::kWay, i.op, x.min_u} : Decision{};
  }

  Decision of_access(const Inst& i) const {
    Value index = f_.args(i).back();
    bool indexed = i.args.size == (info(i.op).shape == Shape::kLoad ? 2 : 3);
    if (!indexed || f_.type_of(index) != Type::kI32) return {};
    uint64_t sums = 0;
    for (; sums < kMostSums && never_wraps(index); ++sums) index = summand(index);
    return sums != 0 ? Decision{Change::kWiden, i.op, sums} : Decision{};
  }

  Value summand(Value sum) const { return f_.args(f_.inst(f_.value(sum).inst))[0]; }

  // Returns whether the value is a sum or a shift by a constant that an address may fold, and stays
  // below 2^32.
  bool never_wraps(Value v) const {
    InstId id = f_.value(v).inst;
    if (!id.valid()) return false;
    const Inst& i = f_.inst(id);
    if (i.op != Opcode::kAdd && i.op != Opcode::kShl) return false;
    InstId c = f_.value(f_.args(i)[1]).inst;
    if (!c.valid() || f_.inst(c).op != Opcode::kConst) return false;
    uint64_t most = arg(i, 0).max_u, by = f_.inst(c).imm;
    if (i.op == Opcode::kShl) return by >= 1 && by <= 3 && most << by <= UINT32_MAX;
    return by <= INT32_MAX && most + by <= UINT32_MAX;
  }

  Value widened(Rewriter& r, Value v, uint64_t sums) {
    if (sums == 0) return r.emit(Opcode::kExtendU, Type::kI64, {r.resolve(v)});
    InstId id = f_.value(v).inst;
    Opcode op = f_.inst(id).op;
    uint64_t by = f_.inst(f_.value(f_.args(f_.inst(id))[1]).inst).imm;
    Value x = widened(r, f_.args(f_.inst(id))[0], sums - 1);
    return r.emit(op, Type::kI64, {x, r.constant(Type::kI64, by)});
  }

  Decision of_result(const Inst& i) const {
    if (i.op == Opcode::kConst || !evaluates(i.op) || !is_int(f_.type_of(i.result))) return {};
    switch (info(i.op).shape) {
      case Shape::kCompare:
      case Shape::kTest: return of_comparison(i);
      case Shape::kBinary: return of_binary(i);
      case Shape::kUnary: return of_extension(i);
      case Shape::kConvert:
        if (i.op == Opcode::kExtendS && non_negative(i)) return {Change::kOpcode, Opcode::kExtendU};
        return {};
      default: return {};
    }
  }

  Decision of_comparison(const Inst& i) const {
    if (!is_int(i.type)) return {};
    auto known = i.op == Opcode::kEqz
                     ? jit::decide(Opcode::kEq, arg(i, 0), interval_of(i.type, 0), i.type)
                     : jit::decide(i.op, arg(i, 0), arg(i, 1), i.type);
    if (known) return {Change::kConstant, i.op, *known ? 1u : 0u};
    if (i.op == Opcode::kEqz || !non_negative(i)) return {};
    switch (i.op) {
      case Opcode::kLtU: return {Change::kOpcode, Opcode::kLtS};
      case Opcode::kLeU: return {Change::kOpcode, Opcode::kLeS};
      case Opcode::kGtU: return {Change::kOpcode, Opcode::kGtS};
      case Opcode::kGeU: return {Change::kOpcode, Opcode::kGeS};
      default: return {};
    }
  }

  Decision of_binary(const Inst& i) const {
    switch (i.op) {
      case Opcode::kAddTrap: return of_trapping(i, Opcode::kAddOverflows, Opcode::kAdd);
      case Opcode::kSubTrap: return of_trapping(i, Opcode::kSubOverflows, Opcode::kSub);
      case Opcode::kMulTrap: return of_trapping(i, Opcode::kMulOverflows, Opcode::kMul);
      case Opcode::kDivS: return if_unsigned(i, Opcode::kDivU);
      case Opcode::kRemS: return if_unsigned(i, Opcode::kRemU);
      case Opcode::kAnd: return of_mask(i);
      case Opcode::kShrS:
      case Opcode::kShrU: return of_shift(i);
      default: return {};
    }
  }

  Decision of_trapping(const Inst& i, Opcode overflows, Opcode plain) const {
    bool never = jit::decide(overflows, arg(i, 0), arg(i, 1), i.type) == false;
    return never ? Decision{Change::kOpcode, plain} : Decision{};
  }

  Decision if_unsigned(const Inst& i, Opcode op) const {
    return non_negative(i) ? Decision{Change::kOpcode, op} : Decision{};
  }

  Decision of_shift(const Inst& i) const {
    const Interval &x = arg(i, 0), &by = arg(i, 1);
    if (!x.non_negative()) return {};
    uint64_t bits = i.type == Type::kI32 ? 31 : 63;
    if (by.constant() && x.max_u >> (by.min_u & bits) == 0) return {Change::kConstant, i.op, 0};
    return i.op == Opcode::kShrS ? Decision{Change::kOpcode, Opcode::kShrU} : Decision{};
  }

  // Expects the mask on the right.
  Decision of_mask(const Inst& i) const {
    const Interval& mask = arg(i, 1);
    bool ones = mask.constant() && (mask.min_u & (mask.min_u + 1)) == 0;
    return ones && arg(i, 0).max_u <= mask.min_u ? Decision{Change::kSame} : Decision{};
  }

  Decision of_extension(const Inst& i) const {
    int64_t most = i.op == Opcode::kSext8    ? INT8_MAX
                   : i.op == Opcode::kSext16 ? INT16_MAX
                   : i.op == Opcode::kSext32 ? INT32_MAX
                                             : -1;
    bool same = most >= 0 && arg(i, 0).min_s >= -most - 1 && arg(i, 0).max_s <= most;
    return same ? Decision{Change::kSame} : Decision{};
  }

  // Returns whether to keep the instruction.
  bool apply(Rewriter& r, InstId id) {
    if (id.index() >= decisions_.size()) return true;
    const Decision d = decisions_[id.index()];
    Inst& i = f_.inst(id);
    if (d.change == Change::kWiden) {
      Value index = widened(r, f_.args(i).back(), d.bits);
      f_.args(f_.inst(id)).back() = index;
      return true;
    }
    switch (d.change) {
      case Change::kNone:
      case Change::kWiden: return true;
      case Change::kDrop: return false;
      case Change::kOpcode: i.op = d.op; return true;
      case Change::kConstant: r.become_constant(id, d.bits); return true;
      case Change::kSame: r.replace(i.result, f_.args(i)[0]); return false;
      case Change::kWay:
        i.op = Opcode::kJump;
        i.args.size = 0;
        i.edges_at += static_cast<uint32_t>(d.bits);
        i.edge_count = 1;
        return true;
    }
    return true;
  }

  Function& f_;
  Ranges ranges_;
  std::vector<Decision> decisions_;  // by InstId
  bool changed_ = false;
  bool ways_ = false;
};

}  // namespace

bool value_range_propagation(Function& f) { return RangeSettler(f).run(); }

}  // namespace uptier::jit
