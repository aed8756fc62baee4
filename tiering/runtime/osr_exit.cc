#include "tiering/runtime/osr_exit.h"

#include <cassert>

#include "jit/code/leave.h"
#include "tiering/model/event_of.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/baseline_frames.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/frame_moves.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/observed_rounds.h"

namespace uptier::tiering {

void note_left(const Engine& engine, const jit::Code& from, const jit::Code* to, const char* why,
               const jit::ExitRow& row) noexcept {
  if (AttachedThread* t = engine.here()) t->events.push(left_event(from, to, why, row));
}

void note_moved(const Engine& engine, const Version& to, const jit::Code& from) noexcept {
  if (AttachedThread* t = engine.here()) t->events.push(entered_event(to, from.serial()));
}

// The word is cleared before anything is read: a later install sets it again.
jit::Leave OsrExit::poll(jit::LeaveState& s, const jit::Code& from,
                         const jit::ExitRow& row) noexcept {
  Method& m = engine_.method(from.method().index());
  assert(row.polls.valid() && row.polls.index() < m.shape->loop_count);
  uint32_t loop = row.polls.index();
  if (engine_.stress.active(StressKind::kOsrOut)) return stress_poll(m, s, from, row);
  jit::PollWord& word = from.polls()[loop];
  // Acquire pairs with the release in Version::call_back().
  OsrOut why = reason_in(word.exchange(0, std::memory_order_acq_rel));
  // A frame of another thread has taken the request, or the word only asked another thread to stop.
  if (why == OsrOut{}) return jit::Leave::kStay;
  bool observed = from.observed_loop().valid();
  if (why == OsrOut::kObserve) {
    return observed ? observed_rounds_.observed_round(m, s, from, row)
                    : observed_rounds_.observe_frame(m, s, from, row);
  }
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  bool sticks = why == OsrOut::kAnywhere;
  bool newer = usable(v) && (observed || v->serial > from.serial());
  if (newer && frame_moves_.prepare_move(s, from, row, *v->code)) {
    if (!calls_reach(m, from)) raise_word(word, why);
    note_moved(engine_, *v, from);
    return moved(m);
  }
  if (sticks) {
    raise_word(word, why);
    m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
    return baseline_frames_.leave_for_baseline(s, from, row, "the code must not run any more");
  }
  if (!newer) frame_moves_.ask_for_newer(m, loop, from, word);
  return jit::Leave::kStay;
}

jit::Leave OsrExit::stress_poll(Method& m, jit::LeaveState& s, const jit::Code& from,
                                const jit::ExitRow& row) noexcept {
  assert(engine_.stress.active(StressKind::kOsrOut));
  uint32_t loop = row.polls.index();
  if (!engine_.stress.point(StressKind::kOsrOut, from.serial(), loop)) return jit::Leave::kStay;
  if (engine_.stress.forced(StressKind::kOsrOut) % 3 == 0) {
    m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
    return baseline_frames_.leave_for_baseline(s, from, row, "stress");
  }
  if (m.shape->osr[loop].load(std::memory_order_acquire) == nullptr) {
    guest_waits_.compile_now(m,
                             {.method = m.id, .tier = Tier::kOptimized, .osr_loop = LoopId(loop)});
  }
  if (observed_rounds_.stress_observe(m, s, from, row)) return moved(m);
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  if (!usable(v) || !frame_moves_.prepare_move(s, from, row, *v->code)) return jit::Leave::kStay;
  note_moved(engine_, *v, from);
  return moved(m);
}

}  // namespace uptier::tiering
