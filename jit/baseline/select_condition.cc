// Comparisons, and what reads them: select, trap_if. Branches are in select_control.cc, guards in
// select_exit.cc.
#include <cassert>
#include <utility>

#include "jit/baseline/selector.h"

namespace uptier::jit::baseline {

// ---- Setting the flags ------------------------------------------------------------------------

Condition Selector::condition(Value v) {
  if (waiting_ != nullptr) {
    assert(v == waiting_result_);
    const Inst& comparison = *std::exchange(waiting_, nullptr);
    Condition c = compare(comparison);
    values_.use(v);
    return waiting_negated_ ? negate(c) : c;
  }
  Condition c = compare_zero(Opcode::kNe, v);
  return c;
}

Condition Selector::compare(const Inst& i) {
  switch (i.op) {
    case Opcode::kAddOverflows:
    case Opcode::kSubOverflows:
    case Opcode::kMulOverflows: return overflow(i);
    case Opcode::kEqz: return compare_zero(Opcode::kEq, f_.args(i)[0]);
    default: break;
  }
  if (!is_float(i.type)) return compare_ints(i);
  Value x = f_.args(i)[0], y = f_.args(i)[1];
  Xmm left = values_.xmm_of(x), right = values_.xmm_of(y);
  Condition c = emit_float_compare(b_, i.op, is_wide(i.type), left, right);
  values_.use(x);
  values_.use(y);
  return c;
}

Condition Selector::compare_ints(const Inst& i) {
  Value x = f_.args(i)[0], y = f_.args(i)[1];
  Opcode op = i.op;
  if (values_.is_constant(x) || (!values_.in_register(x) && values_.in_register(y))) {
    std::swap(x, y);
    op = swap_comparison(op);
  }
  bool wide = is_wide(i.type);
  Gp left = gp(values_.gp_of(x), wide);
  if (values_.is_immediate(y)) {
    auto bits = static_cast<int32_t>(values_.constant_bits(y));
    bool zero = bits == 0 && (op == Opcode::kEq || op == Opcode::kNe);
    zero ? a_.test(left, left) : a_.cmp(left, imm(bits));
  } else if (!values_.in_register(y) && !values_.is_constant(y) && values_.uses(y) == 1) {
    a_.cmp(left, values_.home_operand(y));
  } else {
    a_.cmp(left, gp(values_.gp_of(y), wide));
  }
  values_.use(x);
  values_.use(y);
  return int_condition(op);
}

// Compares with zero: `op` is kEq or kNe.
Condition Selector::compare_zero(Opcode op, Value v) {
  bool from_home = !values_.in_register(v) && !values_.is_constant(v) && values_.uses(v) == 1;
  if (from_home) {
    a_.cmp(values_.home_operand(v), imm(0));
  } else {
    Gp r = gp(values_.gp_of(v), is_wide(values_.type_of(v)));
    a_.test(r, r);
  }
  values_.use(v);
  return int_condition(op);
}

Condition Selector::overflow(const Inst& i) {
  Binary op = i.op == Opcode::kAddOverflows   ? Binary::kAdd
              : i.op == Opcode::kSubOverflows ? Binary::kSub
                                              : Binary::kMul;
  Gp d = values_.take_gp(f_.args(i)[0]);
  apply(op, d, f_.args(i)[1], is_wide(i.type));
  return {x86::CondCode::kO};
}

// ---- Reading them -----------------------------------------------------------------------------

void Selector::set_from_compare(const Inst& i) {
  bool negated = false;
  Condition c;
  if (waiting_ != nullptr) {
    c = condition(f_.args(i)[0]);  // i is an eqz of what waits
    negated = true;
  } else {
    c = compare(i);
  }
  Gp d = values_.new_gp();
  emit_set(b_, negated ? negate(c) : c, d, kScratch);
  values_.define(i.result, d);
}

// The moves come first and the flags last. Operands stay where they are until the comparison has
// read them, so the copy must be a new register if the comparison wants its source too; it is,
// because a value that the waiting comparison uses does not die here.
void Selector::select(const Inst& i) {
  Value c = f_.args(i)[0], when_set = f_.args(i)[1], otherwise = f_.args(i)[2];
  if (is_float(i.type)) {
    Xmm from = values_.xmm_of(when_set);
    Xmm d = values_.take_xmm(otherwise);
    Condition test = condition(c);
    Label skip = b_.new_label();
    emit_jump_if(b_, negate(test), skip);
    a_.movaps(d, from);
    b_.bind(skip);
    values_.use(when_set);
    return values_.define(i.result, d);
  }
  Gp from = values_.gp_of(when_set);
  Gp d = values_.take_gp(otherwise);
  Condition test = condition(c);
  emit_move_if(b_, test, d, from);
  values_.use(when_set);
  values_.define(i.result, d, is_wide(i.type));
}

void Selector::trap_if(const Inst& i) {
  Condition c = condition(f_.args(i)[0]);
  emit_jump_if(b_, c, b_.trap_label(static_cast<TrapCode>(i.aux), i.loc));
}

}  // namespace uptier::jit::baseline
