// Trial: two versions of a method in service at once, until it is known which is faster.
//
//   install --> the cell leads to the trial routine (jit/code/routines.h) --> C++ decides
//     the first kWarm calls                        the new version, so that it is in the caches
//     then one call in kGap, as drawn              pair after pair: both versions, in an order
//                                                  drawn for each pair, timed
//     all other calls                              the new version
//   all pairs timed, or `budget` cycles spent --> note --> worker: rank_sum.h, decide_trial
//   --> the cell leads to the version that stays
//
// All calls go through the cell (of stubs, and of optimized callers past the stubs), so none is
// missed, and there is no cost after the trial. The order is drawn at random, since programs call
// methods in patterns. A call that ends in a trap is not timed; nested calls are timed one by one
// (recursion past the cell does not come here).
//
//   Thread: begin_call: any; the rest: with the state mutex. A Trial lives as long as its method: a frame
//   that began in it may end at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "jit/code/routines.h"
#include "tiering/policy/policy.h"

namespace uptier::tiering {

struct Version;

class Trial {
 public:
  static constexpr uint32_t kMostPairs = 64;
  static constexpr uint32_t kWarm = 16;
  static constexpr uint32_t kGap = 4;

  // `budget`: cycles after which the timings so far must do, if there are kLeastPairs. `tiers`: the
  // old version is baseline code, and only the ratio is wanted.
  Trial(const Version& before, const Version& now, uint32_t pairs, uint64_t budget, bool tiers)
      : before(before), now(now), tiers(tiers), pairs_(pairs), budget_(budget) {}

  const Version& before;
  const Version& now;
  const bool tiers;

  // Returns the version for the next call. It draws by the call's number, because the threads'
  // generators belong to sampling.
  jit::TrialCall begin_call() noexcept;
  // Says that nothing is left to time; only to one caller, until it is taken back.
  bool tell() noexcept;
  void tell_again() noexcept { told_.store(false, std::memory_order_relaxed); }

  // Says whether a frame that loops in baseline code probably belongs to the trial, and is not left
  // over from before. Not for ever: a frame that polls often enough must be a left-over one.
  bool explains_baseline() noexcept {
    return tiers && excuses_.fetch_add(1, std::memory_order_relaxed) < kMostExcuses;
  }

  TrialSnapshot snapshot() const;

 private:
  static constexpr uint32_t kLeastPairs = 16;
  static constexpr uint32_t kMostExcuses = 64;

  bool spent(uint32_t taken) const noexcept;
  std::vector<uint64_t> times(bool of_new) const;
  // Says whether the new version goes first in a pair. Any constant without a pattern will do.
  static bool new_first(uint32_t pair) noexcept {
    return ((uint64_t{pair} + 1) * 0x9e3779b97f4a7c15u >> 63) != 0;
  }
  static bool is_new(uint32_t taken) noexcept { return new_first(taken / 2) == (taken % 2 == 0); }

  const uint32_t pairs_;
  const uint64_t budget_;
  // All relaxed: they decide what to time, and guard nothing.
  std::atomic<uint32_t> calls_{0};
  std::atomic<uint32_t> taken_{0};
  std::atomic<uint32_t> excuses_{0};
  std::atomic<bool> over_{false}, told_{false};
  // By number; 0 until the call has ended. Written by the routine, with one plain store each.
  std::array<uint64_t, 2 * size_t{kMostPairs}> cycles_{};
};

}  // namespace uptier::tiering
