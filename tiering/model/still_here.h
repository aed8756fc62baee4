// StillHere: marks that the calling thread waits in the runtime.
#pragma once

#include "tiering/model/thread.h"

namespace uptier::tiering {

// While one exists, the thread's stack does not change from the constructor's frame up, so
// everything that the stack does not refer to can be freed (as with Runtime::begin_blocked(); may
// be nested in it).
class StillHere {
 public:
  // `here`: the calling thread; null: does nothing.
  __attribute__((noinline)) explicit StillHere(AttachedThread* here) noexcept;
  ~StillHere();
  StillHere(const StillHere&) = delete;
  StillHere& operator=(const StillHere&) = delete;

 private:
  AttachedThread* thread_;
};

}  // namespace uptier::tiering
