#include "tiering/model/tally_words.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "profile/base/wall.h"

namespace uptier::tiering {

std::optional<uint32_t> TallyWords::take(uint32_t count) {
  assert(count != 0);
  Held held(lock_);
  auto at = free_.find(count);
  if (at != free_.end() && !at->second.empty()) {
    uint32_t first = at->second.back();
    at->second.pop_back();
    return first;
  }
  if (count > sampler::kTallyWords - used_) {
    ++refused_;
    return std::nullopt;
  }
  uint32_t first = used_;
  used_ += count;
  return first;
}

void TallyWords::give_unused(uint32_t first, uint32_t count) noexcept {
  Held held(lock_);
  assert(first + count <= used_);
  finishes([&] {
    lock_.known_held();
    free_[count].push_back(first);
  });
}

void TallyWords::give(uint32_t first, uint32_t count) {
  if (base_.size() < first + count) base_.resize(first + count);
  for (uint32_t w = first; w < first + count; ++w) base_[w] = sum(w);
  give_unused(first, count);
}

uint64_t TallyWords::sum(uint32_t word) const {
  uint64_t sum = word < gone_.size() ? gone_[word] : 0;
  for (const auto& t : threads_) {
    sum += __atomic_load_n(&t->context().tally(word), __ATOMIC_RELAXED);
  }
  return sum;
}

uint64_t TallyWords::count(uint32_t word) const {
  uint64_t before = word < base_.size() ? base_[word] : 0;
  return sum(word) - before;
}

void TallyWords::keep(sampler::ThreadContext& leaving) {
  uint32_t used = 0;
  {
    Held held(lock_);
    used = used_;
  }
  gone_.resize(std::max<size_t>(gone_.size(), used));
  for (uint32_t w = 0; w < used; ++w) gone_[w] += std::exchange(leaving.tally(w), 0);
}

uint64_t TallyWords::refused() const {
  Held held(lock_);
  return refused_;
}

}  // namespace uptier::tiering
