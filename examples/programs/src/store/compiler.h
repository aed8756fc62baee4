// Statements to programs: insert, select, update and delete.
//
// A condition is a row of terms that all must be true. For each table in turn, terms about its key
// or an indexed column choose the rows that are visited, and the others are tested on each row, as
// soon as all tables that they name have a current row.
#ifndef UPTIER_EXAMPLES_STORE_COMPILER_H
#define UPTIER_EXAMPLES_STORE_COMPILER_H

#include "emit.h"

// Returns how many of the sources must have a row before the expression has a value.
static uint32_t needs(Compiler* c, int32_t node) {
  const Node* n = &c->p.nodes[node];
  int32_t column;
  if (n->kind == kColumnOf) return find_source(c, n, &column) + 1;
  uint32_t most = 0;
  for (uint32_t i = 0; i < n->count; ++i) {
    uint32_t part = needs(c, n->parts[i]);
    if (part > most) most = part;
  }
  return most;
}

static void add_terms(Compiler* c, int32_t node) {
  const Node* n = &c->p.nodes[node];
  if (n->kind == kBoth) {
    add_terms(c, n->parts[0]);
    add_terms(c, n->parts[1]);
    return;
  }
  if (c->term_count == kMostTerms) fail("too many conditions");
  c->terms[c->term_count++] = node;
}

// The rows of one source that a statement visits.
typedef struct Level {
  int32_t low, high;        // nodes of the least and the greatest key, -1 for none
  int32_t equal;            // node of the only key, or of the indexed column's value
  int32_t index;            // the index that is used, -1 for none
  int32_t loop, next, end;  // labels
} Level;

// Returns the column of source `level` that one side of the term compares, -1 for none; `*other`
// becomes the other side.
static int32_t compared_column(Compiler* c, const Node* term, uint32_t level, int side,
                               int32_t* other) {
  const Node* n = &c->p.nodes[term->parts[side]];
  int32_t column;
  if (n->kind != kColumnOf || find_source(c, n, &column) != level) return -1;
  *other = term->parts[1 - side];
  return needs(c, *other) <= level ? column : -1;
}

static int32_t index_of_column(const Table* t, int32_t column) {
  for (uint32_t i = 0; i < t->index_count; ++i) {
    if ((int32_t)t->indexes[i].column == column) return (int32_t)i;
  }
  return -1;
}

// Uses a term for the choice of rows; returns whether it needs no test on each row.
static int use_term(Compiler* c, Level* v, uint32_t level, int32_t node) {
  const Node* n = &c->p.nodes[node];
  int32_t column, other = -1;
  if (n->kind == kBetween) {
    if (c->p.nodes[n->parts[0]].kind != kColumnOf || v->low >= 0 || v->high >= 0) return 0;
    if (find_source(c, &c->p.nodes[n->parts[0]], &column) != level || column != 0) return 0;
    if (needs(c, n->parts[1]) > level || needs(c, n->parts[2]) > level) return 0;
    v->low = n->parts[1];
    v->high = n->parts[2];
    return 1;
  }
  if (n->kind != kBinary) return 0;
  column = compared_column(c, n, level, 0, &other);
  if (column >= 0 && n->op == sign(">=") && column == 0 && v->low < 0) return v->low = other, 1;
  if (column >= 0 && n->op == sign("<=") && column == 0 && v->high < 0) return v->high = other, 1;
  if (n->op != sign("=") || v->equal >= 0) return 0;
  if (column < 0) column = compared_column(c, n, level, 1, &other);
  if (column < 0) return 0;
  int32_t index = index_of_column(&tables[c->sources[level].table], column);
  if (column != 0 && index < 0) return 0;
  v->equal = other;
  v->index = column == 0 ? -1 : index;
  return 1;
}

static void visit_by_index(Compiler* c, const Source* s, Level* v) {
  int32_t value = load_fresh(c, v->equal), row = new_register(c), low = new_register(c);
  int32_t high = new_register(c), at = new_register(c);
  emit(c, kIntegerOp, 0, row, 0);
  emit(c, kIndexKeyOp, value, row, low);
  load_number(c, UINT32_MAX, row);
  emit(c, kIndexKeyOp, value, row, high);
  emit(c, kSeekGeOp, s->index_cursor, v->end, low);
  place_label(c, v->loop);
  emit(c, kKeyOp, s->index_cursor, at, 0);
  emit(c, kGtOp, at, v->end, high);
  emit(c, kIndexRowOp, s->index_cursor, row, 0);
  emit(c, kSeekKeyOp, s->cursor, v->next, row);
}

