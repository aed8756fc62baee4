// Conditions. A comparison is emitted where its result is used, once for each use, because flags
// are cheaper than a register that holds 0 or 1.
#include <algorithm>

#include "jit/frontend/add_fuel.h"
#include "jit/ir/semantics.h"
#include "jit/x64/address.h"
#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {
namespace {

constexpr uint64_t kMostEntries = 256;  // of a table that is padded
constexpr uint64_t kMostPadding = 4;    // the most entries of such a table for each case
constexpr size_t kMostAsked = 8;  // the most overflow tests whose sums are searched for at a time

Cond cond_of(Opcode op) {
  switch (op) {
    case Opcode::kNe: return Cond::kNE;
    case Opcode::kLtS: return Cond::kL;
    case Opcode::kLtU: return Cond::kB;
    case Opcode::kGtS: return Cond::kG;
    case Opcode::kGtU: return Cond::kA;
    case Opcode::kLeS: return Cond::kLE;
    case Opcode::kLeU: return Cond::kBE;
    case Opcode::kGeS: return Cond::kGE;
    case Opcode::kGeU: return Cond::kAE;
    default: return Cond::kE;
  }
}

Cond swapped(Cond c) {
  switch (c) {
    case Cond::kL: return Cond::kG;
    case Cond::kG: return Cond::kL;
    case Cond::kLE: return Cond::kGE;
    case Cond::kGE: return Cond::kLE;
    case Cond::kB: return Cond::kA;
    case Cond::kA: return Cond::kB;
    case Cond::kBE: return Cond::kAE;
    case Cond::kAE: return Cond::kBE;
    default: return c;
  }
}

bool is_int_compare(Opcode op) { return op >= Opcode::kEq && op <= Opcode::kGeU; }
bool is_float_compare(Opcode op) { return op >= Opcode::kFEq && op <= Opcode::kFGe; }
bool is_overflow(Opcode op) {
  return op == Opcode::kAddOverflows || op == Opcode::kSubOverflows || op == Opcode::kMulOverflows;
}

}  // namespace

// A comparison from another block is repeated here if that keeps no additional value alive.
bool Lowering::can_fold_test(const Inst& compare) const {
  if (is_overflow(compare.op)) return f_.value(compare.result).block == block_;
  bool is_test =
      compare.op == Opcode::kEqz || is_int_compare(compare.op) || is_float_compare(compare.op);
  if (!is_test) return false;
  if (f_.value(compare.result).block == block_) return true;
  auto args = f_.args(compare);
  return args.size() == 1 || constant_of(args[1]).has_value();
}

// A load may be folded in only if every value between it and the test has a single use.
void Lowering::add_test(Value v, bool negate) {
  fold_ok_ = true;
  add_test_of(v, negate);
}

void Lowering::add_test_of(Value v, bool negate) {
  const Inst* i = def(v);
  if (i && can_fold_test(*i)) {
    fold_ok_ = fold_ok_ && use_count_[v.index()] <= 1;
    if (i->op == Opcode::kEqz && f_.type_of(f_.args(*i)[0]) == Type::kI32) {
      return add_test_of(f_.args(*i)[0], !negate);
    }
    // The comparison is emitted here, and again where it is needed as a value. So its operands are
    // used twice, and no load of one may be folded into either.
    if (!fold_ok_) {
      for (Value operand : f_.args(*i)) ++use_count_[operand.index()];
    }
    if (i->op == Opcode::kEqz) {
      bool wide = is_wide_value(f_.args(*i)[0]);
      return add_zero_test(f_.args(*i)[0], wide, !negate);
    }
    if (is_int_compare(i->op)) return add_int_test(*i, negate);
    if (is_float_compare(i->op)) return add_float_test(*i, negate);
    return add_overflow_test(*i, negate);
  }
  add_zero_test(v, false, negate);
}

