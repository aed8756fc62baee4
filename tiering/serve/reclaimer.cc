#include "tiering/serve/reclaimer.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/model/event_of.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace uptier::tiering {

struct CodeRange {
  uintptr_t from, to;

  // A return address may point just past the last instruction.
  bool holds(uintptr_t word) const { return word >= from && word <= to; }
};

namespace {

// Returns the address ranges of a version's code: one part, or two.
std::array<CodeRange, 2> parts_of(const Version& v) {
  auto range = [](const void* at, uint64_t bytes) {
    auto from = reinterpret_cast<uintptr_t>(at);
    return CodeRange{from, from + bytes};
  };
  if (v.code == nullptr) return {range(v.entry, v.code_bytes), range(v.entry, v.code_bytes)};
  uint64_t hot = std::min<uint64_t>(v.code->hot_size(), v.code_bytes);
  return {range(v.code->base(), hot), range(v.code->cold_base(), v.code_bytes - hot)};
}

template <typename T>
CodeRange range_of(const std::unique_ptr<T>& object) {
  auto from = reinterpret_cast<uintptr_t>(object.get());
  return {from, object == nullptr ? from : from + sizeof(T) - 1};
}

}  // namespace

void Reclaimer::retire(Version& v) {
  assert(!v.retired && !v.freed);  // in service -> retired -> freed
  v.retired.store(true, std::memory_order_relaxed);
  v.retired_ns = now_ns();
  if (!v.moved) events_.emit(event_of(EventKind::kRetired, v, v.retired_ns));
  push({&v, 0});
}

void Reclaimer::leave(Method& m) { push({.version = nullptr, .epoch = 0, .method = &m}); }
void Reclaimer::drop(std::unique_ptr<Version> v) { push({nullptr, 0, std::move(v), nullptr}); }
void Reclaimer::drop(std::unique_ptr<Trial> t) { push({nullptr, 0, nullptr, std::move(t)}); }

void Reclaimer::push(Item item) noexcept {
  item.epoch = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  assert(limbo_.empty() || limbo_.back().epoch < item.epoch);
  if (!finishes([&] { limbo_.push_back(std::move(item)); })) {
    (void)item.dropped.release();
    (void)item.trial.release();
  }
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
}

// Compilers compare words in vector registers, too. Words left there would be found again: a frame
// that leaves code saves all vector registers on the stack (jit/code/leave.h), call after call.
static void forget_words() {
  asm volatile(
      "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3;"
      "pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7;"
      "pxor %%xmm8, %%xmm8; pxor %%xmm9, %%xmm9; pxor %%xmm10, %%xmm10; pxor %%xmm11, %%xmm11;"
      "pxor %%xmm12, %%xmm12; pxor %%xmm13, %%xmm13; pxor %%xmm14, %%xmm14; pxor %%xmm15, %%xmm15"
      :
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

// A stack word that could be an address in code keeps that code. A word that could be the address
// of a Code keeps it, because a slow path further down may still read its tables. A number that
// only looks like an address costs memory, never safety. The words belong to frames that do not
// move.
class Reclaimer::Sought {
 public:
  explicit Sought(std::span<const Item> limbo) {
    for (const Item& item : limbo) {
      if (item.method != nullptr) {
        methods_.emplace_back(item.method, parts_.size());
        parts_.push_back({});  // found through methods_ only: there may be thousands
        continue;
      }
      if (item.version == nullptr) {
        parts_.push_back({range_of(item.dropped), range_of(item.trial)});
      } else {
        codes_.emplace_back(reinterpret_cast<uintptr_t>(item.version->code.get()), parts_.size());
        parts_.push_back(parts_of(*item.version));
      }
      for (const CodeRange& r : parts_.back()) {
        if (r.from == 0) continue;
        low_ = std::min(low_, r.from);
        high_ = std::max(high_, r.to);
      }
    }
    std::ranges::sort(codes_);
    std::ranges::sort(methods_);
    if (codes_.empty()) return;
    first_code_ = codes_.front().first;
    last_code_ = codes_.back().first;
  }

  __attribute__((no_sanitize("address", "thread"))) void mark(ThreadStacks::Words words,
                                                              std::vector<bool>& pinned) const {
    assert(words.from <= words.to && pinned.size() == parts_.size());
    auto* word = reinterpret_cast<const uintptr_t*>(words.from & ~uintptr_t{7});
    auto* end = reinterpret_cast<const uintptr_t*>(words.to & ~uintptr_t{7});
    for (; word < end; ++word) {
      const uintptr_t it = *word;  // only this function may read the words
      // Most words are no address at all: they are told apart by two comparisons.
      if (it >= first_code_ && it <= last_code_) {
        auto code = std::ranges::lower_bound(codes_, std::pair{it, size_t{0}});
        if (it != 0 && code != codes_.end() && code->first == it) pinned[code->second] = true;
      }
      if (it < low_ || it > high_) continue;
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i][0].holds(it) || parts_[i][1].holds(it)) pinned[i] = true;
      }
    }
    forget_words();
  }

  void mark(const Method* m, std::vector<bool>& pinned) const {
    auto method = std::ranges::lower_bound(methods_, std::pair{m, size_t{0}});
    if (method != methods_.end() && method->first == m) pinned[method->second] = true;
  }

 private:
  uintptr_t low_ = UINTPTR_MAX, high_ = 0;
  uintptr_t first_code_ = UINTPTR_MAX, last_code_ = 0;  // of codes_
  std::vector<std::array<CodeRange, 2>> parts_;
  std::vector<std::pair<uintptr_t, size_t>> codes_;
  std::vector<std::pair<const Method*, size_t>> methods_;
};

