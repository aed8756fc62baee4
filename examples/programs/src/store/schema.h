// Tables and their indexes, and programs: what a statement is compiled to.
#ifndef UPTIER_EXAMPLES_STORE_SCHEMA_H
#define UPTIER_EXAMPLES_STORE_SCHEMA_H

#include "opcodes.h"
#include "parser.h"

enum { kMostTables = 6, kMostIndexes = 3, kMostName = 16 };
enum { kMostOperations = 400, kMostConstants = 32, kMostCursors = 8, kMostRegisters = 96 };

// An index has a key for each row: the value of a column, a number of 31 bits, above the row's key.
typedef struct Index {
  uint32_t column;
  Tree tree;
} Index;

// The first column is the key of the table's tree.
typedef struct Table {
  char name[kMostName];
  char columns[kMostColumns][kMostName];
  uint32_t column_count;
  Tree tree;
  Index indexes[kMostIndexes];
  uint32_t index_count;
} Table;

typedef struct Program {
  Operation operations[kMostOperations];
  uint32_t count;
  int64_t constants[kMostConstants];
  uint32_t constant_count;
  Value texts[kMostConstants];
  uint32_t text_count;
  uint32_t registers;
} Program;

static Table tables[kMostTables];
static uint32_t table_count;

static int is_named(const char* name, const char* word, uint32_t size) {
  return strlen(name) == size && memcmp(name, word, size) == 0;
}

static void take_name(Lexer* l, char* name) {
  if (l->kind != kName || l->size >= kMostName) fail_at(l, "a name was expected");
  memcpy(name, l->word, l->size);
  name[l->size] = '\0';
  next_word(l);
}

static uint32_t take_table(Lexer* l) {
  for (uint32_t i = 0; i < table_count; ++i) {
    if (is_word(l, tables[i].name)) {
      next_word(l);
      return i;
    }
  }
  fail_at(l, "there is no such table");
  return 0;
}

// Returns the number of a column, or -1 if the table has none of this name.
static int32_t find_column(const Table* t, const char* word, uint32_t size) {
  for (uint32_t i = 0; i < t->column_count; ++i) {
    if (is_named(t->columns[i], word, size)) return (int32_t)i;
  }
  return -1;
}

static int32_t take_column(Lexer* l, const Table* t) {
  int32_t column = find_column(t, l->word, l->size);
  if (column < 0) fail_at(l, "there is no such column");
  next_word(l);
  return column;
}

// create table NAME (COLUMN, ...)   create index TABLE (COLUMN), of an empty table
static void create(const char* text) {
  Lexer l = {text, kEnd, text, 0};
  next_word(&l);
  expect(&l, "create");
  if (accept(&l, "index")) {
    Table* t = &tables[take_table(&l)];
    if (t->index_count == kMostIndexes || t->tree.rows > 0) fail_at(&l, "no index can be added");
    expect(&l, "(");
    Index* index = &t->indexes[t->index_count++];
    index->column = (uint32_t)take_column(&l, t);
    start_tree(&index->tree);
    expect(&l, ")");
    return;
  }
  expect(&l, "table");
  if (table_count == kMostTables) fail_at(&l, "too many tables");
  Table* t = &tables[table_count++];
  take_name(&l, t->name);
  expect(&l, "(");
  while (!accept(&l, ")")) {
    if (t->column_count == kMostColumns) fail_at(&l, "too many columns");
    take_name(&l, t->columns[t->column_count++]);
    accept(&l, ",");
  }
  start_tree(&t->tree);
}

#endif  // UPTIER_EXAMPLES_STORE_SCHEMA_H
