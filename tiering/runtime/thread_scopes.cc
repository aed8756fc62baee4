// ThreadScope, BlockedScope: the checks at their begin and end (uptier/runtime.h).
//
// If a scope outlives its runtime, the thread is no longer attached to it (the runtime's destructor
// has reported that), or it is attached to a new runtime at the same address, which has no scopes.
#include "tiering/model/thread.h"
#include "tiering/runtime/attachments.h"

namespace uptier {

using tiering::AttachedThread;
using tiering::Attachments;

void ThreadScope::begin() noexcept {
  AttachedThread* t = status_.ok() ? Attachments::attached_to(runtime_) : nullptr;
  watched_ = t != nullptr;
  if (watched_) ++t->scopes;
}

bool ThreadScope::ends_inside() const noexcept {
  if (!watched_) return true;
  AttachedThread* t = Attachments::attached_to(runtime_);
  if (t == nullptr || t->scopes == 0) return false;
  --t->scopes;
  return true;
}

void BlockedScope::begin() noexcept { watched_ = Attachments::attached_to(runtime_) != nullptr; }

bool BlockedScope::ends_inside() const noexcept {
  return !watched_ || Attachments::attached_to(runtime_) != nullptr;
}

}  // namespace uptier
