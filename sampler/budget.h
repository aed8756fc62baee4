// Budget: a closed loop that keeps the cost of instrumentation within a share of the program's
// time.
//
// Three mechanisms enforce the budget, each faster than the one before:
//
// 1. tick() plans, at the worker's pace. For every method it knows the opportunities f (calls and
// loop slots per ns), the cost c of a sample, the mass w (executions of its sites per ns) and the
// noise rho (convergence.h). The expected distance between the profile and the code that runs next
// is sum w rho / sqrt(n). By Lagrange's rule it is least, for a given cost sum c n, where
//
//     n = level * g,    g = (w * rho / c)^(2/3).
//
// A bisection finds the level at which the n samples cost what the horizon allows; n is at most the
// opportunities of the horizon. The interval is then opportunities / n. Samples that a method
// already has do not count: they stand for the code that ran when they were taken. A profile of the
// whole run has the least noise when all of the run is sampled alike, since n samples of unequal
// weights tell less than n equal ones; and programs change.
//
// A profile consists of two distributions: blocks, and targets of indirect calls. Methods with many
// indirect calls may have few of the blocks. So w is the method's share of the blocks plus kTargets
// (1/2) times its share of the targets, once there are enough targets. A method that has not been
// sampled yet is assumed to be like the mean of all others.
//
// `enough` limits n: if so many equal samples would be enough for all that a method has done so
// far, the method is not sampled more densely than they would be. Its interval is at least
// opportunities so far / enough. So known methods cost ever less: enough * ln(opportunities)
// samples in all, which are as good as 2 * enough equal ones.
//
// The horizon is as long as the past, but at least 50 ms and at most 2 s.
//
// 2. The account. The spending of a horizon is budget * margin * horizon plus the balance. Time
// earns budget * margin; samples cost what cost.h says. An overrun is paid back within a quarter of
// a horizon, so the total stays within the budget. A quarter of the earnings is spent even then:
// otherwise code would run without any sample, and single later samples would stand for it with
// weights in the hundred thousands. Savings are kept up to 500 ms.
//
// 3. The limit. Threads may take `allowance()` samples until the next tick. Beyond that, a thread
// takes each further sample at its method's old rate and widens that rate (MethodRate::brake: to an
// interval of at least 256, then four times as wide each time, at most 8192). A method that is new
// to the thread begins at the wider rate. The limit holds between ticks, before the first tick, and
// when the worker is starved.
//
// Hysteresis: a rate is widened when it is a quarter of a rung too narrow. It is narrowed, by at
// most four rungs a tick, when it is a whole rung too wide. So real changes move it, and noise does
// not. A rate that still decays (decay.h) is left alone until it reaches its planned interval. The
// widest interval is one at which a sample is expected every horizon or two: a wider one saves
// nothing and notices changes late.
//
// New methods begin at start_rate(): every call, unless the methods that were new in the last tick
// used more than half of the available budget. Then the start interval is widened until they do
// not.
//
//   Thread: the worker. Time: about 50 ns per method and tick (5,000 methods). Memory: 40 bytes per
//   method.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sampler/rate.h"

namespace uptier::sampler {

struct BudgetOptions {
  double budget = 0.01;  // share of the threads' time
  double margin = 0.85;  // the planned part of the budget; the rest covers errors of the model
  uint32_t burst = 32;   // iterations; of the rates that are set
  uint32_t target_rung = Ladder::kPowers - 1;  // where the rates of new methods end without a plan
};

// The data of one method at a tick.
struct MethodLoad {
  uint32_t method = 0;
  Rate rate;                 // the current one
  uint64_t samples = 0;      // sampled calls and bursts since the last tick, of all threads
  double opportunities = 0;  // calls, and iterations / burst, since then; see Progress in
                             // schedule.h
  double spent_ns = 0;       // on these samples: CostModel::spent_ns
  double mass = 0;           // estimated executions of its sites in total; 0: not known
  double targets = 0;        // estimated indirect calls in total
  double noise = 0;          // Convergence::noise; 0: not known
  uint32_t burst = 0;        // iterations of its slots; 0: as in the options
  uint64_t bursts = 0;       // how many of the samples are bursts
  double total = 0;          // opportunities so far; 0: not known
  double enough = 0;         // samples that would be enough for all of them; 0: not known
  bool wanted = true;        // false: it is off (optimized, resting, without a copy)
};

class Budget {
 public:
  // The ladder outlives this.
  Budget(const BudgetOptions& options, const Ladder& ladder) : options_(options), ladder_(ladder) {}

  // Plans until the next tick. `elapsed_ns` is the time that threads had for guest code since the
  // last tick, summed over threads. Writes the rate that each method should have to `rates`, in the
  // order of `loads`; it is the current rate if nothing changes. `loads` has each method at most
  // once; methods that are off and not wanted may be left out.
  void tick(uint64_t elapsed_ns, std::span<const MethodLoad> loads, std::span<Rate> rates);

  // Change the settings from the next tick on.
  void set_budget(double budget) { options_.budget = budget; }
  void set_target(uint32_t rung) { options_.target_rung = rung; }
  void set_burst(uint32_t burst) { options_.burst = burst; }

  Rate start_rate() const { return start_rate(options_.burst); }
  Rate start_rate(uint32_t burst) const;
  // Samples that all threads together may take until the next tick.
  uint64_t allowance() const { return allowance_; }
  // Forgets the history of a method, because another method has its number now.
  void forget(uint32_t method) {
    if (method < known_.size()) known_[method] = {};
  }
  // Returns the samples that a runtime allows its first thread before the first tick: the budget of
  // 10 ms.
  uint64_t first_allowance() const;

  // Return the share of the time that was spent: since the beginning, and in the last tick.
  double spent_share() const { return elapsed_ == 0 ? 0 : spent_ / elapsed_; }
  double last_share() const { return last_share_; }
  // Returns how far the plan widens intervals on the whole: opportunities over samples, of all
  // methods.
  double multiplier() const { return multiplier_; }
  double balance_ns() const { return balance_; }

 private:
  struct Known {
    double rate = 0;       // opportunities a ns
    double sample_ns = 0;  // 0: no sample was taken yet
    double quiet_ns = 0;   // since its last sample
  };
  struct Need {
    double g, most, cost;  // most: useful samples
    double opportunities;  // in the horizon
    double at(double level) const { return std::min(level * g, most); }
  };

  void account(double elapsed, std::span<const MethodLoad> loads);
  void observe(Known& k, const MethodLoad& load, double elapsed) const;
  Need need_of(const Known& k, const MethodLoad& load, double horizon) const;
  double mass_of(const MethodLoad& load) const;  // for each opportunity
  void weigh_masses(std::span<const MethodLoad> loads);
  double level_for(double spend) const;
  Rate rate_for(const MethodLoad& load, const Need& need, double missing) const;
  void adapt_start(double born_ns, double could_spend);

  double interval_of(Rate r) const { return ladder_.interval(r.rung()); }

  BudgetOptions options_;
  const Ladder& ladder_;
  std::vector<Known> known_;
  std::vector<Need> needs_;
  double elapsed_ = 0, spent_ = 0, balance_ = 0, last_share_ = 0, multiplier_ = 1;
  double mean_sample_ns_ = 100;  // a guess until there are some
  uint64_t allowance_ = 0;
  double target_weight_ = 0;  // one indirect call weighs as much as this many block executions
  double mean_mass_ = 1;      // of one opportunity
  uint32_t start_rung_ = 0;
};

}  // namespace uptier::sampler
