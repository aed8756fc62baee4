// Host -> compiled code, and traps back.
#include <algorithm>

#include "jit/code/code_registry.h"
#include "jit/code/routines.h"
#include "profile/base/wall.h"
#include "sampler/fuel.h"
#include "tiering/runtime/runtime_impl.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace uptier {
namespace {

void lose_trap(sampler::ThreadContext& c) noexcept {
  c.traps_lost.store(c.traps_lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

void Runtime::raise(TrapCode code, uint64_t detail) noexcept {
  sampler::ThreadContext* c = sampler::current_context();
  if (c->activation == nullptr) return lose_trap(*c);
  tiering::put_trap(*c, code, detail);
}

namespace tiering {

void put_trap(sampler::ThreadContext& c, TrapCode code, uint64_t detail) noexcept {
  constexpr auto kInterrupted = static_cast<uint32_t>(TrapCode::kInterrupted);
  if (c.pending_trap != 0 && c.pending_trap != kInterrupted) lose_trap(c);
  c.trap_detail = detail;
  c.trap_pc = 0;
  c.trap_location = 0;
  c.trap_method = 0;
  c.pending_trap = static_cast<uint32_t>(code);
}

namespace {

// Says that the frames of the host's that a trap has dropped are gone: AddressSanitizer marks the
// stack around their variables, and they never came to take the marks off. Host functions may go
// `reserve` bytes below the limit of compiled code.
void forget_dropped_frames([[maybe_unused]] const sampler::ThreadContext& c,
                           [[maybe_unused]] uint64_t reserve) {
#if defined(__SANITIZE_ADDRESS__)
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t lowest = c.stack_limit - reserve;
  if (c.stack_limit == 0 || here < lowest) return;
  __asan_unpoison_memory_region(reinterpret_cast<void*>(lowest), here - lowest);
#endif
}

// What an invoke may run, out of what the one around it may still run.
class FuelScope {
 public:
  // 0: nothing is counted.
  explicit FuelScope(uint64_t limit) : counts_(limit != 0) {
    if (!counts_) return;
    left_outside_ = sampler::fuel();
    given_ = std::min(left_outside_, static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX)));
    given_ = std::max<int64_t>(given_, 0);
    sampler::exchange_fuel(given_);
  }
  // Nobody counts beyond the end, where fuel() is -1.
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

// Says of a trap whose call it ended: that of a host function, or an exit of optimized code.
void tell_caller(Trap& t, const void* returns_to) {
  const jit::Code* code = jit::find_code(static_cast<const uint8_t*>(returns_to) - 1);
  if (code == nullptr) return;  // the invoke called
  t.method = code->method();
  if (const jit::CallRow* row = code->call_at(returns_to)) {
    t.method = code->method_of(row->body);
    t.location = row->loc;
  } else if (const jit::ExitRow* exit = code->exit_at(returns_to)) {
    t.method = code->method_of(code->tables().exit_frames[exit->frames_at].body);
    t.location = exit->loc;
  }
}

}  // namespace

Trap take_trap(sampler::ThreadContext& c) {
  Trap t;
  t.code = static_cast<TrapCode>(c.pending_trap);
  t.location = c.trap_location;
  t.detail = c.trap_detail;
  if (c.trap_pc != 0) {
    const auto* pc = reinterpret_cast<const void*>(c.trap_pc);
    const jit::Code* code = jit::find_code(pc);
    const jit::TrapRow* row = code == nullptr ? nullptr : code->trap_at(pc);
    if (code != nullptr) t.method = code->method_of(row == nullptr ? 0 : row->body);
  } else if (c.trap_method != 0) {
    t.method = MethodId(c.trap_method - 1);
  } else if (c.trap_return != 0) {
    tell_caller(t, reinterpret_cast<const void*>(c.trap_return));
  }
  c.trap_return = 0;
  c.pending_trap = 0;
  c.trap_pc = 0;
  c.trap_detail = 0;
  c.trap_location = 0;
  c.trap_method = 0;
  return t;
}

Outcome RuntimeImpl::invoke(MethodId id, std::span<const uint64_t> args) {
  return invoke(id, args, {});
}

Outcome RuntimeImpl::invoke(MethodId id, std::span<const uint64_t> args,
                            const InvokeLimits& limits) {
  bool refused = !is_method(id) || events_.in_subscriber();
  if (refused) return {0, {TrapCode::kBadCall, MethodId::none(), 0, 0}};
  if (here() == nullptr) {
    ThreadScope scope(*this);
    if (scope.status()) return invoke(id, args, limits);
    return {0, {TrapCode::kNoThread, MethodId::none(), 0, 0}};
  }
  Method& m = method(id.index());
  if (args.size() != m.info.signature.params.size()) { return {0, {TrapCode::kBadCall, id, 0, 0}}; }
  if (limits.fuel != 0 && options_.fuel == 0) return {0, {TrapCode::kBadCall, id, 0, 0}};
  uint64_t deadline = InvokeFrame::kNever;
  if (limits.timeout_ns != 0) {
    if (!stops_.prepare(here()->stop)) return {0, {TrapCode::kNoThread, id, 0, 0}};
    deadline = ThreadStop::deadline_after(limits.timeout_ns);
  }
  // Not entry_address(): another thread may have retired the method since.
  return call(stubs_->stub(id), m.info.signature, args, {deadline, limits.fuel});
}

// Calls code from a thread that is attached.
Outcome RuntimeImpl::call(const void* target, const Signature& signature,
                          std::span<const uint64_t> args, CallLimits limits) {
  AttachedThread& t = *here();
  sampler::ThreadContext& c = t.context();
  // A host that runs guest code while it describes a method (a first call, which counts as blocked)
  // does run meanwhile.
  uintptr_t blocked_at = t.stack_top;
  bool blocked = t.blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning;
  uint32_t exits_to_host = c.exits_to_host;
  const jit::HostExit* host_exits = t.host_exits;
  if (blocked) t.leave_blocked();
  SignalOpened opened(c.activation == nullptr ? stops_.signal() : 0);
  InvokeFrame frame;
  t.stop.begin(frame, limits.deadline_ns);
  FuelScope fuel(options_.fuel == 0 ? 0 : limits.fuel == 0 ? options_.fuel : limits.fuel);
  jit::InvokeResult r = jit::invoke_code(routines_.invoke(), target, signature, args);
  if (blocked) t.enter_blocked(reinterpret_cast<const void*>(blocked_at));
  Outcome result;
  if (r.trapped) result.trap = take_trap(c);
  bool stopped = t.stop.end(frame);
  if (r.trapped) {
    c.exits_to_host = exits_to_host;  // the frames of the others have gone
    t.host_exits = host_exits;
    turns_.forget_dropped(__builtin_frame_address(0));
    t.loops().unwind(reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
    forget_dropped_frames(c, options_.stack_reserve);
    bool by_limit = stopped && result.trap.code == TrapCode::kStackExhausted;
    if (by_limit) result.trap.code = TrapCode::kInterrupted;
  } else {
    result.bits = r.bits;
  }
  if (c.activation == nullptr && c.pending_trap != 0) {  // it returned all the same
    lose_trap(c);
    c.pending_trap = 0;
  }
  if (c.activation == nullptr && !blocked) {
    back_in_host(t);
    hosts_.tell();
  }
  return result;
}

// The outermost invoke has returned. Frames of compiled code may still be above: entry() is called
// without an Activation, and its code may have called the host function that invoked. So the stack
// is asked. Cost: nothing unless code waits to be freed, then a walk over the thread's stack.
void RuntimeImpl::back_in_host(AttachedThread& t) noexcept {
  if (!reclaimer_.has_limbo()) return;
  __builtin_unwind_init();  // what callers keep in registers is on the stack, too
  reclaim_beside(t);
  asm volatile("");  // a call in the last place would take this frame away first
}

__attribute__((noinline)) void RuntimeImpl::reclaim_beside(AttachedThread& t) noexcept {
  t.enter_blocked(__builtin_frame_address(0));
  {
    std::lock_guard lock(state_mutex_);
    finishes([&] { reclaimer_.pass_if_unneeded(t); });
    in_service_->reclaim_locked();
  }
  t.leave_blocked();
}

}  // namespace tiering
}  // namespace uptier
