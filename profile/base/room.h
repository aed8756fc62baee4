// make_room: reserves memory for further elements of a vector that grows step by step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace uptier {

// After it, `more` elements can be added without an allocation. The capacity at least doubles when
// it grows, so that many calls copy each element a bounded number of times; a bare reserve() would
// copy all of them at each call.
template <typename T>
void make_room(std::vector<T>& v, size_t more) {
  if (v.capacity() - v.size() < more) v.reserve(std::max(2 * v.capacity(), v.size() + more));
}

}  // namespace uptier