// v != 0 (negate: v == 0).
void Lowering::add_zero_test(Value v, bool wide, bool negate) {
  cur_.width = wide ? 8 : 4;
  cur_.cond = negate ? Cond::kE : Cond::kNE;
  if (constant_of(v)) {
    Vreg c = use(v);
    cur_.test = Test::kTest;
    cur_.form = Form::kRR;
    cur_.a = cur_.b = add(c, Role::kUse, Policy::kReg);
    return;
  }
  const Inst* i = def(v, Opcode::kAnd);
  if (i && f_.value(v).block == block_ && is_wide(i->type) == wide) {
    Value x = f_.args(*i)[0], y = f_.args(*i)[1];
    if (!fold_ok_ || use_count_[v.index()] > 1) {  // emitted again where it is needed as a value
      ++use_count_[x.index()];
      ++use_count_[y.index()];
    }
    cur_.test = Test::kTest;
    auto c = imm_of(y);
    const Inst* load = use_count_[v.index()] == 1 && fold_ok_ ? foldable_load(x) : nullptr;
    if (c && load && load->op == Opcode::kLoad) {
      cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*c));
      fold_memory(*load, Role::kUse, Form::kMI);
      return;
    }
    if (c) {
      cur_.form = Form::kRI;
      cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*c));
      use_a(x);
      return;
    }
    Vreg a = use(x), b = use(y);
    cur_.form = Form::kRR;
    cur_.a = add(a, Role::kUse, Policy::kReg);
    cur_.b = add(b, Role::kUse, Policy::kAny);
    return;
  }
  const Inst* load = fold_ok_ ? foldable_load(v) : nullptr;
  if (load) {
    unsigned size = access_size(load->op, load->type);
    cur_.test = Test::kCmp;
    cur_.width = static_cast<uint8_t>(size);
    cur_.imm = 0;
    fold_memory(*load, Role::kUse, Form::kMI);
    return;
  }
  cur_.test = Test::kTest;
  cur_.form = Form::kRR;
  cur_.a = cur_.b = add(vreg(v), Role::kUse, Policy::kReg);
}

// Compares a narrow load in memory with a constant in its range.
bool Lowering::add_narrow_compare(const Inst& compare, Cond c) {
  auto args = f_.args(compare);
  const Inst* load = fold_ok_ ? foldable_load(args[0]) : nullptr;
  auto k = constant_of(args[1]);
  if (!load || !k) return false;
  bool is_unsigned = c == Cond::kE || c == Cond::kNE || c == Cond::kB || c == Cond::kAE ||
                     c == Cond::kBE || c == Cond::kA;
  if (load->op != Opcode::kLoad8U || !is_unsigned || *k > 0xFF) return false;
  cur_.width = 1;
  cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(*k)));
  cur_.test = Test::kCmp;
  cur_.cond = c;
  fold_memory(*load, Role::kUse, Form::kMI);
  return true;
}

void Lowering::add_int_test(const Inst& compare, bool negate) {
  Value a = f_.args(compare)[0], b = f_.args(compare)[1];
  Cond c = cond_of(compare.op);
  if (negate) c = opposite(c);
  bool wide = is_wide(compare.type);
  auto zero = constant_of(b);
  if (zero == 0u && (c == Cond::kE || c == Cond::kNE)) {
    add_zero_test(a, wide, c == Cond::kE);
    return;
  }
  if (add_narrow_compare(compare, c)) return;
  cur_.width = wide ? 8 : 4;
  cur_.test = Test::kCmp;
  cur_.cond = c;
  if (zero == 0u && (c == Cond::kL || c == Cond::kGE) && !constant_of(a)) {
    cur_.test = Test::kTest;
    cur_.cond = c == Cond::kL ? Cond::kS : Cond::kNS;
    cur_.form = Form::kRR;
    cur_.a = cur_.b = add(vreg(a), Role::kUse, Policy::kReg);
    return;
  }
  const Inst* left = fold_ok_ ? foldable_load(a) : nullptr;
  if (left && left->op != Opcode::kLoad) left = nullptr;
  if (auto k = imm_of(b)) {
    cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*k));
    if (left) return fold_memory(*left, Role::kUse, Form::kMI);
    cur_.form = Form::kRI;
    use_a(a);
    return;
  }
  const Inst* right = fold_ok_ ? foldable_load(b) : nullptr;
  if (right && right->op != Opcode::kLoad) right = nullptr;
  if (left && !right) {
    cur_.cond = swapped(cur_.cond);  // cmp b, [a]
    Vreg r = use(b);
    cur_.a = add(r, Role::kUse, Policy::kReg);
    return fold_memory(*left, Role::kUse, Form::kRM);
  }
  Vreg first = use(a);
  if (right) {
    cur_.a = add(first, Role::kUse, Policy::kReg);
    return fold_memory(*right, Role::kUse, Form::kRM);
  }
  if (constant_of(b) && wide) {
    cur_.form = Form::kRC;
    cur_.imm = *constant_of(b);
    cur_.a = add(first, Role::kUse, Policy::kReg);
    return;
  }
  Vreg second = use(b);
  cur_.form = Form::kRR;
  cur_.a = add(first, Role::kUse, Policy::kReg);
  cur_.b = add(second, Role::kUse, Policy::kAny);
}

