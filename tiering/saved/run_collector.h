// RunCollector: what this process has seen, for the file that outlives it. Nobody waits for the worker:
// what it has still to compile was not seen.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/seen_run.h"
#include "uptier/options.h"

namespace uptier::tiering {

// Returns whether a method's code was made from its saved profile alone, which still holds.
bool is_trusted(const Method& m);

class RunCollector {
 public:
  // All outlive this. `live`: the options as they are by now.
  RunCollector(const Options& options, const Options& live, const MethodTable& methods,
               const Observer& observer)
      : options_(options), live_(live), methods_(methods), observer_(observer) {}

  // Returns what was seen of all methods but those that are trusted; of these, that they are. `known`
  // tells of first calls; `loops_off` is by how many cycles a timed execution may be off.
  SeenRun watched(const KnownMethods& known, double loops_off) const;
  // Adds what was seen of a method whose shape is known.
  void add(const Method& m, const KnownMethods& known, double loops_off, SeenRun& seen) const;

 private:
  const Options& options_;
  const Options& live_;
  const MethodTable& methods_;
  const Observer& observer_;
};

}  // namespace uptier::tiering
