#include "tiering/model/looking_around.h"

#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

StillHere::StillHere(RuntimeImpl& runtime) noexcept : thread_(runtime.here()) {
  bool runs = thread_ != nullptr &&
              thread_->blocked.load(std::memory_order_relaxed) == AttachedThread::kRunning;
  if (!runs) thread_ = nullptr;
  if (runs) thread_->enter_blocked(__builtin_frame_address(0));
}

StillHere::~StillHere() {
  if (thread_ != nullptr) thread_->leave_blocked();
}

void RuntimeImpl::begin_look(Places::Look& look) {
  std::lock_guard lock(state_mutex_);
  places_.begin_look(look);
}

void RuntimeImpl::end_look(Places::Look& look) {
  std::lock_guard lock(state_mutex_);
  places_.end_look(look);
  if (hosts_.wait_to_leave()) in_service_->reclaim_locked();  // that may have waited for this
}

}  // namespace uptier::tiering
