#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {

void Lowering::lower_float_binary(const Inst& i) {
  Value a = f_.args(i)[0], b = f_.args(i)[1];
  unsigned width = is_wide(i.type) ? 8 : 4;
  bool sequence = i.op == Opcode::kFMin || i.op == Opcode::kFMax || i.op == Opcode::kFCopysign;
  if (sequence) {
    Vreg x = use(a), y = use(b);
    begin(i.op == Opcode::kFCopysign ? MOp::kFSign : MOp::kFAlu, width);
    cur_.sub = static_cast<uint8_t>(i.op);
    def_d(i.result);
    cur_.a = add(x, Role::kUse, Policy::kAny);
    cur_.b = add(y, Role::kLateUse, Policy::kReg);
    return emit();
  }
  // Addition and multiplication commute except for the payload of a NaN, which is unspecified.
  bool commutes = i.op == Opcode::kFAdd || i.op == Opcode::kFMul;
  bool swap = commutes && ((constant_of(a) && !constant_of(b)) ||
                           (foldable_load(a) && !foldable_load(b) && !constant_of(b)));
  if (swap) std::swap(a, b);
  Vreg x = use(a);
  begin(MOp::kFAlu, width, i.origin());
  cur_.sub = static_cast<uint8_t>(i.op);
  def_d(i.result);
  cur_.a = add(x, Role::kUse, Policy::kReg);
  add_source(b, Role::kUse, false);
  emit();
}

void Lowering::lower_float_unary(const Inst& i) {
  bool sign = i.op == Opcode::kFAbs || i.op == Opcode::kFNeg;
  Vreg a = use(f_.args(i)[0]);
  begin(sign ? MOp::kFSign : MOp::kFUnary, is_wide(i.type) ? 8 : 4);
  cur_.sub = static_cast<uint8_t>(i.op);
  def_d(i.result);
  cur_.a = add(a, Role::kUse, Policy::kReg);
  emit();
}

void Lowering::lower_convert(const Inst& i) {
  Value a = f_.args(i)[0];
  Type from = f_.type_of(a);
  if (i.op == Opcode::kWrap) return lower_extend(i, Extension::kZero32);
  if (i.op == Opcode::kExtendS) {
    const Inst* load = foldable_load(a);
    bool direct = load && (load->op == Opcode::kLoad || load->op == Opcode::kLoad8S ||
                           load->op == Opcode::kLoad16S);
    if (!direct) return lower_extend(i, Extension::kSign32);
    begin(MOp::kLoad, load->op == Opcode::kLoad ? 4 : load->op == Opcode::kLoad8S ? 1 : 2);
    cur_.sub = static_cast<uint8_t>(load->op == Opcode::kLoad     ? Extension::kSign32
                                    : load->op == Opcode::kLoad8S ? Extension::kSign8
                                                                  : Extension::kSign16);
    cur_.to = static_cast<uint8_t>(Type::kI64);
    def_d(i.result);
    fold_memory(*load, Role::kUse, Form::kRM);
    return emit();
  }
  Vreg x = use(a);
  bool same_class = i.op == Opcode::kBitcast && is_float(from) == is_float(i.type);
  begin(same_class ? MOp::kMov : MOp::kConvert, is_wide(i.type) ? 8 : 4, i.origin());
  cur_.sub = static_cast<uint8_t>(i.op);
  cur_.from = static_cast<uint8_t>(from);
  cur_.to = static_cast<uint8_t>(i.type);
  def_d(i.result);
  cur_.a = add(x, Role::kUse, same_class ? Policy::kAny : Policy::kReg);
  emit();
}

}  // namespace uptier::jit::x64
