// Emission of bytecode for expressions.
#ifndef UPTIER_EXAMPLES_EXPRVM_EMIT_H
#define UPTIER_EXAMPLES_EXPRVM_EMIT_H

#include "opcodes.h"
#include "parser.h"

enum { kMostCode = 16384, kMostConstants = 128, kMostLabels = 128 };

typedef struct Program {
  uint8_t code[kMostCode];
  uint32_t size;
  int64_t constants[kMostConstants];
  uint32_t constant_count;
  double fractions[kMostConstants];
  uint32_t fraction_count;
  Function functions[kMostFunctions];
} Program;

// A label is where jumps go; those before it wait in a list that their operands form.
typedef struct Label {
  int32_t place;    // -1 so far
  int32_t waiting;  // the last jump that waits, 0 for none
} Label;

typedef struct Compiler {
  Parser p;
  Program* program;
  Label labels[kMostLabels];
  uint32_t label_count;
  int32_t break_label, continue_label;  // of the loop around, -1 for none
} Compiler;

enum { kFormLocal, kFormStack, kFormConst };

static void emit_byte(Compiler* c, int32_t byte) {
  if (c->program->size == kMostCode) fail_at(&c->p.l, "too much code");
  c->program->code[c->program->size++] = (uint8_t)byte;
}

static void emit(Compiler* c, int32_t opcode) { emit_byte(c, opcode); }

static void emit1(Compiler* c, int32_t opcode, int32_t operand) {
  emit_byte(c, opcode);
  emit_byte(c, operand);
}

static void emit_wide(Compiler* c, int32_t operand) {
  emit_byte(c, operand);
  emit_byte(c, operand >> 8);
}

static int32_t read_wide(const uint8_t* at) { return (int16_t)(at[0] | at[1] << 8); }

static int32_t new_label(Compiler* c) {
  if (c->label_count == kMostLabels) fail_at(&c->p.l, "too many jumps");
  c->labels[c->label_count] = (Label){-1, 0};
  return (int32_t)c->label_count++;
}

static void write_jump(Compiler* c, int32_t at, int32_t place) {
  int32_t distance = place - (at + 2);
  if (distance != (int16_t)distance) fail_at(&c->p.l, "a jump is too long");
  c->program->code[at] = (uint8_t)distance;
  c->program->code[at + 1] = (uint8_t)(distance >> 8);
}

// Emits the operand of a jump; it counts from its own end.
static void emit_target(Compiler* c, int32_t label) {
  Label* l = &c->labels[label];
  int32_t at = (int32_t)c->program->size;
  if (l->place >= 0) {
    emit_wide(c, 0);
    write_jump(c, at, l->place);
  } else {
    emit_wide(c, l->waiting > 0 ? at - l->waiting : 0);
    l->waiting = at;
  }
}

static void place_label(Compiler* c, int32_t label) {
  Label* l = &c->labels[label];
  l->place = (int32_t)c->program->size;
  for (int32_t at = l->waiting; at > 0;) {
    int32_t back = read_wide(c->program->code + at);
    write_jump(c, at, l->place);
    at = back > 0 ? at - back : 0;
  }
}

static void emit_jump(Compiler* c, int32_t opcode, int32_t label) {
  emit(c, opcode);
  emit_target(c, label);
}

static void emit_local(Compiler* c, int32_t opcode, int32_t local, int32_t short_forms) {
  if (local < short_forms) {
    emit(c, opcode + 1 + local);
  } else {
    emit1(c, opcode, local);
  }
}
static void load_local(Compiler* c, Type type, int32_t local) {
  if (type == kFloat) {
    emit_local(c, kFLoad, local, 6);
  } else {
    emit_local(c, kLoad, local, 8);
  }
}
static void store_local(Compiler* c, Type type, int32_t local) {
  if (type == kFloat) {
    emit_local(c, kFStore, local, 6);
  } else {
    emit_local(c, kStore, local, 8);
  }
}

static void load_integer(Compiler* c, int64_t number) {
  Program* p = c->program;
  if (number == 0 || number == 1) {
    emit(c, number == 0 ? kZero : kOne);
  } else if (number == (int8_t)number) {
    emit1(c, kConst8, (int32_t)number);
  } else if (number == (int16_t)number) {
    emit(c, kConst16);
    emit_wide(c, (int32_t)number);
  } else {
    if (p->constant_count == kMostConstants) fail_at(&c->p.l, "too many constants");
    p->constants[p->constant_count] = number;
    emit1(c, kConstant, (int32_t)p->constant_count++);
  }
}

static void load_fraction(Compiler* c, double fraction) {
  Program* p = c->program;
  if (fraction == 0 || fraction == 1) {
    emit(c, fraction == 0 ? kFZero : kFOne);
    return;
  }
  if (p->fraction_count == kMostConstants) fail_at(&c->p.l, "too many constants");
  p->fractions[p->fraction_count] = fraction;
  emit1(c, kFConstant, (int32_t)p->fraction_count++);
}

static void load(Compiler* c, int32_t node);
static void jump_unless(Compiler* c, int32_t node, int32_t label);

// Loads a value and pushes it.
static void push(Compiler* c, int32_t node) {
  const Node* n = &c->p.nodes[node];
  if (n->kind == kLocal) {
    emit1(c, n->type == kFloat ? kFPushLocal : kPushLocal, n->op);
    return;
  }
  load(c, node);
  emit(c, n->type == kFloat ? kFPush : kPush);
}

