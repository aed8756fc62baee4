// Expressions as trees, with types; names of functions and locals.
//
// Integers have 64 bits and wrap around. An integer becomes a float where a float is needed; the
// other way needs int(). Arrays are references, so that functions can change them.
#ifndef UPTIER_EXAMPLES_EXPRVM_PARSER_H
#define UPTIER_EXAMPLES_EXPRVM_PARSER_H

#include "lexer.h"

enum {
  kMostNodes = 512,
  kMostLocals = 40,
  kMostFunctions = 24,
  kMostParameters = 8,
  kMostName = 16
};
typedef enum { kNoType, kInt, kFloat, kInts, kFloats } Type;
typedef enum {
  kLiteral,
  kLocal,
  kElement,
  kBinary,
  kUnary,
  kBoth,
  kEither,
  kConvert,
  kCallOf
} NodeKind;

// The operations of expressions; the first ones are in the order of the opcodes.
typedef enum {
  kAddOf,
  kSubOf,
  kMulOf,
  kDivOf,
  kRemOf,
  kAndOf,
  kOrOf,
  kXorOf,
  kShlOf,
  kShrOf,
  kSarOf,
  kMinOf,
  kMaxOf,
  kEqOf,
  kNeOf,
  kLtOf,
  kLeOf,
  kGtOf,
  kGeOf,
  kNegateOf,
  kComplementOf,
  kNotOf,
  kAbsoluteOf,
  kOnesOf,
  kZerosOf,
  kRootOf,
  kFloorOf,
  kLengthOf,
  kNewIntsOf,
  kNewFloatsOf
} Operation;

typedef struct Node {
  NodeKind kind;
  Type type;
  int32_t op;  // Operation, number of a local, or of a function
  int32_t parts[kMostParameters];
  uint32_t count;
  int64_t number;
  double fraction;
} Node;

typedef struct Function {
  char name[kMostName];
  uint32_t code;  // where it begins
  uint32_t parameters, locals;
  Type types[kMostParameters];
  Type result;
} Function;

typedef struct Local {
  char name[kMostName];
  Type type;
} Local;

typedef struct Parser {
  Lexer l;
  Node nodes[kMostNodes];  // of one statement
  uint32_t count;
  Function* functions;
  uint32_t function_count;
  Local locals[kMostLocals];  // of one function
  uint32_t local_count;
} Parser;

static void take_name(Lexer* l, char* name) {
  if (l->kind != kName || l->size >= kMostName) fail_at(l, "a name was expected");
  memcpy(name, l->word, l->size);
  name[l->size] = '\0';
  next_word(l);
}

static Type accept_type(Lexer* l) {
  static const char* const kTypes[] = {"int", "float", "ints", "floats"};
  for (int i = 0; i < 4; ++i) {
    if (accept(l, kTypes[i])) return (Type)(kInt + i);
  }
  return kNoType;
}

static int32_t find_local(const Parser* p) {
  for (int32_t i = (int32_t)p->local_count; i-- > 0;) {
    if (is_word(&p->l, p->locals[i].name)) return i;
  }
  return -1;
}

static int32_t find_function(const Parser* p) {
  for (uint32_t i = 0; i < p->function_count; ++i) {
    if (is_word(&p->l, p->functions[i].name)) return (int32_t)i;
  }
  return -1;
}

static int32_t add_node(Parser* p, NodeKind kind, Type type, int32_t op) {
  if (p->count == kMostNodes) fail_at(&p->l, "the statement is too long");
  p->nodes[p->count] = (Node){kind, type, op, {0}, 0, 0, 0};
  return (int32_t)p->count++;
}

static void add_part(Parser* p, int32_t node, int32_t part) {
  Node* n = &p->nodes[node];
  if (n->count == kMostParameters) fail_at(&p->l, "too many arguments");
  n->parts[n->count++] = part;
}

