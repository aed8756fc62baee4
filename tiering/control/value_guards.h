// ValueGuards: makes, installs and retires versions for stable values, and the guards in front of
// them. value_versions.h has the law.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/trials.h"
#include "tiering/model/method.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/policy.h"
#include "tiering/serve/in_service.h"
#include "uptier/options.h"

namespace uptier::tiering {

class ValueGuards {
 public:
  // The components that it uses. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;          // the options with later changes,
    const PolicyOptions& policy;  // and the policy derived from them
    Stress& stress;
    Observer& observer;
    Requests& requests;
    const System& system;
    Trials& trials;
    InService& in_service;
  };
  explicit ValueGuards(const Parts& parts);

  // Asks whether to make a version for values in addition to the optimized version in service.
  void consider_values(Method& m) UPTIER_REQUIRES(state_lock);
  // A version for values has been made: installs it if the general version is still in service.
  void install(Method& m, Version& v) UPTIER_REQUIRES(state_lock);
  // Counts the misses of the next calls; the version in service has a guard.
  void begin_window(Method& m) UPTIER_REQUIRES(state_lock);
  // A guard has reported: a window is over, or the number of misses allowed without a report was
  // reached.
  void consider_guard(Method& m) UPTIER_REQUIRES(state_lock);
  // Puts the general version back in service alone. The caller has logged why. `banned`: no other
  // values will be tried.
  void take_back(Method& m, bool banned) UPTIER_REQUIRES(state_lock);

 private:
  void force_values(Method& m) UPTIER_REQUIRES(state_lock);
  void watch_quietly(Method& m, Version& v) UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  Stress& stress_;
  Observer& observer_;
  Requests& requests_;
  const System& system_;
  Trials& trials_;
  InService& in_service_;
};

}  // namespace uptier::tiering