void Reclaimer::pin_what_stacks_need(const AttachedThread& t, std::vector<bool>& pinned) const {
  const Sought sought(limbo_);
  t.stacks.each(t.stack_top, [&](ThreadStacks::Words words) { sought.mark(words, pinned); });
  t.stacks.each_pinned([&](const Method* m) { sought.mark(m, pinned); });
}

void Reclaimer::pass_if_unneeded(AttachedThread& t) const {
  assert(t.epoch.load(std::memory_order_relaxed) <= epoch());
  if (!t.stacks.known()) return;
  std::vector<bool> pinned(limbo_.size());
  pin_what_stacks_need(t, pinned);
  for (size_t i = 0; i < limbo_.size(); ++i) {
    if (pinned[i] || !is_known(limbo_[i])) return;
  }
  t.epoch.store(epoch(), std::memory_order_seq_cst);
}

Reclaimer::Freed Reclaimer::reclaim(std::span<const std::unique_ptr<AttachedThread>> threads) {
  if (limbo_.empty()) return {};
  std::vector<bool> pinned(limbo_.size());
  for (const auto& t : threads) {
    // Acquire pairs with the thread's release at its quiescent point: its last use of old code
    // happened before.
    uint64_t seen = t->epoch.load(std::memory_order_acquire);
    assert(seen <= epoch());
    if (seen >= limbo_.back().epoch) continue;
    bool still = t->stacks.known() && t->begin_look();
    if (still) {
      bool looked = finishes([&] { pin_what_stacks_need(*t, pinned); });
      t->end_look();
      if (!looked) return {};
    }
    assert(std::ranges::is_sorted(limbo_, {}, &Item::epoch));
    for (size_t i = 0; i < limbo_.size(); ++i) {
      bool left_behind = limbo_[i].epoch <= seen;
      bool known = still && is_known(limbo_[i]);
      if (!left_behind && !known) pinned[i] = true;
    }
  }
  return free_all_but(pinned);
}

void Reclaimer::tell_before_free(const std::vector<bool>& pinned) const {
  if (before_free_ == nullptr) return;
  std::vector<Version*> versions;
  for (size_t i = 0; i < limbo_.size(); ++i) {
    if (!pinned[i] && limbo_[i].version != nullptr) versions.push_back(limbo_[i].version);
  }
  if (!versions.empty()) before_free_(before_free_user_, versions);
}

Reclaimer::Freed Reclaimer::free_all_but(const std::vector<bool>& pinned) {
  assert(pinned.size() == limbo_.size());
  Freed freed;
  freed.versions.reserve(limbo_.size());
  freed.methods.reserve(limbo_.size());
  tell_before_free(pinned);
  size_t kept = 0;
  for (size_t i = 0; i < limbo_.size(); ++i) {
    if (pinned[i]) {
      if (kept != i) limbo_[kept] = std::move(limbo_[i]);
      ++kept;
      continue;
    }
    if (limbo_[i].method != nullptr) freed.methods.push_back(limbo_[i].method);
    if (limbo_[i].version == nullptr) continue;
    assert(limbo_[i].version->retired && !limbo_[i].version->freed);
    limbo_[i].version->free();
    if (!limbo_[i].version->moved) {
      events_.emit(event_of(EventKind::kFreed, *limbo_[i].version));
    }
    freed.versions.push_back(limbo_[i].version);
  }
  limbo_.resize(kept);
  limbo_size_.store(limbo_.size(), std::memory_order_relaxed);
  return freed;
}

}  // namespace uptier::tiering