// Emits both operands of an operation, and its opcode in the form that suits the right operand.
static void emit_operation(Compiler* c, int32_t opcode, const Node* n) {
  const Node* right = &c->p.nodes[n->parts[1]];
  if (right->kind == kLocal) {
    load(c, n->parts[0]);
    emit1(c, opcode + kFormLocal, right->op);
  } else if (right->kind == kLiteral && right->type == kInt &&
             right->number == (int8_t)right->number) {
    load(c, n->parts[0]);
    emit1(c, opcode + kFormConst, (int32_t)right->number);
  } else {
    push(c, n->parts[0]);
    load(c, n->parts[1]);
    emit(c, opcode + kFormStack);
  }
}

static int is_comparison(const Node* n) {
  return n->kind == kBinary && n->op >= kEqOf && n->op <= kGeOf;
}

// Returns the opcode of an operation in its first form. `kIs...` or `kUnless...` begin comparisons.
static int32_t opcode_of(Compiler* c, const Node* n, int32_t integers, int32_t floats) {
  int is_float = c->p.nodes[n->parts[0]].type == kFloat;
  if (is_comparison(n)) {
    return is_float ? floats + 2 * (n->op - kEqOf) : integers + 3 * (n->op - kEqOf);
  }
  if (!is_float) return kAddLocal + 3 * n->op;
  return n->op <= kDivOf ? kFAddLocal + 2 * n->op : kFMinLocal + 2 * (n->op - kMinOf);
}

static void load_unary(Compiler* c, const Node* n) {
  const Node* part = &c->p.nodes[n->parts[0]];
  int is_float = part->type == kFloat;
  load(c, n->parts[0]);
  switch ((Operation)n->op) {
    case kNegateOf: emit(c, is_float ? kFNegate : kNegate); break;
    case kAbsoluteOf: emit(c, is_float ? kFAbsolute : kAbsolute); break;
    case kComplementOf: emit(c, kComplement); break;
    case kNotOf: emit(c, kNot); break;
    case kOnesOf: emit(c, kOnes); break;
    case kZerosOf: emit(c, kZeros); break;
    case kRootOf: emit(c, kFRoot); break;
    case kFloorOf: emit(c, kFFloor); break;
    case kLengthOf: emit(c, kLength); break;
    case kNewIntsOf: emit(c, kNewInts); break;
    default: emit(c, kNewFloats); break;
  }
}

static void load_element(Compiler* c, const Node* n) {
  const Node* index = &c->p.nodes[n->parts[0]];
  int is_float = n->type == kFloat;
  if (index->kind == kLocal) {
    emit1(c, is_float ? kFGetAt : kGetAt, n->op);
    emit_byte(c, index->op);
    return;
  }
  load(c, n->parts[0]);
  emit1(c, is_float ? kFGet : kGet, n->op);
}

// Loads 1 if a condition holds, otherwise 0.
static void load_condition(Compiler* c, int32_t node) {
  int32_t otherwise = new_label(c), done = new_label(c);
  jump_unless(c, node, otherwise);
  emit(c, kOne);
  emit_jump(c, kJump, done);
  place_label(c, otherwise);
  emit(c, kZero);
  place_label(c, done);
}

// Emits code that leaves the expression's value in the accumulator of its type.
static void load(Compiler* c, int32_t node) {
  const Node* n = &c->p.nodes[node];
  switch (n->kind) {
    case kLiteral:
      if (n->type == kFloat) {
        load_fraction(c, n->fraction);
      } else {
        load_integer(c, n->number);
      }
      break;
    case kLocal: load_local(c, n->type, n->op); break;
    case kElement: load_element(c, n); break;
    case kBinary: emit_operation(c, opcode_of(c, n, kIsEqLocal, kIsFEqLocal), n); break;
    case kUnary: load_unary(c, n); break;
    case kBoth:
    case kEither: load_condition(c, node); break;
    case kConvert:
      load(c, n->parts[0]);
      emit(c, n->type == kFloat ? kToFloat : kToInt);
      break;
    case kCallOf:
      for (uint32_t i = 0; i < n->count; ++i) push(c, n->parts[i]);
      emit1(c, kCall, n->op);
      break;
  }
}

// Emits a jump to the label for the case that the condition does not hold.
static void jump_unless(Compiler* c, int32_t node, int32_t label) {
  const Node* n = &c->p.nodes[node];
  if (is_comparison(n)) {
    emit_operation(c, opcode_of(c, n, kUnlessEqLocal, kUnlessFEqLocal), n);
    emit_target(c, label);
  } else if (n->kind == kBoth) {
    jump_unless(c, n->parts[0], label);
    jump_unless(c, n->parts[1], label);
  } else if (n->kind == kEither) {
    int32_t other = new_label(c), holds = new_label(c);
    jump_unless(c, n->parts[0], other);
    emit_jump(c, kJump, holds);
    place_label(c, other);
    jump_unless(c, n->parts[1], label);
    place_label(c, holds);
  } else if (n->kind == kUnary && n->op == kNotOf) {
    load(c, n->parts[0]);
    emit_jump(c, kJumpIf, label);
  } else {
    load(c, node);
    emit_jump(c, kJumpIfNot, label);
  }
}

#endif  // UPTIER_EXAMPLES_EXPRVM_EMIT_H
