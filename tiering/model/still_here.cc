#include "tiering/model/still_here.h"

#include <cassert>

namespace uptier::tiering {

StillHere::StillHere(AttachedThread* here) noexcept : thread_(here) {
  bool runs = thread_ != nullptr &&
              thread_->blocked.load(std::memory_order_relaxed) == AttachedThread::kRunning;
  if (!runs) thread_ = nullptr;
  if (runs) thread_->enter_blocked(__builtin_frame_address(0));
  assert(thread_ == nullptr || thread_->blocked != AttachedThread::kRunning);
}

StillHere::~StillHere() {
  if (thread_ != nullptr) thread_->leave_blocked();
}

}  // namespace uptier::tiering
