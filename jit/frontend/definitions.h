// Definitions: the known values of Variables at the ends of blocks, for a builder.
//
// Most questions are about the block in which a Variable was last defined or looked up, so that
// answer is stored with the Variable. When another block takes its place, the answer moves to one
// flat hash table: entries are not allocated one by one, nor freed one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "uptier/ids.h"

namespace uptier {

class Definitions {
 public:
  void reserve(size_t variables) { last_.reserve(variables); }
  // Forgets everything, but keeps the memory.
  void clear() {
    last_.clear();
    table_.clear();
    shift_ = 64;
    mask_ = room_ = 0;
  }
  // Returns the size of the tables.
  size_t bytes() const {
    return last_.capacity() * sizeof(Entry) + (table_.capacity() + old_.capacity()) * sizeof(Cell);
  }
  // Adds the next Variable; they come in the order of their indices.
  void declare() { last_.emplace_back(); }

  // Returns the value at the end of `b`, null if it is not known; valid until the next set().
  const Value* find(Variable x, Block b) const {
    const Entry& last = last_[x.index()];
    if (last.block == b) return &last.value;
    if (table_.empty()) return nullptr;
    const Cell& c = table_[place(key(x, b))];
    return c.key == kFree ? nullptr : &c.value;
  }

  void set(Variable x, Block b, Value v) {
    Entry& last = last_[x.index()];
    if (last.block != b && last.block.valid()) keep(key(x, last.block), last.value);
    last = {b, v};
  }

 private:
  struct Entry {
    Block block;
    Value value;
  };
  struct Cell {
    uint64_t key = kFree;
    Value value;
  };
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr unsigned kFirstBits = 7;

  static uint64_t key(Variable x, Block b) { return uint64_t{x.index()} << 32 | b.index(); }

  // Returns the cell of a key, or the free cell for it. At most half of the cells are taken.
  size_t place(uint64_t key) const {
    size_t at = (key * 0x9e3779b97f4a7c15ull) >> shift_;  // Fibonacci hashing
    while (table_[at].key != key && table_[at].key != kFree) at = (at + 1) & mask_;
    return at;
  }

  void keep(uint64_t key, Value v) {
    if (room_ == 0) grow();
    Cell& c = table_[place(key)];
    room_ -= c.key == kFree;
    c = {key, v};
  }

  void grow() {
    old_.swap(table_);
    shift_ = old_.empty() ? 64 - kFirstBits : shift_ - 2;
    size_t size = size_t{1} << (64 - shift_);
    table_.assign(size, {});
    mask_ = size - 1;
    room_ = size / 2 - old_.size() / 2;
    for (const Cell& c : old_) {
      if (c.key != kFree) table_[place(c.key)] = c;
    }
  }

  std::vector<Entry> last_;  // by Variable
  std::vector<Cell> table_;
  std::vector<Cell> old_;  // the table before it grew; its memory is reused when it grows again
  unsigned shift_ = 64;    // shifts a hash right to as many bits as the table size needs
  size_t mask_ = 0;
  size_t room_ = 0;  // cells that may still be taken before the table grows
};

}  // namespace uptier
