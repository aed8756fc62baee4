// NewerCode: makes code for the loops that frames of old code are in, when it is due. osr_exit.h
// has the law.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/base/state_lock.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/wanted_frames.h"
#include "tiering/model/method.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/policy.h"
#include "uptier/options.h"

namespace uptier::tiering {

class NewerCode {
 public:
  // All outlive this. `policy` is derived from options that may change.
  NewerCode(const Options& options, const PolicyOptions& policy, const System& system,
            Observer& observer, Requests& requests, WantedFrames& frames)
      : options_(options),
        policy_(policy),
        system_(system),
        observer_(observer),
        requests_(requests),
        frames_(frames) {}

  // A frame of old code is at a loop without newer code: requests that code, or waits until it is
  // due.
  void want(Method& m, uint32_t loop) UPTIER_REQUIRES(state_lock);
  // Requests the code that has become due, unless the frame has moved to other code meanwhile.
  void want_if_due() UPTIER_REQUIRES(state_lock);

 private:
  bool cannot_follow(const Method& m, uint32_t loop) const UPTIER_REQUIRES(state_lock);
  uint64_t due_ns(const Method& m) const UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const PolicyOptions& policy_;
  const System& system_;
  Observer& observer_;
  Requests& requests_;
  WantedFrames& frames_;
};

}  // namespace uptier::tiering
