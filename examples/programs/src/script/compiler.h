// Compiles a script in one pass, from text to code.
//
//   script     (record | var | fn)...
//   record     record NAME { FIELD, ... }           NAME(a, ...) makes one
//   fn         fn NAME(PARAMETER, ...) { statement... }
//   statement  var NAME = e;  if (e) s else s  while (e) s  return e;  { s... }
//              place = e;  place += e;  NAME++;  NAME--;  e;
//   place      NAME  e[e]  e.FIELD
#ifndef UPTIER_EXAMPLES_SCRIPT_COMPILER_H
#define UPTIER_EXAMPLES_SCRIPT_COMPILER_H

#include "emit.h"
#include "lexer.h"

enum { kMostRecords = 16, kMostFields = 8 };

typedef struct Names {
  char of[kMostFunctions][kNameSize];
  uint32_t count;
} Names;

typedef struct Compiler {
  Lexer lexer;
  Emitter e;
  Names functions, globals, locals, records;
  char fields[kMostRecords][kMostFields][kNameSize];
  uint32_t field_counts[kMostRecords];
  uint32_t most_locals;
} Compiler;

// Something that can be loaded, and perhaps stored to.
typedef struct Place {
  enum { kLoaded, kLocal, kGlobal, kElement, kField } kind;
  int32_t number;
} Place;

static int32_t find_name(const Names* names, const char* name) {
  for (uint32_t i = names->count; i-- > 0;) {
    if (strcmp(names->of[i], name) == 0) return (int32_t)i;
  }
  return -1;
}

static int32_t add_name(Names* names, const char* name, uint32_t most) {
  if (names->count == most) fail("too many names");
  strcpy(names->of[names->count], name);
  return (int32_t)names->count++;
}

static void expression(Compiler* c);
static void statement(Compiler* c);

static uint32_t arguments(Compiler* c, const char* end) {
  uint32_t count = 0;
  while (!is_word(&c->lexer, end)) {
    expression(c);
    ++count;
    if (!accept(&c->lexer, ",")) break;
  }
  expect(&c->lexer, end);
  return count;
}

// Functions of the language that have an opcode, or call back.
typedef struct Builtin {
  const char* name;
  uint32_t parameters;
  Opcode op;
  Native native;
} Builtin;

static const Builtin kBuiltins[] = {
    {"len", 1, kLength, 0},
    {"push", 2, kPush, 0},
    {"pop", 1, kPopLast, 0},
    {"filled", 2, kFilled, 0},
    {"swap", 3, kSwap, 0},
    {"map", 0, kNewMap, 0},
    {"has", 2, kHas, 0},
    {"idiv", 2, kIntDiv, 0},
    {"imul", 2, kIntMul, 0},
    {"sqrt", 1, kSqrt, 0},
    {"floor", 1, kFloor, 0},
    {"abs", 1, kAbs, 0},
    {"min", 2, kMin, 0},
    {"max", 2, kMax, 0},
    {"int", 1, kToInt, 0},
    {"float", 1, kToFloat, 0},
    {"code", 2, kCode, 0},
    {"chr", 1, kCharacter, 0},
    {"text", 1, kText, 0},
    {"part", 3, kSubstring, 0},
    {"mark", 0, kMark, 0},
    {"release", 1, kRelease, 0},
    {"mix", 2, kFold, 0},
    {"sort", 2, kCallNative, kSort},
    {"each", 2, kCallNative, kEach},
    {"mapped", 2, kCallNative, kMapped},
    {"folded", 3, kCallNative, kFolded},
    {"count", 2, kCallNative, kCountIf},
};

static int builtin_call(Compiler* c, const char* name) {
  for (size_t i = 0; i < sizeof kBuiltins / sizeof kBuiltins[0]; ++i) {
    const Builtin* b = &kBuiltins[i];
    if (strcmp(b->name, name) != 0) continue;
    if (arguments(c, ")") != b->parameters) fail_at(&c->lexer, "wrong number of arguments");
    if (b->op == kCallNative) {
      emit2(&c->e, kCallNative, (int32_t)b->native, (int32_t)b->parameters);
    } else {
      emit(&c->e, b->op);
    }
    return 1;
  }
  return 0;
}

