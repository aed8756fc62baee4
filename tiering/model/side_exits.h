// MethodExits: counts how often each exit of a method's optimized code was taken, over all
// versions.
//
// Exits are numbered as in jit/analysis/deopt_targets.h, the same in all compilations: guards, then
// blocks, then value sites. The exiting thread counts, and notifies the worker when the count
// reaches the number that the policy wants to know of; all else belongs to the worker.
//
//   Thread: count() and the fields it reads: any; the rest: with the runtime's state mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"
#include "tiering/policy/policy.h"
#include "uptier/report.h"

namespace uptier::tiering {

class MethodExits {
 public:
  MethodExits() = default;
  // `f` as it was built; `forest`: its loops.
  MethodExits(const jit::Function& f, const jit::LoopForest& forest, const PolicyOptions& policy);

  // Counts an exit. Returns whether the worker must be notified.
  bool count(uint32_t exit) noexcept;
  // The worker could not be notified: notify it at the next exit.
  void ask_again(uint32_t exit) noexcept;

  ExitSnapshot snapshot(uint32_t exit) const;
  // Records the policy's answer about an exit; it is asked again after exit_limit more exits. `met`:
  // the limit was reached, which counts as a retry. `banned`: it is not asked again.
  void answer(uint32_t exit, bool met, bool banned, const PolicyOptions& policy);
  // The policy's limits have changed.
  void limits_changed(const PolicyOptions& policy) noexcept;
  // Returns the blocks that stay in a version compiled now, whatever the profile says, by block
  // site - 1: banned ones, and those exited from since the previous version. `loop`: the version is
  // for a loop, in addition to the last whole one, so blocks that stayed there stay here.
  std::vector<uint8_t> kept_blocks(bool loop) const;
  // Returns the value sites without guesses in a version compiled now; `loop` as above.
  std::vector<SiteId> kept_values(bool loop) const;
  // Records that a whole version has been compiled with these.
  void compiled();

  bool is_guard(uint32_t exit) const { return exit < guards_; }
  // Returns "guard 2 (type, @12)", "block 7 (unreached, @30)" or "site 9 (value, @41)", with the
  // position of the location if the table has one: "guard 2 (type, @12, fib.calc:4)".
  std::string name(uint32_t exit, const jit::PositionTable& positions) const;
  // Returns its location if the table has no position of it.
  uint32_t unnamed(uint32_t exit, const jit::PositionTable& positions) const;
  std::vector<ExitReport> report() const;

 private:
  struct Site {
    SiteId block = 0;
    SiteId value = 0;  // the value site; 0: a guard declared by the host, or a block
    GuardReason reason = GuardReason::kUnreached;
    uint32_t location = 0;
    bool in_loop = false;
    bool banned = false;
    bool kept = false;  // in the last whole version, because of its exits
    uint32_t retries = 0;
    uint64_t answered = 0;  // exits that the policy has seen
    uint64_t known = 0;     // number at the last whole version
  };
  struct Counter {
    std::atomic<uint64_t> exits{0};
    std::atomic<uint64_t> ask_at{0};
  };

  void add_values(const jit::Function& f, const std::vector<Site>& blocks);
  bool kept_now(uint32_t exit, bool loop) const;
  uint64_t exits(uint32_t exit) const {
    return counters_[exit].exits.load(std::memory_order_relaxed);
  }

  uint32_t guards_ = 0;
  uint32_t blocks_ = 0;
  std::vector<Site> sites_;
  std::unique_ptr<Counter[]> counters_;  // made before code is installed, never resized
};

}  // namespace uptier::tiering
