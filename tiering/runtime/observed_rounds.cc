#include "tiering/runtime/observed_rounds.h"

#include <cassert>

#include "jit/code/leave.h"
#include "tiering/base/clock.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/frame_moves.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/optimized_samples.h"

namespace uptier::tiering {
namespace {

// A burst ends after this many iterations, or after this time.
constexpr uint32_t kBurstRounds = 16;
constexpr uint64_t kBurstNs = 150'000;
// After a longer burst, the loop rests longer than usual (control/loop_copy_control.h).
constexpr uint64_t kLongBurstNs = kBurstNs;

}  // namespace

jit::Leave ObservedRounds::observe_frame(Method& m, jit::LeaveState& s, const jit::Code& from,
                                         const jit::ExitRow& row) noexcept {
  assert(row.polls.valid() && !from.observed_loop().valid());
  AttachedThread* t = engine_.here();
  if (t == nullptr || frame_moves_.known_for_calls(m, *t, from)) return jit::Leave::kStay;
  uint32_t loop = row.polls.index();
  const LoopCopy* c = loop_copy(m, row.polls);
  const Version* copy = c == nullptr ? nullptr : c->version.load(std::memory_order_acquire);
  const Version* back = m.shape->osr[loop].load(std::memory_order_acquire);
  tell_observed(m, *t, loop, from.polls()[loop], 0);
  bool moves = usable(copy) && usable(back) && optimized_samples_.ready_slab(m, *t, *copy) &&
               frame_moves_.prepare_move(s, from, row, *copy->code);
  if (!moves) return jit::Leave::kStay;
  t->burst = {kBurstRounds, now_ns()};
  return jit::Leave::kEnter;
}

jit::Leave ObservedRounds::observed_round(Method& m, jit::LeaveState& s, const jit::Code& from,
                                          const jit::ExitRow& row) noexcept {
  assert(row.polls.valid() && from.observed_loop().valid());
  uint32_t loop = row.polls.index();
  jit::PollWord& word = from.polls()[loop];
  AttachedThread* t = engine_.here();
  if (t != nullptr && burst_goes_on(m, *t, from)) {
    raise_word(word, OsrOut::kObserve);
    if (row.polls != from.observed_loop()) return jit::Leave::kStay;
    assert(t->burst.rounds_left != 0);
    --t->burst.rounds_left;
    optimized_samples_.count_optimized(m, *t);
    return jit::Leave::kStay;
  }
  const Version* back = m.shape->osr[loop].load(std::memory_order_acquire);
  if (!usable(back)) {
    frame_moves_.ask_for_newer(m, loop, from, word);
    return jit::Leave::kStay;
  }
  raise_word(word, OsrOut::kObserve);  // for the next frame
  if (!frame_moves_.prepare_move(s, from, row, *back->code)) return jit::Leave::kStay;
  uint64_t ns = t == nullptr ? 0 : now_ns() - t->burst.began_ns;
  if (ns > kLongBurstNs) {
    // The word may already request that the frame be observed again.
    jit::PollWord& next = back->polls.words()[loop];
    auto again = static_cast<uint32_t>(OsrOut::kObserve);
    next.compare_exchange_strong(again, 0, std::memory_order_relaxed);
    tell_observed(m, *t, loop, next, ns);
  }
  return jit::Leave::kEnter;
}

bool ObservedRounds::stress_observe(Method& m, jit::LeaveState& s, const jit::Code& from,
                                    const jit::ExitRow& row) noexcept {
  AttachedThread* t = engine_.here();
  bool turn = engine_.stress.forced(StressKind::kOsrOut) % 3 == 1;
  if (!turn || t == nullptr || from.observed_loop().valid()) return false;
  if (!guest_waits_.make_loop_copy(m, row.polls)) return false;
  const LoopCopy& c = *loop_copy(m, row.polls);
  if (!usable(c.version.load(std::memory_order_acquire))) {
    guest_waits_.compile_now(m, {.method = m.id,
                                 .tier = Tier::kOptimized,
                                 .copy = Copy::kInstrumented,
                                 .osr_loop = row.polls,
                                 .use_profile = true});
  }
  const Version* copy = c.version.load(std::memory_order_acquire);
  bool moves = usable(copy) && optimized_samples_.ready_slab(m, *t, *copy) &&
               frame_moves_.prepare_move(s, from, row, *copy->code);
  if (moves) optimized_samples_.count_optimized(m, *t);
  return moves;
}

bool ObservedRounds::burst_goes_on(const Method& m, AttachedThread& t,
                                   const jit::Code& from) const noexcept {
  assert(loop_copy(m, from.observed_loop()) != nullptr);  // `from` is a loop copy
  const Version* copy = loop_copy(m, from.observed_loop())->version.load(std::memory_order_acquire);
  if (copy == nullptr || copy->code.get() != &from) return false;
  if (counted_copy(t.state(m.id).optimized_slab) != copy->copy_number) return false;
  return t.burst.rounds_left != 0 && now_ns() - t.burst.began_ns < kBurstNs;
}

void ObservedRounds::tell_observed(Method& m, AttachedThread& t, uint32_t loop, jit::PollWord& word,
                                   uint64_t burst_ns) noexcept {
  sampler::Note n;
  n.kind = sampler::NoteKind::kFrame;
  n.method = m.id.index();
  n.loop = loop;
  n.calls = burst_ns;
  if (t.ring().push(n, {})) return guest_waits_.wake_worker(m);
  raise_word(word, OsrOut::kObserve);
}

}  // namespace uptier::tiering
