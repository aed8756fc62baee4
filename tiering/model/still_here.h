// StillHere: the calling thread waits in the runtime.
#pragma once

#include "tiering/model/thread.h"

namespace uptier::tiering {

// While one exists, the stack of its thread stands still from the constructor's frame up, so that what
// the stack does not refer to can be freed (as Runtime::begin_blocked() does; nests in that).
class StillHere {
 public:
  // `here`: the calling thread; null does nothing.
  __attribute__((noinline)) explicit StillHere(AttachedThread* here) noexcept;
  ~StillHere();
  StillHere(const StillHere&) = delete;
  StillHere& operator=(const StillHere&) = delete;

 private:
  AttachedThread* thread_;
};

}  // namespace uptier::tiering
