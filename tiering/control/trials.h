// Trials: begins trials (trial.h), and acts on their results.
//
//   optimized after optimized   the slower one goes
//   optimized after baseline    measures the speedup of optimized code, for the first methods that call
//                               nothing; if it is slower, it goes
//   with a guard after without  the slower one goes (value_versions.h)
//
// If nothing is measured, or if versions are counted, flipped or made by hosts, the new version
// stays without a trial.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/model/method.h"
#include "tiering/model/trial.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/policy.h"
#include "tiering/serve/in_service.h"
#include "uptier/options.h"

namespace uptier::tiering {

class Trials {
 public:
  // The components that it uses. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;          // the options with later changes,
    const PolicyOptions& policy;  // and the policy derived from them
    bool always_instrumented;     // every call is counted
    const Stress& stress;
    Observer& observer;
    MachineRates& machine;
    InService& in_service;
  };
  explicit Trials(const Parts& parts);

  // A version has just replaced another one, which still exists: both stay for a while. The caller
  // links the method.
  void begin(Method& m, const Version* before, const Version& now) UPTIER_REQUIRES(state_lock);
  // Ends a trial without a result, if there is one: the new version stays.
  void abandon(Method& m) UPTIER_REQUIRES(state_lock);

  // The version that stays after a trial.
  enum class Stays : uint8_t {
    kUnknown,   // there was no trial
    kNew,       // the other was given up
    kGuarded,   // the other was given up; the new one has a guard
    kBaseline,  // the method's first optimized version is to go
    kGeneral,   // the one with a guard is to go
    kOld,       // the new one was given up, and the method was linked
  };
  // All timings of a method's trial are complete.
  Stays end(Method& m) UPTIER_REQUIRES(state_lock);

 private:
  void learn_rates(const Method& m, const TrialSnapshot& s) UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  const bool always_instrumented_;
  const Stress& stress_;
  Observer& observer_;
  MachineRates& machine_;
  InService& in_service_;
};

}  // namespace uptier::tiering
