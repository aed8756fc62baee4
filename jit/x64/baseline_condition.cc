// Comparisons, and the operations that read their flags.
#include "jit/x64/baseline_assembler.h"

#include <utility>

namespace uptier::jit::x64 {

BaselineAssembler::Condition BaselineAssembler::compare_ints(Opcode op, Type t, Value x, Value y) {
  if (values_.is_constant(x) || (!values_.in_register(x) && values_.in_register(y))) {
    std::swap(x, y);
    op = swap_comparison(op);
  }
  bool wide = is_wide(t);
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

BaselineAssembler::Condition BaselineAssembler::compare_zero(Opcode op, Value v) {
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

BaselineAssembler::Condition BaselineAssembler::compare_floats(Opcode op, Type t, Value x,
                                                               Value y) {
  Xmm left = values_.xmm_of(x), right = values_.xmm_of(y);
  Condition c = emit_float_compare(b_, op, is_wide(t), left, right);
  values_.use(x);
  values_.use(y);
  return c;
}

BaselineAssembler::Condition BaselineAssembler::overflow(Binary op, Type t, Value a, Value b) {
  Gp d = values_.take_gp(a);
  apply(op, d, b, is_wide(t));
  return {x86::CondCode::kO};
}

void BaselineAssembler::set(Condition c, Value result) {
  Gp d = values_.new_gp();
  emit_set(b_, c, d, kScratch);
  values_.define(result, d);
}

// The moves come first and the comparison last. Operands stay in their registers until the
// comparison has read them, so the copy must be a new register if the comparison reads the same
// value. It is, because a value with a use by the pending comparison does not die here.
BaselineAssembler::Selection BaselineAssembler::begin_select(Type t, Value when_set,
                                                             Value otherwise) {
  if (is_float(t)) {
    Xmm from = values_.xmm_of(when_set);
    return {from.id(), values_.take_xmm(otherwise).id()};
  }
  Gp from = values_.gp_of(when_set);
  return {from.id(), values_.take_gp(otherwise).id()};
}

void BaselineAssembler::end_select(Selection s, Condition c, Type t, Value result, Value when_set) {
  if (is_float(t)) {
    Xmm d = x86::xmm(s.to);
    Label skip = b_.new_label();
    emit_jump_if(b_, negate(c), skip);
    a_.movaps(d, x86::xmm(s.from));
    b_.bind(skip);
    values_.use(when_set);
    return values_.define(result, d);
  }
  Gp d = x86::gpq(s.to);
  emit_move_if(b_, c, d, x86::gpq(s.from));
  values_.use(when_set);
  values_.define(result, d, is_wide(t));
}

}  // namespace uptier::jit::x64
