// B-trees from 64-bit keys to records: insertion with splits, deletion with merges, and cursors.
#ifndef UPTIER_EXAMPLES_STORE_TREE_H
#define UPTIER_EXAMPLES_STORE_TREE_H

#include "node.h"

typedef struct Tree {
  uint32_t root;
  uint32_t height;
  int64_t rows;
  uint64_t splits, merges;
} Tree;

static void start_tree(Tree* t) {
  PageFrame* f = allocate_page();
  start_node(f->bytes, kLeafNode, kNoPage);
  *t = (Tree){f->page, 1, 0, 0, 0};
  unpin(f);
}

// A node that a split has made: the keys of the old one are at most `key` now.
typedef struct Split {
  uint32_t page;  // kNoPage if nothing was split
  int64_t key;
} Split;

static void write_inner_cell(uint8_t* cell, int64_t key, uint32_t child) {
  put64(cell, key);
  put32(cell + 8, child);
}

// Puts a cell into a node that has no room for it: half of the cells move to a new node on the right.
static NOINLINE Split split_node(Tree* t, uint8_t* n, uint32_t place, const uint8_t* cell,
                                 uint32_t size) {
  static Cells cells;
  cells.count = cells.used = 0;
  add_cells(&cells, n);
  // The new cell is stored last, its place in the order is `place`.
  uint32_t count = cells.count, at = cells.used;
  add_cell(&cells, cell, size);
  for (uint32_t i = count; i > place; --i) {
    cells.at[i] = cells.at[i - 1];
    cells.size[i] = cells.size[i - 1];
  }
  cells.at[place] = at;
  cells.size[place] = size;
  uint32_t half = half_of(&cells);
  PageFrame* fresh = allocate_page();
  Split split = {fresh->page, key_of_cell(&cells, half - 1)};
  if (is_leaf(n)) {
    start_node(fresh->bytes, kLeafNode, right_of(n));
    fill_node(fresh->bytes, &cells, half, cells.count);
    start_node(n, kLeafNode, fresh->page);
    fill_node(n, &cells, 0, half);
  } else {
    // The last child of the left half becomes its rightmost one; its key goes up.
    uint32_t middle = get32(cells.bytes + cells.at[half - 1] + 8);
    start_node(fresh->bytes, kInnerNode, right_of(n));
    fill_node(fresh->bytes, &cells, half, cells.count);
    start_node(n, kInnerNode, middle);
    fill_node(n, &cells, 0, half - 1);
  }
  unpin(fresh);
  ++t->splits;
  return split;
}

static Split insert_or_split(Tree* t, uint8_t* n, uint32_t place, const uint8_t* cell,
                             uint32_t size) {
  if (!has_room(n, size)) return split_node(t, n, place, cell, size);
  insert_cell(n, place, cell, size);
  return (Split){kNoPage, 0};
}

static Split insert_below(Tree* t, uint32_t page, const uint8_t* cell, uint32_t size) {
  int64_t key = get64(cell);
  PageFrame* f = pin_to_write(page);
  uint8_t* n = f->bytes;
  uint32_t place = lower_bound(n, key);
  Split split;
  if (is_leaf(n)) {
    if (place < count_of(n) && key_at(n, place) == key) {
      remove_cell(n, place);
    } else {
      ++t->rows;
    }
    split = insert_or_split(t, n, place, cell, size);
  } else {
    uint32_t child = child_at(n, place);
    Split below = insert_below(t, child, cell, size);
    split = (Split){kNoPage, 0};
    if (below.page != kNoPage) {
      // The new node takes the old one's place; the old one comes before it, under the new key.
      uint8_t inner[kInnerCell];
      if (place < count_of(n)) {
        put32(n + slot_of(n, place) + 8, below.page);
      } else {
        set_right(n, below.page);
      }
      write_inner_cell(inner, below.key, child);
      split = insert_or_split(t, n, place, inner, kInnerCell);
    }
  }
  unpin(f);
  return split;
}

// Inserts a record, or replaces the one of the same key.
static NOINLINE void tree_insert(Tree* t, int64_t key, const uint8_t* record, uint32_t size) {
  uint8_t cell[kMostCell];
  if (size > kMostRecord) fail("the record is too long");
  put64(cell, key);
  put16(cell + 8, size);
  memcpy(cell + kLeafHeader, record, size);
  Split split = insert_below(t, t->root, cell, kLeafHeader + size);
  if (split.page == kNoPage) return;
  uint8_t inner[kInnerCell];
  PageFrame* root = allocate_page();
  start_node(root->bytes, kInnerNode, split.page);
  write_inner_cell(inner, split.key, t->root);
  insert_cell(root->bytes, 0, inner, kInnerCell);
  t->root = root->page;
  ++t->height;
  unpin(root);
}

