// Records, arrays, closures, calls.
#include "ast.h"
#include "emit.h"
#include "helpers.h"

namespace calc {
namespace {

constexpr auto kI32 = uptier::Type::kI32;
constexpr auto kI64 = uptier::Type::kI64;
constexpr auto kF64 = uptier::Type::kF64;

}  // namespace

// ---- Records

Value Emitter::slot_of(Value record, uint32_t slot) {
  if (slot < Record::kInline) return ir_.load(kSlots, record, offsetof(Record, slots) + 8 * slot);
  return ir_.load(kSlots, ir_.load(kSlots, record, offsetof(Record, more)),
                  8 * (slot - Record::kInline));
}

void Emitter::set_slot(Value record, uint32_t slot, Value v) {
  if (slot < Record::kInline)
    return ir_.store(kSlots, v, record, offsetof(Record, slots) + 8 * slot);
  ir_.store(kSlots, v, ir_.load(kSlots, record, offsetof(Record, more)),
            8 * (slot - Record::kInline));
}

void Emitter::get_field() {
  const Instr& i = *instr();
  const Plan::Field& seen = plan_.fields[at_];
  if (unreached(!seen.entries.empty())) return;
  const FieldCache::Entry* known = nullptr;
  for (const FieldCache::Entry& e : seen.entries) {
    if (type(i.b).shape == e.shape) known = &e;
  }
  bool one_shape = plan_.speculate && seen.entries.size() == 1 && !seen.overflowed;
  if (known == nullptr && one_shape) {
    if (!need(i.b, Type::kRecord, seen.entries[0].shape)) return;
    known = &seen.entries[0];
  }
  Value v = known != nullptr ? slot_of(get(i.b), known->slot) : any_field(seen, boxed(i.b));
  set(i.a, {Type::kAny}, v);
  narrow(i.a, plan_.seen[at_], at_ + 1, at_);
}

// Compares with the shapes that were seen, one after the other; the helper for the rest.
Value Emitter::any_field(const Plan::Field& seen, Value object) {
  auto slow = [&] { return ir_.call(helper::kGetField, {vm(), where(), object}, true); };
  if (seen.entries.empty() || seen.overflowed) return slow();
  Variable out = variable(-1, kI64);
  Block other = ir_.block(), done = ir_.block(), is_object = ir_.block();
  Value tag = ir_.bin(Opcode::kShrU, object, ir_.i64(48));
  ir_.branch(ir_.un(Opcode::kEqz, tag), is_object, other);
  ir_.begin(is_object);
  Value shape = ir_.load(kShapes, object, offsetof(Object, shape));
  for (size_t k = 0; k < seen.entries.size(); ++k) {
    const FieldCache::Entry& e = seen.entries[k];
    Block hit = ir_.block();
    bool last = k + 1 == seen.entries.size();
    Block miss = last ? other : ir_.block();
    ir_.branch(ir_.bin(Opcode::kEq, shape, ir_.pointer(e.shape)), hit, miss);
    ir_.begin(hit);
    ir_.def(out, slot_of(object, e.slot));
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
    ir_.call(helper::kSetField, {vm(), where(), boxed(i.a), boxed(i.b)}, true);
    return forget_shapes();
  }
  if (!need(i.a, Type::kRecord, e->shape)) return;
  set_slot(get(i.a), e->slot, boxed(i.b));
  if (!adds) return;
  ir_.store(kShapes, ir_.pointer(e->next), get(i.a), offsetof(Object, shape));
  forget_shapes();
  type(i.a).shape = e->next;
}

void Emitter::new_record() {
  const Instr& i = *instr();
  Shape* shape = vm_.code.literals[static_cast<size_t>(i.d)];
  Value r = ir_.call(helper::kNewRecord, {vm(), where()}, true);
  for (uint32_t k = 0; k < i.c; ++k) set_slot(r, k, boxed(i.b + static_cast<int>(k)));
  set(i.a, {Type::kRecord, shape}, r);
}

// ---- Arrays

// Returns the address of an element, guarded. Where there cannot be one, the block has ended.
Emitter::Element Emitter::element_of(int array, int index) {
  if (!need(array, Type::kArray)) return {};
  if (type(index).is == Type::kDouble) {
    // A double may be whole.
    Value d = get(index);
    Value whole = ir_.convert(Opcode::kTruncSatS, kI32, d);
    guard(ir_.bin(Opcode::kFEq, ir_.convert(Opcode::kConvertS, kF64, whole), d),
          GuardReason::kType);
    set(index, {Type::kInt}, whole);
  } else if (!need(index, Type::kInt)) {
    return {};
  }
  Value object = get(array), i = get(index);
  Value length = ir_.load32(kArrays, object, offsetof(Array, length));
  guard(ir_.bin(Opcode::kLtU, i, length), GuardReason::kBounds);
  Value data = ir_.load(kArrays, object, offsetof(Array, data));
  Value scaled = ir_.bin(Opcode::kShl, ir_.convert(Opcode::kExtendU, kI64, i), ir_.i64(3));
  return {data, scaled};
}

void Emitter::get_index() {
  const Instr& i = *instr();
  if (unreached(plan_.seen[at_] != 0)) return;
  if (plan_.speculate && !has_seen(kStranger)) {
    Element e = element_of(i.b, i.c);
    if (!alive_) return;
    set(i.a, {Type::kAny}, ir_.load(kElements, e.data, 0, e.index));
  } else {
    Value v = ir_.call(helper::kGetIndex, {vm(), where(), boxed(i.b), boxed(i.c)}, true);
    set(i.a, {Type::kAny}, v);
  }
  narrow(i.a, plan_.seen[at_], at_ + 1, at_);
}

void Emitter::set_index() {
  const Instr& i = *instr();
  if (unreached(plan_.seen[at_] != 0)) return;
  if (plan_.speculate && !has_seen(kStranger)) {
    Element e = element_of(i.a, i.b);
    if (alive_) ir_.store(kElements, boxed(i.c), e.data, 0, e.index);
    return;
  }
  ir_.call(helper::kSetIndex, {vm(), where(), boxed(i.a), boxed(i.b), boxed(i.c)}, true);
}

void Emitter::new_array() {
  const Instr& i = *instr();
  Value a = ir_.call(helper::kNewArray, {vm(), where()}, true);
  Value data = i.c == 0 ? a : ir_.load(kArrays, a, offsetof(Array, data));
  for (int k = 0; k < i.c; ++k)
    ir_.store(kElements, boxed(i.b + k), data, 8 * static_cast<size_t>(k));
  set(i.a, {Type::kArray}, a);
}

// ---- Functions

void Emitter::new_closure() {
  const Instr& i = *instr();
  const Proto& p = *vm_.code.protos[static_cast<size_t>(i.d)];
  Value c = ir_.call(helper::kNewClosure, {vm(), where(), self()}, true);
  for (size_t k = 0; k < p.captures.size(); ++k) {
    if (!p.captures[k].local) continue;
    Value cell = get(static_cast<int>(p.captures[k].index));
    ir_.store(kEntries, cell, c, offsetof(Closure, cells) + sizeof(Cell*) * k);
  }
  set(i.a, {Type::kFunction}, c);
}

// Returns where to call the function in the instruction's register: an entry that takes as many
// arguments as there are.
Value Emitter::call_target() {
  const Instr& i = *instr();
  const Plan::Target& seen = plan_.targets[at_];
  if (!plan_.speculate) return ir_.call(helper::kCallee, {vm(), where(), boxed(i.a)}, true);
  if (!need(i.a, Type::kFunction)) return {};
  Value proto = ir_.load(kEntries, get(i.a), offsetof(Closure, proto));
  if (!seen.many) {
    guard(ir_.bin(Opcode::kEq, proto, ir_.pointer(seen.only)), GuardReason::kTarget);
    return ir_.load(kEntries, ir_.pointer(&seen.only->entry), 0);
  }
  Value params = ir_.load32(kEntries, proto, offsetof(Proto, params));
  guard(ir_.bin(Opcode::kEq, params, ir_.i32(i.c)), GuardReason::kTarget);
  return ir_.load(kEntries, proto, offsetof(Proto, entry));
}

void Emitter::call() {
  const Instr& i = *instr();
  if (unreached(plan_.targets[at_].only != nullptr)) return;
  Value target = call_target();
  if (!alive_) return;
  std::vector<Value> args = {boxed(i.a)};
  for (int k = 1; k <= i.c; ++k) args.push_back(boxed(i.a + k));
  Value result;
  if (!ir_.dry()) {
    uptier::Signature s{std::vector<uptier::Type>(args.size(), kI64), kI64};
    Value entry = ir_.convert(Opcode::kBitcast, uptier::Type::kRef, target);
    result = ir_.builder().call_indirect(entry, s, args);
  }
  forget_shapes();
  set(i.a, {Type::kAny}, result);
  narrow(i.a, plan_.seen[at_], at_ + 1, at_);
}

void Emitter::builtin() {
  const Instr& i = *instr();
  Value nil = ir_.i64(vm_.heap.nil());
  Type first = i.c == 0 ? Type() : type(i.a);
  switch (i.b) {
    case kPrint:
      for (int k = 0; k < i.c; ++k) {
        ir_.call(helper::kPrint, {vm(), where(), boxed(i.a + k), ir_.i32(k + 1 == i.c)}, false);
      }
      return set(i.a, {Type::kNil}, nil);
    case kSqrt:
      if (!first.number()) break;
      return set(i.a, {Type::kDouble}, ir_.un(Opcode::kFSqrt, double_of(operand(i.a))));
    case kFloor: {
      if (first.is == Type::kInt) return;
      if (first.is != Type::kDouble) break;
      Value down = ir_.bin(Opcode::kFAdd, ir_.un(Opcode::kFFloor, get(i.a)), ir_.f64(0));
      if (!plan_.speculate || (plan_.seen[at_] & 255) != kInt) {
        return set(i.a, {Type::kDouble}, down);
      }
      Value whole = ir_.convert(Opcode::kTruncSatS, kI32, down);
      Value same = ir_.bin(Opcode::kFEq, ir_.convert(Opcode::kConvertS, kF64, whole), down);
      guard(same, GuardReason::kOverflow);
      return set(i.a, {Type::kInt}, whole);
    }
    case kLen: {
      if (first.is != Type::kArray && first.is != Type::kString) break;
      size_t at = first.is == Type::kArray ? offsetof(Array, length) : offsetof(String, length);
      return set(i.a, {Type::kInt}, ir_.load32(kArrays, get(i.a), at));
    }
    case kPush: {
      if (first.is != Type::kArray) break;
      Value array = get(i.a), v = boxed(i.a + 1);
      Value length = ir_.load32(kArrays, array, offsetof(Array, length));
      Value capacity = ir_.load32(kArrays, array, offsetof(Array, capacity));
      either(
          ir_.bin(Opcode::kLtU, length, capacity), kI64,
          [&] {
            Value at =
                ir_.bin(Opcode::kShl, ir_.convert(Opcode::kExtendU, kI64, length), ir_.i64(3));
            ir_.store(kElements, v, ir_.load(kArrays, array, offsetof(Array, data)), 0, at);
            ir_.store(kArrays, ir_.bin(Opcode::kAdd, length, ir_.i32(1)), array,
                      offsetof(Array, length));
            return nil;
          },
          [&] {
            ir_.call(helper::kPush, {vm(), where(), array, v}, true);
            return nil;
          });
      return set(i.a, {Type::kNil}, nil);
    }
    default: break;
  }
  Value args[3] = {nil, nil, nil};
  for (int k = 0; k < i.c; ++k) args[k] = boxed(i.a + k);
  Value v = ir_.call(helper::kBuiltin, {vm(), where(), args[0], args[1], args[2]}, true);
  bool text = i.b == kStr || i.b == kFixed || i.b == kSub || i.b == kJoin;
  set(i.a, {text ? Type::kString : i.b == kMakeArray ? Type::kArray : Type::kAny}, v);
  narrow(i.a, plan_.seen[at_], at_ + 1, at_);
}

}  // namespace calc
