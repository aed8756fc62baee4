// LookingAround: marks a thread that is looking at methods that it does not run.
#pragma once

#include "tiering/model/places.h"

namespace uptier::tiering {

// While one exists, no method that is removed meanwhile is forgotten (Places). So its thread may
// look at methods that it does not run, without holding the state mutex. `Of` is the runtime, or
// the component that looks on its behalf.
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
