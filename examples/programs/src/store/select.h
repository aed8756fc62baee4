// select EXPRESSION, ... from TABLE [, TABLE] [where CONDITION] [group by EXPRESSION]
//     [order by EXPRESSION] [limit EXPRESSION]
//
// Groups are rows of a temporary tree: the group's value is the key, the aggregates are the record.
#ifndef UPTIER_EXAMPLES_STORE_SELECT_H
#define UPTIER_EXAMPLES_STORE_SELECT_H

#include "compiler.h"

typedef struct Select {
  int32_t items[kMostItems];
  int32_t item_count;
  int32_t group, order, limit;  // nodes, -1 for none
  int32_t remaining;            // register with the number of rows that may still come
  int32_t done;                 // label
} Select;

static void find_aggregates(Compiler* c, int32_t node) {
  const Node* n = &c->p.nodes[node];
  if (n->kind == kAggregate) {
    if (c->aggregate_count == kMostItems) fail("too many aggregates");
    c->aggregates[c->aggregate_count++] = (Aggregate){node, -1};
    return;
  }
  for (uint32_t i = 0; i < n->count; ++i) find_aggregates(c, n->parts[i]);
}

static void parse_select(Compiler* c, Select* s) {
  Lexer* l = &c->p.l;
  *s = (Select){{0}, 0, -1, -1, -1, -1, new_label(c)};
  do {
    if (s->item_count == kMostItems) fail("too many results");
    s->items[s->item_count++] = parse_expression(&c->p);
  } while (accept(l, ","));
  expect(l, "from");
  do {
    if (c->source_count == kMostSources) fail("too many tables");
    c->sources[c->source_count++].table = take_table(l);
  } while (accept(l, ","));
  take_condition(c);
  if (accept(l, "group")) {
    expect(l, "by");
    s->group = parse_expression(&c->p);
  }
  if (accept(l, "order")) {
    expect(l, "by");
    s->order = parse_expression(&c->p);
  }
  if (accept(l, "limit")) s->limit = parse_expression(&c->p);
  for (int32_t i = 0; i < s->item_count; ++i) find_aggregates(c, s->items[i]);
}

// Emits one row of results, or hands it to the sorter.
static void emit_row(Compiler* c, const Select* s) {
  int32_t first = c->registers;
  c->registers += s->item_count;
  for (int32_t i = 0; i < s->item_count; ++i) load(c, s->items[i], first + i);
  if (s->order >= 0) {
    emit(c, kSortRowOp, first, s->item_count, load_fresh(c, s->order));
    return;
  }
  if (s->limit >= 0) emit(c, kCountdownOp, s->remaining, s->done, 0);
  emit(c, kResultRowOp, first, s->item_count, 0);
}

static void emit_sorted_rows(Compiler* c, const Select* s) {
  int32_t loop = new_label(c), first = c->registers;
  c->registers += s->item_count;
  emit(c, kSortOp, 0, s->done, 0);
  place_label(c, loop);
  emit(c, kLoadSortedOp, first, s->item_count, 0);
  if (s->limit >= 0) emit(c, kCountdownOp, s->remaining, s->done, 0);
  emit(c, kResultRowOp, first, s->item_count, 0);
  emit(c, kNextSortedOp, 0, loop, 0);
}

// Sums and counts begin with 0, least and most with null.
static void emit_start(Compiler* c, int32_t place, const Node* n) {
  if (is_named("least", n->text, n->size) || is_named("most", n->text, n->size)) {
    emit(c, kNullOp, 0, place, 0);
  } else {
    emit(c, kIntegerOp, 0, place, 0);
  }
}

static void emit_step(Compiler* c, const Aggregate* a) {
  const Node* n = &c->p.nodes[a->node];
  if (is_named("count", n->text, n->size)) {
    emit(c, kStepCountOp, a->place, 0, 0);
    return;
  }
  Opcode opcode = is_named("sum", n->text, n->size)     ? kStepSumOp
                  : is_named("least", n->text, n->size) ? kStepLeastOp
                                                        : kStepMostOp;
  emit(c, opcode, a->place, load_fresh(c, n->parts[0]), 0);
}

