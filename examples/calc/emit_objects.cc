// Instructions: control, variables, records, arrays, closures, calls.
#include "emit.h"

namespace calc {

void Emitter::instruction() {
  const Instr& i = *instr();
  auto index = static_cast<size_t>(i.d);
  if (is_jump(i.op)) return jump_instruction();
  if (i.op >= Op::kAdd && i.op <= Op::kMod) return arithmetic(i.op, operand(i.b), operand(i.c));
  if (i.op >= Op::kAddK && i.op <= Op::kModK) {
    return arithmetic(operation(i.op), operand(i.b), constant_at(index));
  }
  if (i.op >= Op::kLess && i.op <= Op::kEqual) {
    return set(i.a, {Type::kBool}, compare(i.op, operand(i.b), operand(i.c)));
  }
  switch (i.op) {
    case Op::kMove: return set(i.a, type(i.b), get(i.b));
    case Op::kConst: {
      Operand k = constant_at(index);
      return set(i.a, k.type, k.value);
    }
    case Op::kGetGlobal: return get_global();
    case Op::kSetGlobal:
      return ir_.store(kGlobals, boxed(i.a), ir_.pointer(&vm_.globals[index]), 0);
    case Op::kGetCapture:
      if (unreached(plan_.seen[at_] != 0)) return;
      return set_seen(i.a, ir_.load(kI64, kCells, capture(), offsetof(Cell, value)));
    case Op::kSetCapture: return ir_.store(kCells, boxed(i.a), capture(), offsetof(Cell, value));
    case Op::kNewCell:
      return set(i.a, {Type::kAny}, ir_.call(HELPER(new_cell), {vm(), where(), boxed(i.a)}));
    case Op::kGetCell:
      if (unreached(plan_.seen[at_] != 0)) return;
      return set_seen(i.a, ir_.load(kI64, kCells, get(i.b), offsetof(Cell, value)));
    case Op::kSetCell: return ir_.store(kCells, boxed(i.b), get(i.a), offsetof(Cell, value));
    case Op::kNeg: return negate();
    case Op::kNot: return set(i.a, {Type::kBool}, ir_.un(Opcode::kEqz, truth(operand(i.b))));
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
  if (!ir_.dry()) ir_->ret(v);
  alive_ = false;
}

void Emitter::jump_instruction() {
  const Instr& i = *instr();
  uint32_t to = static_cast<uint32_t>(i.d) - plan_.proto->begin, next = at_ + 1;
  switch (i.op) {
    case Op::kJump:
    case Op::kLoop: return flow(to, i.op == Op::kLoop);
    case Op::kJumpIf: return flow_if(truth(operand(i.a)), to, next);
    case Op::kJumpUnless: return flow_if(truth(operand(i.a)), next, to);
    case Op::kForPrepare: {
      for_prepare();
      return flow_if(ir_.bin(Opcode::kLtS, get(i.a), get(i.a + 1)), next, to);
    }
    case Op::kForLoop: {
      Value counter = ir_.bin(Opcode::kAdd, get(i.a), ir_.i32(1));
      set(i.a, {Type::kInt}, counter);
      return flow_if(ir_.bin(Opcode::kLtS, counter, get(i.a + 1)), to, next, true);
    }
    default: break;
  }
  int group = (i.op - Op::kJumpLess) / kComparisons;  // if, if not, and both with a constant
  Operand b = group < 2 ? operand(i.b) : constant_at(i.wide());
  Value v = compare(operation(i.op), operand(i.a), b);
  group % 2 == 0 ? flow_if(v, to, next) : flow_if(v, next, to);
}

// A global that has been one function all the time is this one, or the code is left.
void Emitter::get_global() {
  const Instr& i = *instr();
  if (unreached(plan_.seen[at_] != 0)) return;
  Value place = ir_.pointer(&vm_.globals[static_cast<size_t>(i.d)]);
  Value v = ir_.load(kI64, kGlobals, place, 0);
  auto* function = as<Closure>(plan_.globals[at_]);
  bool known = function != nullptr && fast_here() && plan_.live[at_ + 1].test(i.a);
  if (!known) return set_seen(i.a, v);
  set(i.a, {Type::kAny}, v);
  frame_state(at_ + 1, {.learn_at = at_, .learn_of = i.a, .learn = kStranger});
  guard_state(ir_.bin(Opcode::kEq, v, ir_.i64(of_object(function))), GuardReason::kTarget);
  set(i.a, {Type::kFunction, function->proto}, ir_.pointer(function));
}

Value Emitter::capture() {
  return ir_.load_constant(
      self(), offsetof(Closure, cells) + sizeof(Cell*) * static_cast<size_t>(instr()->d));
}

// ---- Records

// Loads a slot, or stores into it.
Value Emitter::slot(Value record, uint32_t slot, Value* store) {
  size_t at = offsetof(Record, slots) + 8 * slot;
  if (slot >= Record::kInline) {
    record = ir_.load(kI64, kSlots, record, offsetof(Record, more));
    at = 8 * (slot - Record::kInline);
  }
  if (store == nullptr) return ir_.load(kI64, kSlots, record, at);
  ir_.store(kSlots, *store, record, at);
  return {};
}

void Emitter::get_field() {
  const Instr& i = *instr();
  const Plan::Field& seen = plan_.fields[at_];
  if (unreached(!seen.entries.empty())) return;
  const FieldCache::Entry* known = nullptr;
  for (const FieldCache::Entry& e : seen.entries) {
    if (type(i.b).is == Type::kRecord && type(i.b).what == e.shape) known = &e;
  }
  bool one_shape = plan_.speculate && seen.entries.size() == 1 && !seen.overflowed;
  if (known == nullptr && one_shape) {
    if (!need(i.b, {Type::kRecord, seen.entries[0].shape})) return;
    known = &seen.entries[0];
  }
  set_seen(i.a, known != nullptr ? slot(get(i.b), known->slot) : any_field(seen, operand(i.b)));
}

// Compares with the shapes that were seen, one after the other; the helper for the rest.
Value Emitter::any_field(const Plan::Field& seen, const Operand& o) {
  Value v = box(o);
  auto slow = [&] { return ir_.call(HELPER(get_field), {vm(), where(), v}); };
  if (seen.entries.empty() || seen.overflowed) return slow();
  Variable out = variable(-1, kI64);
  Block other = ir_.block(), done = ir_.block(), is_object = ir_.block();
  Value object = ir_.bin(Opcode::kSub, v, tag());
  ir_.branch(ir_.bin(Opcode::kLtU, object, ir_.i64(uint64_t{1} << 48)), is_object, other);
  ir_.begin(is_object);
  Value shape = ir_.load(kI64, kShapes, object, offsetof(Object, shape));
  for (size_t k = 0; k < seen.entries.size(); ++k) {
    const FieldCache::Entry& e = seen.entries[k];
    Block hit = ir_.block();
    Block miss = k + 1 == seen.entries.size() ? other : ir_.block();
    ir_.branch(ir_.bin(Opcode::kEq, shape, ir_.pointer(e.shape)), hit, miss);
    ir_.begin(hit);
    ir_.def(out, slot(object, e.slot));
    ir_.jump(done);
    ir_.begin(miss);
  }
  ir_.def(out, slow());
  ir_.jump(done);
  ir_.begin(done);
  state_at_ = kNoState;
  return ir_.use(out);
}

void Emitter::set_field() {
  const Instr& i = *instr();
  const Plan::Field& seen = plan_.fields[at_];
  if (unreached(!seen.entries.empty())) return;
  bool one_shape = plan_.speculate && seen.entries.size() == 1 && !seen.overflowed;
  const FieldCache::Entry* e = one_shape ? &seen.entries[0] : nullptr;
  bool adds = e != nullptr && e->next != nullptr;
  if (e == nullptr || (adds && e->slot >= Record::kInline)) {
    ir_.call(HELPER(set_field), {vm(), where(), boxed(i.a), boxed(i.b)});
    return forget_shapes();
  }
  if (!need(i.a, {Type::kRecord, e->shape})) return;
  Value v = boxed(i.b);
  slot(get(i.a), e->slot, &v);
  if (!adds) return;
  ir_.store(kShapes, ir_.pointer(e->next), get(i.a), offsetof(Object, shape));
  forget_shapes();
  type(i.a).what = e->next;
}

void Emitter::new_record() {
  const Instr& i = *instr();
  Shape* shape = vm_.code.literals[static_cast<size_t>(i.d)];
  Value made = ir_.call(HELPER(new_record), {vm(), where()});
  Value r = ir_.bin(Opcode::kSub, made, tag());
  for (uint32_t k = 0; k < i.c; ++k) {
    Value v = boxed(i.b + static_cast<int>(k));
    slot(r, k, &v);
  }
  set(i.a, {Type::kRecord, shape}, r);
}

// ---- Arrays

Value Emitter::scaled(Value index) {
  return ir_.bin(Opcode::kShl, ir_.to(kI64, Opcode::kExtendU, index), ir_.i64(3));
}

Value Emitter::length_of(int array) {
  return ir_.load(kI32, kArrays, get(array), offsetof(Array, length));
}

// Returns the address of an element, guarded. Where there cannot be one, the block has ended.
Emitter::Element Emitter::element_of(int array, int index) {
  if (!need(array, {Type::kArray})) return {};
  if (type(index).is == Type::kDouble) {
    // A double may be whole.
    Value d = get(index);
    Value whole = ir_.to(kI32, Opcode::kTruncSatS, d);
    guard(ir_.bin(Opcode::kFEq, ir_.to(kF64, Opcode::kConvertS, whole), d), GuardReason::kType);
    set(index, {Type::kInt}, whole);
  } else if (!need(index, {Type::kInt})) {
    return {};
  }
  bool carried = false;
  for (auto& [header, loop] : open_) {
    carried |= plan_.carries(header, *loop, static_cast<size_t>(array));
  }
  Value i = get(index);
  Value length = carried ? ir_.use(variable(array + kLength, kI32)) : length_of(array);
  guard(ir_.bin(Opcode::kLtU, i, length), GuardReason::kBounds);
  Value data = carried ? ir_.use(variable(array + kData, kI64))
                       : ir_.load(kI64, kArrays, get(array), offsetof(Array, data));
  return {data, scaled(i)};
}

void Emitter::get_index() {
  const Instr& i = *instr();
  if (unreached(plan_.seen[at_] != 0)) return;
  if (!fast_here()) {
    Value v = ir_.call(HELPER(get_index), {vm(), where(), boxed(i.b), boxed(i.c)});
    return set_seen(i.a, v);
  }
  Element e = element_of(i.b, i.c);
  if (alive_) set_seen(i.a, ir_.load(kI64, kElements, e.data, 0, e.index));
}

void Emitter::set_index() {
  const Instr& i = *instr();
  if (unreached(plan_.seen[at_] != 0)) return;
  if (!fast_here()) {
    ir_.call(HELPER(set_index), {vm(), where(), boxed(i.a), boxed(i.b), boxed(i.c)});
    return;
  }
  Element e = element_of(i.a, i.b);
  if (alive_) ir_.store(kElements, boxed(i.c), e.data, 0, e.index);
}

void Emitter::new_array() {
  const Instr& i = *instr();
  Value made = ir_.call(HELPER(new_array), {vm(), where()});
  Value a = ir_.bin(Opcode::kSub, made, tag());
  Value data = i.c == 0 ? a : ir_.load(kI64, kArrays, a, offsetof(Array, data));
  for (int k = 0; k < i.c; ++k) {
    ir_.store(kElements, boxed(i.b + k), data, 8 * static_cast<size_t>(k));
  }
  set(i.a, {Type::kArray}, a);
}

// ---- Functions

void Emitter::new_closure() {
  const Instr& i = *instr();
  const Proto& p = *vm_.code.protos[static_cast<size_t>(i.d)];
  Value made = ir_.call(HELPER(new_closure), {vm(), where(), self()});
  Value c = ir_.bin(Opcode::kSub, made, tag());
  for (size_t k = 0; k < p.captures.size(); ++k) {
    if (!p.captures[k].local) continue;
    Value cell = get(static_cast<int>(p.captures[k].index));
    ir_.store(kEntries, cell, c, offsetof(Closure, cells) + sizeof(Cell*) * k);
  }
  set(i.a, {Type::kFunction, &p}, c);
}

// Makes the instruction's register the function to call. Returns where: an entry that takes as many
// arguments as there are.
Value Emitter::call_target() {
  const Instr& i = *instr();
  const Plan::Target& seen = plan_.targets[at_];
  auto* known =
      type(i.a).is == Type::kFunction ? static_cast<const Proto*>(type(i.a).what) : nullptr;
  if (!plan_.speculate || (known != nullptr && known->params != i.c)) {
    set(i.a, {Type::kFunction}, ir_.call(HELPER(callee), {vm(), where(), boxed(i.a)}));
  } else if (known == nullptr) {
    if (!need(i.a, {Type::kFunction})) return {};
    Value proto = ir_.load(kI64, kEntries, get(i.a), offsetof(Closure, proto));
    if (seen.many) {
      Value params = ir_.load(kI32, kEntries, proto, offsetof(Proto, params));
      guard(ir_.bin(Opcode::kEq, params, ir_.i32(i.c)), GuardReason::kTarget);
      return ir_.load(kI64, kEntries, proto, offsetof(Proto, entry));
    }
    guard(ir_.bin(Opcode::kEq, proto, ir_.pointer(seen.only)), GuardReason::kTarget);
    known = seen.only;
  }
  Value proto = known != nullptr && known->params == i.c
                    ? ir_.pointer(known)
                    : ir_.load(kI64, kEntries, get(i.a), offsetof(Closure, proto));
  return ir_.load(kI64, kEntries, proto, offsetof(Proto, entry));
}

void Emitter::call() {
  const Instr& i = *instr();
  if (unreached(plan_.targets[at_].only != nullptr)) return;
  Value target = call_target();
  if (!alive_) return;
  std::vector<Value> args = {get(i.a)};
  for (int k = 1; k <= i.c; ++k) args.push_back(boxed(i.a + k));
  Value result;
  if (!ir_.dry()) {
    uptier::Signature s{std::vector<uptier::Type>(args.size(), kI64), kI64};
    Value entry = ir_.to(uptier::Type::kRef, Opcode::kBitcast, target);
    result = ir_->call_indirect(entry, s, args);
  }
  forget_shapes();
  set_seen(i.a, result);
}

void Emitter::builtin() {
  const Instr& i = *instr();
  if (short_builtin()) return;
  const Builtin& b = kBuiltins[i.b];
  Value args[3] = {ir_.i64(kNilVal), ir_.i64(kNilVal), ir_.i64(kNilVal)};
  for (int k = 0; k < i.c; ++k) args[k] = boxed(i.a + k);
  Value v =
      ir_.call(host_function(b.name.data(), b.run), {vm(), where(), args[0], args[1], args[2]});
  Type always = type_of_kinds(b.result);
  if (always.object()) return set_object(i.a, always, v);
  set_seen(i.a, v);
}

// Those that are a few instructions when their arguments are what they like best. Returns whether
// it is done.
bool Emitter::short_builtin() {
  const Instr& i = *instr();
  Type first = i.c == 0 ? Type() : type(i.a);
  if (i.b == kSqrt && first.number()) {
    set(i.a, {Type::kDouble}, ir_.un(Opcode::kFSqrt, double_of(operand(i.a))));
  } else if (i.b == kFloor && first.is == Type::kDouble) {
    Value down = ir_.bin(Opcode::kFAdd, ir_.un(Opcode::kFFloor, get(i.a)), ir_.f64(0));
    if (!plan_.speculate || (plan_.seen[at_] & 255) != kInt) {
      set(i.a, {Type::kDouble}, down);
      return true;
    }
    Value whole = ir_.to(kI32, Opcode::kTruncSatS, down);
    Value same = ir_.bin(Opcode::kFEq, ir_.to(kF64, Opcode::kConvertS, whole), down);
    guard(same, GuardReason::kOverflow);
    set(i.a, {Type::kInt}, whole);
  } else if (i.b == kLen && first.is == Type::kArray) {
    set(i.a, {Type::kInt}, length_of(i.a));
  } else if (i.b == kPush && first.is == Type::kArray) {
    push();
  } else {
    return i.b == kFloor && first.is == Type::kInt;
  }
  return true;
}

void Emitter::push() {
  const Instr& i = *instr();
  Value array = get(i.a), as_val = boxed(i.a), v = boxed(i.a + 1), nil = ir_.i64(kNilVal);
  Value length = length_of(i.a);
  Value capacity = ir_.load(kI32, kArrays, array, offsetof(Array, capacity));
  auto fast = [&] {
    Value data = ir_.load(kI64, kArrays, array, offsetof(Array, data));
    ir_.store(kElements, v, data, 0, scaled(length));
    Value longer = ir_.bin(Opcode::kAdd, length, ir_.i32(1));
    ir_.store(kArrays, longer, array, offsetof(Array, length));
    return nil;
  };
  auto slow = [&] {
    const Builtin& b = kBuiltins[i.b];
    return ir_.call(host_function(b.name.data(), b.run), {vm(), where(), as_val, v, nil});
  };
  set(i.a, {Type::kNil}, either(ir_.bin(Opcode::kLtU, length, capacity), fast, slow));
}

}  // namespace calc
