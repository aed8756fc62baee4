// Sorting of suffixes by doubling, which takes long for no text.
//
// The suffixes are sorted by their first byte; then, if they are sorted by their first h bytes, the
// rank of the suffix h bytes later sorts them by 2h bytes. Suffixes with equal bytes so far are a
// group, and have the group's last place as their rank. Groups of one are joined to runs that are
// skipped: their first element is minus the run's length.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_DOUBLING_H
#define UPTIER_EXAMPLES_BLOCKSORT_DOUBLING_H

#include "bits.h"

typedef struct Doubling {
  int32_t* suffixes;
  int32_t* ranks;
  int32_t size;
  int32_t distance;  // h
} Doubling;

// Returns the rank by which a suffix is sorted now; the end of the text has the least.
static inline int32_t key_of(const Doubling* d, int32_t place) {
  int32_t at = d->suffixes[place] + d->distance;
  return at < d->size ? d->ranks[at] : -1;
}

static inline void swap_places(Doubling* d, int32_t a, int32_t b) {
  int32_t t = d->suffixes[a];
  d->suffixes[a] = d->suffixes[b];
  d->suffixes[b] = t;
}

// Makes [from, to) a group of its own.
static void make_group(Doubling* d, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; ++i) d->ranks[d->suffixes[i]] = to - 1;
  if (to - from == 1) d->suffixes[from] = -1;
}

// Sorts a few places by picking out the least keys one after the other.
static void select_groups(Doubling* d, int32_t from, int32_t to) {
  while (from < to) {
    int32_t least = key_of(d, from), end = from + 1;
    for (int32_t i = from + 1; i < to; ++i) {
      int32_t key = key_of(d, i);
      if (key < least) {
        least = key;
        swap_places(d, i, from);
        end = from + 1;
      } else if (key == least) {
        swap_places(d, i, end++);
      }
    }
    make_group(d, from, end);
    from = end;
  }
}

static int32_t median_key(const Doubling* d, int32_t from, int32_t to) {
  int32_t a = key_of(d, from), b = key_of(d, from + (to - from) / 2), c = key_of(d, to - 1);
  if (a > b) {
    int32_t t = a;
    a = b;
    b = t;
  }
  if (b > c) b = c;
  return a > b ? a : b;
}

// Sorts the places [from, to), a group so far, and makes groups of equal keys.
static void split_group(Doubling* d, int32_t from, int32_t to) {
  while (to - from > 7) {
    int32_t pivot = median_key(d, from, to), less = from, at = from, greater = to;
    while (at < greater) {
      int32_t key = key_of(d, at);
      if (key < pivot) {
        swap_places(d, less++, at++);
      } else if (key > pivot) {
        swap_places(d, at, --greater);
      } else {
        ++at;
      }
    }
    // Ranks change from left to right, so that they stay those of the order so far.
    split_group(d, from, less);
    make_group(d, less, greater);
    from = greater;
  }
  if (to > from) select_groups(d, from, to);
}

static void sort_by_first_byte(Doubling* d, const uint8_t* text) {
  int32_t starts[257] = {0}, ends[256];
  for (int32_t i = 0; i < d->size; ++i) ++starts[text[i] + 1];
  for (int32_t c = 0; c < 256; ++c) {
    starts[c + 1] += starts[c];
    ends[c] = starts[c];
  }
  for (int32_t i = 0; i < d->size; ++i) {
    d->suffixes[ends[text[i]]++] = i;
    d->ranks[i] = starts[text[i] + 1] - 1;
  }
  for (int32_t c = 0; c < 256; ++c) {
    if (starts[c + 1] - starts[c] == 1) d->suffixes[starts[c]] = -1;
  }
}

// Sorts all suffixes of a text; `ranks` has room for as many numbers as it has bytes.
static NOINLINE void sort_by_doubling(const uint8_t* text, uint32_t size, int32_t* suffixes,
                                      int32_t* ranks) {
  Doubling d = {suffixes, ranks, (int32_t)size, 1};
  sort_by_first_byte(&d, text);
  for (; suffixes[0] != -d.size; d.distance *= 2) {
    int32_t run = 0;  // length of the sorted run before `at`
    for (int32_t at = 0; at < d.size;) {
      if (suffixes[at] < 0) {
        int32_t length = -suffixes[at];
        run += length;
        at += length;
        continue;
      }
      if (run > 0) suffixes[at - run] = -run;
      run = 0;
      int32_t end = ranks[suffixes[at]] + 1;
      split_group(&d, at, end);
      at = end;
    }
    if (run > 0) suffixes[d.size - run] = -run;
  }
  for (int32_t i = 0; i < d.size; ++i) suffixes[ranks[i]] = i;
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_DOUBLING_H
