// Values of columns and registers, and the records that rows are stored as.
//
// A record is the number of its columns, a byte with the type of each, and their data. Types: 0 is
// null, 1 to 8 is an integer of so many bytes, 9 and 10 are the integers 0 and 1, 16 + n is a text of
// n bytes.
#ifndef UPTIER_EXAMPLES_STORE_VALUE_H
#define UPTIER_EXAMPLES_STORE_VALUE_H

#include "tree.h"

enum { kMostText = 64, kMostColumns = 12 };
typedef enum { kNull, kInteger, kText } ValueKind;

// The bytes of a text belong to a page, a statement or a register.
typedef struct Value {
  ValueKind kind;
  uint32_t size;
  int64_t number;
  const char* text;
} Value;

static inline Value of_number(int64_t number) { return (Value){kInteger, 0, number, NULL}; }
static inline Value of_text(const char* text, uint32_t size) {
  return (Value){kText, size, 0, text};
}

// Returns the number that a value stands for: null is 0, a text is the number that it begins with.
static int64_t number_of(const Value* v) {
  if (v->kind == kInteger) return v->number;
  int64_t number = 0;
  if (v->kind == kNull) return 0;
  for (uint32_t i = 0; i < v->size && v->text[i] >= '0' && v->text[i] <= '9'; ++i) {
    number = number * 10 + (v->text[i] - '0');
  }
  return number;
}

// Orders null before integers before texts. Returns a negative number, 0 or a positive one.
static int compare_values(const Value* a, const Value* b) {
  if (a->kind == kInteger && b->kind == kInteger) {
    return a->number < b->number ? -1 : a->number > b->number;
  }
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->kind == kNull) return 0;
  uint32_t common = a->size < b->size ? a->size : b->size;
  int order = memcmp(a->text, b->text, common);
  if (order != 0) return order < 0 ? -1 : 1;
  return a->size < b->size ? -1 : a->size > b->size;
}

static uint64_t hash_value(uint64_t hash, const Value* v) {
  hash = fold(hash, (uint64_t)v->kind);
  if (v->kind == kInteger) return fold(hash, (uint64_t)v->number);
  for (uint32_t i = 0; v->kind == kText && i < v->size; ++i) hash = fold(hash, (uint8_t)v->text[i]);
  return hash;
}

// Compares a text with a pattern, in which % stands for any bytes and _ for one.
static int is_like(const char* pattern, uint32_t pattern_size, const char* text, uint32_t size) {
  uint32_t p = 0, t = 0, star = UINT32_MAX, from = 0;
  while (t < size) {
    if (p < pattern_size && pattern[p] == '%') {
      star = p++;
      from = t;
    } else if (p < pattern_size && (pattern[p] == '_' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != UINT32_MAX) {
      p = star + 1;
      t = ++from;
    } else {
      return 0;
    }
  }
  while (p < pattern_size && pattern[p] == '%') ++p;
  return p == pattern_size;
}

static uint32_t type_of_integer(int64_t number) {
  if (number == 0 || number == 1) return 9 + (uint32_t)number;
  uint32_t bytes = 1;
  while (bytes < 8 && number >> (8 * bytes - 1) != 0 && number >> (8 * bytes - 1) != -1) ++bytes;
  return bytes;
}

// Returns the number of bytes of a column of this type.
static inline uint32_t size_of_type(uint32_t type) {
  if (type >= 16) return type - 16;
  return type >= 9 ? 0 : type;
}

// Writes a record and returns its size.
static NOINLINE uint32_t write_record(uint8_t* record, const Value* values, uint32_t count) {
  uint8_t* at = record + 1 + count;
  record[0] = (uint8_t)count;
  for (uint32_t i = 0; i < count; ++i) {
    const Value* v = &values[i];
    uint32_t type = 0;
    if (v->kind == kInteger) type = type_of_integer(v->number);
    if (v->kind == kText) type = 16 + v->size;
    record[1 + i] = (uint8_t)type;
    if (at + size_of_type(type) > record + kMostRecord) fail("the row is too long");
    if (type >= 16) {
      memcpy(at, v->text, v->size);
    } else {
      for (uint32_t k = 0; k < size_of_type(type); ++k) {
        at[k] = (uint8_t)((uint64_t)v->number >> (8 * k));
      }
    }
    at += size_of_type(type);
  }
  return (uint32_t)(at - record);
}

// Returns a column of a record; a text's bytes are those of the record.
static NOINLINE Value read_column(const uint8_t* record, uint32_t column) {
  uint32_t count = record[0];
  if (column >= count) return (Value){kNull, 0, 0, NULL};
  const uint8_t* at = record + 1 + count;
  for (uint32_t i = 0; i < column; ++i) at += size_of_type(record[1 + i]);
  uint32_t type = record[1 + column];
  if (type == 0) return (Value){kNull, 0, 0, NULL};
  if (type >= 16) return of_text((const char*)at, type - 16);
  if (type >= 9) return of_number(type - 9);
  uint64_t number = (uint64_t)(int64_t)(int8_t)at[type - 1];
  for (uint32_t k = type - 1; k-- > 0;) number = number << 8 | at[k];
  return of_number((int64_t)number);
}

#endif  // UPTIER_EXAMPLES_STORE_VALUE_H
