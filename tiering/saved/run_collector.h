// RunCollector: collects the data of this process for the file that outlives it. It does not wait
// for the worker: pending compilations are not included.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/seen_run.h"
#include "uptier/options.h"

namespace uptier::tiering {

// Says whether a method's code was made from its saved profile alone, and the profile still holds.
bool is_trusted(const Method& m) UPTIER_REQUIRES(state_lock);

class RunCollector {
 public:
  // All outlive this. `live`: the options with later changes.
  RunCollector(const Options& options, const Options& live, const MethodTable& methods,
               const Observer& observer)
      : options_(options), live_(live), methods_(methods), observer_(observer) {}

  // Returns the data of all methods, except that trusted ones are only listed as such. `known` has
  // the first calls; `loops_off` is the error of a timed execution, in cycles.
  SeenRun watched(const KnownMethods& known, double loops_off) const UPTIER_REQUIRES(state_lock);
  // Adds the data of a method whose shape is known.
  void add(const Method& m, const KnownMethods& known, double loops_off, SeenRun& seen) const
      UPTIER_REQUIRES(state_lock);

 private:
  const Options& options_;
  const Options& live_;
  const MethodTable& methods_;
  const Observer& observer_;
};

}  // namespace uptier::tiering
