// Estimates: the counts of a method, summed over its streams and the saved profile. The saved
// profile counts as a stream that ended before this process began.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profile/data/estimate.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/method_directory.h"
#include "uptier/options.h"
#include "uptier/policy.h"
#include "uptier/profile.h"

namespace uptier::tiering {

class Estimates {
 public:
  // All outlive this. `live`: the options with later changes; `policy` is derived from them.
  Estimates(const Options& options, const Options& live, const PolicyOptions& policy,
            const MethodDirectory& directory)
      : options_(options), live_(live), policy_(policy), directory_(directory) {}

  // Returns the sum over the streams of a method.
  MethodProfile profile_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Returns estimated executions by block site - 1; empty if there are fewer than min_samples
  // samples.
  std::vector<uint64_t> block_estimates(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Returns how many of these executions one observed execution stands for on average: at least the
  // fraction that profile_decay leaves of a saved one; 1 if nothing was observed.
  double sample_weight(const Method& m) const UPTIER_REQUIRES(state_lock);
  // The observed targets of an indirect call, with estimates, most frequent first.
  struct Targets {
    SiteId site = 0;
    uint64_t total = 0;
    std::vector<std::pair<Method*, uint64_t>> methods;
  };
  std::vector<Targets> targets_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Replaces the counts in `targets` by those of a phase.
  void take_over(const TargetCounts& phase, Targets& targets) const UPTIER_REQUIRES(state_lock);
  // Returns the number of samples of a method.
  uint64_t samples_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Returns the estimated executions of all blocks together.
  double mass_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // The same for targets of indirect calls.
  double target_mass_of(const Method& m) const UPTIER_REQUIRES(state_lock);

  // The length of bursts has changed for observed methods: the number of possible bursts is no
  // longer known.
  void lengths_of_bursts_differ() UPTIER_REQUIRES(state_lock) { one_burst_ = false; }
  bool one_burst() const UPTIER_REQUIRES(state_lock) { return one_burst_; }

  // ---- Of one stream ------------------------------------------------------------------------------

  // Returns the factor by which a stream's estimates fall short of everything its thread ran.
  double stretch_of(const Method& m, const Stream& s) const UPTIER_REQUIRES(state_lock);
  // Begins a sum over the streams of a method.
  profile::StreamSum stream_sum(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Adds a stream to a sum, and scales its estimates, `seen`, to everything its thread ran.
  // `counted`: this stream has the counts of the shared counters.
  void add_to_sum(const Method& m, const Stream& s, bool counted, profile::StreamSum& sum,
                  profile::Observed& seen) const UPTIER_REQUIRES(state_lock);

 private:
  void add_saved(const Method& m, std::vector<double>& blocks) const UPTIER_REQUIRES(state_lock);
  // Returns the factor for counts of the saved profile.
  double saved_factor(const SavedMethod& saved) const UPTIER_REQUIRES(state_lock);
  // Says whether calls cannot be told apart by thread.
  bool one_countdown(const Method& m) const UPTIER_REQUIRES(state_lock);
  MethodProfile empty_profile_of(const Method& m) const UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  const MethodDirectory& directory_;
  bool one_burst_ = true;
};

}  // namespace uptier::tiering
