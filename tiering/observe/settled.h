// Settled: a method's profile, brought to all that ran, whatever code ran it.
//
// What baseline code ran is estimated from its samples, raked to the calls that did not run optimized
// code. What optimized code ran follows from its tallies (tallied.h). Then, in this order:
//
//   blocks    the sum of both
//   edges     fitted to the blocks at both of their ends, from what samples say of branches
//   targets   of indirect calls: scaled to their blocks, for each kind of code by itself
//
// Where nothing was observed of a method that was called, its blocks are guessed: a block outside of loops
// runs as often for each call as the code suggests, and blocks in loops share the iterations that
// the checks at loop headers have counted. MethodProfile::guessed_calls says so.
//
// Tables of values stay what samples saw. Law: a profile that is settled is `behind` only if a version
// without tallies came into service, because there were no words left.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <span>
#include <vector>

#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"
#include "tiering/observe/method_directory.h"
#include "tiering/observe/tallied.h"
#include "uptier/profile.h"

namespace uptier::tiering {

class Settled {
 public:
  // All outlive this. `live`: the options as they are by now.
  Settled(const Options& live, const Estimates& estimates, const Tallied& tallied,
          const MethodDirectory& directory)
      : live_(live), estimates_(estimates), tallied_(tallied), directory_(directory) {}

  // Returns the sum over all that ran of a method, but for what ran inlined into others.
  MethodProfile profile_of(const Method& m) const;
  // Brings the bodies that are inlined into a method to all that ran there.
  void settle_inlined(const Method& m, InlinedBodies& bodies) const;

 private:
  // By block site - 1: in baseline code, and in all code.
  struct Executions {
    std::vector<double> baseline, all;
  };
  Executions settle_blocks(const Method& m, const TalliedSum& optimized, MethodProfile& p) const;
  void settle_edges(const Method& m, const Executions& ran, MethodProfile& p) const;
  void settle_targets(const Method& m, const Executions& ran, MethodProfile& p) const;
  void guess(const Method& m, MethodProfile& p) const;
  void refine(const Method& m, TalliedSum& sum) const;
  profile::Observed baseline_part(const Method& m, uint64_t calls) const;

  const Options& live_;
  const Estimates& estimates_;
  const Tallied& tallied_;
  const MethodDirectory& directory_;
};

// Fits the edges of a graph to the executions of its blocks, in place.
//
//   edges    by edge: a prior, in any unit; 0 where nothing is known
//   blocks   executions by block site - 1
//
// Iterative proportional fitting: the result is the closest to the prior, by relative entropy, of
// those that have these sums, if any have. O(edges) a round.
// Source: Deming and Stephan, Annals of Mathematical Statistics 11(4), 1940.
void fit_edges(std::span<const profile::FlowEdge> graph, std::span<const double> blocks,
               std::vector<double>& edges);

}  // namespace uptier::tiering
