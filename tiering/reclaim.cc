#include "tiering/reclaim.h"

#include <algorithm>

namespace uptier::tiering {

namespace {

const void* start_of(const Version& v) {
  return v.code != nullptr ? static_cast<const void*>(v.code->base()) : v.entry;
}

}  // namespace

void Reclaimer::retire(Version& v) {
  v.retired.store(true, std::memory_order_relaxed);
  v.retired_ns = now_ns();
  uint64_t e = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  limbo_.push_back({&v, e});
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
}

// Every word of the stack that could be an address of code keeps the code: a number that looks like
// one costs memory, never safety. The words belong to frames that stand still.
__attribute__((no_sanitize("address", "thread"))) void Reclaimer::pin_what_stack_needs(
    AttachedThread& t, std::vector<bool>& pinned) const {
  auto* word = reinterpret_cast<const uintptr_t*>(t.stack_top & ~uintptr_t{7});
  auto* end = reinterpret_cast<const uintptr_t*>(t.stack_end & ~uintptr_t{7});
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (const Item& item : limbo_) {
    auto start = reinterpret_cast<uintptr_t>(start_of(*item.version));
    low = std::min(low, start);
    high = std::max<uintptr_t>(high, start + item.version->code_bytes);
  }
  for (; word < end; ++word) {
    // A return address may lie just behind the last instruction.
    if (*word < low || *word > high) continue;
    for (size_t i = 0; i < limbo_.size(); ++i) {
      auto start = reinterpret_cast<uintptr_t>(start_of(*limbo_[i].version));
      if (*word >= start && *word <= start + limbo_[i].version->code_bytes) pinned[i] = true;
    }
  }
}

uint64_t Reclaimer::reclaim(std::span<const std::unique_ptr<AttachedThread>> threads) {
  if (limbo_.empty()) return 0;
  std::vector<bool> pinned(limbo_.size());
  for (const auto& t : threads) {
    // Acquire pairs with the thread's release at its quiescent point: its last use of old code
    // happened before.
    uint64_t seen = t->epoch.load(std::memory_order_acquire);
    if (seen >= limbo_.back().epoch) continue;
    bool still = t->stack_end != 0 && t->begin_look();
    if (still) {
      pin_what_stack_needs(*t, pinned);
      t->end_look();
    }
    for (size_t i = 0; i < limbo_.size(); ++i) {
      bool left_behind = limbo_[i].epoch <= seen;
      bool known = still && limbo_[i].version->code_bytes != 0;
      if (!left_behind && !known) pinned[i] = true;
    }
  }
  return free_all_but(pinned);
}

uint64_t Reclaimer::free_all_but(const std::vector<bool>& pinned) {
  uint64_t freed = 0;
  size_t kept = 0;
  for (size_t i = 0; i < limbo_.size(); ++i) {
    if (pinned[i]) {
      limbo_[kept++] = limbo_[i];
      continue;
    }
    freed += limbo_[i].version->code_bytes;
    limbo_[i].version->free();
  }
  limbo_.resize(kept);
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
  return freed;
}

}  // namespace uptier::tiering
