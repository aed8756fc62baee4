// RateControl: the adaptive schedule. The worker sets the sampling rate of each method here.
//
// A method is observed from its first flush on: its instrumented copy is made, and its rate is off
// until the copy exists. Methods with fewer calls are not worth a second body.
//
//   learning --converged--> known --thin--> resting --look due--> looking --like the baseline-->
//       ^                     |                                      |                  resting
//       +------ drifted ------+---------------- drifted -------------+
//
// The budget (sampler/budget.h) gives a method its rate at every tick. A known method is still
// sampled, ever more thinly: kEnough times the samples that convergence.h asks for are enough for
// all its opportunities (calls, and slots of loops) so far. If sampling ended there, the profile
// would describe the beginning of the program. At one sample in kThin the method rests: its rate is
// off and its instrumented copy goes. The stub's decrement stays, since stubs are immutable, and so
// does the check in the plain copy's loops. When its opportunities have grown by one part in
// kLooks, the method is sampled for one window; so a window never stands for more than that share
// of the profile. A window that is unlike the baseline is drift. It is logged as re_instrument (the
// first drift, then each time their number has doubled), the policy is asked
// (MethodSnapshot::phase_drift), and the method is learnt again.
//
// If rates do not adapt, all methods have the same rate. If every call is sampled, or methods are
// sampled in turns, there are no rates (has_rates()).
//
//   Thread: the worker, with the state mutex; with workers = 0, the thread that flushes. sampling(), ticks()
//   and the activity functions: any, without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sampler/budget.h"
#include "sampler/cost.h"
#include "sampler/fast_sample.h"
#include "sampler/schedule.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/requests.h"
#include "tiering/control/tick_list.h"
#include "tiering/model/method_table.h"
#include "tiering/model/threads.h"
#include "tiering/observe/observer.h"
#include "tiering/serve/reclaimer.h"
#include "uptier/options.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

void operator+=(sampler::Progress& a, const sampler::Progress& b);

class RateControl {
 public:
  // Its dependencies; all outlive it, and need not be complete before it is used.
  struct Parts {
    const Options& options;
    const Options& live;  // the options with later changes
    sampler::Schedule& schedule;
    sampler::Schedule& counting;  // the same without sampled calls
    sampler::FastSampling& fast;  // has the rates in force
    const MethodTable& methods;
    const Threads& threads;
    Observer& observer;
    Reclaimer& reclaimer;
    Requests& requests;
  };
  explicit RateControl(const Parts& parts);

  // Says whether each method has a rate of its own, which may change.
  bool has_rates() const;
  bool has_budget() const { return budget_.has_value(); }
  // Returns the setting that overrides all rates.
  Sampling sampling() const noexcept { return sampling_.load(std::memory_order_relaxed); }

  // Measures the time stamp counter, if there is a budget, and returns the result. The caller does
  // not hold the state mutex.
  std::optional<sampler::CycleClock> measure_clock(WaitedMutex& state_mutex);

  // Marks / tests whether guest code ran since the last tick.
  void note_activity() noexcept { active_.store(true, std::memory_order_relaxed); }
  bool active() const noexcept { return active_.load(std::memory_order_relaxed); }
  // Says whether a tick is needed.
  bool ticks() const noexcept { return has_budget() && active(); }
  void tick_if_due() UPTIER_REQUIRES(state_lock);

  // A place has a new method; `again`: it had another before. The method begins at the rate of
  // methods without copies.
  void add(uint32_t place, bool again) UPTIER_REQUIRES(state_lock);
  // The method of a place is forgotten.
  void forget(uint32_t place);
  // A thread has attached; it detaches.
  void thread_came() UPTIER_REQUIRES(state_lock);
  void thread_goes(AttachedThread& t);

  // Counts of a method were flushed, for the first time or again.
  void note_flushed(Method& m) UPTIER_REQUIRES(state_lock);
  // Acts on the verdict of a window.
  void heed(Method& m, sampler::Verdict v) UPTIER_REQUIRES(state_lock);
  // Requests the instrumented copy of a method with enough calls to be observed.
  void want_copy(Method& m) UPTIER_REQUIRES(state_lock);
  // The copy exists: sets the rate for the current phase.
  void begin_observing(Method& m);
  // Stops sampling a method, unless a setting overrides all rates.
  void switch_off(Method& m);
  // After a change of epsilon: methods that are no longer known well enough are learnt further,
  // from where they were. Methods that are now known well enough are found at their next flush.
  void learn_on(Method& m) UPTIER_REQUIRES(state_lock);
  // Returns the progress of all threads together in a method.
  sampler::Progress progress_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Returns the cost of the samples in `since`, by the model. `all` are the samples that the
  // method's counts come from.
  double spent_ns(const Method& m, const sampler::Progress& all,
                  const sampler::Progress& since) const;

  // Apply changed settings of `live`, each named like its function, and a new override of all
  // rates, to methods in service.
  void change_budget();
  void change_burst() UPTIER_REQUIRES(state_lock);
  void change_flushes();
  void change_interval();
  void observe(Sampling how) UPTIER_REQUIRES(state_lock);

  // Returns the share of the threads' time that was spent, or nothing without a budget.
  std::optional<double> spent_share() const;

 private:
  bool load_of(Method& m, std::vector<sampler::MethodLoad>& loads) UPTIER_REQUIRES(state_lock);
  double opportunities(const Method& m, const sampler::Progress& p) const;
  void tick(uint64_t now) UPTIER_REQUIRES(state_lock);
  void give_allowance() UPTIER_REQUIRES(state_lock);
  void rest(Method& m) UPTIER_REQUIRES(state_lock);
  void look_again(Method& m) UPTIER_REQUIRES(state_lock);
  void observe_again(Method& m) UPTIER_REQUIRES(state_lock);
  sampler::Rate off_rate() const;
  void put_rate(uint32_t place, sampler::Rate planned);
  void put_fixed_rate();

  const Options& options_;
  const Options& live_;
  sampler::Schedule& schedule_;
  sampler::Schedule& counting_;
  sampler::FastSampling& fast_;
  const MethodTable& methods_;
  const Threads& threads_;
  Observer& observer_;
  Reclaimer& reclaimer_;
  Requests& requests_;

  std::atomic<Sampling> sampling_{Sampling::kByOptions};
  sampler::Rate start_rate_;  // of new methods
  sampler::Rate fixed_rate_;  // of all methods, if rates do not adapt
  std::optional<sampler::Budget> budget_;
  sampler::CycleClock clock_;
  sampler::CostModel cost_model_;
  sampler::CostCounts cost_seen_;
  sampler::CostCounts cost_gone_;  // of threads that have detached
  uint64_t gone_cpu_ns_ = 0;       // of threads that have detached since the last tick
  uint64_t last_tick_ns_ = 0;
  TickList ticked_;                  // places of methods with flushed counts (Flushed::ticked)
  std::atomic<bool> active_{false};  // threads have run since the last tick
};

}  // namespace uptier::tiering