// ucomis sets "above" only if the operands are ordered. So less-than swaps its operands, and the
// opposites of all four orders are true for unordered operands.
void Lowering::add_float_test(const Inst& compare, bool negate) {
  Value a = f_.args(compare)[0], b = f_.args(compare)[1];
  Cond c = Cond::kFloatE;
  switch (compare.op) {
    case Opcode::kFNe: c = Cond::kFloatNE; break;
    case Opcode::kFLt:
      std::swap(a, b);
      c = Cond::kA;
      break;
    case Opcode::kFGt: c = Cond::kA; break;
    case Opcode::kFLe:
      std::swap(a, b);
      c = Cond::kAE;
      break;
    case Opcode::kFGe: c = Cond::kAE; break;
    default: break;
  }
  cur_.test = Test::kUcomis;
  cur_.width = is_wide(compare.type) ? 8 : 4;
  cur_.cond = negate ? opposite(c) : c;
  Vreg first = use(a);
  const Inst* load = fold_ok_ ? foldable_load(b) : nullptr;
  if (auto k = constant_of(b)) {
    cur_.a = add(first, Role::kUse, Policy::kReg);
    cur_.form = Form::kRC;
    cur_.imm = *k;
    return;
  }
  cur_.a = add(first, Role::kUse, Policy::kReg);
  if (load) return fold_memory(*load, Role::kUse, Form::kRM);
  cur_.form = Form::kRR;
  use_b(b, Policy::kAny, Role::kUse);
}

void Lowering::add_overflow_test(const Inst& check, bool negate) {
  Value a = f_.args(check)[0], b = f_.args(check)[1];
  // The sum is computed in the register of the first operand, so a block parameter, such as a loop
  // variable, comes first.
  bool turn = check.op == Opcode::kAddOverflows && def(a) != nullptr && def(b) == nullptr;
  if (turn) std::swap(a, b);
  cur_.test = check.op == Opcode::kAddOverflows   ? Test::kAdd
              : check.op == Opcode::kSubOverflows ? Test::kSub
                                                  : Test::kMul;
  cur_.width = is_wide(check.type) ? 8 : 4;
  cur_.cond = negate ? Cond::kNO : Cond::kO;
  auto k = imm_of(b);
  Vreg first = use(a);
  if (k) {
    cur_.form = Form::kRI;
    cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*k));
    cur_.a = add(first, Role::kUse, Policy::kAny);
    return;
  }
  Vreg second = use(b);
  cur_.form = Form::kRR;
  cur_.a = add(first, Role::kUse, Policy::kAny);
  cur_.b = add(second, cur_.d == kNoOperand ? Role::kUse : Role::kLateUse, Policy::kAny);
}

void Lowering::lower_set(const Inst& i) {
  if (is_overflow(i.op)) return lower_overflow(i);
  begin(MOp::kSet, 4, i.origin());
  def_d(i.result);
  fold_ok_ = use_count_[i.result.index()] <= 1;
  if (i.op == Opcode::kEqz) {
    // eqz of a comparison is the opposite comparison.
    Value a = f_.args(i)[0];
    if (f_.type_of(a) == Type::kI32) {
      add_test_of(a, true);
    } else {
      add_zero_test(a, true, true);
    }
  } else if (is_float_compare(i.op)) {
    add_float_test(i, false);
  } else {
    add_int_test(i, false);
  }
  emit();
}

void Lowering::lower_select(const Inst& i) {
  auto args = f_.args(i);
  bool fp = is_float(i.type);
  auto x = constant_of(args[1]), y = constant_of(args[2]);
  if (!fp && x && y && *x == 1 && *y == 0) {
    begin(MOp::kSet, 4);
    def_d(i.result);
    add_test(args[0], false);
    return emit();
  }
  Vreg vx = use(args[1]), vy = use(args[2]);
  begin(MOp::kSelect, 4);
  cur_.from = static_cast<uint8_t>(i.type);
  def_d(i.result);
  cur_.x = add(vx, Role::kUse, Policy::kReg);
  cur_.y = add(vy, Role::kUse, Policy::kReg);
  add_test(args[0], false);
  emit();
}

