// Stopping guest code from outside: interrupts, deadlines and fuel.
#include "tiering/runtime_impl.h"

namespace uptier::tiering {

Outcome RuntimeImpl::invoke(MethodId m, std::span<const uint64_t> args, const InvokeLimits&) {
  return invoke(m, args);
}

Status RuntimeImpl::interrupt(uint32_t) {
  return Error{ErrorCode::kUnsupported, "interrupts are not there yet"};
}

uint32_t RuntimeImpl::thread_number() const noexcept {
  const AttachedThread* t = here();
  return t == nullptr ? 0 : t->number();
}

uint64_t RuntimeImpl::fuel_left() const noexcept { return UINT64_MAX; }

}  // namespace uptier::tiering
