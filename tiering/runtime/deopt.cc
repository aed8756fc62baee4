// What exits of compiled code call: a guard has failed, or a block runs that was left out.
//
// The law is that of slow_paths.cc, with its exception: baseline code that can be entered is made
// when the first frame needs it, on the thread that does (docs/notes/0013). It is kept from then
// on, as long as the method has code at all, and it is not refused for want of room.
#include <alloca.h>

#include <algorithm>

#include "jit/code/leave.h"
#include "jit/code/stack_walk.h"
#include "profile/base/wall.h"
#include "tiering/model/event_of.h"
#include "tiering/runtime/runtime_impl.h"
#include "uptier/interrupted.h"

namespace uptier::tiering {
namespace {

// What write_frames() and its caller may take below the frames that are made.
constexpr uint64_t kLeaveStack = 2048;

jit::Leave trap(TrapCode code) {
  put_trap(*sampler::current_context(), code, 0);
  return jit::Leave::kTrap;
}

std::span<const jit::ExitFrame> frames_of(const jit::Code& from, const jit::ExitRow& row) {
  return {from.tables().exit_frames.data() + row.frames_at, row.frames};
}

// Whether so many slots, and the host's interpreter below them, fit on the stack. The code that
// leaves need not have looked: a leaf may run on the reserve.
bool has_room(uint64_t slots) { return Runtime::stack_left() > slots * sizeof(uint64_t); }

}  // namespace

jit::Leave RuntimeImpl::leave(jit::LeaveState& s, bool forced) noexcept {
  const jit::Code& from = *space_->owner_of(jit::inside_of(s));
  const jit::ExitRow& row = *from.exit_at(s.pc);
  // Whose guard it is: that of the innermost body.
  Method& m = method(from.method_of(frames_of(from, row).front().body).index());
  m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
  note_left(from, forced ? "stress" : guard_reason_name(row.reason), row.exit);
  if (!forced) count_exit(m, row.exit);
  return row.to_host ? leave_for_host(m, s, from, row) : leave_for_baseline(s, from, row, 0);
}

jit::Leave RuntimeImpl::ask_to_leave(jit::LeaveState& s) noexcept {
  if (interrupted()) return trap(TrapCode::kInterrupted);
  const jit::Code& from = *space_->owner_of(jit::inside_of(s));
  const jit::ExitRow& row = *from.exit_at(s.pc);
  if (row.polls.valid()) return poll(s, from, row);
  if (!stress_.point(StressKind::kGuard, from.serial(), reinterpret_cast<uintptr_t>(s.pc)))
    return jit::Leave::kStay;
  return leave(s, true);
}

// Makes the frames that the row names but the first `skipped`.
jit::Leave RuntimeImpl::leave_for_baseline(jit::LeaveState& s, const jit::Code& from,
                                           const jit::ExitRow& row, uint32_t skipped) noexcept {
  const jit::Code* to[jit::kMostExitFrames] = {};
  if (const Method* m = find_enterable(from, row, skipped, to)) {
    raise_no_code(m->id);
    return jit::Leave::kTrap;
  }
  jit::enter_baseline(s, from, row, to, skipped);
  uint64_t lowest = s.rbp() - s.frame_bytes - s.buffer_bytes - kLeaveStack;
  bool room = lowest >= sampler::current_context()->stack_limit && lowest < s.rbp();
  return room ? jit::Leave::kEnter : trap(TrapCode::kStackExhausted);
}

// Making code for one method may take away another's, so all are looked at again until nothing had
// to be made. Returns the method that the host does not describe any more, if there is one.
const Method* RuntimeImpl::find_enterable(const jit::Code& from, const jit::ExitRow& row,
                                          uint32_t skipped, const jit::Code** to) noexcept {
  std::span<const jit::ExitFrame> frames = frames_of(from, row);
  for (uint32_t n = skipped; n < frames.size();) {
    Method& m = method(from.method_of(frames[n].body).index());
    const Version* v = m.enterable.load(std::memory_order_acquire);
    if (usable(v)) {
      to[n++] = v->code.get();
      continue;
    }
    if (enterable_version(m) == nullptr) return &m;
    n = skipped;
  }
  return nullptr;
}

// The frame stays where it is while the host runs, and goes when it returns. Its slots lie on the
// stack: a trap may drop the host's frames and this one, and then nobody frees anything. The frames
// that the body was inlined into go on in baseline code afterwards, with its result.
jit::Leave RuntimeImpl::leave_for_host(Method& m, jit::LeaveState& s, const jit::Code& from,
                                       const jit::ExitRow& row) noexcept {
  const jit::CodeTables& t = from.tables();
  const jit::ExitFrame& frame = t.exit_frames[row.frames_at];
  if (!has_room(frame.values)) return trap(TrapCode::kStackExhausted);
  auto* slots = static_cast<uint64_t*>(alloca(frame.values * sizeof(uint64_t)));
  for (uint32_t n = 0; n < frame.values; ++n) {
    const jit::ExitValue& v = t.exit_values[frame.values_at + n];
    uint64_t bits = jit::value_at_exit(s, v);
    slots[n] = v.wide ? bits : static_cast<uint32_t>(bits);
  }
  // The block is left by no edge that is counted.
  if (from.counts_edges()) frames_dropped(m.id.index(), from.site_at(jit::inside_of(s)), 1);
  HostFrame f{m.id, frame.pc, row.reason, frame.values, slots, &m.host};
  m.shape.made()->left_for_host.fetch_add(1, std::memory_order_relaxed);
  sampler::ThreadContext& c = *sampler::current_context();
  // A trap that drops this frame takes it back, see call().
  ++c.exits_to_host;
  AttachedThread* thread = here();
  jit::HostExit exit{thread == nullptr ? nullptr : thread->host_exits, &s};
  if (thread != nullptr) thread->host_exits = &exit;
  s.result = m.info.host_resume(&f);
  if (thread != nullptr) thread->host_exits = exit.outer;
  --c.exits_to_host;
  if (c.pending_trap != 0) return jit::Leave::kTrap;
  if (row.frames > 1) return leave_for_baseline(s, from, row, 1);
  jit::restore_saved(s, from);
  return jit::Leave::kReturn;
}

// Returns the method's baseline code for frames that leave better code, made if need be; null when
// the host does not describe the method any more.
const Version* RuntimeImpl::enterable_version(Method& m) noexcept {
  for (int tries = 0; tries < 100; ++tries) {
    const Version* v = m.enterable.load(std::memory_order_acquire);
    if (usable(v)) return v;
    AttachedThread* t = here();
    if (t != nullptr) t->enter_blocked(__builtin_frame_address(0));
    bool made = make_enterable(m);
    if (t != nullptr) t->leave_blocked();
    if (!made) return nullptr;
  }
  return nullptr;
}

// What memory was refused to is tried once more, as in first_call().
bool RuntimeImpl::make_enterable(Method& m) noexcept {
  jit::StandardFloats floats;
  for (int tries = 0; tries < 2; ++tries) {
    bool made = false;
    if (finishes([&] { made = make_enterable_version(m); })) return made;
  }
  note_no_memory(m);
  return false;
}

bool RuntimeImpl::make_enterable_version(Method& m) {
  LookingAround looking(*this);
  CompileTurn turn(turns_, m);
  if (!turn) {  // `build` of the method runs the code that leaves
    say_turn_refused(m);
    return false;
  }
  if (usable(m.enterable.load(std::memory_order_acquire))) return true;
  if (!hosts_.may_ask(m)) return false;
  Result<std::unique_ptr<Version>> v = compiler_->make_enterable(m);
  std::lock_guard lock(state_mutex_);
  if (v) {
    install(m, std::move(*v));
    return true;
  }
  m.last_error.put(v.error().message);
  events_.emit(event_of(EventKind::kFailed, m, *m.last_error));
  return false;
}

// ---- Exits that are taken too often -----------------------------------------------------------

// The exit that meets a limit acts on it: a worker that comes to it later would find thousands more
// of them. The law forbids waiting for a lock, so if it is taken the next exit tries again.
void RuntimeImpl::count_exit(Method& m, uint32_t exit) noexcept {
  if (!m.shape.made()->exits.count(exit)) return;
  {
    std::unique_lock lock(state_mutex_, std::try_to_lock);
    if (!lock) return m.shape.made()->exits.ask_again(exit);
    finishes([&] {
      rates_.note_activity();
      exits_->consider(m, exit);
    });
  }
  wake_worker();
}

}  // namespace uptier::tiering