static void load_group(Compiler* c, int32_t cursor) {
  for (uint32_t i = 0; i < c->aggregate_count; ++i) {
    emit(c, kColumnOp, cursor, (int32_t)i, c->aggregates[i].place);
  }
}

// Emits the update of a group's row in the temporary tree.
static void emit_group_step(Compiler* c, const Select* s, int32_t cursor) {
  int32_t fresh = new_label(c), have = new_label(c), group = new_register(c);
  load(c, s->group, group);
  emit(c, kSeekKeyOp, cursor, fresh, group);
  load_group(c, cursor);
  emit(c, kGotoOp, 0, have, 0);
  place_label(c, fresh);
  for (uint32_t i = 0; i < c->aggregate_count; ++i) {
    emit_start(c, c->aggregates[i].place, &c->p.nodes[c->aggregates[i].node]);
  }
  place_label(c, have);
  for (uint32_t i = 0; i < c->aggregate_count; ++i) emit_step(c, &c->aggregates[i]);
  emit(c, kMakeRecordOp, c->aggregates[0].place, (int32_t)c->aggregate_count, 0);
  emit(c, kInsertOp, cursor, group, 0);
}

static void emit_groups(Compiler* c, const Select* s, int32_t cursor) {
  int32_t loop = new_label(c), end = new_label(c);
  c->group = new_register(c);
  emit(c, kRewindOp, cursor, end, 0);
  place_label(c, loop);
  emit(c, kKeyOp, cursor, c->group, 0);
  load_group(c, cursor);
  emit_row(c, s);
  emit(c, kNextOp, cursor, loop, 0);
  place_label(c, end);
  emit(c, kCloseOp, cursor, 0, 0);
}

static void compile_select(Compiler* c) {
  Select s;
  Level levels[kMostSources];
  int32_t temporary = -1;
  parse_select(c, &s);
  if (s.limit >= 0) s.remaining = load_fresh(c, s.limit);
  for (uint32_t i = 0; i < c->aggregate_count; ++i) {
    c->aggregates[i].place = new_register(c);  // one after the other, for records
  }
  if (s.group >= 0) {
    if (c->aggregate_count == 0) fail("groups without an aggregate");
    temporary = new_cursor(c);
    emit(c, kOpenTemporaryOp, temporary, 0, 0);
  } else {
    for (uint32_t i = 0; i < c->aggregate_count; ++i) {
      emit_start(c, c->aggregates[i].place, &c->p.nodes[c->aggregates[i].node]);
    }
  }
  begin_loops(c, levels);
  if (s.group >= 0) {
    emit_group_step(c, &s, temporary);
  } else if (c->aggregate_count > 0) {
    for (uint32_t i = 0; i < c->aggregate_count; ++i) emit_step(c, &c->aggregates[i]);
  } else {
    emit_row(c, &s);
  }
  end_loops(c, levels);
  if (s.group >= 0) {
    emit_groups(c, &s, temporary);
  } else if (c->aggregate_count > 0) {
    emit_row(c, &s);
  }
  if (s.order >= 0) emit_sorted_rows(c, &s);
  place_label(c, s.done);
}

// Compiles one statement.
static NOINLINE void compile(const char* text, Program* program) {
  static Compiler c;
  memset(&c, 0, sizeof c);
  memset(program, 0, sizeof *program);
  c.program = program;
  c.group = -1;
  c.p.l.at = text;
  next_word(&c.p.l);
  if (accept(&c.p.l, "insert")) {
    compile_insert(&c);
  } else if (accept(&c.p.l, "delete")) {
    compile_delete(&c);
  } else if (accept(&c.p.l, "update")) {
    compile_update(&c);
  } else {
    expect(&c.p.l, "select");
    compile_select(&c);
  }
  if (c.p.l.kind != kEnd) fail_at(&c.p.l, "the statement should end here");
  emit(&c, kHaltOp, 0, 0, 0);
  resolve(&c);
}

#endif  // UPTIER_EXAMPLES_STORE_SELECT_H
