#include "tiering/runtime/code_entries.h"

#include <cassert>

#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest.h"
#include "tiering/runtime/orphaned_trap.h"

namespace uptier::tiering {
namespace {

Guest& guest_of(void* engine) {
  Guest* guest = static_cast<Engine*>(engine)->guest;
  assert(guest != nullptr);
  return *guest;
}

extern "C" {
const void* uptier_enter(uint32_t method, void* engine) noexcept {
  return guest_of(engine).calls.enter(method);
}
jit::TrialCall uptier_trial_call(uint32_t method, void* engine) noexcept {
  return guest_of(engine).trial_calls.trial_call(method);
}
const void* uptier_guard_told(uint32_t method, void* engine) noexcept {
  return guest_of(engine).trial_calls.guard_told(method);
}
const void* uptier_loop_plain(uint32_t method, uint32_t loop, void*, void* engine) noexcept {
  const void* pc = __builtin_return_address(0);
  return guest_of(engine).loops.loop_plain(method, loop, pc);
}
const void* uptier_loop_instrumented(uint32_t method, uint32_t loop, void*, void* engine) noexcept {
  const void* pc = __builtin_return_address(0);
  return guest_of(engine).loops.loop_instrumented(method, loop, pc);
}
jit::Leave uptier_leave(jit::LeaveState* s, void* engine) noexcept {
  return guest_of(engine).deopt.leave(*s, false);
}
jit::Leave uptier_ask_to_leave(jit::LeaveState* s, void* engine) noexcept {
  return guest_of(engine).deopt.ask_to_leave(*s);
}
void uptier_frames_dropped(uint32_t method, SiteId block, uint64_t frames, void* engine) noexcept {
  guest_of(engine).notes.frames_dropped(method, block, frames);
}
void uptier_orphaned_trap(void* engine) noexcept {
  end_orphaned(*static_cast<const Engine*>(engine));
}
}

}  // namespace

CodeEntries code_entries() noexcept {
  return {.enter = uptier_enter,
          .trial_call = uptier_trial_call,
          .guard_told = uptier_guard_told,
          .loop_plain = uptier_loop_plain,
          .loop_instrumented = uptier_loop_instrumented,
          .leave = uptier_leave,
          .ask_to_leave = uptier_ask_to_leave,
          .frames_dropped = uptier_frames_dropped,
          .orphaned_trap = uptier_orphaned_trap};
}

}  // namespace uptier::tiering
