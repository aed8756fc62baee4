// native.h: what the programs of this folder are in C, for bench/calc.py: what a compiler makes of
// them that is told all types. Like calc they ask whether integers overflow and whether an index lies
// within an array, whose elements are of 8 bytes.
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static inline void need(int holds, const char* what) {
  if (__builtin_expect(holds, 1)) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

#define CHECKED(name)                                                      \
  static inline int64_t name(int64_t a, int64_t b) {                       \
    int64_t result;                                                        \
    need(!__builtin_##name##_overflow(a, b, &result), #name " overflows"); \
    return result;                                                         \
  }
CHECKED(add)
CHECKED(sub)
CHECKED(mul)

// An array of elements of one type.
#define ARRAY(name, type)                                             \
  struct name {                                                       \
    int64_t length, capacity;                                         \
    type* data;                                                       \
  };                                                                  \
  static inline type* name##_at(struct name* a, int64_t index) {      \
    need((uint64_t)index < (uint64_t)a->length, "no such index");     \
    return &a->data[index];                                           \
  }                                                                   \
  static inline void name##_make(struct name* a, int64_t n, type v) { \
    a->data = malloc((size_t)n * sizeof(type));                       \
    need(a->data != NULL, "out of memory");                           \
    for (int64_t i = 0; i < n; ++i) a->data[i] = v;                   \
    a->length = a->capacity = n;                                      \
  }                                                                   \
  static inline void name##_push(struct name* a, type v) {            \
    if (a->length == a->capacity) {                                   \
      a->capacity = a->capacity == 0 ? 4 : mul(2, a->capacity);       \
      a->data = realloc(a->data, (size_t)a->capacity * sizeof(type)); \
      need(a->data != NULL, "out of memory");                         \
    }                                                                 \
    a->data[a->length++] = v;                                         \
  }

static inline int64_t arg(int argc, char** argv, int64_t otherwise) {
  return argc > 1 ? atoll(argv[1]) : otherwise;
}
