#include "tiering/runtime/frame_moves.h"

#include <cassert>

#include "jit/code/leave.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"

namespace uptier::tiering {
namespace {

// A method with more calls than this is not dominated by long calls.
constexpr uint64_t kFewCalls = 8;
// Bytes of stack that moving a frame may use below the new frame.
constexpr uint64_t kMoveStack = 4096;

// Returns the size of the frame that an on-stack replacement version has above its own.
uint64_t baseline_frame_of(const jit::Code& osr) {
  assert(osr.tables().saved_at <= -8);
  return static_cast<uint64_t>(-int64_t{osr.tables().saved_at} - 8);
}

}  // namespace

bool FrameMoves::prepare_move(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                              const jit::Code& osr) {
  jit::enter_loop(s, from, row, osr, baseline_frame_of(osr));
  uint64_t wanted = baseline_frame_of(osr) + osr.tables().frame_size + s.buffer_bytes + kMoveStack;
  uintptr_t limit = sampler::current_context()->stack_limit;
  return s.rbp() > limit && s.rbp() - limit > wanted;
}

bool FrameMoves::known_for_calls(const Method& m, AttachedThread& t,
                                 const jit::Code& from) noexcept {
  return calls_reach(m, from) && sampler::calls_so_far(t.state(m.id)) > kFewCalls;
}

void FrameMoves::ask_for_newer(Method& m, uint32_t loop, const jit::Code& from,
                               jit::PollWord& word) noexcept {
  assert(loop < m.shape->loop_count);
  AttachedThread* t = engine_.here();
  if (t == nullptr || engine_.options.tier != TierMode::kAuto) return;
  if (known_for_calls(m, *t, from)) return;
  if (m.shape->osr_asked[loop].exchange(true, std::memory_order_relaxed)) return;
  sampler::Note n;
  n.kind = sampler::NoteKind::kWantNewer;
  n.method = m.id.index();
  n.loop = loop;
  if (t->ring().push(n, {})) return guest_waits_.wake_worker(m);
  // The ring is full: poll again at the next header.
  m.shape->osr_asked[loop].store(false, std::memory_order_relaxed);
  raise_word(word, OsrOut::kNewer);
}

jit::Leave moved(Method& m) {
  assert(m.has_shape());
  m.shape.made()->osr_outs.fetch_add(1, std::memory_order_relaxed);
  return jit::Leave::kEnter;
}

bool calls_reach(const Method& m, const jit::Code& code) {
  const Version* called = m.optimized.load(std::memory_order_acquire);
  if (!usable(called)) return false;
  return called->code.get() == &code ||
         (called->general != nullptr && called->general->code.get() == &code);
}

}  // namespace uptier::tiering
