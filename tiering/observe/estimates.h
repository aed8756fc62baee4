// Estimates: the counts of a method, as sums over its streams and over the saved profile, which is taken
// for a stream that ended before this process began.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profile/data/estimate.h"
#include "tiering/model/method.h"
#include "tiering/observe/method_directory.h"
#include "uptier/options.h"
#include "uptier/policy.h"
#include "uptier/profile.h"

namespace uptier::tiering {

class Estimates {
 public:
  // All outlive this. `live`: the options as they are by now, and `policy` follows from them.
  Estimates(const Options& options, const Options& live, const PolicyOptions& policy,
            const MethodDirectory& directory)
      : options_(options), live_(live), policy_(policy), directory_(directory) {}

  // Returns the sum over the streams of a method.
  MethodProfile profile_of(const Method& m) const;
  // Returns estimated executions by block site - 1, empty when there are fewer than min_samples
  // samples.
  std::vector<uint64_t> block_estimates(const Method& m) const;
  // Returns how many of these executions one observed execution stands for on average, at least
  // the part of one that profile_decay leaves of saved ones; 1 if nothing was observed.
  double sample_weight(const Method& m) const;
  // The observed targets of an indirect call; estimates, greatest first.
  struct Targets {
    SiteId site = 0;
    uint64_t total = 0;
    std::vector<std::pair<Method*, uint64_t>> methods;
  };
  std::vector<Targets> targets_of(const Method& m) const;
  // Makes of targets what a phase has seen of them.
  void take_over(const TargetCounts& phase, Targets& targets) const;
  // Returns how many samples there are of a method.
  uint64_t samples_of(const Method& m) const;
  // Returns the estimated executions of all blocks together.
  double mass_of(const Method& m) const;
  // The same of targets of indirect calls.
  double target_mass_of(const Method& m) const;

  // Bursts of methods that have been observed get another length: how many there could have been is
  // not known any more.
  void lengths_of_bursts_differ() { one_burst_ = false; }
  bool one_burst() const { return one_burst_; }

  // ---- Of one stream ------------------------------------------------------------------------------

  // By how much the estimates of a stream fall short of all that its thread ran.
  double stretch_of(const Method& m, const Stream& s) const;
  // Begins a sum over streams of a method.
  profile::StreamSum stream_sum(const Method& m) const;
  // Brings a stream's estimates, `seen`, to what its thread ran, as one of a sum. `counted`: what
  // threads share was counted by this stream.
  void add_to_sum(const Method& m, const Stream& s, bool counted, profile::StreamSum& sum,
                  profile::Observed& seen) const;

 private:
  void add_saved(const Method& m, std::vector<double>& blocks) const;
  // Returns the factor by which counts of the saved profile are multiplied.
  double saved_factor(const SavedMethod& saved) const;
  // Returns whether calls cannot be told apart by thread.
  bool one_countdown(const Method& m) const;
  MethodProfile empty_profile_of(const Method& m) const;

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  const MethodDirectory& directory_;
  bool one_burst_ = true;
};

}  // namespace uptier::tiering
