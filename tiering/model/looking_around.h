// LookingAround: what a thread says of itself while it looks at methods that it does not run.
#pragma once

#include "tiering/model/places.h"

namespace uptier::tiering {

// While one exists, no method that is removed meanwhile is forgotten (Places): its thread may look at
// methods that it does not run, without the state mutex. Its thread does not hold that. `Of` is the
// runtime, or the component that looks for it.
template <typename Of>
class LookingAround {
 public:
  explicit LookingAround(Of& of) : of_(of) { of.begin_look(look_); }
  ~LookingAround() { of_.end_look(look_); }
  LookingAround(const LookingAround&) = delete;
  LookingAround& operator=(const LookingAround&) = delete;

 private:
  Of& of_;
  Places::Look look_;
};

}  // namespace uptier::tiering
