// PolicyAdvisor: asks the policy about methods, with their observed counts, and logs its answers.
//
//   streams, versions -> snapshot -> decide -> log
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "sampler/snapshot_ring.h"
#include "tiering/base/opt_range.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/decision_log.h"
#include "tiering/observe/estimates.h"
#include "tiering/policy/policy.h"
#include "uptier/options.h"

namespace uptier::tiering {

class PolicyAdvisor {
 public:
  // All outlive this; `hosts_policy` may be null. `live`: the options with later changes; `policy`
  // is derived from them.
  PolicyAdvisor(const Options& options, const Options& live, const PolicyOptions& policy,
                Policy* hosts_policy, const Estimates& estimates, DecisionLog& decisions);

  // Asks about a method after a note, and logs the answer.
  Decision ask(Method& m, const sampler::Note& note, const SystemSnapshot& system)
      UPTIER_REQUIRES(state_lock);
  // Asks about the version that frames stay in at a loop: `windows` belong to its copy, and it has
  // run for `ns`, as far as is known.
  Decision ask_loop(Method& m, LoopId loop, CopyWindows& windows, double ns,
                    const SystemSnapshot& system) UPTIER_REQUIRES(state_lock);
  // Asks about a method that has not been called yet, but has a saved profile.
  Decision ask_saved(Method& m, const SystemSnapshot& system) UPTIER_REQUIRES(state_lock);
  // Returns the snapshot for a question at an entry.
  MethodSnapshot snapshot_of(const Method& m) const UPTIER_REQUIRES(state_lock);

 private:
  Decision answer(Method& m, const sampler::Note& note, const MethodSnapshot& s,
                  const SystemSnapshot& system, bool* told = nullptr) UPTIER_REQUIRES(state_lock);
  MethodSnapshot snapshot(const Method& m, const sampler::Note& note) const
      UPTIER_REQUIRES(state_lock);
  uint64_t behind_work(Method& m, const sampler::Note& note) UPTIER_REQUIRES(state_lock);
  bool never_sampled(const Method& m, const sampler::Note& note) const UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  Policy* const hosts_policy_;
  const OptRange opt_range_;
  const Estimates& estimates_;
  DecisionLog& decisions_;
};

}  // namespace uptier::tiering