// If a block tests whether a sum overflows and computes the sum afterwards, the test computes it:
//
//     guard (eqz (add_overflows a, b))          add t, b; jo exit
//     t = add a, b                         ->
void Lowering::pair_sums(Block b) {
  struct Asked {
    InstId by;
    const Inst* overflows;
  };
  std::vector<Asked> asked;
  for (InstId id : f_.block(b).insts) {
    const Inst& i = f_.inst(id);
    if (i.op == Opcode::kGuard || i.op == Opcode::kTrapIf) {
      const Inst* c = def(f_.args(i)[0]);
      while (c != nullptr && c->op == Opcode::kEqz) c = def(f_.args(*c)[0]);
      if (c != nullptr && is_overflow(c->op) && can_fold_test(*c)) asked.push_back({id, c});
      if (asked.size() > kMostAsked) asked.erase(asked.begin());
      continue;
    }
    if (i.op != Opcode::kAdd && i.op != Opcode::kSub && i.op != Opcode::kMul) continue;
    auto by =
        std::ranges::find_if(asked, [&](const Asked& k) { return is_result(*k.overflows, i); });
    if (by == asked.end()) continue;
    sum_of_[by->by.index()] = id;
    folded_[id.index()] = true;
    asked.erase(by);
  }
}

// Returns whether `i` computes the operation that `overflows` tests.
bool Lowering::is_result(const Inst& overflows, const Inst& i) const {
  Opcode op = overflows.op == Opcode::kAddOverflows   ? Opcode::kAdd
              : overflows.op == Opcode::kSubOverflows ? Opcode::kSub
                                                      : Opcode::kMul;
  if (i.op != op || i.type != overflows.type) return false;
  auto same = [&](Value a, Value b) {
    return a == b || (constant_of(a).has_value() && constant_of(a) == constant_of(b));
  };
  auto asked = f_.args(overflows), made = f_.args(i);
  return (same(asked[0], made[0]) && same(asked[1], made[1])) ||
         (op != Opcode::kSub && same(asked[0], made[1]) && same(asked[1], made[0]));
}

// Makes the current instruction define the sum that it tests, if the sum is needed.
void Lowering::add_sum(InstId asks) {
  InstId sum = sum_of_[asks.index()];
  if (sum.valid() && needed(f_.inst(sum).result)) def_d(f_.inst(sum).result);
}

// Returns the operand whose register the current instruction's sum may overwrite although the exit
// needs the operand, because the exit can undo the sum; or none.
Vreg Lowering::undone() const {
  bool can = cur_.d != kNoOperand && (cur_.test == Test::kAdd || cur_.test == Test::kSub);
  if (!can) return Vreg::none();
  Vreg a = cur_operands_[cur_.a].vreg;
  bool whole = is_wide(m_.vregs[a.index()].type) == (cur_.width == 8);
  return whole ? a : Vreg::none();
}

// If a block only decrements the fuel and tests whether it is used up, one instruction in memory
// does both (add_fuel.h):
//
//   v = load fuel; w = add v, -1; store w, fuel; trap_if (w < 0)    ->    add fuel, -1; js trap
bool Lowering::add_fuel_test(InstId trap) {
  auto here = [&](Value v, uint32_t uses) {
    return f_.value(v).block == block_ && use_count_[v.index()] == uses;
  };
  Value condition = f_.args(f_.inst(trap))[0];
  const Inst* less = def(condition, Opcode::kLtS);
  if (less == nullptr || !here(condition, 1) || constant_of(f_.args(*less)[1]) != 0u) return false;
  Value left = f_.args(*less)[0];
  const Inst* count = def(left);
  bool counts = count != nullptr && (count->op == Opcode::kSub || count->op == Opcode::kAdd);
  if (!counts || !here(left, 2)) return false;
  std::optional<int32_t> by = imm_of(f_.args(*count)[1]);
  const Inst* load = def(f_.args(*count)[0], Opcode::kLoad);
  if (!by || load == nullptr || !is_fuel(*load) || !here(load->result, 1)) return false;
  // The store must be the last barrier before the trap, with no other barrier between it and the
  // load.
  const auto& insts = f_.block(block_).insts;
  auto at = std::ranges::find(insts, trap);
  while (at != insts.begin() && !is_barrier(f_.inst(*std::prev(at)))) --at;
  if (at == insts.begin()) return false;
  InstId store = *std::prev(at);
  const Inst& stores = f_.inst(store);
  bool same = stores.op == Opcode::kStore && is_fuel(stores) && f_.args(stores)[0] == left &&
              color_[f_.value(load->result).inst.index()] == color_[store.index()];
  if (!same) return false;
  folded_[store.index()] = true;
  cur_.test = Test::kCountDown;
  cur_.width = 8;
  cur_.cond = Cond::kS;
  cur_.form = Form::kMI;
  int64_t sum = count->op == Opcode::kSub ? -int64_t{*by} : *by;
  cur_.imm = static_cast<uint64_t>(sum);
  return true;
}

