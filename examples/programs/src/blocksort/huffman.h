// Huffman codes with several tables: every 50 symbols are coded by the table that suits them best.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_HUFFMAN_H
#define UPTIER_EXAMPLES_BLOCKSORT_HUFFMAN_H

#include "bits.h"

enum { kMostSymbols = 258, kMostLength = 17, kMostTables = 6, kGroup = 50, kPasses = 4 };

typedef struct CodeTable {
  uint8_t length[kMostSymbols];
  uint32_t code[kMostSymbols];
} CodeTable;

// To decode: of each length the greatest code, and where its symbols are.
typedef struct DecodeTable {
  int32_t greatest[kMostLength + 2];
  int32_t offset[kMostLength + 2];
  uint16_t symbols[kMostSymbols];
  uint32_t least_length;
} DecodeTable;

// A heap of the roots of trees, the lightest at the top.
typedef struct Forest {
  uint32_t weight[2 * kMostSymbols];
  int32_t parent[2 * kMostSymbols];
  int32_t heap[kMostSymbols + 1];
  int32_t count;
} Forest;

static void sink(Forest* f, int32_t at) {
  int32_t tree = f->heap[at];
  for (;;) {
    int32_t child = 2 * at;
    if (child > f->count) break;
    if (child < f->count && f->weight[f->heap[child + 1]] < f->weight[f->heap[child]]) ++child;
    if (f->weight[tree] <= f->weight[f->heap[child]]) break;
    f->heap[at] = f->heap[child];
    at = child;
  }
  f->heap[at] = tree;
}

static int32_t take_lightest(Forest* f) {
  int32_t tree = f->heap[1];
  f->heap[1] = f->heap[f->count--];
  if (f->count > 0) sink(f, 1);
  return tree;
}

static void add_tree(Forest* f, int32_t tree) {
  int32_t at = ++f->count;
  while (at > 1 && f->weight[f->heap[at / 2]] > f->weight[tree]) {
    f->heap[at] = f->heap[at / 2];
    at /= 2;
  }
  f->heap[at] = tree;
}

// Joins trees until there is one; returns the greatest length of a code. The root of the tree is in
// the last place.
static uint32_t grow_tree(Forest* f, uint32_t symbols, uint8_t* length) {
  int32_t next = (int32_t)symbols;
  uint32_t most = 0;
  f->count = 0;
  for (int32_t s = 0; s < next; ++s) add_tree(f, s);
  while (f->count > 1) {
    int32_t a = take_lightest(f), b = take_lightest(f);
    f->parent[a] = f->parent[b] = next;
    f->weight[next] = f->weight[a] + f->weight[b];
    add_tree(f, next++);
  }
  for (uint32_t s = 0; s < symbols; ++s) {
    uint32_t depth = 0;
    for (int32_t at = (int32_t)s; at != next - 1; at = f->parent[at]) ++depth;
    length[s] = (uint8_t)depth;
    if (depth > most) most = depth;
  }
  return most;
}

// Chooses lengths for the symbols; every symbol gets a code. Weights are halved until no code is
// too long.
static NOINLINE void choose_lengths(CodeTable* t, const uint32_t* counts, uint32_t symbols) {
  static Forest forest;
  for (uint32_t shift = 0;; ++shift) {
    for (uint32_t s = 0; s < symbols; ++s) { forest.weight[s] = 1 + (counts[s] >> shift); }
    if (grow_tree(&forest, symbols, t->length) <= kMostLength) return;
  }
}

static void assign_codes(CodeTable* t, uint32_t symbols) {
  uint32_t code = 0;
  for (uint32_t length = 1; length <= kMostLength; ++length) {
    for (uint32_t s = 0; s < symbols; ++s) {
      if (t->length[s] == length) t->code[s] = code++;
    }
    code <<= 1;
  }
}

