// CopyRules: which methods' optimized code may have instrumented copies, and how these are numbered.
//
//   Thread: may_observe() any; number() with the runtime's state mutex.
#pragma once

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/model/places.h"
#include "uptier/options.h"

namespace uptier::tiering {

class CopyRules {
 public:
  // All outlive this. `live`: the options with later changes. `always_instrumented`: every call is
  // counted.
  CopyRules(const Options& options, const Options& live, bool always_instrumented,
            const Places& places)
      : options_(options),
        live_(live),
        always_instrumented_(always_instrumented),
        places_(places) {}

  // Says whether optimized code of the method may have copies at all.
  bool may_observe(const Method& m) const;
  // Numbers a copy that is being installed. All copies of a method, including those entered at
  // loops, count in the same slab.
  void number(Method& m, Version& v) const UPTIER_REQUIRES(state_lock);
  // The current values of the options of these names.
  uint64_t optimized_interval() const { return live_.optimized_interval; }
  uint64_t copy_after() const { return options_.copy_after; }
  bool measures() const { return options_.measure_rates; }
  uint32_t burst() const { return static_cast<uint32_t>(live_.burst); }

 private:
  const Options& options_;
  const Options& live_;
  const bool always_instrumented_;
  const Places& places_;
};

}  // namespace uptier::tiering
