// ThreadScope, BlockedScope: what they check when they begin and end (uptier/runtime.h).
//
// A scope that outlives its runtime finds the thread attached to it no more (the runtime's destructor has
// said so), or to one that was made at its address and knows of no scope.
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
