// Sorting of suffixes by their bytes: a quicksort with three parts that looks at one byte at a time.
//
// Suffixes that have many bytes in common take long. The sort has a budget of comparisons, and gives
// up when it is spent.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_QUICKSORT_H
#define UPTIER_EXAMPLES_BLOCKSORT_QUICKSORT_H

#include "bits.h"

enum { kMostParts = 2000, kFewSuffixes = 12 };

typedef struct SortPart {
  int32_t *from, *to;
  uint32_t depth;  // so many bytes are equal
} SortPart;

typedef struct Quicksort {
  const uint8_t* text;
  uint32_t size;
  int64_t budget;
  uint32_t count;
  SortPart parts[kMostParts];  // that wait
} Quicksort;

// The end of the text comes before all bytes.
static inline uint32_t byte_at(const Quicksort* q, uint32_t at) {
  return at < q->size ? q->text[at] + 1u : 0;
}

// Returns whether suffix `a` comes before suffix `b`; their first `depth` bytes are equal.
static int comes_first(Quicksort* q, uint32_t a, uint32_t b, uint32_t depth) {
  uint32_t x = a + depth, y = b + depth, last = x > y ? x : y;
  const uint8_t* text = q->text;
  uint32_t steps = 0;
  while (last < q->size && text[x] == text[y]) {
    ++x;
    ++y;
    ++last;
    ++steps;
  }
  q->budget -= steps / 8;
  return byte_at(q, x) < byte_at(q, y);
}

static void sort_few(Quicksort* q, const SortPart* part) {
  for (int32_t* i = part->from + 1; i < part->to; ++i) {
    int32_t suffix = *i, *k = i;
    while (k > part->from && comes_first(q, (uint32_t)suffix, (uint32_t)k[-1], part->depth)) {
      *k = k[-1];
      --k;
    }
    *k = suffix;
  }
}

static inline uint32_t middle_of(uint32_t a, uint32_t b, uint32_t c) {
  if (a > b) {
    uint32_t t = a;
    a = b;
    b = t;
  }
  if (b > c) b = c;
  return a > b ? a : b;
}

static uint32_t choose_pivot(const Quicksort* q, const SortPart* part) {
  const int32_t *from = part->from, *to = part->to, *middle = from + (to - from) / 2;
  uint32_t depth = part->depth;
  return middle_of(byte_at(q, (uint32_t)*from + depth), byte_at(q, (uint32_t)*middle + depth),
                   byte_at(q, (uint32_t)to[-1] + depth));
}

static inline void swap_suffixes(int32_t* a, int32_t* b) {
  int32_t t = *a;
  *a = *b;
  *b = t;
}

static int add_part(Quicksort* q, int32_t* from, int32_t* to, uint32_t depth) {
  if (to - from < 2) return 1;
  if (q->count == kMostParts) return 0;
  q->parts[q->count++] = (SortPart){from, to, depth};
  return 1;
}

// Divides a part by the byte after those that are equal: less, equal, greater.
static int divide(Quicksort* q, const SortPart* part) {
  uint32_t pivot = choose_pivot(q, part), depth = part->depth;
  int32_t *less = part->from, *at = part->from, *greater = part->to;
  while (at < greater) {
    uint32_t byte = byte_at(q, (uint32_t)*at + depth);
    if (byte < pivot) {
      swap_suffixes(less++, at++);
    } else if (byte > pivot) {
      swap_suffixes(at, --greater);
    } else {
      ++at;
    }
  }
  q->budget -= part->to - part->from;
  // Only one suffix can end here, so with pivot 0 the equal part needs no sorting.
  return add_part(q, part->from, less, depth) && add_part(q, greater, part->to, depth) &&
         (pivot == 0 || add_part(q, less, greater, depth + 1));
}

// Sorts [from, to), whose first `depth` bytes are equal. Returns 0 if that would take too long.
static NOINLINE int sort_suffixes(Quicksort* q, int32_t* from, int32_t* to, uint32_t depth) {
  q->count = 0;
  add_part(q, from, to, depth);
  while (q->count > 0) {
    SortPart part = q->parts[--q->count];
    if (part.to - part.from <= kFewSuffixes) {
      sort_few(q, &part);
    } else if (!divide(q, &part)) {
      return 0;
    }
    if (q->budget < 0) return 0;
  }
  return 1;
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_QUICKSORT_H
