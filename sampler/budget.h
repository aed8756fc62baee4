// Budget: a closed loop that keeps what instrumentation costs within a share of the program's time.
//
// Three things hold the line, each faster than the one before:
//
//  1. tick(), at the worker's pace, plans. It knows of every method its opportunities f (calls and
//     slots of loops a ns), the cost c of a sample, its mass w (executions of its sites a ns) and
//     its noise rho (convergence.h). The expected distance of what runs next from the truth is sum
//     w rho / sqrt(n), and the least of it for a given sum c n lies, by Lagrange's rule, where
//
//         n = level * g,    g = (w * rho / c)^(2/3).
//
//     So the level is found (bisection) at which n costs what may be spent in the horizon, n no
//     more than the horizon's opportunities; and the interval is opportunities / n. Samples that a
//     method has already do not count: they stand for what ran when they were taken. A profile of
//     the whole run has the least noise when all of it is sampled alike, since n samples of weights
//     that differ tell less than n equal ones; and a program changes.
//
//     A profile is two distributions, of blocks and of the targets of indirect calls, and the
//     second may lie in methods that are little of the first. So w is the method's share of the
//     blocks and kTargets (1/2) times its share of the targets, once there are enough of them to
//     speak of. A method that has not been sampled yet is taken for what all others are in the mean.
//
//     The limit of that is `enough`: a method of which so many equal samples would be enough is not
//     sampled more densely than they would be, in all that it has done so far: at an interval of
//     opportunities so far / enough at least. So what is known costs ever less, in all
//     enough * ln(opportunities) samples, and what it costs is as good as 2 * enough equal ones.
//
//     The horizon is as long as the past, 50 ms to 2 s.
//
//  2. The account. What may be spent in a horizon is budget * margin * horizon plus the balance:
//     time earns budget * margin, samples cost what cost.h says they do. An overrun is paid back
//     within a quarter of a horizon, so it is the total that stays within the budget; but a quarter
//     of what is earned is spent all the same, since what runs without any sample is what single
//     samples stand for later, with weights in the hundred thousands. Savings of up to 500 ms are
//     kept.
//
//  3. The limit. Threads may take `allowance()` samples until the next tick; one that has taken
//     them takes each further sample at its method's old rate and widens that rate (MethodRate::brake:
//     an interval of 256 at least, four times as wide from there, 8192 at most); a method that is
//     new to it begins at the wider rate. It holds between ticks, before the first, and when the worker is
//     starved.
//
// Hysteresis: a rate is widened when it is a quarter of a rung too narrow, narrowed, by four rungs
// a tick at most, when it is a whole rung too wide, so it is changed by what changes and not by
// noise. A rate that still decays (decay.h) is left to do so until it is where the plan wants it.
// The widest interval is such that some sample is expected in a horizon or two: wider saves nothing
// and learns late of changes.
//
// New methods begin at start_rate(): every call, unless those that were new in the last tick took
// more than half of what could be spent; then at such an interval that they do not.
//
//   Thread: the worker. Time: about 50 ns a method and tick (5,000 methods). Memory: 40 bytes a
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
  double margin = 0.85;  // of the budget that is planned with; the rest is for errors of the model
  uint32_t burst = 32;   // iterations, of the rates given out
  uint32_t target_rung = Ladder::kPowers - 1;  // where new methods' rates end without a plan
};

// What is known of one method at a tick.
struct MethodLoad {
  uint32_t method = 0;
  Rate rate;                 // its present one
  uint64_t samples = 0;      // sampled calls and bursts since the last tick, of all threads
  double opportunities = 0;  // calls, and iterations / burst, likewise; see Progress in schedule.h
  double spent_ns = 0;       // on them: CostModel::spent_ns
  double mass = 0;           // estimated executions of its sites, all in all; 0: not known
  double targets = 0;        // estimated indirect calls, likewise
  double noise = 0;          // Convergence::noise; 0: not known
  uint32_t burst = 0;        // iterations of its slots; 0: as in the options
  uint64_t bursts = 0;       // of the samples
  double total = 0;          // opportunities so far; 0: not known
  double enough = 0;         // samples that would be enough for all of them; 0: not known
  bool wanted = true;        // false: it is off (optimized, resting, without a copy)
};

class Budget {
 public:
  // The ladder outlives this.
  Budget(const BudgetOptions& options, const Ladder& ladder) : options_(options), ladder_(ladder) {}

  // Plans until the next tick. `elapsed_ns`: time the threads have had for guest code since the
  // last one, summed over threads. Writes the rate that each method should have to `rates`, in the
  // order of `loads`; the present one where nothing changes. `loads`: each method at most once;
  // those that are off and not wanted need not be there.
  void tick(uint64_t elapsed_ns, std::span<const MethodLoad> loads, std::span<Rate> rates);

  // Changes what is planned with from the next tick on.
  void set_budget(double budget) { options_.budget = budget; }
  void set_target(uint32_t rung) { options_.target_rung = rung; }
  void set_burst(uint32_t burst) { options_.burst = burst; }

  Rate start_rate() const { return start_rate(options_.burst); }
  Rate start_rate(uint32_t burst) const;
  // Samples that all threads together may take until the next tick.
  uint64_t allowance() const { return allowance_; }
  // Forgets what was seen of a method: another one has its number.
  void forget(uint32_t method) {
    if (method < known_.size()) known_[method] = {};
  }
  // What a runtime allows its first thread before the first tick: the budget of 10 ms.
  uint64_t first_allowance() const;

  // Share of the time that was spent, since the beginning and by the last tick.
  double spent_share() const { return elapsed_ == 0 ? 0 : spent_ / elapsed_; }
  double last_share() const { return last_share_; }
  // By how much the plan widens intervals on the whole: opportunities of all methods over samples.
  double multiplier() const { return multiplier_; }
  double balance_ns() const { return balance_; }

 private:
  struct Known {
    double rate = 0;       // opportunities a ns
    double sample_ns = 0;  // 0: none was taken yet
    double quiet_ns = 0;   // since its last sample
  };
  struct Need {
    double g, most, cost;  // most: samples that make sense
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
  double target_weight_ = 0;  // executions of blocks that one indirect call weighs as much as
  double mean_mass_ = 1;      // of one opportunity
  uint32_t start_rung_ = 0;
};

}  // namespace uptier::sampler