static void load(Compiler* c, Place p) {
  switch (p.kind) {
    case kLoaded: break;
    case kLocal: emit_get(&c->e, p.number); break;
    case kGlobal: emit1(&c->e, kGetGlobal, p.number); break;
    case kElement: emit_index(&c->e); break;
    case kField: emit_field(&c->e, p.number); break;
  }
}

static void store(Compiler* c, Place p) {
  switch (p.kind) {
    case kLoaded: fail_at(&c->lexer, "nothing can be stored here"); break;
    case kLocal: emit_set(&c->e, p.number); break;
    case kGlobal: emit1(&c->e, kSetGlobal, p.number); break;
    case kElement: emit(&c->e, kStore); break;
    case kField: emit1(&c->e, kSetField, p.number); break;
  }
}

static int32_t field_number(Compiler* c, const char* name) {
  for (uint32_t r = 0; r < c->records.count; ++r) {
    for (uint32_t f = 0; f < c->field_counts[r]; ++f) {
      if (strcmp(c->fields[r][f], name) == 0) return (int32_t)f;
    }
  }
  fail_at(&c->lexer, "no record has this field");
  return 0;
}

// After NAME(: a call of something that has this name.
static Place named_call(Compiler* c, const char* name) {
  const Place loaded = {kLoaded, 0};
  int32_t record = find_name(&c->records, name), function = find_name(&c->functions, name);
  int32_t local = find_name(&c->locals, name), global = find_name(&c->globals, name);
  if (local >= 0 || global >= 0) {
    load(c, local >= 0 ? (Place){kLocal, local} : (Place){kGlobal, global});
    label(&c->e);  // the arguments come above it
    emit1(&c->e, kCall, (int32_t)arguments(c, ")"));
  } else if (record >= 0) {
    uint32_t fields = arguments(c, ")");
    if (fields != c->field_counts[record]) fail_at(&c->lexer, "wrong number of fields");
    emit2(&c->e, kNewRecord, record, (int32_t)fields);
  } else if (function >= 0) {
    uint32_t passed = arguments(c, ")");
    emit2(&c->e, kCallKnown, function, (int32_t)passed);
  } else if (!builtin_call(c, name)) {
    fail_at(&c->lexer, "no function has this name");
  }
  return loaded;
}

static Place named(Compiler* c) {
  char name[kNameSize];
  take_name(&c->lexer, name);
  Emitter* e = &c->e;
  if (accept(&c->lexer, "(")) return named_call(c, name);
  int32_t local = find_name(&c->locals, name), global = find_name(&c->globals, name);
  if (local >= 0) return (Place){kLocal, local};
  if (global >= 0) return (Place){kGlobal, global};
  int32_t function = find_name(&c->functions, name);
  if (strcmp(name, "null") == 0) {
    emit(e, kNull);
  } else if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0) {
    emit(e, name[0] == 't' ? kTrue : kFalse);
  } else if (function >= 0) {
    emit1(e, kFunction, function);
  } else {
    fail_at(&c->lexer, "nothing has this name");
  }
  return (Place){kLoaded, 0};
}

static Place primary(Compiler* c) {
  const Place loaded = {kLoaded, 0};
  Lexer* l = &c->lexer;
  if (l->word.kind == kName) return named(c);
  if (l->word.kind == kNumber) {
    double d = strtod(l->word.begin, NULL);
    int whole = memchr(l->word.begin, '.', l->word.size) == NULL && d == (int32_t)d;
    if (whole) emit_int(&c->e, (int32_t)d);
    if (!whole) emit_constant(&c->e, from_double(d));
    next_word(l);
  } else if (l->word.kind == kQuoted) {
    emit_constant(&c->e, string_from(l->word.begin + 1, l->word.size - 2));
    next_word(l);
  } else if (accept(l, "(")) {
    expression(c);
    expect(l, ")");
  } else if (accept(l, "[")) {
    emit1(&c->e, kNewArray, (int32_t)arguments(c, "]"));
  } else {
    fail_at(l, "an expression was expected");
  }
  return loaded;
}

