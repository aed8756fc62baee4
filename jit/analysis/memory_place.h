// MemoryPlace: the address of a load or store, as far as its operands determine it.
//
// Two accesses do not overlap if their alias classes differ; or if base and index are equal up to a
// constant, or the indices are constants, and the bytes are disjoint. An i32 index wraps around at
// 2^32, which is harmless while offsets are small.
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// `root` and `distance` decompose the index: root + a constant. Without a root the index is a
// constant, or there is none.
struct MemoryPlace {
  Value base, index;
  uint64_t offset = 0;
  Value root;
  int64_t distance = 0;  // includes the offset; valid if `near`
  bool near = false;
  uint32_t width = 0;
  unsigned alias = 0;
};

// Returns the place of a load or store.
MemoryPlace place_of(const Function& f, const Inst& access);

// The same, if the access had `other` in place of `operand`.
MemoryPlace place_if(const Function& f, const Inst& access, Value operand, Value other);

inline bool same_place(const MemoryPlace& a, const MemoryPlace& b) {
  return a.base == b.base && a.index == b.index && a.offset == b.offset;
}

bool may_touch(const MemoryPlace& a, const MemoryPlace& b);

// The places that a part of a function, such as a loop, may write.
struct Writes {
  bool anywhere = false;
  std::vector<MemoryPlace> places;

  void add(const Function& f, Block b);
  bool may_touch(const MemoryPlace& p) const;
};

}  // namespace uptier::jit
