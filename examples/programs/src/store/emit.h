// Emission of operations: registers, labels and expressions.
#ifndef UPTIER_EXAMPLES_STORE_EMIT_H
#define UPTIER_EXAMPLES_STORE_EMIT_H

#include "schema.h"

enum { kMostLabels = 64, kMostSources = 2, kMostTerms = 16, kMostItems = 12 };

// A table that a statement reads, and the cursors on it and on its index.
typedef struct Source {
  uint32_t table;
  int32_t cursor, index_cursor;
} Source;

// An aggregate of a statement: its node, and the register that holds it so far.
typedef struct Aggregate {
  int32_t node, place;
} Aggregate;

typedef struct Compiler {
  Parser p;
  Program* program;
  int32_t labels[kMostLabels];  // where a label is, -1 so far
  int32_t label_count;
  int32_t registers, cursors;
  Source sources[kMostSources];
  uint32_t source_count;
  int32_t terms[kMostTerms];  // what all must be true
  uint32_t term_count;
  Aggregate aggregates[kMostItems];
  uint32_t aggregate_count;
  int32_t group;  // register of the group's value, -1 for none
} Compiler;

static int32_t emit(Compiler* c, Opcode opcode, int32_t a, int32_t b, int32_t third) {
  Program* p = c->program;
  if (p->count == kMostOperations) fail("the program is too long");
  p->operations[p->count] = (Operation){(uint8_t)opcode, (int16_t)a, b, third};
  return (int32_t)p->count++;
}

static int32_t new_register(Compiler* c) {
  if (c->registers == kMostRegisters) fail("too many registers");
  return c->registers++;
}
static int32_t new_cursor(Compiler* c) {
  if (c->cursors == kMostCursors) fail("too many cursors");
  return c->cursors++;
}

static int32_t new_label(Compiler* c) {
  if (c->label_count == kMostLabels) fail("too many labels");
  c->labels[c->label_count] = -1;
  return c->label_count++;
}
static void place_label(Compiler* c, int32_t label) {
  c->labels[label] = (int32_t)c->program->count;
}

static int jumps(Opcode opcode) {
  switch (opcode) {
    case kGotoOp:
    case kIfOp:
    case kIfNotOp:
    case kIfNullOp:
    case kIfNotNullOp:
    case kCountdownOp:
    case kEqOp:
    case kNeOp:
    case kLtOp:
    case kLeOp:
    case kGtOp:
    case kGeOp:
    case kRewindOp:
    case kSeekGeOp:
    case kSeekKeyOp:
    case kNextOp:
    case kRecallOp:
    case kSortOp:
    case kNextSortedOp: return 1;
    default: return 0;
  }
}

// Replaces labels by places.
static void resolve(Compiler* c) {
  for (uint32_t i = 0; i < c->program->count; ++i) {
    Operation* o = &c->program->operations[i];
    if (jumps((Opcode)o->opcode)) o->b = c->labels[o->b];
  }
  c->program->registers = (uint32_t)c->registers;
}

static void load_number(Compiler* c, int64_t number, int32_t to) {
  if (number == (int16_t)number) {
    emit(c, kIntegerOp, (int32_t)number, to, 0);
    return;
  }
  if (c->program->constant_count == kMostConstants) fail("too many constants");
  c->program->constants[c->program->constant_count] = number;
  emit(c, kConstantOp, (int32_t)c->program->constant_count++, to, 0);
}

static void load_text(Compiler* c, const Node* n, int32_t to) {
  if (c->program->text_count == kMostConstants) fail("too many texts");
  c->program->texts[c->program->text_count] = of_text(n->text + 1, n->size - 2);
  emit(c, kTextOp, (int32_t)c->program->text_count++, to, 0);
}

// Returns the source that a column is of, and its number.
static uint32_t find_source(Compiler* c, const Node* n, int32_t* column) {
  const Node* table = n->parts[0] >= 0 ? &c->p.nodes[n->parts[0]] : NULL;
  for (uint32_t i = 0; i < c->source_count; ++i) {
    const Table* t = &tables[c->sources[i].table];
    if (table != NULL && !is_named(t->name, table->text, table->size)) continue;
    *column = find_column(t, n->text, n->size);
    if (*column >= 0) return i;
  }
  fprintf(stderr, "store: there is no column '%.*s'\n", (int)n->size, n->text);
  exit(1);
}

static void load_column(Compiler* c, const Node* n, int32_t to) {
  int32_t column;
  if (c->group >= 0 && is_named("group", n->text, n->size)) {
    emit(c, kCopyOp, c->group, to, 0);
    return;
  }
  const Source* s = &c->sources[find_source(c, n, &column)];
  if (column == 0) {
    emit(c, kKeyOp, s->cursor, to, 0);
  } else {
    emit(c, kColumnOp, s->cursor, column - 1, to);
  }
}

static void load(Compiler* c, int32_t node, int32_t to);
static void jump_unless(Compiler* c, int32_t node, int32_t label);

static int32_t load_fresh(Compiler* c, int32_t node) {
  int32_t to = new_register(c);
  load(c, node, to);
  return to;
}

static Opcode opcode_of_sign(uint32_t op) {
  static const struct {
    const char* sign;
    Opcode opcode;
  } kSigns[] = {{"+", kAddOp},         {"-", kSubtractOp}, {"*", kMultiplyOp}, {"/", kDivideOp},
                {"%", kRemainderOp},   {"&", kBitAndOp},   {"|", kBitOrOp},    {"<<", kShiftLeftOp},
                {">>", kShiftRightOp}, {"||", kConcatOp},  {"=", kIsEqOp},     {"<>", kIsNeOp},
                {"<", kIsLtOp},        {"<=", kIsLeOp},    {">", kIsGtOp},     {">=", kIsGeOp},
                {"li", kLikeOp}};
  for (uint32_t i = 0; i < sizeof kSigns / sizeof kSigns[0]; ++i) {
    if (sign(kSigns[i].sign) == op) return kSigns[i].opcode;
  }
  fail("a sign is not known");
  return kHaltOp;
}