static Place postfix(Compiler* c) {
  Place p = primary(c);
  for (;;) {
    if (accept(&c->lexer, "[")) {
      load(c, p);
      expression(c);
      expect(&c->lexer, "]");
      p = (Place){kElement, 0};
    } else if (accept(&c->lexer, ".")) {
      load(c, p);
      char name[kNameSize];
      take_name(&c->lexer, name);
      p = (Place){kField, field_number(c, name)};
    } else {
      return p;
    }
  }
}

static void unary(Compiler* c) {
  static const struct {
    const char* sign;
    Opcode op;
  } kUnary[] = {{"-", kNeg}, {"!", kNot}, {"~", kComplement}};
  for (size_t i = 0; i < sizeof kUnary / sizeof kUnary[0]; ++i) {
    if (!accept(&c->lexer, kUnary[i].sign)) continue;
    unary(c);
    int32_t small;
    if (kUnary[i].op == kNeg && take_small(&c->e, &small)) return emit_int(&c->e, -small);
    emit(&c->e, kUnary[i].op);
    return;
  }
  load(c, postfix(c));
}

// Operators, from those that bind least.
static const struct Binary {
  const char* sign;
  int binds;
  Opcode op;
} kBinary[] = {
    {"||", 1, kJumpOr}, {"&&", 2, kJumpAnd}, {"|", 3, kOr},    {"^", 4, kXor},  {"&", 5, kAnd},
    {"==", 6, kEq},     {"!=", 6, kNe},      {"<", 7, kLt},    {"<=", 7, kLe},  {">", 7, kGt},
    {">=", 7, kGe},     {"<<", 8, kShl},     {">>>", 8, kShr}, {">>", 8, kSar}, {"+", 9, kAdd},
    {"-", 9, kSub},     {"*", 10, kMul},     {"/", 10, kDiv},  {"%", 10, kRem},
};

static const struct Binary* current_operator(const Lexer* l) {
  for (size_t i = 0; i < sizeof kBinary / sizeof kBinary[0]; ++i) {
    if (l->word.kind == kSign && is_word(l, kBinary[i].sign)) return &kBinary[i];
  }
  return NULL;
}

static void operators(Compiler* c, int least) {
  unary(c);
  const struct Binary* b;
  while ((b = current_operator(&c->lexer)) != NULL && b->binds >= least) {
    next_word(&c->lexer);
    if (b->op == kJumpOr || b->op == kJumpAnd) {
      uint32_t end = emit_jump(&c->e, b->op);
      operators(c, b->binds + 1);
      land(&c->e, end);
    } else {
      operators(c, b->binds + 1);
      emit_binary(&c->e, b->op);
    }
  }
}

static void expression(Compiler* c) { operators(c, 1); }

static uint32_t condition(Compiler* c) {
  expect(&c->lexer, "(");
  expression(c);
  expect(&c->lexer, ")");
  return emit_unless(&c->e);
}

static void if_statement(Compiler* c) {
  uint32_t otherwise = condition(c);
  statement(c);
  if (!accept(&c->lexer, "else")) return land(&c->e, otherwise);
  uint32_t end = emit_jump(&c->e, kJump);
  land(&c->e, otherwise);
  statement(c);
  land(&c->e, end);
}

static void while_statement(Compiler* c) {
  uint32_t again = label(&c->e);
  uint32_t out = condition(c);
  statement(c);
  land_at(&c->e, emit_jump(&c->e, kJumpBack), again);
  land(&c->e, out);
}

static void var_statement(Compiler* c) {
  char name[kNameSize];
  take_name(&c->lexer, name);
  expect(&c->lexer, "=");
  expression(c);
  int32_t local = add_name(&c->locals, name, kMostLocals);
  if (c->locals.count > c->most_locals) c->most_locals = c->locals.count;
  emit_set(&c->e, local);
  expect(&c->lexer, ";");
}

static void add_to(Compiler* c, Place p) {
  if (p.kind == kElement) emit(&c->e, kDupPair);
  if (p.kind == kField) emit(&c->e, kDup);
  if (p.kind != kLocal) load(c, p);
  expression(c);
  if (p.kind == kLocal) return emit1(&c->e, kAddTo, p.number);
  emit_binary(&c->e, kAdd);
  store(c, p);
}

