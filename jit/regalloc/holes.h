// Holes: the parts that hold a register but are not live at the moment, and when each is due, that
// is, live again.
//
//   - each register has a list of such parts, and a heap ordered by when they are due. A search for
//     parts that are due, or may overlap a part that ends before the others are due, does not look
//     at the others. There can be many: a value that only rare blocks at the end of a function use
//     stays in its hole until then
//   - removing a part moves the last one of the list into its place. Parts are visited in list
//     order, because costs are summed and ties are broken in that order
//   - an entry of the heap is stale if it differs from the part's own due position. Stale entries
//     at the top are removed at once, the others when they make up half of the heap
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

  // Calls `visit(part)` for the parts that are due before `limit`, in list order. `visit` returns
  // when the part is due next, or kNone to remove it.
  template <typename Visit>
  void sweep(unsigned reg, uint32_t limit, Visit visit);

  // Returns the parts that are due before `limit`, in list order. Valid until the next call.
  const std::vector<uint32_t>& due_before(unsigned reg, uint32_t limit);

 private:
  struct Entry {
    uint32_t due, part;
    bool operator<(const Entry& o) const { return due > o.due; }  // puts the earliest on top
  };
  struct List {
    std::vector<uint32_t> parts;
    std::vector<Entry> heap;
    size_t stale = 0;  // number of stale entries in the heap
  };

  bool is_stale(const Entry& e) const { return due_[e.part] != e.due; }
  void push(List& l, uint32_t part, uint32_t due);
  void take(List& l, uint32_t place);
  void clean(List& l);
  void find_places(const List& l, uint32_t limit);

  List lists_[kRegCount];
  std::vector<uint32_t> place_;   // by part: index in its list
  std::vector<uint32_t> due_;     // by part; kNone: the part is in no list
  std::vector<uint32_t> places_;  // results of find_places(), sorted
  std::vector<uint32_t> parts_;   // results of due_before()
  std::vector<size_t> walk_;      // indices in the heap
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
    // The last part moves to `place`. If it is to be visited as well, it is the next one.
    bool last_too = n + 1 < end && places_[end - 1] + 1 == l.parts.size();
    take(l, place);
    last_too ? --end : ++n;
  }
  clean(l);
}

}  // namespace uptier::jit::machine
