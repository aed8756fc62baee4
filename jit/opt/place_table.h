// PlaceTable: a hash table from (value, block) to a value.
//
// It uses open addressing in one array, at most half full, and never removes an entry. So it does
// not allocate memory per entry, where node-based hash tables spend most of their time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "uptier/ids.h"

namespace uptier::jit {

class PlaceTable {
 public:
  // Returns the value that was set, or null; valid until the next set().
  const Value* find(Value v, Block b) const {
    if (cells_.empty()) return nullptr;
    const Cell& c = cells_[place(key(v, b))];
    return c.key == kFree ? nullptr : &c.value;
  }

  void set(Value v, Block b, Value to) {
    if (2 * taken_ >= cells_.size()) grow();
    Cell& c = cells_[place(key(v, b))];
    taken_ += c.key == kFree;
    c = {key(v, b), to};
  }

 private:
  struct Cell {
    uint64_t key = kFree;
    Value value;
  };
  static constexpr uint64_t kFree = UINT64_MAX;  // no value or block has this number
  static constexpr unsigned kFirstBits = 6;

  static uint64_t key(Value v, Block b) { return uint64_t{v.index()} << 32 | b.index(); }

  // Returns the cell of a key, or the free one where it belongs.
  size_t place(uint64_t key) const {
    size_t at = (key * 0x9e3779b97f4a7c15ull) >> (64 - bits_);  // Fibonacci hashing
    while (cells_[at].key != key && cells_[at].key != kFree) at = (at + 1) & (cells_.size() - 1);
    return at;
  }

  void grow() {
    bits_ = cells_.empty() ? kFirstBits : bits_ + 1;
    std::vector<Cell> old = std::exchange(cells_, std::vector<Cell>(size_t{1} << bits_));
    for (const Cell& c : old) {
      if (c.key != kFree) cells_[place(c.key)] = c;
    }
  }

  std::vector<Cell> cells_;
  unsigned bits_ = 0;
  size_t taken_ = 0;
};

}  // namespace uptier::jit
