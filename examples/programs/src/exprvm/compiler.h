// Statements and functions to bytecode.
#ifndef UPTIER_EXAMPLES_EXPRVM_COMPILER_H
#define UPTIER_EXAMPLES_EXPRVM_COMPILER_H

#include "emit.h"

static void compile_statement(Compiler* c);

static int32_t declare(Compiler* c, Type type) {
  Parser* p = &c->p;
  if (p->local_count == kMostLocals) fail_at(&p->l, "too many locals");
  Local* local = &p->locals[p->local_count];
  if (find_local(p) >= 0) fail_at(&p->l, "the name is taken");
  take_name(&p->l, local->name);
  local->type = type;
  return (int32_t)p->local_count++;
}

static int32_t take_value(Compiler* c, Type type) {
  return as_type(&c->p, parse_expression(&c->p), type);
}

static void compile_declaration(Compiler* c, Type type) {
  // The name is not known in its own value, so the local is declared last.
  Parser* p = &c->p;
  int32_t local = declare(c, type);
  expect(&p->l, "=");
  --p->local_count;
  int32_t value = take_value(c, type);
  ++p->local_count;
  load(c, value);
  store_local(c, type, local);
}

// `local` op= value
static void compile_change(Compiler* c, int32_t local, Type type) {
  Lexer* l = &c->p.l;
  if (type == kInt && accept(l, "++")) {
    emit1(c, kIncrement, local);
  } else if (type == kInt && accept(l, "--")) {
    emit1(c, kDecrement, local);
  } else if (accept(l, "+=")) {
    load(c, take_value(c, type));
    emit1(c, type == kFloat ? kFAddTo : kAddTo, local);
  } else {
    expect(l, "=");
    int32_t value = take_value(c, type);
    const Node* n = &c->p.nodes[value];
    if (n->kind == kLocal) {
      emit1(c, kMove, n->op);
      emit_byte(c, local);
    } else {
      load(c, value);
      store_local(c, type, local);
    }
  }
}

// ARRAY[INDEX] = VALUE, or +=; the index comes before the value.
static void compile_element_change(Compiler* c, int32_t array, Type element) {
  Lexer* l = &c->p.l;
  int is_float = element == kFloat;
  int32_t index = take_value(c, kInt);
  const Node* n = &c->p.nodes[index];
  expect(l, "]");
  int adds = accept(l, "+=");
  if (!adds) expect(l, "=");
  int32_t value = take_value(c, element);
  if (!adds && n->kind == kLocal) {
    load(c, value);
    emit1(c, is_float ? kFSetAt : kSetAt, array);
    emit_byte(c, n->op);
    return;
  }
  push(c, index);
  load(c, value);
  if (adds) {
    emit1(c, is_float ? kFAddToElement : kAddToElement, array);
  } else {
    emit1(c, is_float ? kFSet : kSet, array);
  }
}

// A declaration, an assignment or a call, without the semicolon.
static void compile_simple(Compiler* c) {
  Parser* p = &c->p;
  p->count = 0;
  Type type = accept_type(&p->l);
  if (type != kNoType) {
    compile_declaration(c, type);
    return;
  }
  int32_t local = find_local(p);
  if (local < 0) {
    load(c, parse_expression(p));
    return;
  }
  type = p->locals[local].type;
  next_word(&p->l);
  if ((type == kInts || type == kFloats) && accept(&p->l, "[")) {
    compile_element_change(c, local, type == kInts ? kInt : kFloat);
  } else {
    compile_change(c, local, type);
  }
}

static void compile_if(Compiler* c) {
  int32_t otherwise = new_label(c);
  expect(&c->p.l, "(");
  c->p.count = 0;
  jump_unless(c, take_value(c, kInt), otherwise);
  expect(&c->p.l, ")");
  compile_statement(c);
  if (accept(&c->p.l, "else")) {
    int32_t done = new_label(c);
    emit_jump(c, kJump, done);
    place_label(c, otherwise);
    compile_statement(c);
    place_label(c, done);
  } else {
    place_label(c, otherwise);
  }
}

static void compile_body(Compiler* c, int32_t break_label, int32_t continue_label) {
  int32_t old_break = c->break_label, old_continue = c->continue_label;
  c->break_label = break_label;
  c->continue_label = continue_label;
  compile_statement(c);
  c->break_label = old_break;
  c->continue_label = old_continue;
}

static void compile_while(Compiler* c) {
  int32_t loop = new_label(c), done = new_label(c);
  place_label(c, loop);
  expect(&c->p.l, "(");
  c->p.count = 0;
  jump_unless(c, take_value(c, kInt), done);
  expect(&c->p.l, ")");
  compile_body(c, done, loop);
  emit_jump(c, kJumpBack, loop);
  place_label(c, done);
}