static void load_call(Compiler* c, const Node* n, int32_t to) {
  static const struct {
    const char* name;
    Opcode opcode;
    uint32_t count;
  } kFunctions[] = {
      {"length", kLengthOp, 1},  {"upper", kUpperOp, 1},    {"abs", kAbsoluteOp, 1},
      {"hash", kHashOp, 1},      {"text", kToTextOp, 1},    {"int", kToIntegerOp, 1},
      {"lower_of", kLeastOp, 2}, {"higher_of", kMostOp, 2}, {"substr", kSubstringOp, 3}};
  if (is_named("coalesce", n->text, n->size)) {
    int32_t done = new_label(c);
    load(c, n->parts[0], to);
    emit(c, kIfNotNullOp, to, done, 0);
    load(c, n->parts[1], to);
    place_label(c, done);
    return;
  }
  for (uint32_t i = 0; i < sizeof kFunctions / sizeof kFunctions[0]; ++i) {
    if (!is_named(kFunctions[i].name, n->text, n->size) || n->count != kFunctions[i].count)
      continue;
    int32_t first = load_fresh(c, n->parts[0]), second = -1;
    if (n->count == 1) {
      emit(c, kFunctions[i].opcode, first, to, 0);
      return;
    }
    second = new_register(c);
    int32_t third = new_register(c);  // beside the second
    load(c, n->parts[1], second);
    if (n->count == 3) load(c, n->parts[2], third);
    emit(c, kFunctions[i].opcode, first, second, to);
    return;
  }
  fail("a function is not known");
}

static void load_aggregate(Compiler* c, int32_t node, int32_t to) {
  for (uint32_t i = 0; i < c->aggregate_count; ++i) {
    if (c->aggregates[i].node == node) {
      emit(c, kCopyOp, c->aggregates[i].place, to, 0);
      return;
    }
  }
  fail("an aggregate stands where none can be");
}

// Emits code that computes an expression into a register.
static void load(Compiler* c, int32_t node, int32_t to) {
  const Node* n = &c->p.nodes[node];
  switch (n->kind) {
    case kNothing: emit(c, kNullOp, 0, to, 0); break;
    case kLiteral: load_number(c, n->number, to); break;
    case kString: load_text(c, n, to); break;
    case kGiven: emit(c, kParameterOp, (int32_t)n->op - 1, to, 0); break;
    case kColumnOf: load_column(c, n, to); break;
    case kBinary: {
      int32_t left = load_fresh(c, n->parts[0]), right = load_fresh(c, n->parts[1]);
      emit(c, opcode_of_sign(n->op), left, right, to);
      break;
    }
    case kUnary: emit(c, kNegateOp, load_fresh(c, n->parts[0]), to, 0); break;
    case kNegated: emit(c, kNotOp, load_fresh(c, n->parts[0]), to, 0); break;
    case kBoth:
    case kEither: {
      int32_t left = load_fresh(c, n->parts[0]), right = load_fresh(c, n->parts[1]);
      emit(c, n->kind == kBoth ? kAndOp : kOrOp, left, right, to);
      break;
    }
    case kBetween: {
      int32_t done = new_label(c);
      emit(c, kIntegerOp, 0, to, 0);
      jump_unless(c, node, done);
      emit(c, kIntegerOp, 1, to, 0);
      place_label(c, done);
      break;
    }
    case kCall: load_call(c, n, to); break;
    case kAggregate: load_aggregate(c, node, to); break;
    case kCase: {
      int32_t other = new_label(c), done = new_label(c);
      jump_unless(c, n->parts[0], other);
      load(c, n->parts[1], to);
      emit(c, kGotoOp, 0, done, 0);
      place_label(c, other);
      load(c, n->parts[2], to);
      place_label(c, done);
      break;
    }
  }
}

static void compare_and_jump(Compiler* c, const Node* n, Opcode opcode, int32_t label) {
  int32_t left = load_fresh(c, n->parts[0]), right = load_fresh(c, n->parts[1]);
  emit(c, opcode, left, label, right);
}

// Emits a jump to the label for the case that the expression is false or null.
static void jump_unless(Compiler* c, int32_t node, int32_t label) {
  const Node* n = &c->p.nodes[node];
  if (n->kind == kBoth) {
    jump_unless(c, n->parts[0], label);
    jump_unless(c, n->parts[1], label);
  } else if (n->kind == kBinary && opcode_of_sign(n->op) >= kIsEqOp &&
             opcode_of_sign(n->op) <= kIsGeOp) {
    int32_t holds = new_label(c);
    compare_and_jump(c, n, (Opcode)(kEqOp + (opcode_of_sign(n->op) - kIsEqOp)), holds);
    emit(c, kGotoOp, 0, label, 0);
    place_label(c, holds);
  } else if (n->kind == kBetween) {
    int32_t value = load_fresh(c, n->parts[0]), low = load_fresh(c, n->parts[1]);
    emit(c, kLtOp, value, label, low);
    emit(c, kGtOp, value, label, load_fresh(c, n->parts[2]));
    emit(c, kIfNullOp, value, label, 0);
  } else {
    emit(c, kIfNotOp, load_fresh(c, node), label, 0);
  }
}

#endif  // UPTIER_EXAMPLES_STORE_EMIT_H
