// Frames of old code are called back: to newer code of the same loop, if there is any.
//
//   worker   a callee comes into service that a version reaches by its stub, or the version is
//            taken out of service: its words are set, one a loop
//   guest    finds one set at a loop header: is there newer code for this loop? then the frame goes
//            there; if not, the word is cleared, the code asked for, and the frame stays
//   worker   makes that code, if it is due, installs it, and sets the words of older versions again
//
// So a frame never waits in plainer code, and a check that finds nothing costs once. The words of
// versions that calls still reach are set for one frame at a time: what comes after it is no older
// than the code that calls reach.
//
// Due: the newest that a frame of the method could go to has been in service for kPatience times as
// long as it took to compile (without measured rates: at once) and no frame has gone there, nothing
// of the kind is being made, and fewer than max_recompiles versions were made for the loop.
#include <algorithm>

#include "jit/code/leave.h"
#include "tiering/base/clock.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

// A method that was called more often is not known for its long calls.
constexpr uint64_t kFewCalls = 8;
// What moving a frame may take below the frame that it makes.
constexpr uint64_t kMoveStack = 4096;

// The frame that OSR code has above its own.
uint64_t baseline_frame_of(const jit::Code& osr) {
  return static_cast<uint64_t>(-int64_t{osr.tables().saved_at} - 8);
}

jit::Leave moved(Method& m) {
  m.shape.made()->osr_outs.fetch_add(1, std::memory_order_relaxed);
  return jit::Leave::kEnter;
}

// Whether calls of the method may run the code: by themselves, or behind the guard of a version for
// values.
bool calls_reach(const Method& m, const jit::Code& code) {
  const Version* called = m.optimized.load(std::memory_order_acquire);
  if (!usable(called)) return false;
  return called->code.get() == &code ||
         (called->general != nullptr && called->general->code.get() == &code);
}

}  // namespace

// In a signal handler: all words there are, also those that no version has, whose next owner is asked
// once in vain.
void RuntimeImpl::have_all_loops_ask() noexcept {
  auto capacity = static_cast<uint32_t>(options_.max_methods);
  std::span<uint8_t> data = space_->data().subspan(jit::StubTable::data_bytes(capacity));
  std::span words(reinterpret_cast<jit::PollWord*>(data.data()),
                  data.size() / sizeof(jit::PollWord));
  for (jit::PollWord& word : words) {
    bool says_so = (word.load(std::memory_order_relaxed) & kStops) != 0;
    if (!says_so) word.fetch_or(kStops, std::memory_order_relaxed);
  }
}

// ---- The guest's side -------------------------------------------------------------------------

// The word of the loop is set, and cleared before anything is looked at: what is
// installed later sets it again.
jit::Leave RuntimeImpl::poll(jit::LeaveState& s, const jit::Code& from,
                             const jit::ExitRow& row) noexcept {
  Method& m = method(from.method().index());
  uint32_t loop = row.polls.index();
  if (stress_.active(StressKind::kOsrOut)) return stress_poll(m, s, from, row);
  jit::PollWord& word = from.polls()[loop];
  // Acquire pairs with the release in call_back().
  OsrOut why = reason_in(word.exchange(0, std::memory_order_acq_rel));
  // Another thread's frame was here, or another thread is to stop.
  if (why == OsrOut{}) return jit::Leave::kStay;
  bool observed = from.observed_loop().valid();
  if (why == OsrOut::kObserve) {
    return observed ? observed_round(m, s, from, row) : observe_frame(m, s, from, row);
  }
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  bool sticks = why == OsrOut::kAnywhere;
  bool newer = usable(v) && (observed || v->serial > from.serial());
  if (newer && prepare_move(s, from, row, *v->code)) {
    if (!calls_reach(m, from)) raise_word(word, why);
    note_moved_frame(*v, from);
    return moved(m);
  }
  if (sticks) {
    raise_word(word, why);
    m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
    note_left(from, "the code must not run any more", row.exit);
    return leave_for_baseline(s, from, row, 0);
  }
  if (!newer) ask_for_newer(m, loop, from, word);
  return jit::Leave::kStay;
}

// Says in `s` that the frame goes to `osr`. Returns whether there is stack for it.
bool RuntimeImpl::prepare_move(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                               const jit::Code& osr) {
  jit::enter_loop(s, from, row, osr, baseline_frame_of(osr));
  uint64_t wanted = baseline_frame_of(osr) + osr.tables().frame_size + s.buffer_bytes + kMoveStack;
  uintptr_t limit = sampler::current_context()->stack_limit;
  return s.rbp() > limit && s.rbp() - limit > wanted;
}

// Whether calls of the thread reach the code, so often that they are what it is known for.
bool RuntimeImpl::known_for_calls(const Method& m, AttachedThread& t,
                                  const jit::Code& from) noexcept {
  return calls_reach(m, from) && sampler::calls_so_far(t.state(m.id)) > kFewCalls;
}

void RuntimeImpl::ask_for_newer(Method& m, uint32_t loop, const jit::Code& from,
                                jit::PollWord& word) noexcept {
  AttachedThread* t = here();
  if (t == nullptr || options_.tier != TierMode::kAuto) return;
  if (known_for_calls(m, *t, from)) return;
  if (m.shape->osr_asked[loop].exchange(true, std::memory_order_relaxed)) return;
  sampler::Note n;
  n.kind = sampler::NoteKind::kWantNewer;
  n.method = m.id.index();
  n.loop = loop;
  if (t->ring().push(n, {})) return wake_worker();
  // A full ring: asks again at the next header.
  m.shape->osr_asked[loop].store(false, std::memory_order_relaxed);
  raise_word(word, OsrOut::kNewer);
}

// Words are never 0. A point that is forced goes to code for this loop, which is made on the spot:
// every third one to baseline code, and every third one to an instrumented copy.
jit::Leave RuntimeImpl::stress_poll(Method& m, jit::LeaveState& s, const jit::Code& from,
                                    const jit::ExitRow& row) noexcept {
  uint32_t loop = row.polls.index();
  if (!stress_.point(StressKind::kOsrOut, from.serial(), loop)) return jit::Leave::kStay;
  if (stress_.forced(StressKind::kOsrOut) % 3 == 0) {
    m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
    note_left(from, "stress", row.exit);
    return leave_for_baseline(s, from, row, 0);
  }
  if (m.shape->osr[loop].load(std::memory_order_acquire) == nullptr) {
    compile_and_install({.method = m.id, .tier = Tier::kOptimized, .osr_loop = LoopId(loop)});
  }
  if (stress_observe(m, s, from, row)) return moved(m);
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  if (!usable(v) || !prepare_move(s, from, row, *v->code)) return jit::Leave::kStay;
  note_moved_frame(*v, from);
  return moved(m);
}

}  // namespace uptier::tiering
