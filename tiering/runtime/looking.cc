// What threads say of themselves while they look at methods.
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

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
