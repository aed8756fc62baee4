// Finding: says which methods may be observed and optimized (Options::find).
//
//   counts    all
//   samples   those that a stack sample has met; the others are neither counted in copies nor
//             optimized, so their profile is their calls
//   both      all; a method that a sample meets gets its copy at once
//
// A method that was found stays found. One with data from a saved profile may be optimized before.
//
//   Thread: the caller holds the state mutex; may_observe(): any.
#pragma once

#include <cstdint>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/method.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "uptier/options.h"

namespace uptier::tiering {

class Finding {
 public:
  // All outlive this. `live` are the options with later changes.
  Finding(const Options& live, MethodTable& methods, RateControl& rates, Observer& observer)
      : live_(live), methods_(methods), rates_(rates), observer_(observer) {}

  // A method has come.
  void begin(Method& m) const { m.found = live_.find != FindMode::kSamples; }
  // Samples have met these methods for the first time.
  void find(const std::vector<MethodId>& met) UPTIER_REQUIRES(state_lock);
  // live.find has changed.
  void change() UPTIER_REQUIRES(state_lock);

  static bool may_observe(const Method& m) noexcept {
    return m.found.load(std::memory_order_relaxed);
  }
  static bool may_optimize(const Method& m) noexcept {
    return may_observe(m) || m.saved != nullptr;
  }

 private:
  const Options& live_;
  MethodTable& methods_;
  RateControl& rates_;
  Observer& observer_;
};

}  // namespace uptier::tiering
