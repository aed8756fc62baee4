#include "tiering/runtime/deopt.h"

#include <alloca.h>
#include <cassert>

#include "jit/code/code_space.h"
#include "jit/code/leave.h"
#include "jit/code/stack_walk.h"
#include "profile/base/wall.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/baseline_frames.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/osr_exit.h"
#include "tiering/runtime/traps.h"
#include "uptier/interrupted.h"

namespace uptier::tiering {
namespace {

// Returns the code that is being left.
const jit::Code& code_of(const Engine& engine, const jit::LeaveState& s) {
  const jit::Code* code = engine.space->owner_of(jit::inside_of(s));
  assert(code != nullptr && code->exit_at(s.pc) != nullptr);
  return *code;
}

// Says whether so many slots, and the host's interpreter below them, fit on the stack. The code
// being left may not have checked: a leaf may run on the reserve.
bool has_room(uint64_t slots) { return Runtime::stack_left() > slots * sizeof(uint64_t); }

}  // namespace

jit::Leave Deopt::leave(jit::LeaveState& s, bool forced) noexcept {
  const jit::Code& from = code_of(engine_, s);
  const jit::ExitRow& row = *from.exit_at(s.pc);
  assert(row.frames != 0);
  // The guard belongs to the method of the innermost body.
  Method& m = engine_.method(from.method_of(exit_frames_of(from, row).front().body).index());
  m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
  const char* why = forced ? "stress" : guard_reason_name(row.reason);
  if (!forced) count_exit(m, row.exit);
  if (!row.to_host) return baseline_frames_.leave_for_baseline(s, from, row, why);
  note_left(engine_, from, nullptr, why, row);
  return leave_for_host(m, s, from, row);
}

jit::Leave Deopt::ask_to_leave(jit::LeaveState& s) noexcept {
  if (interrupted()) return leave_by_trap(TrapCode::kInterrupted);
  const jit::Code& from = code_of(engine_, s);
  const jit::ExitRow& row = *from.exit_at(s.pc);
  if (row.polls.valid()) return osr_exit_.poll(s, from, row);
  if (!engine_.stress.point(StressKind::kGuard, from.serial(), reinterpret_cast<uintptr_t>(s.pc)))
    return jit::Leave::kStay;
  return leave(s, true);
}

// The frame stays while the host runs, and is popped when the host returns. Its slots are on the
// stack, because a trap may drop the host's frames and this one without freeing anything. If the
// body was inlined, the frames of its callers then continue in baseline code, with its result.
jit::Leave Deopt::leave_for_host(Method& m, jit::LeaveState& s, const jit::Code& from,
                                 const jit::ExitRow& row) noexcept {
  assert(row.to_host && m.info.host_resume != nullptr);
  const jit::CodeTables& t = from.tables();
  const jit::ExitFrame& frame = t.exit_frames[row.frames_at];
  if (!has_room(frame.values)) return leave_by_trap(TrapCode::kStackExhausted);
  auto* slots = static_cast<uint64_t*>(alloca(frame.values * sizeof(uint64_t)));
  for (uint32_t n = 0; n < frame.values; ++n) {
    const jit::ExitValue& v = t.exit_values[frame.values_at + n];
    uint64_t bits = jit::value_at_exit(s, v);
    slots[n] = v.wide ? bits : static_cast<uint32_t>(bits);
  }
  // The block is left without taking a counted edge.
  if (from.counts_edges()) notes_.frames_dropped(m.id.index(), from.site_at(jit::inside_of(s)), 1);
  HostFrame f{m.id, frame.pc, row.reason, frame.values, slots, &m.host};
  m.shape.made()->left_for_host.fetch_add(1, std::memory_order_relaxed);
  sampler::ThreadContext& c = *sampler::current_context();
  // If a trap drops this frame, Invoker::call() restores the number.
  ++c.exits_to_host;
  AttachedThread* thread = engine_.here();
  jit::HostExit exit{thread == nullptr ? nullptr : thread->host_exits, &s};
  if (thread != nullptr) thread->host_exits = &exit;
  s.result = m.info.host_resume(&f);
  if (thread != nullptr) thread->host_exits = exit.outer;
  assert(c.exits_to_host != 0);
  --c.exits_to_host;
  if (c.pending_trap != 0) return jit::Leave::kTrap;
  if (row.frames > 1) return baseline_frames_.leave_callers_for_baseline(s, from, row);
  jit::restore_saved(s, from);
  return jit::Leave::kReturn;
}

// Done here, not by the worker, which would get to it thousands of exits later.
void Deopt::count_exit(Method& m, uint32_t exit) noexcept {
  if (!m.shape.made()->exits.count(exit)) return;
  if (!guest_waits_.try_consider_exit(m, exit)) return m.shape.made()->exits.ask_again(exit);
  guest_waits_.wake_worker(m);
}

}  // namespace uptier::tiering