static int32_t as_float(Parser* p, int32_t node) {
  Node* n = &p->nodes[node];
  if (n->type == kFloat) return node;
  if (n->type != kInt) fail_at(&p->l, "a number was expected");
  if (n->kind == kLiteral) {
    n->type = kFloat;
    n->fraction = (double)n->number;
    return node;
  }
  int32_t converted = add_node(p, kConvert, kFloat, 0);
  add_part(p, converted, node);
  return converted;
}

static int32_t as_type(Parser* p, int32_t node, Type type) {
  if (type == kFloat) return as_float(p, node);
  if (p->nodes[node].type != type) fail_at(&p->l, "a value of another type was expected");
  return node;
}

// Joins two numbers by an operation; both become floats if one is.
static int32_t join(Parser* p, Operation op, int32_t a, int32_t b) {
  Type type = p->nodes[a].type == kFloat || p->nodes[b].type == kFloat ? kFloat : kInt;
  int integers_only = op >= kRemOf && op <= kSarOf;
  if (integers_only && type != kInt) fail_at(&p->l, "an operation on integers");
  a = as_type(p, a, type);
  b = as_type(p, b, type);
  int32_t n = add_node(p, kBinary, op >= kEqOf && op <= kGeOf ? kInt : type, (int32_t)op);
  add_part(p, n, a);
  add_part(p, n, b);
  return n;
}

static int32_t parse_expression(Parser* p);

static int32_t unary(Parser* p, Operation op, Type type, int32_t part) {
  int32_t n = add_node(p, kUnary, type, (int32_t)op);
  add_part(p, n, part);
  return n;
}

typedef struct Builtin {
  const char* name;
  Operation op;
  Type argument, result;  // kNoType: int or float, as the argument is
  uint32_t count;
} Builtin;

static const Builtin kBuiltins[] = {
    {"sqrt", kRootOf, kFloat, kFloat, 1},         {"floor", kFloorOf, kFloat, kFloat, 1},
    {"abs", kAbsoluteOf, kNoType, kNoType, 1},    {"ones", kOnesOf, kInt, kInt, 1},
    {"zeros", kZerosOf, kInt, kInt, 1},           {"min", kMinOf, kNoType, kNoType, 2},
    {"max", kMaxOf, kNoType, kNoType, 2},         {"newints", kNewIntsOf, kInt, kInts, 1},
    {"newfloats", kNewFloatsOf, kInt, kFloats, 1}};

static int32_t parse_builtin(Parser* p, const Builtin* b) {
  int32_t first = parse_expression(p);
  if (b->count == 2) {
    expect(&p->l, ",");
    first = join(p, b->op, first, parse_expression(p));
  } else {
    if (b->argument != kNoType) first = as_type(p, first, b->argument);
    Type result = b->result != kNoType ? b->result : p->nodes[first].type;
    first = unary(p, b->op, result, first);
  }
  expect(&p->l, ")");
  return first;
}

static int32_t parse_call(Parser* p, int32_t function) {
  const Function* f = &p->functions[function];
  int32_t n = add_node(p, kCallOf, f->result, function);
  for (uint32_t i = 0; i < f->parameters; ++i) {
    if (i > 0) expect(&p->l, ",");
    add_part(p, n, as_type(p, parse_expression(p), f->types[i]));
  }
  expect(&p->l, ")");
  return n;
}

static int32_t parse_literal(Parser* p) {
  int32_t n = add_node(p, kLiteral, p->l.kind == kInteger ? kInt : kFloat, 0);
  if (p->l.kind == kInteger) {
    p->nodes[n].number = (int64_t)strtoull(p->l.word, NULL, 10);
  } else {
    p->nodes[n].fraction = strtod(p->l.word, NULL);
  }
  next_word(&p->l);
  return n;
}

// A local, an element of an array or its length.
static int32_t parse_local(Parser* p, int32_t local) {
  Type type = p->locals[local].type;
  next_word(&p->l);
  int32_t n = add_node(p, kLocal, type, local);
  if (type != kInts && type != kFloats) return n;
  if (accept(&p->l, "[")) {
    p->nodes[n].kind = kElement;
    p->nodes[n].type = type == kInts ? kInt : kFloat;
    add_part(p, n, as_type(p, parse_expression(p), kInt));
    expect(&p->l, "]");
  }
  return n;
}