static void visit_by_key(Compiler* c, const Source* s, Level* v) {
  int32_t high = v->high >= 0 ? load_fresh(c, v->high) : -1;
  if (v->low >= 0) {
    emit(c, kSeekGeOp, s->cursor, v->end, load_fresh(c, v->low));
  } else {
    emit(c, kRewindOp, s->cursor, v->end, 0);
  }
  place_label(c, v->loop);
  if (high >= 0) {
    int32_t key = new_register(c);
    emit(c, kKeyOp, s->cursor, key, 0);
    emit(c, kGtOp, key, v->end, high);
  }
}

// Emits the loop's head of a source, and the tests that can be made in it.
static void begin_level(Compiler* c, uint32_t level, Level* v) {
  Source* s = &c->sources[level];
  int tested[kMostTerms];
  *v = (Level){-1, -1, -1, -1, new_label(c), new_label(c), new_label(c)};
  for (uint32_t i = 0; i < c->term_count; ++i) {
    tested[i] = needs(c, c->terms[i]) == level + 1 && !use_term(c, v, level, c->terms[i]);
  }
  s->cursor = new_cursor(c);
  emit(c, kOpenTableOp, s->cursor, (int32_t)s->table, 0);
  if (v->equal >= 0 && v->index >= 0) {
    s->index_cursor = new_cursor(c);
    emit(c, kOpenIndexOp, s->index_cursor, (int32_t)s->table, v->index);
    visit_by_index(c, s, v);
  } else if (v->equal >= 0) {
    emit(c, kSeekKeyOp, s->cursor, v->end, load_fresh(c, v->equal));
    // Bounds of a key that is known are tests.
  } else {
    visit_by_key(c, s, v);
  }
  for (uint32_t i = 0; i < c->term_count; ++i) {
    if (tested[i]) jump_unless(c, c->terms[i], v->next);
  }
}

static void end_level(Compiler* c, uint32_t level, const Level* v) {
  const Source* s = &c->sources[level];
  place_label(c, v->next);
  if (v->index >= 0) {
    emit(c, kNextOp, s->index_cursor, v->loop, 0);
  } else if (v->equal < 0) {
    emit(c, kNextOp, s->cursor, v->loop, 0);
  }
  place_label(c, v->end);
  emit(c, kCloseOp, s->cursor, 0, 0);
  if (v->index >= 0) emit(c, kCloseOp, s->index_cursor, 0, 0);
}

static void begin_loops(Compiler* c, Level* levels) {
  for (uint32_t i = 0; i < c->source_count; ++i) begin_level(c, i, &levels[i]);
}
static void end_loops(Compiler* c, const Level* levels) {
  for (uint32_t i = c->source_count; i-- > 0;) end_level(c, i, &levels[i]);
}

static void take_condition(Compiler* c) {
  if (accept(&c->p.l, "where")) add_terms(c, parse_expression(&c->p));
}

// Emits insertion (or deletion) of the index entries of a row in registers.
static void emit_index_entries(Compiler* c, uint32_t table, int32_t values, int32_t key,
                               Opcode opcode, const uint8_t* which) {
  const Table* t = &tables[table];
  for (uint32_t i = 0; i < t->index_count; ++i) {
    if (which != NULL && !which[t->indexes[i].column]) continue;
    int32_t cursor = new_cursor(c), entry = new_register(c);
    emit(c, kOpenIndexOp, cursor, (int32_t)table, (int32_t)i);
    emit(c, kIndexKeyOp, values + (int32_t)t->indexes[i].column, key, entry);
    emit(c, opcode, cursor, entry, 0);
    emit(c, kCloseOp, cursor, 0, 0);
  }
}

