// DriftDetector: evaluates the windows of an instrumented copy of optimized code.
//
// It asks two questions about a window, and logs both answers as re_instrument:
//
//   drift    Is it like the windows before it? As for baseline code, see sampler/convergence.h.
//   misled   Are all windows together like the profile that the code was made from, the counts of
//            baseline copies? With p, q the true shares of the two times,
//              d(seen, made from) <= d(seen, q) + d(q, p) + d(p, made from)
//            The first and last are bounded by each side's own (2) of convergence.h; the excess over
//            their sum is d(q, p)
//
// The policy decides, by rule (2) of uptier/policy.h. Its drift is d(seen, made from) less the
// bound of d(seen, q): the code is laid out for the profile it was made from, whether that was the
// truth of its time or not.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "sampler/convergence.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/decision_log.h"
#include "uptier/policy.h"

namespace uptier::tiering {

class DriftDetector {
 public:
  // All outlive this. `policy` may change.
  DriftDetector(const PolicyOptions& policy, const MethodTable& methods, DecisionLog& decisions)
      : policy_(policy), methods_(methods), decisions_(decisions) {}

  // Adds a window of `copy` to `o`. Returns whether it completes one that is like those before it.
  bool learn_window(Method& m, CopyWindows& o, const Version& copy, const sampler::Window& w)
      UPTIER_REQUIRES(state_lock);
  // Returns whether `v` was made from a profile so far from its current one that the policy must be
  // asked; CopyWindows::drift has the distance.
  bool compare_with_profile(Method& m, CopyWindows& o, const Version& v, const Version& copy)
      UPTIER_REQUIRES(state_lock);

 private:
  const PolicyOptions& policy_;
  const MethodTable& methods_;
  DecisionLog& decisions_;
};

}  // namespace uptier::tiering
