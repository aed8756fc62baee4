// ValueGuards: versions for stable values, and the guards in front of them: when they are made, how
// they come into service, and when they go. value_versions.h has the law.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

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
  // The parts that it works on. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;          // what of the options changes, and
    const PolicyOptions& policy;  // what follows from it
    Stress& stress;
    Observer& observer;
    Requests& requests;
    const System& system;
    Trials& trials;
    InService& in_service;
  };
  explicit ValueGuards(const Parts& parts);

  // Asks whether the optimized version in service should have one for values beside it.
  void consider_values(Method& m);
  // A version for values has been made: it comes into service if the general one still serves.
  void install(Method& m, Version& v);
  // Counts the misses of the next calls of the version in service, which has a guard.
  void begin_window(Method& m);
  // A guard has told: a window is over, or as many calls have missed as may without a word.
  void consider_guard(Method& m);
  // The general version serves alone again. The caller has logged why. `banned`: no other values.
  void take_back(Method& m, bool banned);

 private:
  void force_values(Method& m);
  void watch_quietly(Method& m, Version& v);

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
