// The suffixes of a block in order: few are sorted, the others follow from them.
//
// A suffix is falling if the one after it is less, otherwise rising. A rising one before a falling one
// is a peak. Only peaks are sorted: by two bytes into buckets, then each bucket by quicksort. From
// right to left, each rising suffix places the rising one before it; from left to right, each suffix
// places the falling one before it.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_SORT_H
#define UPTIER_EXAMPLES_BLOCKSORT_SORT_H

#include "doubling.h"
#include "quicksort.h"

enum { kMostBlock = 100000, kBudget = 40 };

typedef struct Sorter {
  Quicksort quicksort;
  int32_t suffixes[kMostBlock];
  int32_t ranks[kMostBlock];  // for doubling
  uint8_t rising[kMostBlock];
  int32_t start[256 * 256 + 1];  // of each bucket of two bytes
  int32_t peaks[256 * 256];      // number in each bucket
  int32_t tail[256 * 256];
  int32_t head[256];
  uint32_t doubled;  // blocks that were sorted by doubling
} Sorter;

static void classify(Sorter* s, const uint8_t* text, uint32_t size) {
  uint32_t rising = 0;  // the last suffix is falling: the empty one after it is less
  s->rising[size - 1] = 0;
  for (uint32_t i = size - 1; i-- > 0;) {
    if (text[i] != text[i + 1]) rising = text[i] < text[i + 1];
    s->rising[i] = (uint8_t)rising;
  }
}

static inline int is_peak(const Sorter* s, uint32_t i) { return s->rising[i] && !s->rising[i + 1]; }

static inline uint32_t pair_at(const uint8_t* text, uint32_t i) {
  return (uint32_t)text[i] << 8 | text[i + 1];
}

static void count_buckets(Sorter* s, const uint8_t* text, uint32_t size) {
  memset(s->start, 0, sizeof s->start);
  memset(s->peaks, 0, sizeof s->peaks);
  for (uint32_t i = 0; i + 1 < size; ++i) {
    ++s->start[pair_at(text, i)];
    s->peaks[pair_at(text, i)] += is_peak(s, i);
  }
  int32_t sum = 0;
  for (uint32_t pair = 0; pair <= 256 * 256; ++pair) {
    if (pair % 256 == 0 && pair < 256 * 256) {
      s->head[pair / 256] = sum;
      // The last byte alone comes before all pairs that begin with it.
      sum += text[size - 1] == pair / 256;
    }
    int32_t count = s->start[pair];
    s->start[pair] = sum;
    sum += count;
  }
}

// Returns the end of a bucket: the bucket after the last one of a byte may have a gap before it.
static inline int32_t end_of(const Sorter* s, uint32_t pair) {
  return pair % 256 == 255 && pair < 256 * 256 - 1 ? s->head[pair / 256 + 1] : s->start[pair + 1];
}

// Peaks come before the other rising suffixes of their bucket, and their buckets have no falling ones.
static int sort_peaks(Sorter* s, const uint8_t* text, uint32_t size) {
  Quicksort* q = &s->quicksort;
  memset(s->suffixes, 0xff, size * sizeof s->suffixes[0]);
  memcpy(s->tail, s->start, sizeof s->tail);
  for (uint32_t i = 0; i + 1 < size; ++i) {
    if (is_peak(s, i)) s->suffixes[s->tail[pair_at(text, i)]++] = (int32_t)i;
  }
  q->text = text;
  q->size = size;
  q->budget = (int64_t)kBudget * size;
  for (uint32_t pair = 0; pair < 256 * 256; ++pair) {
    if (s->peaks[pair] < 2) continue;
    int32_t* from = s->suffixes + s->start[pair];
    if (!sort_suffixes(q, from, from + s->peaks[pair], 2)) return 0;
  }
  return 1;
}

static NOINLINE void place_rising(Sorter* s, const uint8_t* text, uint32_t size) {
  for (uint32_t pair = 0; pair < 256 * 256; ++pair) s->tail[pair] = end_of(s, pair);
  for (uint32_t k = size; k-- > 0;) {
    int32_t i = s->suffixes[k];
    if (i <= 0 || !s->rising[i] || !s->rising[i - 1]) continue;
    s->suffixes[--s->tail[pair_at(text, (uint32_t)i - 1)]] = i - 1;
  }
}

static NOINLINE void place_falling(Sorter* s, const uint8_t* text, uint32_t size) {
  s->suffixes[s->head[text[size - 1]]++] = (int32_t)size - 1;
  for (uint32_t k = 0; k < size; ++k) {
    int32_t i = s->suffixes[k] - 1;
    if (i >= 0 && !s->rising[i]) s->suffixes[s->head[text[i]]++] = i;
  }
}

// Sorts the suffixes of a block into s->suffixes.
static NOINLINE void sort_block(Sorter* s, const uint8_t* text, uint32_t size) {
  classify(s, text, size);
  count_buckets(s, text, size);
  if (sort_peaks(s, text, size)) {
    place_rising(s, text, size);
    place_falling(s, text, size);
    return;
  }
  ++s->doubled;
  sort_by_doubling(text, size, s->suffixes, s->ranks);
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_SORT_H
