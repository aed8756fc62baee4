#include "tiering/runtime/host_stacks.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

Error refused(const char* why) { return Error{ErrorCode::kInvalidArgument, why}; }

}  // namespace

Result<NativeStack*> HostStacks::create_stack(void* memory, size_t bytes) try {
  if (engine_.forked()) return engine_.forked_error();
  if (Status s = engine_.events.check_change("create_stack"); !s) return s.error();
  AttachedThread* t = engine_.here();
  if (t == nullptr) return refused("create_stack: the thread is not attached");
  auto low = reinterpret_cast<uintptr_t>(memory);
  if (low == 0 || low + bytes < low) return refused("create_stack: the range is invalid");
  if (bytes <= engine_.options.stack_reserve) {
    return Error{ErrorCode::kResourceExhausted,
                 "create_stack: the stack has " + std::to_string(bytes) +
                     " bytes, and stack_reserve (" + std::to_string(engine_.options.stack_reserve) +
                     ") is reserved for host functions: nothing could be called"};
  }
  auto stack = std::make_unique<NativeStack>(t, low, low + bytes);
  stack->limit = low + std::max(engine_.options.stack_reserve,
                                bytes - std::min<uint64_t>(bytes, engine_.options.max_stack));
  assert(stack->limit > stack->low && stack->limit < stack->high);
  return &t->stacks.add(std::move(stack));
} catch (const std::exception&) { return out_of_memory("create_stack"); }

// Callers may keep code addresses in registers, and the host saves registers wherever it likes. So
// they are spilled into this frame, unless the C function has spilled them into its own, and both
// frames are copied.
Status HostStacks::switch_stack(NativeStack* to) try {
  if (engine_.forked()) return engine_.forked_error();
  if (Status s = engine_.events.check_change("switch_stack"); !s) return s;
  AttachedThread* t = engine_.here();
  if (t == nullptr) return refused("switch_stack: the thread is not attached");
  __builtin_unwind_init();
  Status s = leave_stack(*t, to == nullptr ? t->stacks.own() : *to, __builtin_frame_address(0));
  asm volatile("");  // prevents a tail call, which would pop this frame first
  return s;
} catch (const std::exception&) { return out_of_memory("switch_stack"); }

Status HostStacks::destroy_stack(NativeStack* stack) try {
  if (stack == nullptr) return {};
  if (engine_.forked()) return engine_.forked_error();
  if (Status s = engine_.events.check_change("destroy_stack"); !s) return s;
  AttachedThread* t = engine_.here();
  if (t == nullptr || stack->thread != t) {
    return refused("destroy_stack: the stack belongs to another thread");
  }
  if (stack == &t->stacks.current()) return refused("destroy_stack: the thread is on the stack");
  t->stacks.remove(*stack);
  return {};
} catch (const std::exception&) { return out_of_memory("destroy_stack"); }

__attribute__((noinline, no_sanitize("address", "thread"))) Status HostStacks::leave_stack(
    AttachedThread& t, NativeStack& to, const void* frame) {
  if (to.thread != &t) return refused("switch_stack: the stack belongs to another thread");
  if (t.blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning) {
    return refused(
        "switch_stack: the thread has said that it is blocked, or is describing a method");
  }
  NativeStack& from = t.stacks.current();
  assert(from.thread == &t);
  auto top = reinterpret_cast<uintptr_t>(frame);
  if (t.stacks.known() && !from.holds(top)) {
    return refused("switch_stack: the thread is not on the stack that it last announced");
  }
  if (&to == &from) return {};
  t.loops().unwind(UINT64_MAX);  // nesting of executions is found by comparing addresses, which
                                 // works on one stack only
  from.host_exits = std::exchange(t.host_exits, to.host_exits);
  from.fuel = sampler::exchange_fuel(to.fuel);
  from.invokes = t.stop.leave_stack();
  t.stacks.change(to, top, t.context());
  assert(&t.stacks.current() == &to);
  t.stop.enter_stack(to.invokes);
  if (!t.stacks.known()) return {};
  auto* at = static_cast<const uintptr_t*>(frame);
  auto* last =
      std::min(at + NativeStack::kWordsAbove, reinterpret_cast<const uintptr_t*>(from.high));
  auto* word = std::max(at - NativeStack::kWordsBelow,
                        static_cast<const uintptr_t*>(__builtin_frame_address(0)));
  for (size_t i = 0; word < last; ++i, ++word) from.registers[i] = *word;
  return {};
}

}  // namespace uptier::tiering
