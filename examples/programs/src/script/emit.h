// Emits code, and joins opcodes that often follow one another.
#ifndef UPTIER_EXAMPLES_SCRIPT_EMIT_H
#define UPTIER_EXAMPLES_SCRIPT_EMIT_H

#include "machine.h"

enum { kNowhere = UINT16_MAX };

typedef struct Emitter {
  Machine* m;
  uint32_t at;      // where the next opcode goes
  uint32_t last;    // where the last one is, or kNowhere after a label
  uint32_t before;  // the one before it, likewise
  uint32_t constants;
} Emitter;

static void emit_byte(Emitter* e, int32_t byte) {
  if (e->at == kMostCode) fail("too much code");
  e->m->code[e->at++] = (uint8_t)byte;
}

static void emit(Emitter* e, Opcode op) {
  e->before = e->last;
  e->last = e->at;
  emit_byte(e, (int32_t)op);
}

static void emit1(Emitter* e, Opcode op, int32_t operand) {
  emit(e, op);
  emit_byte(e, operand);
}

static void emit2(Emitter* e, Opcode op, int32_t first, int32_t second) {
  emit1(e, op, first);
  emit_byte(e, second);
}

static int last_is(const Emitter* e, Opcode op) {
  return e->last != kNowhere && e->m->code[e->last] == op;
}

static int32_t last_operand(const Emitter* e) { return e->m->code[e->last + 1]; }

// Takes the last opcode back.
static void drop_last(Emitter* e) {
  e->at = e->last;
  e->last = e->before;
  e->before = kNowhere;
}

// Jumps arrive here, so the next instruction is not joined with the one before.
static uint32_t label(Emitter* e) {
  e->last = e->before = kNowhere;
  return e->at;
}

// Returns the local that the last opcode gets, or -1.
static int32_t last_local(const Emitter* e) {
  if (e->last == kNowhere) return -1;
  int32_t op = e->m->code[e->last];
  if (op == kGet) return last_operand(e);
  return op >= kGet0 && op <= kGet7 ? op - kGet0 : -1;
}

static void emit_get(Emitter* e, int32_t local) {
  int32_t previous = last_local(e);
  if (previous >= 4 && local >= 4) {
    drop_last(e);
    emit2(e, kGetPair, previous, local);
  } else if (local <= kGet7 - kGet0) {
    emit(e, (Opcode)(kGet0 + local));
  } else {
    emit1(e, kGet, local);
  }
}

static void emit_set(Emitter* e, int32_t local) {
  int32_t from = last_local(e);
  if (from >= 0) {
    drop_last(e);
    emit2(e, kMove, from, local);
  } else if (local <= kSet5 - kSet0) {
    emit(e, (Opcode)(kSet0 + local));
  } else {
    emit1(e, kSet, local);
  }
}

static void emit_constant(Emitter* e, Value v) {
  uint32_t i = 0;
  while (i < e->constants && e->m->constants[i] != v) ++i;
  if (i == kMostConstants) fail("too many constants");
  if (i == e->constants) e->m->constants[e->constants++] = v;
  emit2(e, kConstant, (int32_t)(i & 0xff), (int32_t)(i >> 8));
}

static void emit_int(Emitter* e, int32_t i) {
  if (i == 0 || i == 1) {
    emit(e, i == 0 ? kZero : kOne);
  } else if (i == (int8_t)i) {
    emit1(e, kInt8, i);
  } else if (i == (int16_t)i) {
    emit2(e, kInt16, i & 0xff, i >> 8);
  } else {
    emit_constant(e, from_int(i));
  }
}

// Returns whether the last opcode is a small constant, and takes it back.
static int take_small(Emitter* e, int32_t* small) {
  if (last_is(e, kInt8)) {
    *small = (int8_t)last_operand(e);
  } else if (last_is(e, kZero) || last_is(e, kOne)) {
    *small = last_is(e, kOne);
  } else {
    return 0;
  }
  drop_last(e);
  return 1;
}

static Opcode with_small(Opcode op) {
  switch (op) {
    case kAdd: return kAddInt;
    case kSub: return kSubInt;
    case kMul: return kMulInt;
    case kAnd: return kAndInt;
    case kShl: return kShlInt;
    case kShr: return kShrInt;
    case kRem: return kRemInt;
    default: return kOpcodes;
  }
}

static void emit_binary(Emitter* e, Opcode op) {
  int32_t small;
  Opcode joined = with_small(op);
  if (joined != kOpcodes && !(last_is(e, kInt8) && last_operand(e) > INT8_MAX) &&
      take_small(e, &small)) {
    emit1(e, joined, small);
  } else {
    emit(e, op);
  }
}

static void emit_index(Emitter* e) {
  if (!last_is(e, kGetPair)) return emit(e, kIndex);
  int32_t object = last_operand(e), key = e->m->code[e->last + 2];
  drop_last(e);
  emit2(e, kIndexLocals, object, key);
}

static void emit_field(Emitter* e, int32_t field) {
  int32_t local = last_local(e);
  if (local < 0) return emit1(e, kGetField, field);
  drop_last(e);
  emit2(e, kFieldOfLocal, local, field);
}

static void emit_return(Emitter* e) {
  int32_t local = last_local(e);
  if (local < 0) return emit(e, kReturn);
  drop_last(e);
  emit1(e, kReturnLocal, local);
}

// Emits a jump and returns the place of its target, for land().
static uint32_t emit_jump(Emitter* e, Opcode op) {
  emit2(e, op, 0, 0);
  return e->at - 2;
}

static void land_at(Emitter* e, uint32_t place, uint32_t target) {
  int32_t distance = (int32_t)target - (int32_t)(place + 2);
  if (distance != (int16_t)distance) fail("a jump is too long");
  e->m->code[place] = (uint8_t)distance;
  e->m->code[place + 1] = (uint8_t)(distance >> 8);
}

static void land(Emitter* e, uint32_t place) { land_at(e, place, label(e)); }

static Opcode unless_int(Opcode op) {
  return op == kEq ? kUnlessEqInt : op == kLt ? kUnlessLtInt : op == kGe ? kUnlessGeInt : kOpcodes;
}

// Emits a jump that is taken unless the condition on the stack holds.
static uint32_t emit_unless(Emitter* e) {
  if (last_is(e, kNot)) {
    drop_last(e);
    return emit_jump(e, kJumpIf);
  }
  if (e->last == kNowhere || e->m->code[e->last] < kEq || e->m->code[e->last] > kGe) {
    return emit_jump(e, kJumpIfNot);
  }
  Opcode op = (Opcode)e->m->code[e->last];
  drop_last(e);
  int32_t small;
  if (unless_int(op) == kOpcodes || !take_small(e, &small)) {
    return emit_jump(e, (Opcode)(kUnlessEq + (op - kEq)));
  }
  emit2(e, unless_int(op), small, 0);
  emit_byte(e, 0);
  return e->at - 2;
}

#endif  // UPTIER_EXAMPLES_SCRIPT_EMIT_H
