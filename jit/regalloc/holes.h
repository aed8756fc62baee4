// Holes: the parts that hold a register and are not live just now, and when they will be again.
//
//   - each register has a list of them, and a heap of when they are due. Who is due, or may meet a
//     part that ends before the others are due, is found without a look at the others: values that
//     rare blocks at the end of a function want stay in their holes up to there, and are many
//   - the order of a list is that of a vector from which parts are taken by moving the last into
//     their place; parts are visited in that order, since costs are summed and ties broken by it
//   - an entry of the heap that does not say what its part is due at is stale; those at the top go
//     at once, the others when they are half of the heap
//
//   Thread: none of its own. Cost: logarithmic for each part that is visited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "jit/target/registers.h"

namespace uptier::jit::machine {

class Holes {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Returns when the first part is due, or kNone.
  uint32_t first_due(unsigned reg) const {
    const List& l = lists_[reg];
    return l.heap.empty() ? kNone : l.heap[0].due;
  }

  void add(unsigned reg, uint32_t part, uint32_t due);

  // Calls `visit(part)` for the parts that are due before `limit`, in the order of the list. It
  // returns when the part is due now; kNone: it is taken out.
  template <typename Visit>
  void sweep(unsigned reg, uint32_t limit, Visit visit);

  // Returns the parts that are due before `limit`, in the order of the list. Valid up to the next
  // call.
  const std::vector<uint32_t>& due_before(unsigned reg, uint32_t limit);

 private:
  struct Entry {
    uint32_t due, part;
    bool operator<(const Entry& o) const { return due > o.due; }  // the top is due first
  };
  struct List {
    std::vector<uint32_t> parts;
    std::vector<Entry> heap;
    size_t stale = 0;  // entries of the heap
  };

  bool is_stale(const Entry& e) const { return due_[e.part] != e.due; }
  void push(List& l, uint32_t part, uint32_t due);
  void take(List& l, uint32_t place);
  void clean(List& l);
  void find_places(const List& l, uint32_t limit);

  List lists_[kRegCount];
  std::vector<uint32_t> place_;   // by part: in its list
  std::vector<uint32_t> due_;     // by part; kNone: it is in no list
  std::vector<uint32_t> places_;  // that were asked for, sorted
  std::vector<uint32_t> parts_;   // that were asked for
  std::vector<size_t> walk_;      // places in the heap
};

template <typename Visit>
void Holes::sweep(unsigned reg, uint32_t limit, Visit visit) {
  if (first_due(reg) >= limit) return;
  List& l = lists_[reg];
  find_places(l, limit);
  for (size_t n = 0, end = places_.size(); n < end;) {
    uint32_t place = places_[n], part = l.parts[place];
    uint32_t due = visit(part);
    if (due != kNone) {
      if (due != due_[part]) {
        ++l.stale;
        push(l, part, due);
      }
      ++n;
      continue;
    }
    // What moves here comes next, if it is to be visited.
    bool last_too = n + 1 < end && places_[end - 1] + 1 == l.parts.size();
    take(l, place);
    last_too ? --end : ++n;
  }
  clean(l);
}

}  // namespace uptier::jit::machine
