#include "jit/frontend/edge_args.h"

#include <algorithm>

#include "jit/frontend/take_room.h"

namespace uptier {

void EdgeArgs::set(uint32_t edge, uint32_t index, Value v) {
  jit::ValueList& l = lists_[edge];
  if (index >= l.capacity) {
    uint32_t capacity = std::max({4u, index + 1, 2 * l.capacity});
    auto at = static_cast<uint32_t>(pool_.size());
    pool_.resize(pool_.size() + capacity);
    std::copy_n(pool_.begin() + l.at, l.size, pool_.begin() + at);
    l.at = at;
    l.capacity = capacity;
  }
  l.size = std::max(l.size, index + 1);
  pool_[l.at + index] = v;
}

void EdgeArgs::take_room(EdgeArgs& other, size_t most) {
  uptier::take_room(lists_, other.lists_, most);
  uptier::take_room(pool_, other.pool_, most);
}

}  // namespace uptier
