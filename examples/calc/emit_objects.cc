// Instructions: control, variables, records, arrays, closures, calls.
#include "emit.h"
#include "uptier/words.h"

namespace calc {

void Emitter::instruction() {
  const Instr& i = instr();
  set_position();
  auto index = static_cast<size_t>(i.d);
  if (is_jump(i.op)) return jump_instruction();
  if (is_arithmetic(i.op)) {
    Operand b = has_constant(i.op) ? constant(index) : operand(i.c);
    return arithmetic(operation(i.op), operand(i.b), b);
  }
  switch (i.op) {
    case Op::kNegate: return negate();
    case Op::kMove: return set(i.a, type(i.b), get(i.b));
    case Op::kConst: {
      Operand k = constant(index);
      return set(i.a, k.type, k.value);
    }
    case Op::kGetGlobal: return get_variable(kGlobals, pointer(&vm_.globals[index]));
    case Op::kSetGlobal: return store(kGlobals, boxed(i.a), pointer(&vm_.globals[index]), 0);
    case Op::kNewCell: return set(i.a, {kAnyKind}, slow(HELPER(new_cell), boxed(i.a)));
    case Op::kGetCell: return get_variable(kCells, get(i.b));
    case Op::kSetCell: return store(kCells, boxed(i.b), get(i.a), 0);
    case Op::kGetCapture: return get_variable(kCells, capture());
    case Op::kSetCapture: return store(kCells, boxed(i.a), capture(), 0);
    case Op::kGetField: return get_field();
    case Op::kSetField: return set_field();
    case Op::kGetIndex: return get_index();
    case Op::kSetIndex: return set_index();
    case Op::kNewRow: return new_row();
    case Op::kNewClosure: return new_closure();
    case Op::kCall: return call();
    case Op::kBuiltin: return builtin();
    default: break;
  }
  const Value result = boxed(i.a);  // kReturn
  if (vm_.trace.tells_calls()) b_.call_host(HELPER(leave), {b_.ref(&vm_)});
  b_.ret(result);
  alive_ = false;
}

void Emitter::jump_instruction() {
  const Instr& i = instr();
  uint32_t to = static_cast<uint32_t>(i.d) - plan_.proto->begin, next = at_ + 1;
  switch (i.op) {
    case Op::kJump:
    case Op::kLoop: return flow(to);
    case Op::kJumpIf: return flow_if(truth(operand(i.a)), to, next);
    case Op::kJumpUnless: return flow_if(truth(operand(i.a)), next, to);
    case Op::kForPrepare:
      for_prepare();
      return flow_if(bin(Opcode::kLtS, get(i.a), get(i.a + 1)), next, to);
    case Op::kForLoop:
      set(i.a, {kInt}, bin(Opcode::kAdd, get(i.a), b_.i32(1)));
      return flow_if(bin(Opcode::kLtS, get(i.a), get(i.a + 1)), to, next);
    default: break;
  }
  Operand b = has_constant(i.op) ? constant(i.b) : operand(i.b);
  Value holds = compare(operation(i.op), operand(i.a), b);
  negated(i.op) ? flow_if(holds, next, to) : flow_if(holds, to, next);
}

// ---- Variables that are no registers

void Emitter::get_variable(Memory m, Value place) {
  if (unreached(seen().seen != 0)) return;
  set_seen(instr().a, load(kI64, m, place, 0));
}

Value Emitter::capture() {
  size_t at = offsetof(Closure, cells) + sizeof(Cell*) * static_cast<size_t>(instr().d);
  return b_.load(Opcode::kLoad, kI64,
                 {b_.param(0), Value::none(), static_cast<uint32_t>(at), uptier::kMemInvariant});
}

// ---- Records

void Emitter::get_field() {
  const Instr& i = instr();
  if (unreached(has_seen(kReached))) return;
  const auto& shapes = seen().shapes;
  for (const FieldCache::Entry& e : shapes) {
    bool guess = shapes.size() == 1 && plan_.guess;
    bool known = type(i.b).is(kRecord) && type(i.b).what == e.shape;
    if (!known && !guess) continue;
    if (!need(i.b, {kRecord, e.shape})) return;
    return set_seen(i.a, load(kI64, fields(e.slot), data_of(get(i.b)), 8 * e.slot));
  }
  set_seen(i.a, any_field(operand(i.b)));
}

// Compares with the shapes that were seen, one after the other; the helper for the rest.
Value Emitter::any_field(const Operand& o) {
  Value v = box(o);
  if (seen().shapes.empty()) return slow(HELPER(get_field), v);
  Variable out = variable(-1, kI64);
  Block other = b_.create_block(), done = b_.create_block(), is_object = b_.create_block();
  Value object = bin(Opcode::kSub, v, tag());
  b_.branch(bin(Opcode::kLtU, object, word(uint64_t{1} << 48)), is_object, other);
  begin(is_object);
  Value shape = load(kI64, kShapes, object, offsetof(Object, shape));
  for (const FieldCache::Entry& e : seen().shapes) {
    Block hit = b_.create_block();
    Block miss = &e == &seen().shapes.back() ? other : b_.create_block();
    b_.branch(bin(Opcode::kEq, shape, pointer(e.shape)), hit, miss);
    begin(hit);
    b_.def(out, load(kI64, fields(e.slot), data_of(object), 8 * e.slot));
    b_.jump(done);
    begin(miss);
  }
  b_.def(out, slow(HELPER(get_field), v));
  b_.jump(done);
  begin(done);
  return b_.use(out);
}

void Emitter::set_field() {
  const Instr& i = instr();
  const auto& shapes = seen().shapes;
  if (unreached(has_seen(kReached))) return;
  if (!plan_.guess || shapes.size() != 1 || shapes[0].next != nullptr) {
    slow(HELPER(set_field), boxed(i.a), boxed(i.b));
    return forget_shapes();
  }
  if (!need(i.a, {kRecord, shapes[0].shape})) return;
  store(fields(shapes[0].slot), boxed(i.b), data_of(get(i.a)), 8 * shapes[0].slot);
}

// ---- Arrays

// Returns the address of an element, guarded. Where there cannot be one, the block has ended.
Emitter::Element Emitter::element_of(int array, int index) {
  if (!need(array, {kArray})) return {};
  if (type(index).form() == kF64) {
    // A double may be whole.
    Value d = get(index), whole = to(kI32, Opcode::kTruncSatS, d);
    guard(bin(Opcode::kFEq, to(kF64, Opcode::kConvertS, whole), d), GuardReason::kType);
    set(index, {kInt}, whole);
  } else if (!need(index, {kInt})) {
    return {};
  }
  // Loads first: what a loop begins with leaves it.
  Value length = length_of(array), data = data_of(get(array));
  guard(bin(Opcode::kLtU, get(index), length), GuardReason::kBounds);
  return {data, scaled(get(index))};
}

Value Emitter::scaled(Value index) {
  return bin(Opcode::kShl, to(kI64, Opcode::kExtendU, index), word(3));
}

void Emitter::get_index() {
  const Instr& i = instr();
  if (unreached(has_seen(kReached))) return;
  if (!fast_here()) return set_seen(i.a, slow(HELPER(get_index), boxed(i.b), boxed(i.c)));
  Element e = element_of(i.b, i.c);
  if (alive_) set_seen(i.a, load(kI64, kElements, e.data, 0, e.index));
}

void Emitter::set_index() {
  const Instr& i = instr();
  if (unreached(has_seen(kReached))) return;
  if (!fast_here()) return void(slow(HELPER(set_index), boxed(i.a), boxed(i.b), boxed(i.c)));
  Element e = element_of(i.a, i.b);
  if (alive_) store(kElements, boxed(i.c), e.data, 0, e.index);
}

// An array or a record, by its shape.
void Emitter::new_row() {
  const Instr& i = instr();
  const Shape* shape = vm_.code.shapes[static_cast<size_t>(i.d)];
  Value row = bin(Opcode::kSub, slow(HELPER(new_row)), tag()), data = row;
  if (i.c != 0) data = data_of(row);
  for (int k = 0; k < i.c; ++k) {
    auto slot = static_cast<size_t>(k);
    store(shape->kind == kArray ? kElements : fields(slot), boxed(i.b + k), data, 8 * slot);
  }
  set(i.a, {shape->kind, shape->kind == kRecord ? shape : nullptr}, row);
}

// ---- Functions

void Emitter::new_closure() {
  const Proto& p = *vm_.code.protos[static_cast<size_t>(instr().d)];
  Value c = bin(Opcode::kSub, slow(HELPER(new_closure), b_.param(0)), tag());
  for (size_t k = 0; k < p.captures.size(); ++k) {
    if (!p.captures[k].local) continue;
    Value cell = get(static_cast<int>(p.captures[k].index));
    store(kFunctions, cell, c, offsetof(Closure, cells) + sizeof(Cell*) * k);
  }
  set(instr().a, {kFunction, &p}, c);
}

// Guards the callee if all calls so far had the same closure, or its code if all closures had the
// same code. Otherwise guards that the callee takes as many arguments as there are.
void Emitter::call() {
  const Instr& i = instr();
  if (unreached(seen().callee != nullptr)) return;
  Value callee, proto;
  if (plan_.guess && !seen().many_closures) {
    callee = pointer(seen().callee);
    proto = pointer(seen().callee->proto);
    Value same = bin(Opcode::kEq, boxed(i.a), word(of_object(seen().callee)));
    guard(same, GuardReason::kTarget);
  } else if (plan_.guess) {
    const Proto* known = seen().many_protos ? nullptr : seen().callee->proto;
    if (!need(i.a, {kFunction, known})) return;
    callee = get(i.a);
    proto = known ? pointer(known) : load(kI64, kFunctions, callee, offsetof(Closure, proto));
    Value params = load(kI32, kFunctions, proto, offsetof(Proto, params));
    if (!known) guard(bin(Opcode::kEq, params, b_.i32(i.c)), GuardReason::kTarget);
  } else {
    callee = slow(HELPER(callee), boxed(i.a));
    proto = load(kI64, kFunctions, callee, offsetof(Closure, proto));
  }
  std::vector<Value> words = {callee};
  for (int k = 1; k <= i.c; ++k) words.push_back(boxed(i.a + k));
  Value entry = load(uptier::Type::kRef, kFunctions, proto, offsetof(Proto, entry));
  Value result = b_.call_indirect(entry, uptier::words_signature(words.size()), words);
  forget_shapes();
  set_seen(i.a, result);
}

// Those that are a few instructions when their argument is what they like best; the C function for
// all else.
void Emitter::builtin() {
  const Instr& i = instr();
  Type first = i.c == 0 ? Type() : type(i.a);
  if (i.b == kSqrt && first.number()) {
    return set(i.a, {kDouble}, un(Opcode::kFSqrt, double_of(operand(i.a))));
  }
  if (i.b == kLen && first.is(kArray)) return set(i.a, {kInt}, length_of(i.a));
  if (i.b == kPush && first.is(kArray)) return push();
  Value v = call_builtin(i.c);
  Type always = {kBuiltins[i.b].result};
  always.object() ? set_object(i.a, always, v) : set_seen(i.a, v);
}

Value Emitter::call_builtin(int count) {
  const Instr& i = instr();
  Value args[3];
  for (int k = 0; k < 3; ++k) args[k] = k < count ? boxed(i.a + k) : word(kNilVal);
  const Builtin& b = kBuiltins[i.b];
  return slow(uptier::host_function(b.name, b.run), args[0], args[1], args[2]);
}

void Emitter::push() {
  int a = instr().a;
  Value array = get(a), length = length_of(a);
  Value capacity = load(kI32, kRows, array, offsetof(Row, capacity));
  Block fits = b_.create_block(), full = b_.create_block(), done = b_.create_block();
  b_.branch(bin(Opcode::kLtU, length, capacity), fits, full);
  begin(fits);
  store(kElements, boxed(a + 1), data_of(array), 0, scaled(length));
  store(kRows, bin(Opcode::kAdd, length, b_.i32(1)), array, offsetof(Row, length));
  b_.jump(done);
  begin(full);
  call_builtin(2);
  b_.jump(done);
  begin(done);
  set(a, {kNil}, word(kNilVal));
}

}  // namespace calc