// for (NAME = FIRST to LIMIT) counts up to the limit, which is evaluated once and not reached.
static void compile_for(Compiler* c) {
  Parser* p = &c->p;
  int32_t loop = new_label(c), done = new_label(c), next = new_label(c);
  expect(&p->l, "(");
  p->count = 0;
  int32_t local = find_local(p);
  if (local < 0) {
    local = declare(c, kInt);
  } else {
    next_word(&p->l);
  }
  expect(&p->l, "=");
  load(c, take_value(c, kInt));
  store_local(c, kInt, local);
  expect(&p->l, "to");
  if (p->local_count == kMostLocals) fail_at(&p->l, "too many locals");
  int32_t limit = (int32_t)p->local_count++;
  p->locals[limit] = (Local){"", kInt};
  load(c, take_value(c, kInt));
  store_local(c, kInt, limit);
  expect(&p->l, ")");
  load_local(c, kInt, local);
  emit1(c, kUnlessLtLocal, limit);
  emit_target(c, done);
  place_label(c, loop);
  compile_body(c, done, next);
  place_label(c, next);
  emit1(c, kLoopBelow, local);
  emit_byte(c, limit);
  emit_target(c, loop);
  place_label(c, done);
}

static void compile_return(Compiler* c) {
  Type type = c->p.functions[c->p.function_count - 1].result;
  c->p.count = 0;
  load(c, take_value(c, type));
  emit(c, type == kFloat ? kFReturn : kReturn);
  expect(&c->p.l, ";");
}

static void compile_jump(Compiler* c, int32_t label) {
  if (label < 0) fail_at(&c->p.l, "there is no loop around this");
  emit_jump(c, kJump, label);
  expect(&c->p.l, ";");
}

static void compile_statement(Compiler* c) {
  Lexer* l = &c->p.l;
  if (accept(l, "{")) {
    uint32_t outer = c->p.local_count;
    while (!accept(l, "}")) compile_statement(c);
    // Names end with their block; their places are not used again.
    for (uint32_t i = outer; i < c->p.local_count; ++i) c->p.locals[i].name[0] = '\0';
  } else if (accept(l, "if")) {
    compile_if(c);
  } else if (accept(l, "while")) {
    compile_while(c);
  } else if (accept(l, "for")) {
    compile_for(c);
  } else if (accept(l, "return")) {
    compile_return(c);
  } else if (accept(l, "break")) {
    compile_jump(c, c->break_label);
  } else if (accept(l, "continue")) {
    compile_jump(c, c->continue_label);
  } else {
    compile_simple(c);
    expect(l, ";");
  }
}

// fn NAME(TYPE NAME, ...) TYPE { ... }
static void compile_function(Compiler* c) {
  Parser* p = &c->p;
  expect(&p->l, "fn");
  if (p->function_count == kMostFunctions) fail_at(&p->l, "too many functions");
  Function* f = &p->functions[p->function_count++];
  take_name(&p->l, f->name);
  expect(&p->l, "(");
  p->local_count = c->label_count = 0;
  c->break_label = c->continue_label = -1;
  f->parameters = 0;
  while (!accept(&p->l, ")")) {
    if (f->parameters == kMostParameters) fail_at(&p->l, "too many parameters");
    Type type = accept_type(&p->l);
    if (type == kNoType) fail_at(&p->l, "a type was expected");
    f->types[f->parameters++] = type;
    declare(c, type);
    accept(&p->l, ",");
  }
  f->result = accept_type(&p->l);
  if (f->result == kNoType) fail_at(&p->l, "a type was expected");
  f->code = c->program->size;
  expect(&p->l, "{");
  while (!accept(&p->l, "}")) compile_statement(c);
  emit(c, f->result == kFloat ? kFZero : kZero);
  emit(c, f->result == kFloat ? kFReturn : kReturn);
  f->locals = p->local_count;
}

// Compiles a script; the last function is where it starts.
static NOINLINE uint32_t compile(const char* text, Program* program) {
  static Compiler c;
  memset(&c, 0, sizeof c);
  memset(program, 0, sizeof *program);
  c.program = program;
  c.p.functions = program->functions;
  c.p.l.at = text;
  c.p.l.line = 1;
  next_word(&c.p.l);
  while (c.p.l.kind != kEnd) compile_function(&c);
  return c.p.function_count - 1;
}

#endif  // UPTIER_EXAMPLES_EXPRVM_COMPILER_H
