// Rate: how densely one method is sampled. It is one word, so that it can change while threads run.
//
// A rate is off, every call, or one of a ladder of intervals: 1, 2, 4, ... 2^27 and a few that a
// user named. Each method has one MethodRate; all threads read it with one load at their events.
//
// The law of windows. A thread counts at the rate that its MethodState has in force. It changes
// that rate only after a flush that has been delivered. So all counts of a thread between two
// delivered flushes were counted at ONE rate, and
//
//     estimate = sum over windows of weight(rate of the window) * (counts at its end - at its
//     start)
//
// is unbiased if the moment of the change does not depend on future decisions. See schedule.h for
// the moments at which a rate may change.
//
//   Thread: Rate and Ladder are values; MethodRate any.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>

#include "sampler/gap.h"

namespace uptier::sampler {

// Samples of a decaying rate at one rung before it moves to the next; see decay.h.
inline constexpr uint32_t kSamplesPerRung = 64;

// A thread beyond its allowance stops widening rates at this interval. It costs 0.25 % of the time
// of a program that only calls, at 100 ns per sample and 5 ns per call. That is little enough to
// wait for the plan; if rates were wider by orders of magnitude, the plan would need many ticks to
// narrow them again.
inline constexpr double kWidestBraked = 8192;

// The intervals that rates choose from, with their gap laws.
//
//   Thread: add(): one writer, before the Rate that names the rung is published. The rest: any.
class Ladder {
 public:
  static constexpr uint32_t kPowers = 28;  // rungs 0 .. 27 are the intervals 2^0 .. 2^27
  static constexpr uint32_t kRungs = 64;   // rungs from 28 on are named by users

  explicit Ladder(GapKind kind = GapKind::kRandom) noexcept;

  const GapLaw& law(uint32_t rung) const noexcept { return laws_[rung]; }
  uint32_t interval(uint32_t rung) const noexcept { return laws_[rung].interval; }

  // Returns the rung of exactly this interval; adds one if necessary. If all rungs are taken,
  // returns the next lower power of two.
  uint32_t add(uint32_t interval) noexcept;
  // Returns the greatest power of two that is not above `interval`.
  static uint32_t power_below(double interval) noexcept;
  // Returns the rung after `rung` on the way to `target`: twice the interval, or the target.
  uint32_t wider(uint32_t rung, uint32_t target) const noexcept;

 private:
  std::array<GapLaw, kRungs> laws_;
  uint32_t used_ = kPowers;
};

enum class RateState : uint8_t { kNone, kOff, kEvery, kSampled };

// {state 2, rung 6, target rung 6, burst 22, epoch 28} bits. Comparable: two rates of different
// epochs are different settings.
struct Rate {
  uint64_t word = 0;

  static constexpr Rate make(RateState state, uint32_t rung, uint32_t target, uint32_t burst) {
    assert(rung < 64 && target < 64);  // six bits each
    return {static_cast<uint64_t>(state) | uint64_t{rung} << 2 | uint64_t{target} << 8 |
            uint64_t{std::min(burst, kLongestBurst)} << 14};
  }
  // Nothing is sampled. Threads notice a change within the bounds that schedule.h states.
  static constexpr Rate off(uint32_t burst) { return make(RateState::kOff, 0, 0, burst); }
  // Samples every call and every iteration.
  static constexpr Rate every(uint32_t burst) { return make(RateState::kEvery, 0, 0, burst); }
  // Samples one call, and one slot of `burst` iterations, per interval of `rung`.
  static constexpr Rate sampled(uint32_t rung, uint32_t burst) {
    return rung == 0 ? every(burst) : make(RateState::kSampled, rung, rung, burst);
  }
  // The same, and widens from `rung` to `target` as samples come in (see decay.h).
  static constexpr Rate decaying(uint32_t rung, uint32_t target, uint32_t burst) {
    assert(rung <= target || target >= 28);  // it widens; user-defined rungs are not ordered
    return make(rung == 0 ? RateState::kEvery : RateState::kSampled, rung, target, burst);
  }

