#include "tiering/runtime/baseline_frames.h"

#include <cassert>

#include "jit/code/leave.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/osr_exit.h"
#include "tiering/runtime/traps.h"

namespace uptier::tiering {
namespace {

// Bytes of stack that write_frames() and its caller may use below the new frames.
constexpr uint64_t kLeaveStack = 2048;

jit::Leave trap_without_code(const Method& m) noexcept {
  raise_no_code(m.id);
  return jit::Leave::kTrap;
}

}  // namespace

jit::Leave BaselineFrames::leave_for_baseline(jit::LeaveState& s, const jit::Code& from,
                                              const jit::ExitRow& row, const char* why) noexcept {
  assert(row.frames <= jit::kMostExitFrames);
  const jit::Code* to[jit::kMostExitFrames] = {};
  const Method* without = find_enterable(from, row, 0, to);
  note_left(engine_, from, without == nullptr ? to[0] : nullptr, why, row);
  return without == nullptr ? make_frames(s, from, row, 0, to) : trap_without_code(*without);
}

jit::Leave BaselineFrames::leave_callers_for_baseline(jit::LeaveState& s, const jit::Code& from,
                                                      const jit::ExitRow& row) noexcept {
  assert(row.frames > 1 && row.frames <= jit::kMostExitFrames);
  const jit::Code* to[jit::kMostExitFrames] = {};
  const Method* without = find_enterable(from, row, 1, to);
  return without == nullptr ? make_frames(s, from, row, 1, to) : trap_without_code(*without);
}

jit::Leave BaselineFrames::make_frames(jit::LeaveState& s, const jit::Code& from,
                                       const jit::ExitRow& row, uint32_t skipped,
                                       std::span<const jit::Code* const> to) noexcept {
  jit::enter_baseline(s, from, row, to, skipped);
  uint64_t lowest = s.rbp() - s.frame_bytes - s.buffer_bytes - kLeaveStack;
  bool room = lowest >= sampler::current_context()->stack_limit && lowest < s.rbp();
  return room ? jit::Leave::kEnter : leave_by_trap(TrapCode::kStackExhausted);
}

// Making code for one method may evict another's, so all methods are checked again until no code
// had to be made.
const Method* BaselineFrames::find_enterable(const jit::Code& from, const jit::ExitRow& row,
                                             uint32_t skipped, const jit::Code** to) noexcept {
  std::span<const jit::ExitFrame> frames = exit_frames_of(from, row);
  for (uint32_t n = skipped; n < frames.size();) {
    Method& m = engine_.method(from.method_of(frames[n].body).index());
    const Version* v = m.enterable.load(std::memory_order_acquire);
    if (usable(v)) {
      assert(v->enterable && v->code != nullptr);
      to[n++] = v->code.get();
      continue;
    }
    if (enterable_version(m) == nullptr) return &m;
    n = skipped;
  }
  return nullptr;
}

const Version* BaselineFrames::enterable_version(Method& m) noexcept {
  for (int tries = 0; tries < 100; ++tries) {
    const Version* v = m.enterable.load(std::memory_order_acquire);
    if (usable(v)) return v;
    if (!guest_waits_.make_enterable(m)) return nullptr;
  }
  return nullptr;
}

}  // namespace uptier::tiering