void Lowering::lower_trap_if(InstId id) {
  const Inst& i = f_.inst(id);
  begin(MOp::kTrapIf, 4, i.origin());
  bool guard = i.op == Opcode::kGuard;
  // The instruction's own trap and origin are kept apart from those of a folded load.
  cur_.flags = static_cast<uint8_t>(guard ? TrapCode::kGuardFailed : static_cast<TrapCode>(i.aux));
  add_sum(id);
  bool fuel = !guard && static_cast<TrapCode>(i.aux) == TrapCode::kOutOfFuel && add_fuel_test(id);
  if (!fuel) add_test(f_.args(i)[0], guard);
  cur_.test_loc = i.origin();
  emit();
}

// A guard on a constant either always leaves or does nothing.
void Lowering::lower_guard(InstId id) {
  const Inst& i = f_.inst(id);
  if (i.imm == 0) return lower_trap_if(id);
  const Deopt& d = f_.deopts[i.imm - 1];
  auto known = constant_of(f_.args(i)[0]);
  if (known == 0u) return leave(i, Leaving::kAlways);
  if (!known) {
    begin(MOp::kTrapIf, 4, i.loc);
    add_sum(id);
    add_test(f_.args(i)[0], true);
    cur_.test_loc = i.loc;
    add_exit(i);
    emit();
  }
  if (d.polls.valid()) return leave(i, Leaving::kPolled);
  if (d.stressed) leave(i, Leaving::kAsked);
}

void Lowering::leave(const Inst& guard, Leaving how) {
  begin(MOp::kLeave, 8, guard.loc);
  cur_.sub = static_cast<uint8_t>(how);
  add_exit(guard);
  emit();
}

// Gives the current instruction an exit with the values of the guard's frames. If the instruction
// computes a sum, the exit reads them after it.
void Lowering::add_exit(const Inst& guard) {
  const Role role = cur_.d == kNoOperand ? Role::kUse : Role::kLateUse;
  const Vreg summand = undone();
  cur_.exit = static_cast<uint32_t>(m_.exits.size());
  cur_.flags = static_cast<uint8_t>(guard.aux);  // the reason
  auto values = f_.args(guard).subspan(1);
  MExit exit{static_cast<uint32_t>(guard.imm - 1), static_cast<uint32_t>(m_.exit_values.size()),
             static_cast<uint32_t>(values.size())};
  for (Value v : values) {
    Type t = f_.type_of(v);
    if (auto c = constant_of(v)) {
      m_.exit_values.push_back({UINT32_MAX, t, *c});
      continue;
    }
    m_.exit_values.push_back({static_cast<uint32_t>(cur_operands_.size()), t, 0});
    Vreg state = vreg(v);
    cur_operands_.push_back(
        {.vreg = state, .role = state == summand ? Role::kUse : role, .policy = Policy::kState});
  }
  m_.exits.push_back(exit);
}

void Lowering::lower_branch(const Inst& i) {
  begin(MOp::kBranch, 4, i.origin());
  add_test(f_.args(i)[0], false);
  add_edge(i.edges_at, true);
  add_edge(i.edges_at + 1, true);
  emit();
}

// An interpreter's opcode is a byte, or some of its bits. The table gets an entry for each value that
// it may have, so that nothing is left to compare.
void Lowering::lower_switch(const Inst& i) {
  Vreg index = use(f_.args(i)[0]);
  uint64_t entries = greatest_of(f_, f_.args(i)[0]) + 1, cases = i.edge_count - 1;
  begin(MOp::kSwitch, 4);
  bool small = entries <= std::max(kMostEntries, cases) && entries <= kMostPadding * cases;
  if (small) cur_.imm = entries;
  cur_.d = add(new_vreg(Type::kI64), Role::kDef, Policy::kReg);
  cur_.a = add(index, Role::kUse, Policy::kReg);
  for (uint32_t e = 0; e < i.edge_count; ++e) add_edge(i.edges_at + e, true);
  emit();
}

}  // namespace uptier::jit::x64
