#include "tiering/reclaim.h"

#include <algorithm>

namespace uptier::tiering {

void Reclaimer::retire(Version& v) {
  v.retired.store(true, std::memory_order_relaxed);
  uint64_t e = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  limbo_.push_back({&v, e});
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
}

uint64_t Reclaimer::reclaim(std::span<const std::unique_ptr<AttachedThread>> threads) {
  uint64_t oldest = epoch();
  for (const auto& t : threads) {
    // Acquire pairs with the thread's release at its quiescent point: its last use of old code
    // happened before.
    oldest = std::min(oldest, t->epoch.load(std::memory_order_acquire));
  }
  uint64_t freed = 0;
  std::erase_if(limbo_, [&](const Item& item) {
    if (item.epoch > oldest) return false;
    freed += item.version->code_bytes;
    item.version->code.reset();
    return true;
  });
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
  return freed;
}

}  // namespace uptier::tiering