static NOINLINE void build_decode_table(DecodeTable* d, const uint8_t* length, uint32_t symbols) {
  int32_t code = 0, n = 0;
  d->least_length = 0;
  for (uint32_t l = 1; l <= kMostLength; ++l) {
    int32_t first = n;
    for (uint32_t s = 0; s < symbols; ++s) {
      if (length[s] == l) d->symbols[n++] = (uint16_t)s;
    }
    if (n > first && d->least_length == 0) d->least_length = l;
    d->offset[l] = first - code;
    code += n - first;
    d->greatest[l] = code - 1;
    code <<= 1;
  }
  if (d->least_length == 0) fail("a table has no codes");
}

static inline uint32_t get_symbol(BitReader* r, const DecodeTable* d) {
  uint32_t length = d->least_length;
  int32_t code = (int32_t)get_bits(r, length);
  while (code > d->greatest[length]) {
    if (++length > kMostLength) fail("the packed data has a code that is none");
    code = code << 1 | (int32_t)get_bits(r, 1);
  }
  return d->symbols[code + d->offset[length]];
}

// The tables of a block, and which of them each group of symbols uses.
typedef struct Tables {
  uint32_t count, symbols, groups;
  CodeTable table[kMostTables];
  uint8_t choice[100001 / kGroup + 1];
} Tables;

static uint32_t tables_for(uint32_t symbols) {
  return symbols < 200 ? 2 : symbols < 600 ? 3 : symbols < 1200 ? 4 : symbols < 2400 ? 5 : 6;
}

// Begins with tables each of which prefers a range of symbols; the ranges occur equally often.
static void start_tables(Tables* t, const uint32_t* counts, uint32_t total) {
  uint32_t from = 0, left = total;
  for (uint32_t k = 0; k < t->count; ++k) {
    uint32_t wanted = left / (t->count - k), sum = 0, to = from;
    while (to < t->symbols && (sum < wanted || to == from)) sum += counts[to++];
    if (k + 1 == t->count) to = t->symbols;
    for (uint32_t s = 0; s < t->symbols; ++s) t->table[k].length[s] = s >= from && s < to ? 1 : 15;
    left -= sum < left ? sum : left;
    from = to < t->symbols ? to : t->symbols - 1;
  }
}

static uint32_t cheapest_table(const Tables* t, const uint16_t* symbols, uint32_t count) {
  uint32_t costs[kMostTables] = {0}, best = 0;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t k = 0; k < t->count; ++k) costs[k] += t->table[k].length[symbols[i]];
  }
  for (uint32_t k = 1; k < t->count; ++k) {
    if (costs[k] < costs[best]) best = k;
  }
  return best;
}

// Chooses tables for the symbols: each pass gives every group the table that codes it best, and then
// fits the tables to their groups.
static NOINLINE void choose_tables(Tables* t, const uint16_t* symbols, uint32_t count,
                                   uint32_t alphabet) {
  static uint32_t counts[kMostTables][kMostSymbols];
  memset(counts, 0, sizeof counts);
  t->symbols = alphabet;
  t->count = tables_for(count);
  t->groups = (count + kGroup - 1) / kGroup;
  for (uint32_t i = 0; i < count; ++i) ++counts[0][symbols[i]];
  start_tables(t, counts[0], count);
  for (uint32_t pass = 0; pass < kPasses; ++pass) {
    memset(counts, 0, sizeof counts);
    for (uint32_t g = 0; g < t->groups; ++g) {
      uint32_t from = g * kGroup, size = count - from < kGroup ? count - from : kGroup;
      uint32_t best = cheapest_table(t, symbols + from, size);
      t->choice[g] = (uint8_t)best;
      for (uint32_t i = 0; i < size; ++i) ++counts[best][symbols[from + i]];
    }
    for (uint32_t k = 0; k < t->count; ++k) choose_lengths(&t->table[k], counts[k], alphabet);
  }
  for (uint32_t k = 0; k < t->count; ++k) assign_codes(&t->table[k], alphabet);
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_HUFFMAN_H
