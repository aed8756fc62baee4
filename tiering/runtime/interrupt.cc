// Stopping guest code from outside: interrupts and fuel. How: stop.h.
#include <algorithm>

#include "sampler/fuel.h"
#include "tiering/runtime/runtime_impl.h"
#include "uptier/interrupted.h"

namespace uptier {

bool interrupted() noexcept {
  const auto* t = static_cast<const tiering::AttachedThread*>(sampler::current_context()->owner);
  return t != nullptr && t->stop.due();
}

namespace tiering {

Status RuntimeImpl::interrupt(uint32_t thread) {
  if (forked()) return forked_error();
  return stops_.interrupt(thread);
}

uint32_t RuntimeImpl::thread_number() const noexcept {
  const AttachedThread* t = here();
  return t == nullptr ? 0 : t->number();
}

uint64_t RuntimeImpl::fuel_left() const noexcept {
  const AttachedThread* t = here();
  if (options_.fuel == 0 || t == nullptr || t->context().activation == nullptr) return UINT64_MAX;
  return static_cast<uint64_t>(std::max<int64_t>(sampler::fuel(), 0));
}

}  // namespace tiering
}  // namespace uptier
