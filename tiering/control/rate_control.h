// RateControl: the adaptive schedule: the rates at which the worker has methods sampled.
//
// A method is observed from its first flush on: then its instrumented copy is made, and the rate in
// force is off until it is there. Methods that are called less often are not worth a second body.
//
//   learning --converged--> known --thin--> resting --look due--> looking --like the baseline-->
//       ^                     |                                      |                  resting
//       +------ drifted ------+---------------- drifted -------------+
//
// The budget (sampler/budget.h) gives a method its rate at every tick. What is known is sampled on,
// ever more thinly: kEnough times the samples that convergence.h asks for are enough of all its
// opportunities (calls, and slots of loops) so far. Ending there and then would make the profile
// one of the beginning of the program. At one sample in kThin it rests: its rate is off and its
// instrumented copy goes; what stays is the stub's decrement, since stubs are immutable, and the
// check of the plain copy's loops. When its opportunities have grown by one part in kLooks it is
// armed for one window, so what a window stands for is never more than that share of the profile.
// A window that is unlike the baseline is drift: it is logged as re_instrument, the first time and
// then whenever as many have come again, the policy is asked with it (MethodSnapshot::phase_drift),
// and the method is learnt anew.
//
// Where rates do not adapt all methods have one, and where each call is sampled, or they go by turns,
// there are none (has_rates()).
//
//   Thread: the worker, with the state mutex; with workers = 0 whoever flushes. sampling(), ticks() and
//   what is about activity: any, without it.
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
  // What it works on; all outlive it, and need not be whole before it is used.
  struct Parts {
    const Options& options;
    const Options& live;  // what of the options changes
    sampler::Schedule& schedule;
    sampler::Schedule& counting;  // the same without sampled calls
    sampler::FastSampling& fast;  // where rates are in force
    const MethodTable& methods;
    const Threads& threads;
    Observer& observer;
    Reclaimer& reclaimer;
    Requests& requests;
  };
  explicit RateControl(const Parts& parts);

  // Returns whether each method has a rate of its own, which may change.
  bool has_rates() const;
  bool has_budget() const { return budget_.has_value(); }
  // Returns what overrides all rates.
  Sampling sampling() const noexcept { return sampling_.load(std::memory_order_relaxed); }

  // Measures the time stamp counter, if there is a budget, and returns what it found. The caller does
  // not hold the state mutex.
  std::optional<sampler::CycleClock> measure_clock(WaitedMutex& state_mutex);

  // Marks / tests whether guest code ran since the last tick.
  void note_activity() noexcept { active_.store(true, std::memory_order_relaxed); }
  bool active() const noexcept { return active_.load(std::memory_order_relaxed); }
  // Returns whether a tick is to come.
  bool ticks() const noexcept { return has_budget() && active(); }
  void tick_if_due();

  // A place has a new method, `again`: it had another. It begins at the rate of methods without copies.
  void add(uint32_t place, bool again);
  // A place's method is forgotten.
  void forget(uint32_t place);
  // A thread has come, and goes.
  void thread_came();
  void thread_goes(AttachedThread& t);

  // A first flush of a method has come, or a later one.
  void note_flushed(Method& m);
  // Does what a window says of a method.
  void heed(Method& m, sampler::Verdict v);
  // Asks for the instrumented copy of a method that has been called often enough to be observed.
  void want_copy(Method& m);
  // The copy is there: puts the rate in force that goes with the phase.
  void begin_observing(Method& m);
  // Stops the sampling of a method, unless something overrides all rates.
  void switch_off(Method& m);
  // After a change of epsilon: what is not near enough to the truth any more is learnt on, from where
  // it was. What is near enough now is found so at its next flush.
  void learn_on(Method& m);
  // Returns what all threads together have run of a method.
  sampler::Progress progress_of(const Method& m) const;
  // Returns what the samples of `since` have taken, by the model: `all` are those that the method's
  // counts are of.
  double spent_ns(const Method& m, const sampler::Progress& all,
                  const sampler::Progress& since) const;

  // Settings that change: those of `live`, whose name each has; and what stands above all rates, of
  // methods that are in service.
  void change_budget();
  void change_burst();
  void change_flushes();
  void change_interval();
  void observe(Sampling how);

  // Share of the threads' time that was spent, or nothing without a budget.
  std::optional<double> spent_share() const;

 private:
  bool load_of(Method& m, std::vector<sampler::MethodLoad>& loads);
  double opportunities(const Method& m, const sampler::Progress& p) const;
  void tick(uint64_t now);
  void give_allowance();
  void rest(Method& m);
  void look_again(Method& m);
  void observe_again(Method& m);
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
  sampler::Rate fixed_rate_;  // of all methods, where rates do not adapt
  std::optional<sampler::Budget> budget_;
  sampler::CycleClock clock_;
  sampler::CostModel cost_model_;
  sampler::CostCounts cost_seen_;
  sampler::CostCounts cost_gone_;  // of threads that have detached
  uint64_t gone_cpu_ns_ = 0;       // of those that have since the last tick
  uint64_t last_tick_ns_ = 0;
  TickList ticked_;                  // places of methods that have flushed (Flushed::ticked)
  std::atomic<bool> active_{false};  // threads have run since the last tick
};

}  // namespace uptier::tiering
