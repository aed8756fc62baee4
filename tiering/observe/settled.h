// Settled: makes a method's profile cover everything that ran, in baseline and optimized code.
//
// The executions in baseline code are estimated from its samples, scaled to the calls that did not
// run optimized code. The executions in optimized code are derived from its tallies (tallied.h).
// Then, in this order:
//
//   blocks    the sum of both
//   edges     fitted to the blocks at both of their ends, with the samples of branches
//   targets   of indirect calls: scaled to their blocks, for each kind of code separately
//
// If nothing was observed of a method that was called, its blocks are guessed. A block outside of loops runs
// as often for each call as the code suggests; blocks in loops share the iterations that the checks at
// loop headers have counted. MethodProfile::guessed_calls reports this.
//
// Tables of values keep the counts of samples. Law: a settled profile is `behind` only if a version
// without tallies was installed, because no words were left.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"
#include "tiering/observe/method_directory.h"
#include "tiering/observe/tallied.h"
#include "uptier/profile.h"

namespace uptier::tiering {

class Settled {
 public:
  // All outlive this. `live`: the options with later changes.
  Settled(const Options& live, const Estimates& estimates, const Tallied& tallied,
          const MethodDirectory& directory)
      : live_(live), estimates_(estimates), tallied_(tallied), directory_(directory) {}

  // Returns the sum over all executions of a method, except those inlined into others.
  MethodProfile profile_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Scales the counts of bodies inlined into a method to all their executions there.
  void settle_inlined(const Method& m, InlinedBodies& bodies) const UPTIER_REQUIRES(state_lock);

 private:
  // By block site - 1: executions in baseline code, and in all code.
  struct Executions {
    std::vector<double> baseline, all;
  };
  Executions settle_blocks(const Method& m, const TalliedSum& optimized, MethodProfile& p) const
      UPTIER_REQUIRES(state_lock);
  void settle_edges(const Method& m, const Executions& ran, MethodProfile& p) const
      UPTIER_REQUIRES(state_lock);
  void settle_targets(const Method& m, const Executions& ran, MethodProfile& p) const
      UPTIER_REQUIRES(state_lock);
  void guess(const Method& m, MethodProfile& p) const UPTIER_REQUIRES(state_lock);
  TalliedSum optimized_part(const Method& m) const UPTIER_REQUIRES(state_lock);
  void add_copies(const Method& m, TalliedSum& sum) const UPTIER_REQUIRES(state_lock);
  void refine(const Method& m, TalliedSum& sum) const UPTIER_REQUIRES(state_lock);
  profile::Observed baseline_part(const Method& m, uint64_t calls) const
      UPTIER_REQUIRES(state_lock);

  const Options& live_;
  const Estimates& estimates_;
  const Tallied& tallied_;
  const MethodDirectory& directory_;
};

// Sets the estimates of an inlined body's blocks to their executions in optimized code, in place.
//
//   ran      by site - 1: the executions that follow from tallies; 0 if no tally stands for a block
//   blocks   the samples of instrumented copies
//
// A block without a tally keeps its ratio to the others: copies and plain code differ in the blocks
// that the optimizer leaves. If plain code ran none of the body, only the copies' counts remain.
void settle_inlined_blocks(std::span<const TalliedSum::Block> ran,
                           std::map<SiteId, InlinedBlock>& blocks) UPTIER_REQUIRES(state_lock);

// Fits the edges of a graph to the executions of its blocks, in place.
//
//   edges    by edge: a prior, in any unit; 0 if nothing is known
//   blocks   executions by block site - 1
//
// Iterative proportional fitting: of the results with these sums, if there are any, it finds the
// one closest to the prior by relative entropy. O(edges) per round. Source: Deming and Stephan,
// Annals of Mathematical Statistics 11(4), 1940.
void fit_edges(std::span<const profile::FlowEdge> graph, std::span<const double> blocks,
               std::vector<double>& edges) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
