// Nodes of a B-tree: pages with slots.
//
// A node begins with a header and the slots, which are offsets of cells in the order of their keys.
// Cells lie at the end of the page. A cell of a leaf is key, size and record; a cell of an inner node
// is key and child, and the child's keys are at most this key. The keys above all of them are in the
// child that the header names; in a leaf the header names the next leaf.
#ifndef UPTIER_EXAMPLES_STORE_NODE_H
#define UPTIER_EXAMPLES_STORE_NODE_H

#include "pages.h"

enum { kLeafNode = 1, kInnerNode = 2 };
enum { kKindAt = 0, kCountAt = 2, kCellsAt = 4, kFreeAt = 6, kRightAt = 8, kSlotsAt = 12 };
enum {
  kMostRecord = 200,
  kLeafHeader = 10,
  kInnerCell = 12,
  kMostCell = kLeafHeader + kMostRecord
};
enum { kRoom = kPageSize - kSlotsAt, kLeastFilled = kRoom / 3, kMostCells = kRoom / 12 };

static inline int is_leaf(const uint8_t* n) { return n[kKindAt] == kLeafNode; }
static inline uint32_t count_of(const uint8_t* n) { return get16(n + kCountAt); }
static inline uint32_t right_of(const uint8_t* n) { return get32(n + kRightAt); }
static inline void set_right(uint8_t* n, uint32_t page) { put32(n + kRightAt, page); }
static inline uint32_t slot_of(const uint8_t* n, uint32_t i) { return get16(n + kSlotsAt + 2 * i); }
static inline const uint8_t* cell_of(const uint8_t* n, uint32_t i) { return n + slot_of(n, i); }
static inline int64_t key_at(const uint8_t* n, uint32_t i) { return get64(cell_of(n, i)); }
static inline uint32_t child_at(const uint8_t* n, uint32_t i) {
  return i < count_of(n) ? get32(cell_of(n, i) + 8) : right_of(n);
}
static inline uint32_t cell_size(const uint8_t* n, const uint8_t* cell) {
  return is_leaf(n) ? kLeafHeader + get16(cell + 8) : kInnerCell;
}

// Bytes that neither the header nor slots nor cells use.
static inline uint32_t free_bytes(const uint8_t* n) { return get16(n + kFreeAt); }

static void start_node(uint8_t* n, int kind, uint32_t right) {
  n[kKindAt] = (uint8_t)kind;
  put16(n + kCountAt, 0);
  put16(n + kCellsAt, kPageSize);
  put16(n + kFreeAt, kRoom);
  set_right(n, right);
}

// Returns the first place whose key is not below `key`.
static uint32_t lower_bound(const uint8_t* n, int64_t key) {
  uint32_t low = 0, high = count_of(n);
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (key_at(n, middle) < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Moves the cells to the end of the page, so that the free bytes are in one piece.
static NOINLINE void compact(uint8_t* n) {
  uint8_t copy[kPageSize];
  uint32_t count = count_of(n), cells = kPageSize;
  memcpy(copy, n, kPageSize);
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* cell = cell_of(copy, i);
    uint32_t size = cell_size(copy, cell);
    cells -= size;
    memcpy(n + cells, cell, size);
    put16(n + kSlotsAt + 2 * i, cells);
  }
  put16(n + kCellsAt, cells);
}

// Puts a cell at place `i`; it must fit.
static void insert_cell(uint8_t* n, uint32_t i, const uint8_t* cell, uint32_t size) {
  uint32_t count = count_of(n), slots_end = kSlotsAt + 2 * count;
  if (get16(n + kCellsAt) < slots_end + 2 + size) compact(n);
  uint32_t cells = get16(n + kCellsAt) - size;
  memcpy(n + cells, cell, size);
  uint8_t* slot = n + kSlotsAt + 2 * i;
  memmove(slot + 2, slot, 2 * (count - i));
  put16(slot, cells);
  put16(n + kCountAt, count + 1);
  put16(n + kCellsAt, cells);
  put16(n + kFreeAt, free_bytes(n) - size - 2);
}

static void remove_cell(uint8_t* n, uint32_t i) {
  uint32_t count = count_of(n), at = slot_of(n, i), size = cell_size(n, n + at);
  uint8_t* slot = n + kSlotsAt + 2 * i;
  memmove(slot, slot + 2, 2 * (count - i - 1));
  put16(n + kCountAt, count - 1);
  if (at == get16(n + kCellsAt)) put16(n + kCellsAt, at + size);
  put16(n + kFreeAt, free_bytes(n) + size + 2);
}

static inline int has_room(const uint8_t* n, uint32_t size) { return free_bytes(n) >= size + 2; }

// Cells that were taken out of nodes, in order. They point into `bytes`.
typedef struct Cells {
  uint32_t count, used;
  uint32_t at[2 * kMostCells + 2];
  uint32_t size[2 * kMostCells + 2];
  uint8_t bytes[3 * kPageSize];
} Cells;

static void add_cell(Cells* c, const uint8_t* cell, uint32_t size) {
  c->at[c->count] = c->used;
  c->size[c->count++] = size;
  memcpy(c->bytes + c->used, cell, size);
  c->used += size;
}

static void add_cells(Cells* c, const uint8_t* n) {
  for (uint32_t i = 0; i < count_of(n); ++i) {
    const uint8_t* cell = cell_of(n, i);
    add_cell(c, cell, cell_size(n, cell));
  }
}

static int64_t key_of_cell(const Cells* c, uint32_t i) { return get64(c->bytes + c->at[i]); }

// Appends cells [from, to) to a node.
static void fill_node(uint8_t* n, const Cells* c, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; ++i) {
    insert_cell(n, count_of(n), c->bytes + c->at[i], c->size[i]);
  }
}

// Returns how many of the cells make up half of their bytes.
static uint32_t half_of(const Cells* c) {
  uint32_t half = (c->used + 2 * c->count) / 2, sum = 0, i = 0;
  while (i + 1 < c->count && sum + c->size[i] + 2 <= half) sum += c->size[i++] + 2;
  return i > 0 ? i : 1;
}

#endif  // UPTIER_EXAMPLES_STORE_NODE_H
