#include "tiering/runtime/invoker.h"

#include <algorithm>
#include <cassert>

#include "jit/code/leave.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "sampler/fuel.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/looks.h"
#include "tiering/runtime/traps.h"
#include "tiering/serve/retired_hosts.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
namespace uptier::tiering {
namespace {

// Tells AddressSanitizer that host frames dropped by a trap are gone: it marks the stack around
// their variables, and the frames never got to remove the marks. Host functions may go `reserve`
// bytes below the limit of compiled code.
void forget_dropped_frames([[maybe_unused]] const sampler::ThreadContext& c,
                           [[maybe_unused]] uint64_t reserve) {
#if defined(__SANITIZE_ADDRESS__)
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t lowest = c.stack_limit - reserve;
  if (c.stack_limit == 0 || here < lowest) return;
  __asan_unpoison_memory_region(reinterpret_cast<void*>(lowest), here - lowest);
#endif
}

// The fuel of an invoke, taken from the rest of the enclosing invoke's fuel.
class FuelScope {
 public:
  // `limit` 0: not limited.
  explicit FuelScope(uint64_t limit) : counts_(limit != 0) {
    if (!counts_) return;
    left_outside_ = sampler::fuel();
    given_ = std::min(left_outside_, static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX)));
    given_ = std::max<int64_t>(given_, 0);
    sampler::exchange_fuel(given_);
  }
  // After it has run out, fuel() is -1.
  ~FuelScope() {
    if (!counts_) return;
    int64_t left = std::max<int64_t>(sampler::fuel(), 0);
    bool endless = left_outside_ == sampler::kFuelWithoutEnd;
    sampler::exchange_fuel(endless ? left_outside_ : left_outside_ - (given_ - left));
  }
  FuelScope(const FuelScope&) = delete;
  FuelScope& operator=(const FuelScope&) = delete;

 private:
  const bool counts_;
  int64_t left_outside_ = 0;
  int64_t given_ = 0;
};

}  // namespace

Outcome Invoker::call(const void* target, const Signature& signature,
                      std::span<const uint64_t> args, CallLimits limits) {
  assert(engine_.here() != nullptr && target != nullptr);
  AttachedThread& t = *engine_.here();
  sampler::ThreadContext& c = t.context();
  // A thread that describes a method (a first call) counts as blocked. If the host runs guest code
  // in `build`, the thread is running meanwhile.
  uintptr_t blocked_at = t.stack_top;
  bool blocked = t.blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning;
  uint32_t exits_to_host = c.exits_to_host;
  const jit::HostExit* host_exits = t.host_exits;
  const MethodPin* pin = t.stacks.current().pins.innermost;
  const uint32_t looks = t.looks.depth;
  if (blocked) t.leave_blocked();
  SignalOpened opened(c.activation == nullptr ? engine_.stops.signal() : 0);
  InvokeFrame frame;
  t.stop.begin(frame, limits.deadline_ns);
  FuelScope fuel(engine_.options.fuel == 0 ? 0
                 : limits.fuel == 0        ? engine_.options.fuel
                                           : limits.fuel);
  jit::InvokeResult r = jit::invoke_code(engine_.routines.invoke(), target, signature, args);
  if (blocked) t.enter_blocked(reinterpret_cast<const void*>(blocked_at));
  assert(r.trapped == (c.pending_trap != 0) || !r.trapped);
  Outcome result;
  if (r.trapped) result.trap = take_trap(c);
  bool stopped = t.stop.end(frame);
  if (r.trapped) {
    c.exits_to_host = exits_to_host;  // the host frames above are gone
    t.host_exits = host_exits;
    t.stacks.current().pins.innermost = pin;
    engine_.turns.forget_dropped(__builtin_frame_address(0));
    engine_.looks->drop_to(t, looks);
    t.loops().unwind(reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
    forget_dropped_frames(c, engine_.options.stack_reserve);
    bool by_limit = stopped && result.trap.code == TrapCode::kStackExhausted;
    if (by_limit) result.trap.code = TrapCode::kInterrupted;
  } else {
    result.bits = r.bits;
  }
  if (c.activation == nullptr && c.pending_trap != 0) {  // it returned normally nevertheless
    lose_trap(c);
    c.pending_trap = 0;
  }
  if (c.activation == nullptr && !blocked) {
    guest_waits_.back_in_host(t);
    engine_.hosts->tell();
  }
  return result;
}

Outcome Invoker::invoke(MethodId id, std::span<const uint64_t> args, const InvokeLimits& limits) {
  bool refused = !engine_.is_method(id) || engine_.events.in_subscriber();
  if (refused) return {0, {TrapCode::kBadCall, MethodId::none(), 0, 0}};
  AttachedThread* t = engine_.here();
  if (t == nullptr) {
    ThreadScope scope(engine_.facade);
    if (scope.status()) return invoke(id, args, limits);
    return {0, {TrapCode::kNoThread, MethodId::none(), 0, 0}};
  }
  Method& m = engine_.method(id.index());
  if (args.size() != m.info.signature.params.size()) return {0, {TrapCode::kBadCall, id, 0, 0}};
  if (limits.fuel != 0 && engine_.options.fuel == 0) return {0, {TrapCode::kBadCall, id, 0, 0}};
  uint64_t deadline = InvokeFrame::kNever;
  if (limits.timeout_ns != 0) {
    if (!engine_.stops.prepare(t->stop)) return {0, {TrapCode::kNoThread, id, 0, 0}};
    deadline = ThreadStop::deadline_after(limits.timeout_ns);
  }
  // Not entry_address(): another thread may have retired that code since.
  return call(engine_.stubs->stub(id), m.info.signature, args, {deadline, limits.fuel});
}

}  // namespace uptier::tiering
