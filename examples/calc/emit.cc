#include "emit.h"

#include "helpers.h"

namespace calc {

// ---- The walk

void Emitter::infer() {
  plan_.types[0].assign(plan_.proto->registers, {});
  do {
    changed_ = false;
    walk();
  } while (changed_);
  recording_ = true;
  walk();
}

void Emitter::emit() { walk(); }

void Emitter::walk() {
  code_ = vm_.code.instrs.data() + plan_.proto->begin;
  types_.assign(plan_.proto->registers, {});
  next_state_ = 0;
  enter_function();
  for (at_ = 0; at_ < plan_.size(); ++at_) {
    state_at_ = kNoState;
    if (plan_.leaders[at_]) enter_block();
    if (alive_) {
      if (!ir_.dry()) ir_.builder().set_location(plan_.proto->begin + at_);
      instruction();
    }
    end_loops();
  }
}

// Arguments arrive boxed. Each becomes a value of its own: a loop that is entered in the middle of
// a call takes all it needs from the interpreter's registers, which may hold something else by
// then.
void Emitter::enter_function() {
  alive_ = true;
  at_ = 0;
  for (uint32_t i = 0; i < plan_.proto->params; ++i) {
    Value v = ir_.bin(Opcode::kOr, ir_.param(i + 1), ir_.i64(0));
    set(static_cast<int>(i), {Type::kAny}, v);
  }
  for (uint32_t i = 0; i < plan_.proto->params; ++i) {
    narrow(static_cast<int>(i), plan_.params_seen[i], 0, State::kParameter);
  }
  flow(0);
}

void Emitter::enter_block() {
  if (alive_ && at_ != 0) flow(at_);
  alive_ = !plan_.types[at_].empty();
  if (!alive_) return;
  types_ = plan_.types[at_];
  bool header = plan_.loop_ends[at_] != 0;
  if (header) open_[at_] = plan_.loop_ends[at_];
  if (header && recording_) {
    State s{.pc = at_};
    for (uint32_t r = 0; r < types_.size(); ++r) {
      if (plan_.live[at_].test(r)) s.registers.push_back({static_cast<uint8_t>(r), types_[r]});
    }
    plan_.loops.push_back(s);
  }
  if (ir_.dry()) return;
  Block b = block_at(at_);
  if (!header) return ir_.begin(b);
  ir_.builder().switch_to(b);
  std::vector<Variable> slots;
  for (uint32_t r = 0; r < types_.size(); ++r) {
    if (plan_.live[at_].test(r)) slots.push_back(variable(static_cast<int>(r), types_[r].form()));
  }
  ir_.builder().loop_header(plan_.proto->begin + at_, slots);
}

// Seals the headers whose last jump back is behind us.
void Emitter::end_loops() {
  for (auto& [header, end] : open_) {
    if (end == at_ + 1 && !ir_.dry()) ir_.builder().seal(block_at(header));
  }
  std::erase_if(open_, [&](const auto& o) { return o.second == at_ + 1; });
}

Block Emitter::block_at(uint32_t at) {
  if (ir_.dry()) return {};
  auto [found, is_new] = blocks_.try_emplace(at);
  if (is_new) found->second = ir_.block();
  return found->second;
}

// ---- Paths

bool Emitter::fits(uint32_t to) const {
  for (size_t r = 0; r < types_.size(); ++r) {
    if (plan_.live[to].test(r) && types_[r].form() != plan_.types[to][r].form()) return false;
  }
  return true;
}

// Gives registers the forms that they have at `to`.
void Emitter::convert_for(uint32_t to) {
  for (size_t r = 0; r < types_.size(); ++r) {
    Type wanted = plan_.types[to][r];
    if (!plan_.live[to].test(r) || types_[r].form() == wanted.form()) continue;
    Operand o = operand(static_cast<int>(r));
    Value v = wanted.is == Type::kDouble ? double_of(o) : box(o);
    ir_.def(variable(static_cast<int>(r), wanted.form()), v);
  }
}

void Emitter::flow(uint32_t to) {
  alive_ = false;
  if (!ir_.dry()) {
    convert_for(to);
    return ir_.jump(block_at(to));
  }
  std::vector<Type>& there = plan_.types[to];
  if (there.empty()) {
    there.assign(types_.size(), {});
    changed_ = true;
  }
  for (size_t r = 0; r < types_.size(); ++r) {
    if (!plan_.live[to].test(r)) continue;
    Type joined = join(there[r], types_[r]);
    changed_ |= joined != there[r];
    there[r] = joined;
  }
}

void Emitter::flow_if(Value condition, uint32_t yes, uint32_t no) {
  if (ir_.dry()) {
    flow(yes);
    return flow(no);
  }
  alive_ = false;
  Block to[2] = {block_at(yes), block_at(no)};
  uint32_t places[2] = {yes, no};
  bool direct[2] = {fits(yes), fits(no)};
  for (int i = 0; i < 2; ++i) {
    if (!direct[i]) to[i] = ir_.block();
  }
  ir_.branch(condition, to[0], to[1]);
  for (int i = 0; i < 2; ++i) {
    if (direct[i]) continue;
    ir_.begin(to[i]);
    convert_for(places[i]);
    ir_.jump(block_at(places[i]));
  }
}

// ---- Registers

Variable Emitter::variable(int reg, uptier::Type form) {
  if (ir_.dry()) return {};
  auto [found, is_new] = variables_.try_emplace({reg, form});
  if (is_new) found->second = ir_.variable(form);
  return found->second;
}

Value Emitter::get(int reg) { return ir_.use(variable(reg, type(reg).form())); }

void Emitter::set(int reg, Type t, Value v) {
  type(reg) = t;
  ir_.def(variable(reg, t.form()), v);
}

Emitter::Operand Emitter::constant(Val v) {
  if (is_int(v)) return {{Type::kInt}, ir_.i32(as_int(v))};
  if (is_double(v)) return {{Type::kDouble}, ir_.f64(as_double(v))};
  switch (kind_of(v)) {
    case kBool: return {{Type::kBool}, ir_.i32(v == vm_.heap.boolean(true) ? 1 : 0)};
    case kNil: return {{Type::kNil}, ir_.i64(v)};
    case kString: return {{Type::kString}, ir_.i64(v)};
    default: return {{Type::kAny}, ir_.i64(v)};
  }
}

Value Emitter::box(const Operand& o) {
  constexpr auto kI64 = uptier::Type::kI64;
  switch (o.type.is) {
    case Type::kInt:
      return ir_.bin(Opcode::kOr, ir_.convert(Opcode::kExtendU, kI64, o.value), ir_.i64(kIntTag));
    case Type::kDouble:
      return ir_.bin(Opcode::kAdd, ir_.convert(Opcode::kBitcast, kI64, o.value),
                     ir_.i64(kDoubleOffset));
    case Type::kBool:
      return ir_.select(o.value, ir_.i64(vm_.heap.boolean(true)), ir_.i64(vm_.heap.boolean(false)));
    default: return o.value;
  }
}

Value Emitter::double_of(const Operand& o) {
  if (o.type.is == Type::kDouble) return o.value;
  return ir_.convert(Opcode::kConvertS, uptier::Type::kF64, o.value);
}

Value Emitter::truth(const Operand& o) {
  if (o.type.is == Type::kBool) return o.value;
  if (o.type.is != Type::kAny) return ir_.i32(o.type.is == Type::kNil ? 0 : 1);
  Value not_nil = ir_.bin(Opcode::kNe, o.value, ir_.i64(vm_.heap.nil()));
  Value not_false = ir_.bin(Opcode::kNe, o.value, ir_.i64(vm_.heap.boolean(false)));
  return ir_.bin(Opcode::kAnd, not_nil, not_false);
}

// ---- Guards

// Declares the interpreter's frame at `at`; see Plan::states.
void Emitter::frame_state(uint32_t at, int result, uint32_t seen_at) {
  State s{.pc = at, .result = result, .seen_at = seen_at};
  std::vector<Value> slots = {self()};
  for (uint32_t r = 0; r < types_.size(); ++r) {
    if (!plan_.live[at].test(r)) continue;
    s.registers.push_back({static_cast<uint8_t>(r), type(static_cast<int>(r))});
    slots.push_back(get(static_cast<int>(r)));
  }
  if (recording_) plan_.states.push_back(s);
  if (!ir_.dry()) ir_.builder().frame_state(next_state_, slots);
  ++next_state_;
}

void Emitter::guard(Value condition, GuardReason reason) {
  if (state_at_ != at_) frame_state(at_);
  state_at_ = at_;
  guard_state(condition, reason);
}

void Emitter::guard_state(Value condition, GuardReason reason) {
  if (!ir_.dry()) ir_.builder().guard(condition, reason);
}

bool Emitter::unreached(bool seen) {
  if (seen || !plan_.speculate) return false;
  guard(ir_.i32(0), GuardReason::kUnreached);
  if (!ir_.dry()) ir_.builder().trap(uptier::TrapCode::kUnreachable);
  alive_ = false;
  return true;
}

void Emitter::narrow(int reg, uint16_t seen, uint32_t to, uint32_t seen_at) {
  unsigned kinds = seen & 255;
  if (!plan_.speculate || type(reg).is != Type::kAny ||
      !plan_.live[to].test(static_cast<size_t>(reg))) {
    return;
  }
  bool known = kinds == kInt || kinds == kArray || (kinds != 0 && (kinds & ~(kInt | kDouble)) == 0);
  if (!known) return;
  frame_state(to, reg, seen_at);
  if (kinds == kInt) return check(reg, Type::kInt, nullptr);
  if (kinds == kArray) return check(reg, Type::kArray, nullptr);
  if (kinds == kDouble) return check(reg, Type::kDouble, nullptr);
  check_number(reg);
}

// The same for a number of either kind, which becomes a double.
void Emitter::check_number(int reg) {
  Value v = get(reg);
  guard_state(ir_.bin(Opcode::kGeU, v, ir_.i64(kDoubleOffset)), GuardReason::kType);
  Block is_int = ir_.block(), is_double = ir_.block(), done = ir_.block();
  Variable out = variable(reg, uptier::Type::kF64);
  ir_.branch(ir_.bin(Opcode::kGeU, v, ir_.i64(kIntTag)), is_int, is_double);
  ir_.begin(is_int);
  Value whole = ir_.convert(Opcode::kWrap, uptier::Type::kI32, v);
  ir_.def(out, ir_.convert(Opcode::kConvertS, uptier::Type::kF64, whole));
  ir_.jump(done);
  ir_.begin(is_double);
  Value bits = ir_.bin(Opcode::kSub, v, ir_.i64(kDoubleOffset));
  ir_.def(out, ir_.convert(Opcode::kBitcast, uptier::Type::kF64, bits));
  ir_.jump(done);
  ir_.begin(done);
  type(reg) = {Type::kDouble};
  state_at_ = kNoState;
}

bool Emitter::need(int reg, Type::Is wanted, Shape* shape) {
  if (type(reg).is == wanted && (shape == nullptr || type(reg).shape == shape)) return true;
  bool cannot_be = type(reg).form() != uptier::Type::kI64;
  if (cannot_be) return !unreached(false);
  if (state_at_ != at_) frame_state(at_);
  state_at_ = at_;
  check(reg, wanted, shape);
  return true;
}

// Guards, by the frame_state just before, that a boxed value is of a type, and gives it that form.
void Emitter::check(int reg, Type::Is wanted, Shape* shape) {
  Value v = get(reg);
  switch (wanted) {
    case Type::kInt:
      guard_state(ir_.bin(Opcode::kGeU, v, ir_.i64(kIntTag)), GuardReason::kType);
      return set(reg, {wanted}, ir_.convert(Opcode::kWrap, uptier::Type::kI32, v));
    case Type::kDouble: {
      Value bits = ir_.bin(Opcode::kSub, v, ir_.i64(kDoubleOffset));
      guard_state(ir_.bin(Opcode::kLtU, bits, ir_.i64(kIntTag - kDoubleOffset)),
                  GuardReason::kType);
      return set(reg, {wanted}, ir_.convert(Opcode::kBitcast, uptier::Type::kF64, bits));
    }
    default: break;
  }
  if (wanted == Type::kArray) shape = &vm_.heap.array_shape;
  if (wanted == Type::kFunction) shape = &vm_.heap.function_shape;
  if (!type(reg).object()) {
    Value tag = ir_.bin(Opcode::kShrU, v, ir_.i64(48));
    guard_state(ir_.un(Opcode::kEqz, tag), GuardReason::kType);
  }
  Value is = ir_.load(kShapes, v, offsetof(Object, shape));
  guard_state(ir_.bin(Opcode::kEq, is, ir_.pointer(shape)), GuardReason::kType);
  type(reg) = {wanted, wanted == Type::kRecord ? shape : nullptr};
}

// What others may have done to records: a field more changes a shape.
void Emitter::forget_shapes() {
  for (Type& t : types_) t.shape = nullptr;
}

// ---- Instructions

void Emitter::instruction() {
  const Instr& i = *instr();
  if (is_jump(i.op)) return jump_instruction();
  if (i.op >= Op::kAdd && i.op <= Op::kMod) return arithmetic(i.op, operand(i.b), operand(i.c));
  if (i.op >= Op::kAddK && i.op <= Op::kModK) {
    int plain = static_cast<int>(i.op) - static_cast<int>(Op::kAddK) + static_cast<int>(Op::kAdd);
    return arithmetic(static_cast<Op>(plain), operand(i.b),
                      constant(vm_.code.constants[static_cast<size_t>(i.d)]));
  }
  auto index = static_cast<size_t>(i.d);
  switch (i.op) {
    case Op::kMove: return set(i.a, type(i.b), get(i.b));
    case Op::kConst: {
      Operand k = constant(vm_.code.constants[index]);
      return set(i.a, k.type, k.value);
    }
    case Op::kGetGlobal:
      if (unreached(plan_.seen[at_] != 0)) return;
      set(i.a, {Type::kAny}, ir_.load(kGlobals, ir_.pointer(&vm_.globals[index]), 0));
      return narrow(i.a, plan_.seen[at_], at_ + 1, at_);
    case Op::kSetGlobal:
      return ir_.store(kGlobals, boxed(i.a), ir_.pointer(&vm_.globals[index]), 0);
    case Op::kGetCapture: {
      if (unreached(plan_.seen[at_] != 0)) return;
      Value cell = ir_.load_constant(self(), offsetof(Closure, cells) + sizeof(Cell*) * index);
      set(i.a, {Type::kAny}, ir_.load(kCells, cell, offsetof(Cell, value)));
      return narrow(i.a, plan_.seen[at_], at_ + 1, at_);
    }
    case Op::kSetCapture: {
      Value cell = ir_.load_constant(self(), offsetof(Closure, cells) + sizeof(Cell*) * index);
      return ir_.store(kCells, boxed(i.a), cell, offsetof(Cell, value));
    }
    case Op::kNewCell:
      return set(i.a, {Type::kAny}, ir_.call(helper::kNewCell, {vm(), where(), boxed(i.a)}, true));
    case Op::kGetCell:
      if (unreached(plan_.seen[at_] != 0)) return;
      set(i.a, {Type::kAny}, ir_.load(kCells, get(i.b), offsetof(Cell, value)));
      return narrow(i.a, plan_.seen[at_], at_ + 1, at_);
    case Op::kSetCell: return ir_.store(kCells, boxed(i.b), get(i.a), offsetof(Cell, value));
    case Op::kNeg: return negate();
    case Op::kNot: return set(i.a, {Type::kBool}, ir_.un(Opcode::kEqz, truth(operand(i.b))));
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kEqual: {
      Value v = compare(i.op, operand(i.b), operand(i.c));
      return set(i.a, {Type::kBool}, v);
    }
    case Op::kNotEqual: {
      Value v = compare(Op::kEqual, operand(i.b), operand(i.c));
      return set(i.a, {Type::kBool}, ir_.un(Opcode::kEqz, v));
    }
    case Op::kGetField: return get_field();
    case Op::kSetField: return set_field();
    case Op::kGetIndex: return get_index();
    case Op::kSetIndex: return set_index();
    case Op::kNewArray: return new_array();
    case Op::kNewRecord: return new_record();
    case Op::kClosure: return new_closure();
    case Op::kCall: return call();
    case Op::kBuiltin: return builtin();
    default: break;
  }
  Value v = boxed(i.a);  // kReturn
  if (!ir_.dry()) ir_.builder().ret(v);
  alive_ = false;
}

void Emitter::jump_instruction() {
  const Instr& i = *instr();
  uint32_t to = relative(i.d), next = at_ + 1;
  switch (i.op) {
    case Op::kJump:
    case Op::kLoop: return flow(to);
    case Op::kJumpIf: return flow_if(truth(operand(i.a)), to, next);
    case Op::kJumpUnless: return flow_if(truth(operand(i.a)), next, to);
    case Op::kForPrepare: {
      for_prepare();
      return flow_if(ir_.bin(Opcode::kLtS, get(i.a), get(i.a + 1)), next, to);
    }
    case Op::kForLoop: {
      Value counter = ir_.bin(Opcode::kAdd, get(i.a), ir_.i32(1));
      set(i.a, {Type::kInt}, counter);
      return flow_if(ir_.bin(Opcode::kLtS, counter, get(i.a + 1)), to, next);
    }
    default: break;
  }
  bool k = i.op >= Op::kJumpLessK;
  auto first = k ? (i.op >= Op::kJumpNotLessK ? Op::kJumpNotLessK : Op::kJumpLessK)
                 : (i.op >= Op::kJumpNotLess ? Op::kJumpNotLess : Op::kJumpLess);
  int which = static_cast<int>(i.op) - static_cast<int>(first);
  bool sense = first == Op::kJumpLess || first == Op::kJumpLessK;
  Operand a = operand(i.a);
  Operand b = k ? constant(vm_.code.constants[i.wide()]) : operand(i.b);
  bool greater = k && (which == 2 || which == 3);
  if (greater) std::swap(a, b);
  bool equality = which == (k ? 4 : 2);
  Op op = equality ? Op::kEqual : which % 2 == 1 ? Op::kLessEqual : Op::kLess;
  Value v = compare(op, a, b);
  sense ? flow_if(v, to, next) : flow_if(v, next, to);
}

}  // namespace calc
