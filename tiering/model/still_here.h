// StillHere: marks that the calling thread waits in the runtime.
#pragma once

#include "tiering/model/thread.h"

namespace uptier::tiering {

// While one exists, the thread's stack does not change from the caller's frame up, so all code that
// the stack does not refer to can be freed, and all methods that the thread has not pinned (as with
// Runtime::begin_blocked(); may be nested in it).
class StillHere {
 public:
  // `here`: the calling thread; null: does nothing.
  __attribute__((always_inline)) explicit StillHere(AttachedThread* here) noexcept {
    // Spills all registers that callers use into the frame of the function around this, so that
    // code addresses in them are found. It only works in that function, so this is inlined.
    __builtin_unwind_init();
    thread_ = enter(here);
  }
  ~StillHere() {
    if (thread_ != nullptr) thread_->leave_blocked();
  }
  StillHere(const StillHere&) = delete;
  StillHere& operator=(const StillHere&) = delete;

 private:
  // Its frame lies below the caller's, where the scan begins. Returns null if the thread waited
  // already.
  __attribute__((noinline)) static AttachedThread* enter(AttachedThread* here) noexcept;

  AttachedThread* thread_;
};

}  // namespace uptier::tiering
