// take_room: reuses the memory of a table for another one.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace uptier {

// Makes `to` an empty vector with the memory of `from`, unless that is more than `most` bytes.
template <typename T>
void take_room(std::vector<T>& to, std::vector<T>& from, size_t most) {
  if (from.capacity() * sizeof(T) > most) return;
  from.clear();
  to = std::move(from);
}

}  // namespace uptier