  constexpr RateState state() const { return static_cast<RateState>(word & 3); }
  constexpr bool samples() const { return state() >= RateState::kEvery; }
  constexpr uint32_t rung() const { return (word >> 2) & 63; }
  constexpr uint32_t target() const { return (word >> 8) & 63; }
  constexpr bool decays() const { return samples() && rung() != target(); }
  constexpr uint32_t burst() const { return (word >> 14) & kLongestBurst; }
  constexpr uint32_t epoch() const { return static_cast<uint32_t>(word >> 36); }
  constexpr Rate with_epoch(uint32_t epoch) const {
    return {(word & kSetting) | uint64_t{epoch} << 36};
  }
  constexpr bool same_setting(Rate o) const { return ((word ^ o.word) & kSetting) == 0; }
  bool operator==(const Rate&) const = default;

  static constexpr uint32_t kLongestBurst = (1u << 22) - 1;

 private:
  static constexpr uint64_t kSetting = (uint64_t{1} << 36) - 1;
};
static_assert(sizeof(Rate) == 8);

// Returns how many events one sample stands for at a rate: the factor for the counts of its
// windows. It is 0 if the rate is off: the few counts of frames that were still running belong to
// no rate.
inline uint32_t weight_of(Rate rate, const Ladder& ladder) noexcept {
  return rate.samples() ? ladder.law(rate.rung()).weight() : 0;
}

// The rate of one method, for all threads.
//
//   Thread: any. set() is for the worker, widen() for slow paths; neither blocks.
class MethodRate {
 public:
  // Acquire pairs with set(): the rung that the word names is in the ladder.
  Rate load() const noexcept { return {word_.load(std::memory_order_acquire)}; }

  // Changes the setting and returns true; returns false if it is already the same.
  bool set(Rate rate) noexcept {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    Rate next;
    do {
      if (Rate{seen}.same_setting(rate)) return false;
      next = rate.with_epoch(Rate{seen}.epoch() + 1);
    } while (!word_.compare_exchange_weak(seen, next.word, std::memory_order_release,
                                          std::memory_order_relaxed));
    return true;
  }

  // Makes all threads start again at the same rate, as if it had been changed, because another
  // setting that they use has changed.
  void renew() noexcept {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, Rate{seen}.with_epoch(Rate{seen}.epoch() + 1).word,
                                        std::memory_order_release, std::memory_order_relaxed)) {}
  }

  // Moves a decaying rate one rung on, unless it has changed since it was `seen`.
  bool widen(Rate seen, const Ladder& ladder) noexcept {
    if (!seen.decays()) return false;
    Rate next =
        Rate::decaying(ladder.wider(seen.rung(), seen.target()), seen.target(), seen.burst());
    uint64_t word = seen.word;
    return word_.compare_exchange_strong(word, next.with_epoch(seen.epoch() + 1).word,
                                         std::memory_order_release, std::memory_order_relaxed);
  }

  // Makes a rate four times wider and constant, with an interval of at least 256 and at most
  // kWidestBraked, unless it has changed since it was `seen`. A thread beyond its allowance calls
  // it (see budget.h).
  bool brake(Rate seen, const Ladder& ladder) noexcept {
    if (!seen.samples()) return false;
    double wide = std::clamp(4.0 * ladder.interval(seen.rung()), 256.0, kWidestBraked);
    uint32_t rung = Ladder::power_below(wide);
    assert(rung < Ladder::kPowers);
    if (ladder.interval(rung) <= ladder.interval(seen.rung())) return false;
    uint64_t word = seen.word;
    Rate next = Rate::sampled(rung, seen.burst()).with_epoch(seen.epoch() + 1);
    return word_.compare_exchange_strong(word, next.word, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> word_{0};
};

}  // namespace uptier::sampler
