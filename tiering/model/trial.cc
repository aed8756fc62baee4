#include "tiering/model/trial.h"

#include <algorithm>
#include <cassert>

#include "sampler/gap.h"
#include "tiering/model/method.h"
#include "tiering/policy/rank_sum.h"

namespace uptier::tiering {
namespace {

uint64_t load(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

}  // namespace

jit::TrialCall Trial::begin_call() noexcept {
  jit::TrialCall plain{now.entry, nullptr};
  if (over_.load(std::memory_order_relaxed)) return plain;
  uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed);
  uint64_t draw = (uint64_t{call} + 1) * 0x9e3779b97f4a7c15u;
  if (call < kWarm || sampler::next_random(draw) % kGap != 0) return plain;
  assert(pairs_ <= kMostPairs);
  uint32_t n = taken_.fetch_add(1, std::memory_order_relaxed);
  if (n >= 2 * pairs_ || (n % 2 == 0 && spent(n))) {
    over_.store(true, std::memory_order_relaxed);
    return plain;
  }
  return {(is_new(n) ? now : before).entry, &cycles_[n]};
}

bool Trial::spent(uint32_t taken) const noexcept {
  assert(taken <= 2 * pairs_);
  if (taken < 2 * kLeastPairs) return false;
  uint64_t sum = 0;
  for (uint32_t n = 0; n < taken; ++n) sum += load(cycles_[n]);
  return sum > budget_;
}

bool Trial::tell() noexcept {
  return over_.load(std::memory_order_relaxed) && !told_.exchange(true, std::memory_order_relaxed);
}

std::vector<uint64_t> Trial::times(bool of_new) const {
  std::vector<uint64_t> t;
  for (uint32_t n = 0; n < 2 * pairs_; ++n) {
    uint64_t cycles = load(cycles_[n]);
    if (cycles != 0 && is_new(n) == of_new) t.push_back(cycles);
  }
  return t;
}

TrialSnapshot Trial::snapshot() const {
  std::vector<uint64_t> was = times(false), is = times(true);
  assert(was.size() <= pairs_ && is.size() <= pairs_);  // each pair times both
  RankSum r = rank_sum(is, was);
  return {was.size(), is.size(), r.median_b, r.median_a, r.z, tiers};
}

}  // namespace uptier::tiering
