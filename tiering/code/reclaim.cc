#include "tiering/code/reclaim.h"

#include <algorithm>
#include <array>

namespace uptier::tiering {

namespace {

struct Range {
  uintptr_t from, to;

  // A return address may lie just behind the last instruction.
  bool holds(uintptr_t word) const { return word >= from && word <= to; }
};

// Where a version's code is: one part, or two.
std::array<Range, 2> parts_of(const Version& v) {
  auto range = [](const void* at, uint64_t bytes) {
    auto from = reinterpret_cast<uintptr_t>(at);
    return Range{from, from + bytes};
  };
  if (v.code == nullptr) return {range(v.entry, v.code_bytes), range(v.entry, v.code_bytes)};
  uint64_t hot = std::min<uint64_t>(v.code->hot_size(), v.code_bytes);
  return {range(v.code->base(), hot), range(v.code->cold_base(), v.code_bytes - hot)};
}

template <typename T>
Range range_of(const std::unique_ptr<T>& object) {
  auto from = reinterpret_cast<uintptr_t>(object.get());
  return {from, object == nullptr ? from : from + sizeof(T) - 1};
}

}  // namespace

void Reclaimer::retire(Version& v) {
  v.retired.store(true, std::memory_order_relaxed);
  v.retired_ns = now_ns();
  push({&v, 0});
}

void Reclaimer::drop(std::unique_ptr<Version> v) { push({nullptr, 0, std::move(v), nullptr}); }
void Reclaimer::drop(std::unique_ptr<Trial> t) { push({nullptr, 0, nullptr, std::move(t)}); }

void Reclaimer::push(Item item) {
  item.epoch = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  limbo_.push_back(std::move(item));
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
}

// Every word of the stack that could be an address of code keeps the code, and so does one that
// could be the address of its Code: a slow path below may still read its tables. A number that
// looks like one costs memory, never safety. The words belong to frames that stand still.
__attribute__((no_sanitize("address", "thread"))) void Reclaimer::pin_what_stack_needs(
    const AttachedThread& t, std::vector<bool>& pinned) const {
  auto* word = reinterpret_cast<const uintptr_t*>(t.stack_top & ~uintptr_t{7});
  auto* end = reinterpret_cast<const uintptr_t*>(t.stack_end & ~uintptr_t{7});
  uintptr_t low = UINTPTR_MAX, high = 0;
  std::vector<std::array<Range, 2>> parts;
  std::vector<std::pair<uintptr_t, size_t>> codes;
  for (const Item& item : limbo_) {
    if (item.version == nullptr) {
      parts.push_back({range_of(item.dropped), range_of(item.trial)});
    } else {
      codes.emplace_back(reinterpret_cast<uintptr_t>(item.version->code.get()), parts.size());
      parts.push_back(parts_of(*item.version));
    }
    for (const Range& r : parts.back()) {
      if (r.from == 0) continue;
      low = std::min(low, r.from);
      high = std::max(high, r.to);
    }
  }
  std::ranges::sort(codes);
  for (; word < end; ++word) {
    const uintptr_t it = *word;  // only this function may read the words
    auto code = std::ranges::lower_bound(codes, std::pair{it, size_t{0}});
    if (it != 0 && code != codes.end() && code->first == it) pinned[code->second] = true;
    if (it < low || it > high) continue;
    for (size_t i = 0; i < limbo_.size(); ++i) {
      if (parts[i][0].holds(it) || parts[i][1].holds(it)) pinned[i] = true;
    }
  }
}

void Reclaimer::pass_if_unneeded(AttachedThread& t) const {
  if (t.stack_end == 0) return;
  std::vector<bool> pinned(limbo_.size());
  pin_what_stack_needs(t, pinned);
  for (size_t i = 0; i < limbo_.size(); ++i) {
    if (pinned[i] || !is_known(limbo_[i])) return;
  }
  t.epoch.store(epoch(), std::memory_order_seq_cst);
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
      bool known = still && is_known(limbo_[i]);
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
      if (kept != i) limbo_[kept] = std::move(limbo_[i]);
      ++kept;
      continue;
    }
    if (limbo_[i].version == nullptr) continue;
    freed += limbo_[i].version->code_bytes;
    limbo_[i].version->free();
  }
  limbo_.resize(kept);
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
  return freed;
}

}  // namespace uptier::tiering
