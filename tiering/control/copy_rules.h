// CopyRules: which methods' optimized code may have instrumented copies, and how these are numbered.
//
//   Thread: may_observe() any; number() with the runtime's state mutex.
#pragma once

#include "tiering/model/method.h"
#include "tiering/model/places.h"
#include "uptier/options.h"

namespace uptier::tiering {

class CopyRules {
 public:
  // All outlive this. `live`: the options as they are by now. `always_instrumented`: every call is
  // counted.
  CopyRules(const Options& options, const Options& live, bool always_instrumented,
            const Places& places)
      : options_(options),
        live_(live),
        always_instrumented_(always_instrumented),
        places_(places) {}

  // Returns whether optimized code of the method may have copies at all.
  bool may_observe(const Method& m) const;
  // Gives a copy that comes into service its number. All copies of a method, those that are entered at
  // loops too, count in the same slab.
  void number(Method& m, Version& v) const;
  // The options of these names, as they are by now.
  uint64_t optimized_interval() const { return live_.optimized_interval; }
  uint64_t copy_after() const { return options_.copy_after; }
  uint32_t burst() const { return static_cast<uint32_t>(live_.burst); }

 private:
  const Options& options_;
  const Options& live_;
  const bool always_instrumented_;
  const Places& places_;
};

}  // namespace uptier::tiering
