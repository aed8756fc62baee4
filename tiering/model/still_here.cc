#include "tiering/model/still_here.h"

#include <cassert>

namespace uptier::tiering {

AttachedThread* StillHere::enter(AttachedThread* here) noexcept {
  if (here == nullptr) return nullptr;
  if (here->blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning) return nullptr;
  here->enter_blocked(__builtin_frame_address(0));
  assert(here->blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning);
  return here;
}

}  // namespace uptier::tiering