static void step(Compiler* c, Place p, int up) {
  if (p.kind == kLocal) return emit1(&c->e, up ? kInc : kDec, p.number);
  if (p.kind != kGlobal || !up) fail_at(&c->lexer, "only variables have steps");
  emit1(&c->e, kIncGlobal, p.number);
}

static void place_statement(Compiler* c) {
  Place p = postfix(c);
  if (accept(&c->lexer, "=")) {
    label(&c->e);
    expression(c);
    store(c, p);
  } else if (accept(&c->lexer, "+=")) {
    add_to(c, p);
  } else if (is_word(&c->lexer, "++") || is_word(&c->lexer, "--")) {
    step(c, p, is_word(&c->lexer, "++"));
    next_word(&c->lexer);
  } else {
    load(c, p);
    emit(&c->e, kPop);
  }
  expect(&c->lexer, ";");
}

static void statement(Compiler* c) {
  Lexer* l = &c->lexer;
  if (accept(l, "{")) {
    uint32_t locals = c->locals.count;
    while (!accept(l, "}")) statement(c);
    c->locals.count = locals;
  } else if (accept(l, "if")) {
    if_statement(c);
  } else if (accept(l, "while")) {
    while_statement(c);
  } else if (accept(l, "var")) {
    var_statement(c);
  } else if (accept(l, "return")) {
    if (is_word(l, ";")) {
      emit(&c->e, kReturnNull);
    } else {
      expression(c);
      emit_return(&c->e);
    }
    expect(l, ";");
  } else {
    place_statement(c);
  }
}

static void function_of_script(Compiler* c) {
  char name[kNameSize];
  take_name(&c->lexer, name);
  Function* f = &c->e.m->functions[find_name(&c->functions, name)];
  f->code = label(&c->e);
  c->locals.count = c->most_locals = 0;
  expect(&c->lexer, "(");
  while (!accept(&c->lexer, ")")) {
    take_name(&c->lexer, name);
    add_name(&c->locals, name, kMostLocals);
    (void)accept(&c->lexer, ",");
  }
  f->parameters = (uint8_t)c->locals.count;
  c->most_locals = c->locals.count;
  statement(c);
  emit(&c->e, kReturnNull);
  f->locals = (uint8_t)c->most_locals;
}

static void record_of_script(Compiler* c) {
  char name[kNameSize];
  take_name(&c->lexer, name);
  int32_t r = add_name(&c->records, name, kMostRecords);
  expect(&c->lexer, "{");
  while (!accept(&c->lexer, "}")) {
    if (c->field_counts[r] == kMostFields) fail_at(&c->lexer, "too many fields");
    take_name(&c->lexer, c->fields[r][c->field_counts[r]++]);
    (void)accept(&c->lexer, ",");
  }
}

// Functions may be called before they are defined: their names come first.
static void find_functions(Compiler* c) {
  char name[kNameSize];
  for (next_word(&c->lexer); c->lexer.word.kind != kEnd;) {
    if (!accept(&c->lexer, "fn")) {
      next_word(&c->lexer);
      continue;
    }
    take_name(&c->lexer, name);
    add_name(&c->functions, name, kMostFunctions);
  }
}

static void compile(Compiler* c, Machine* m, const char* text) {
  *c = (Compiler){.e = {.m = m, .last = kNowhere, .before = kNowhere}};
  c->lexer = (Lexer){.at = text, .line = 1};
  find_functions(c);
  c->lexer = (Lexer){.at = text, .line = 1};
  next_word(&c->lexer);
  while (c->lexer.word.kind != kEnd) {
    char name[kNameSize];
    if (accept(&c->lexer, "fn")) {
      function_of_script(c);
    } else if (accept(&c->lexer, "record")) {
      record_of_script(c);
    } else {
      expect(&c->lexer, "var");
      take_name(&c->lexer, name);
      m->globals[add_name(&c->globals, name, kMostGlobals)] = NULL_VALUE;
      expect(&c->lexer, ";");
    }
  }
}

#endif  // UPTIER_EXAMPLES_SCRIPT_COMPILER_H
