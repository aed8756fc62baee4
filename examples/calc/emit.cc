#include "emit.h"

namespace calc {

// Arguments arrive as Vals. Each becomes a value of its own: a loop that is entered in the middle
// of a call takes all it needs from the interpreter's registers, which may hold something else by
// then.
void Emitter::enter() {
  leading_ = {b_.param(0)};
  if (vm_.trace.tells_calls()) b_.call_host(HELPER(enter), {b_.ref(&vm_), b_.ref(plan_.proto)});
  auto params = static_cast<int>(plan_.proto->params);
  for (int i = 0; i < params; ++i) {
    set(i, {kAnyKind}, bin(Opcode::kOr, b_.param(static_cast<unsigned>(i) + 1), word(0)));
  }
  for (int i = 0; i < params; ++i) {
    auto param = static_cast<uint32_t>(i);
    narrow(i, plan_.params_seen[param], 0, plan_.code.size() + param);
  }
  flow(0);
}

// A location is the number of an instruction of the program, from 1 on; its position is a line.
void Emitter::set_position() {
  const uint32_t place = plan_.proto->begin + at_;
  b_.set_location(place + 1);
  b_.add_position(place + 1, {.file = file_, .line = static_cast<uint32_t>(vm_.code.lines[place])});
}

Value Emitter::convert(Value v, Type from, Type to) {
  return to.number() ? double_of({from, v}) : box({from, v});
}

void Emitter::set_seen(int reg, Value v) {
  set(reg, {kAnyKind}, v);
  narrow(reg, seen().seen, at_ + 1, at_);
}

Emitter::Operand Emitter::constant(size_t index) {
  Val v = vm_.code.constants[index];
  Type t = {kind_of(v)};
  uint64_t bits = 0;
  to_form(t, v, bits);
  return {t, b_.constant(t.form(), bits)};
}

Value Emitter::box(const Operand& o) {
  // A sum, so that a value that was unboxed and is boxed again is known to be the same Val.
  if (o.type.object()) return bin(Opcode::kAdd, o.value, tag());
  if (o.type.form() == kF64) return to(kI64, Opcode::kBitcast, o.value);
  if (o.type.form() == kI64) return o.value;
  Value wide = to(kI64, Opcode::kExtendU, o.value);
  return o.type.is(kInt) ? bin(Opcode::kOr, wide, word(kIntTag))
                         : bin(Opcode::kAdd, wide, word(kFalseVal));
}

Value Emitter::double_of(const Operand& o) {
  return o.type.form() == kF64 ? o.value : to(kF64, Opcode::kConvertS, o.value);
}

Value Emitter::truth(const Operand& o) {
  if (o.type.is(kBool)) return o.value;
  if (!o.type.may_be(kNil | kBool)) return b_.i32(1);
  return bin(Opcode::kGtU, bin(Opcode::kSub, o.value, word(kNilVal)), word(1));
}

// ---- Guards

// Returns whether it did.
bool Emitter::unreached(bool seen) {
  if (seen || !plan_.guess) return false;
  leave();
  return true;
}

// Gives a register that has just been brought in the type that its values had, by guards that leave
// for `place`, where the interpreter goes on with it. `note` says whose value it is: the number of
// an instruction, or of a parameter (these come after the instructions); see Tiers::leave.
void Emitter::narrow(int reg, unsigned seen, uint32_t place, uint32_t note) {
  Type wanted = {seen & kAnyKind};
  bool worth_it = wanted.number() || wanted.is(kBool) || wanted.is(kArray);
  if (!plan_.guess || !worth_it || !live(reg, place)) return;
  frame_state(place, note);
  check(reg, wanted);
}

// Guards that a register is of a type at the current instruction. Returns whether it may be.
bool Emitter::need(int reg, Type wanted) {
  Type is = type(reg);
  if (is.kinds == wanted.kinds && (wanted.what == nullptr || wanted.what == is.what)) return true;
  if (!is.may_be(wanted.kinds)) return unreached(false), false;
  state_here();
  check(reg, wanted);
  return true;
}

// Guards, by the frame_state just before, that a Val is of a type, and gives it that form.
void Emitter::check(int reg, Type wanted) {
  Value v = get(reg);
  if (wanted.is(kInt)) {
    b_.guard(bin(Opcode::kGeU, v, word(kIntTag)), GuardReason::kType);
    set(reg, wanted, to(kI32, Opcode::kWrap, v));
  } else if (wanted.is(kDouble)) {
    b_.guard(bin(Opcode::kLtU, v, tag()), GuardReason::kType);
    set(reg, wanted, to(kF64, Opcode::kBitcast, v));
  } else if (wanted.is(kBool)) {
    Value bit = bin(Opcode::kSub, v, word(kFalseVal));
    b_.guard(bin(Opcode::kLeU, bit, word(1)), GuardReason::kType);
    set(reg, wanted, to(kI32, Opcode::kWrap, bit));
  } else if (wanted.number()) {
    Value untagged = bin(Opcode::kSub, v, tag());
    b_.guard(bin(Opcode::kGeU, untagged, word(kIntTag - kObjectTag)), GuardReason::kType);
    Block is_int = b_.create_block(), is_double = b_.create_block(), done = b_.create_block();
    b_.branch(bin(Opcode::kGeU, v, word(kIntTag)), is_int, is_double);
    begin(is_int);
    set(reg, wanted, to(kF64, Opcode::kConvertS, to(kI32, Opcode::kWrap, v)));
    b_.jump(done);
    begin(is_double);
    set(reg, wanted, to(kF64, Opcode::kBitcast, v));
    b_.jump(done);
    begin(done);
  } else {
    check_object(reg, wanted);
  }
}

// A value that is already known to be an object needs no guard of its tag.
void Emitter::check_object(int reg, Type wanted) {
  Value object = get(reg);
  if (!type(reg).object()) {
    object = bin(Opcode::kSub, object, tag());
    b_.guard(bin(Opcode::kLtU, object, word(uint64_t{1} << 48)), GuardReason::kType);
  }
  const void* shape = wanted.is(kArray)      ? &array_shape
                      : wanted.is(kFunction) ? &function_shape
                                             : wanted.what;
  Value is = load(kI64, kShapes, object, offsetof(Object, shape));
  b_.guard(bin(Opcode::kEq, is, pointer(shape)), GuardReason::kType);
  set(reg, wanted, object);
  if (!wanted.is(kFunction) || wanted.what == nullptr) return;
  Value proto = load(kI64, kFunctions, object, offsetof(Closure, proto));
  b_.guard(bin(Opcode::kEq, proto, pointer(wanted.what)), GuardReason::kTarget);
}

// Forgets the shapes of records: others may have added fields, which changes the shape.
void Emitter::forget_shapes() {
  for (uint32_t r = 0; r < plan_.proto->registers; ++r) {
    Type& t = type(static_cast<int>(r));
    if (t.is(kRecord)) t.what = nullptr;
  }
}

}  // namespace calc