static int32_t parse_primary(Parser* p) {
  Lexer* l = &p->l;
  if (l->kind == kInteger || l->kind == kFraction) return parse_literal(p);
  if (accept(l, "(")) {
    int32_t n = parse_expression(p);
    expect(l, ")");
    return n;
  }
  if (accept(l, "-")) {
    int32_t part = parse_primary(p);
    return unary(p, kNegateOf, p->nodes[part].type, part);
  }
  if (accept(l, "~")) return unary(p, kComplementOf, kInt, as_type(p, parse_primary(p), kInt));
  if (accept(l, "!")) return unary(p, kNotOf, kInt, as_type(p, parse_primary(p), kInt));
  int32_t local = find_local(p), function = find_function(p);
  if (local >= 0) return parse_local(p, local);
  if (function >= 0) {
    next_word(l);
    expect(l, "(");
    return parse_call(p, function);
  }
  if (accept(l, "int") || is_word(l, "float")) {
    Type type = accept(l, "float") ? kFloat : kInt;
    expect(l, "(");
    int32_t n = add_node(p, kConvert, type, 0), part = parse_expression(p);
    expect(l, ")");
    add_part(p, n, part);
    return p->nodes[part].type == type ? part : n;
  }
  if (accept(l, "len")) {
    expect(l, "(");
    int32_t part = parse_expression(p);
    expect(l, ")");
    return unary(p, kLengthOf, kInt, part);
  }
  for (size_t i = 0; i < sizeof kBuiltins / sizeof kBuiltins[0]; ++i) {
    if (!accept(l, kBuiltins[i].name)) continue;
    expect(l, "(");
    return parse_builtin(p, &kBuiltins[i]);
  }
  fail_at(l, "a value was expected");
  return -1;
}

typedef struct BinarySign {
  const char* sign;
  Operation op;
  int strength;
} BinarySign;

static const BinarySign* find_sign(const Lexer* l) {
  static const BinarySign kSigns[] = {
      {"|", kOrOf, 1},   {"^", kXorOf, 2},   {"&", kAndOf, 3}, {"==", kEqOf, 4}, {"!=", kNeOf, 4},
      {"<", kLtOf, 5},   {"<=", kLeOf, 5},   {">", kGtOf, 5},  {">=", kGeOf, 5}, {"<<", kShlOf, 6},
      {">>", kSarOf, 6}, {">>>", kShrOf, 6}, {"+", kAddOf, 7}, {"-", kSubOf, 7}, {"*", kMulOf, 8},
      {"/", kDivOf, 8},  {"%", kRemOf, 8}};
  for (size_t i = 0; i < sizeof kSigns / sizeof kSigns[0]; ++i) {
    if (is_word(l, kSigns[i].sign)) return &kSigns[i];
  }
  return NULL;
}

static int32_t parse_signs(Parser* p, int least) {
  int32_t left = parse_primary(p);
  for (;;) {
    const BinarySign* s = find_sign(&p->l);
    if (s == NULL || s->strength < least) return left;
    next_word(&p->l);
    left = join(p, s->op, left, parse_signs(p, s->strength + 1));
  }
}

static int32_t parse_both(Parser* p) {
  int32_t left = parse_signs(p, 1);
  while (accept(&p->l, "&&")) {
    int32_t n = add_node(p, kBoth, kInt, 0);
    add_part(p, n, left);
    add_part(p, n, parse_signs(p, 1));
    left = n;
  }
  return left;
}

static int32_t parse_expression(Parser* p) {
  int32_t left = parse_both(p);
  while (accept(&p->l, "||")) {
    int32_t n = add_node(p, kEither, kInt, 0);
    add_part(p, n, left);
    add_part(p, n, parse_both(p));
    left = n;
  }
  return left;
}

#endif  // UPTIER_EXAMPLES_EXPRVM_PARSER_H