// insert into TABLE values (EXPRESSION, ...); a key that is null becomes the next one.
static void compile_insert(Compiler* c) {
  Lexer* l = &c->p.l;
  expect(l, "into");
  uint32_t table = take_table(l);
  int32_t cursor = new_cursor(c), values = c->registers, given = new_label(c);
  int32_t count = (int32_t)tables[table].column_count;
  c->registers += count;
  emit(c, kOpenTableOp, cursor, (int32_t)table, 0);
  expect(l, "values");
  expect(l, "(");
  for (int32_t i = 0; i < count; ++i) {
    load(c, parse_expression(&c->p), values + i);
    expect(l, i + 1 < count ? "," : ")");
  }
  emit(c, kIfNotNullOp, values, given, 0);
  emit(c, kLastKeyOp, cursor, values, 0);
  emit(c, kAddConstantOp, values, 1, 0);
  place_label(c, given);
  emit(c, kMakeRecordOp, values + 1, count - 1, 0);
  emit(c, kInsertOp, cursor, values, 0);
  emit(c, kCloseOp, cursor, 0, 0);
  emit_index_entries(c, table, values, values, kInsertKeyOp, NULL);
}

// Emits a first pass over the rows that the condition holds for, which remembers their keys, and the
// head of a second one over the keys.
static int32_t begin_second_pass(Compiler* c, int32_t* key, int32_t* loop, int32_t* end) {
  Level levels[kMostSources];
  take_condition(c);
  *key = new_register(c);
  begin_loops(c, levels);
  emit(c, kKeyOp, c->sources[0].cursor, *key, 0);
  emit(c, kRememberOp, *key, 0, 0);
  end_loops(c, levels);
  int32_t cursor = c->sources[0].cursor = new_cursor(c);
  *loop = new_label(c);
  *end = new_label(c);
  emit(c, kOpenTableOp, cursor, (int32_t)c->sources[0].table, 0);
  place_label(c, *loop);
  emit(c, kRecallOp, *key, *end, 0);
  emit(c, kSeekKeyOp, cursor, *loop, *key);
  return cursor;
}

static int32_t load_row(Compiler* c, const Table* t, int32_t cursor) {
  int32_t values = c->registers;
  c->registers += (int32_t)t->column_count;
  emit(c, kKeyOp, cursor, values, 0);
  for (uint32_t i = 1; i < t->column_count; ++i) {
    emit(c, kColumnOp, cursor, (int32_t)i - 1, values + (int32_t)i);
  }
  return values;
}

// delete from TABLE [where CONDITION]
static void compile_delete(Compiler* c) {
  int32_t key, loop, end;
  expect(&c->p.l, "from");
  c->sources[c->source_count++].table = take_table(&c->p.l);
  uint32_t table = c->sources[0].table;
  int32_t cursor = begin_second_pass(c, &key, &loop, &end);
  int32_t values = load_row(c, &tables[table], cursor);
  emit_index_entries(c, table, values, key, kDeleteOp, NULL);
  emit(c, kDeleteOp, cursor, key, 0);
  emit(c, kGotoOp, 0, loop, 0);
  place_label(c, end);
  emit(c, kCloseOp, cursor, 0, 0);
}

// update TABLE set COLUMN = EXPRESSION, ... [where CONDITION]; the key cannot be set.
static void compile_update(Compiler* c) {
  Lexer* l = &c->p.l;
  int32_t changes[kMostColumns], key, loop, end;
  uint8_t changed[kMostColumns] = {0};
  uint32_t table = c->sources[c->source_count++].table = take_table(l);
  const Table* t = &tables[table];
  expect(l, "set");
  do {
    int32_t column = take_column(l, t);
    expect(l, "=");
    changes[column] = parse_expression(&c->p);
    changed[column] = column > 0;
  } while (accept(l, ","));
  int32_t cursor = begin_second_pass(c, &key, &loop, &end);
  int32_t values = load_row(c, t, cursor);
  emit_index_entries(c, table, values, key, kDeleteOp, changed);
  for (uint32_t i = 1; i < t->column_count; ++i) {
    if (changed[i]) load(c, changes[i], values + (int32_t)i);
  }
  emit(c, kMakeRecordOp, values + 1, (int32_t)t->column_count - 1, 0);
  emit(c, kInsertOp, cursor, key, 0);
  emit_index_entries(c, table, values, key, kInsertKeyOp, changed);
  emit(c, kGotoOp, 0, loop, 0);
  place_label(c, end);
  emit(c, kCloseOp, cursor, 0, 0);
}

#endif  // UPTIER_EXAMPLES_STORE_COMPILER_H
