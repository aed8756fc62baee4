// StillHere, LookingAround: what a thread of the runtime says of itself while it waits or looks at
// methods.
#pragma once

#include "tiering/model/places.h"

namespace uptier::tiering {

class AttachedThread;
class RuntimeImpl;

// The calling thread waits in the runtime: its stack from here up stands still, so that what it
// does not refer to can be freed (as begin_blocked() does; nests in that).
class StillHere {
 public:
  __attribute__((noinline)) explicit StillHere(RuntimeImpl& runtime) noexcept;
  ~StillHere();
  StillHere(const StillHere&) = delete;
  StillHere& operator=(const StillHere&) = delete;

 private:
  AttachedThread* thread_;
};

// While one is there, no method that is removed meanwhile is forgotten (Places): its thread may look at
// methods that it does not run, without the state mutex. Its thread does not hold that. `Of` is the
// runtime, or who looks for it.
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