// Child `place` of `n` has few cells: puts all that it and a neighbour have into one node, or divides
// it equally.
static NOINLINE void balance(Tree* t, uint8_t* n, uint32_t place) {
  static Cells cells;
  cells.count = cells.used = 0;
  uint32_t left_place = place > 0 ? place - 1 : 0;
  PageFrame* left = pin_to_write(child_at(n, left_place));
  PageFrame* right = pin_to_write(child_at(n, left_place + 1));
  int kind = left->bytes[kKindAt];
  add_cells(&cells, left->bytes);
  if (kind == kInnerNode) {
    uint8_t inner[kInnerCell];
    write_inner_cell(inner, key_at(n, left_place), right_of(left->bytes));
    add_cell(&cells, inner, kInnerCell);
  }
  add_cells(&cells, right->bytes);
  uint32_t last = right_of(right->bytes);
  if (cells.used + 2 * cells.count <= kRoom) {
    start_node(left->bytes, kind, last);
    fill_node(left->bytes, &cells, 0, cells.count);
    // The right node's entry is now the left one's.
    uint32_t page = left->page;
    remove_cell(n, left_place);
    if (left_place < count_of(n)) {
      put32(n + slot_of(n, left_place) + 8, page);
    } else {
      set_right(n, page);
    }
    unpin(left);
    free_page(right);
    ++t->merges;
    return;
  }
  uint32_t half = half_of(&cells);
  put64(n + slot_of(n, left_place), key_of_cell(&cells, half - 1));
  start_node(right->bytes, kind, last);
  fill_node(right->bytes, &cells, half, cells.count);
  if (kind == kInnerNode) {
    start_node(left->bytes, kind, get32(cells.bytes + cells.at[half - 1] + 8));
    fill_node(left->bytes, &cells, 0, half - 1);
  } else {
    start_node(left->bytes, kind, right->page);
    fill_node(left->bytes, &cells, 0, half);
  }
  unpin(left);
  unpin(right);
}

// Returns whether the node has so few cells now that its parent should balance it.
static int delete_below(Tree* t, uint32_t page, int64_t key, int* found) {
  PageFrame* f = pin_to_write(page);
  uint8_t* n = f->bytes;
  uint32_t place = lower_bound(n, key);
  if (is_leaf(n)) {
    *found = place < count_of(n) && key_at(n, place) == key;
    if (*found) remove_cell(n, place);
  } else if (delete_below(t, child_at(n, place), key, found)) {
    balance(t, n, place);
  }
  int few = kRoom - free_bytes(n) < kLeastFilled;
  unpin(f);
  return few;
}

// Deletes a key and returns whether it was there.
static NOINLINE int tree_delete(Tree* t, int64_t key) {
  int found = 0;
  delete_below(t, t->root, key, &found);
  t->rows -= found;
  PageFrame* root = pin(t->root);
  if (!is_leaf(root->bytes) && count_of(root->bytes) == 0) {
    t->root = right_of(root->bytes);
    --t->height;
    free_page(root);
  } else {
    unpin(root);
  }
  return found;
}

// A cursor stands on a cell of a leaf, which is pinned meanwhile, or nowhere.
typedef struct Cursor {
  Tree* tree;
  PageFrame* leaf;  // NULL if it stands nowhere
  uint32_t place;
} Cursor;

static void close_cursor(Cursor* c) {
  if (c->leaf != NULL) unpin(c->leaf);
  c->leaf = NULL;
}

// Goes on to the next leaf that has cells, if the cursor is at the end of one.
static int settle(Cursor* c) {
  while (c->place >= count_of(c->leaf->bytes)) {
    uint32_t next = right_of(c->leaf->bytes);
    close_cursor(c);
    if (next == kNoPage) return 0;
    c->leaf = pin(next);
    c->place = 0;
  }
  return 1;
}

// Goes to the first key that is not below `key`; returns whether there is one.
static NOINLINE int cursor_seek(Cursor* c, int64_t key) {
  close_cursor(c);
  PageFrame* f = pin(c->tree->root);
  while (!is_leaf(f->bytes)) {
    uint32_t child = child_at(f->bytes, lower_bound(f->bytes, key));
    unpin(f);
    f = pin(child);
  }
  c->leaf = f;
  c->place = lower_bound(f->bytes, key);
  return settle(c);
}

static inline int cursor_next(Cursor* c) {
  if (c->leaf == NULL) return 0;
  if (++c->place < count_of(c->leaf->bytes)) return 1;
  return settle(c);
}

static inline int64_t cursor_key(const Cursor* c) { return key_at(c->leaf->bytes, c->place); }

static inline const uint8_t* cursor_record(const Cursor* c, uint32_t* size) {
  const uint8_t* cell = cell_of(c->leaf->bytes, c->place);
  *size = get16(cell + 8);
  return cell + kLeafHeader;
}

// Checks the order of a tree's keys and its number of rows, and returns a checksum of all cells.
static uint64_t check_tree(Tree* t) {
  Cursor c = {t, NULL, 0};
  uint64_t hash = (uint64_t)t->rows;
  int64_t rows = 0, last = INT64_MIN;
  for (int more = cursor_seek(&c, INT64_MIN); more; more = cursor_next(&c)) {
    uint32_t size;
    const uint8_t* record = cursor_record(&c, &size);
    if (rows++ > 0 && cursor_key(&c) <= last) fail("keys are out of order");
    last = cursor_key(&c);
    hash = fold(hash, (uint64_t)last);
    for (uint32_t i = 0; i < size; ++i) hash = fold(hash, record[i]);
  }
  close_cursor(&c);
  if (rows != t->rows) fail("rows were lost");
  return hash;
}

#endif  // UPTIER_EXAMPLES_STORE_TREE_H
