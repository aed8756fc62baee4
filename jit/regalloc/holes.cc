#include "jit/regalloc/holes.h"

#include <algorithm>

namespace uptier::jit::machine {

void Holes::add(unsigned reg, uint32_t part, uint32_t due) {
  if (due_.size() <= part) {
    due_.resize(part + 1, kNone);
    place_.resize(part + 1, kNone);
  }
  List& l = lists_[reg];
  place_[part] = static_cast<uint32_t>(l.parts.size());
  l.parts.push_back(part);
  push(l, part, due);
}

void Holes::push(List& l, uint32_t part, uint32_t due) {
  due_[part] = due;
  l.heap.push_back({due, part});
  std::push_heap(l.heap.begin(), l.heap.end());
}

void Holes::take(List& l, uint32_t place) {
  due_[l.parts[place]] = kNone;
  ++l.stale;
  l.parts[place] = l.parts.back();
  place_[l.parts[place]] = place;
  l.parts.pop_back();
}

void Holes::clean(List& l) {
  while (!l.heap.empty() && is_stale(l.heap[0])) {
    std::pop_heap(l.heap.begin(), l.heap.end());
    l.heap.pop_back();
    --l.stale;
  }
  if (2 * l.stale <= l.heap.size()) return;
  std::erase_if(l.heap, [&](const Entry& e) { return is_stale(e); });
  std::make_heap(l.heap.begin(), l.heap.end());
  l.stale = 0;
}

// Finds the places of the parts that are due before `limit`. Descends the heap only while entries
// are due before it.
void Holes::find_places(const List& l, uint32_t limit) {
  places_.clear();
  walk_.assign(1, 0);
  while (!walk_.empty()) {
    size_t at = walk_.back();
    walk_.pop_back();
    if (at >= l.heap.size() || l.heap[at].due >= limit) continue;
    if (!is_stale(l.heap[at])) places_.push_back(place_[l.heap[at].part]);
    walk_.push_back(2 * at + 1);
    walk_.push_back(2 * at + 2);
  }
  std::sort(places_.begin(), places_.end());
}

const std::vector<uint32_t>& Holes::due_before(unsigned reg, uint32_t limit) {
  parts_.clear();
  if (first_due(reg) >= limit) return parts_;
  const List& l = lists_[reg];
  find_places(l, limit);
  for (uint32_t place : places_) parts_.push_back(l.parts[place]);
  return parts_;
}

}  // namespace uptier::jit::machine
