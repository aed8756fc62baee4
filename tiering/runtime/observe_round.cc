// Frames that stay in optimized code are observed by turns: for some rounds of a loop.
//
//   plain code      the word of a loop header says kObserve: the worker is told, and if there is an
//                   instrumented copy of the loop, and plain code to come back to, the frame goes
//   instrumented    each round of that loop asks. kBurstRounds later, or kBurstNs: back to plain
//                   code, by the same kind of move. What took longer is told again
//
// A frame that leaves its loop, or is dropped by a trap, ends a burst without a word.
//
// A sample is a round, from its header to the next arrival there. Inside of it loops do not ask. A
// frame that leaves the loop for another one goes back from there; if that has no code of its own to
// enter, it is asked for (osr_out.cc).
//
// The law is that of slow_paths.cc.
#include "tiering/base/clock.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

constexpr uint32_t kBurstRounds = 16;
constexpr uint64_t kBurstNs = 150'000;
// What needs a longer rest than the usual one (observe_loops.cc).
constexpr uint64_t kLongBurstNs = kBurstNs;

}  // namespace

// A word is cleared that says kObserve. The worker sets it again some time after it was told.
jit::Leave RuntimeImpl::observe_frame(Method& m, jit::LeaveState& s, const jit::Code& from,
                                      const jit::ExitRow& row) noexcept {
  AttachedThread* t = here();
  if (t == nullptr || known_for_calls(m, *t, from)) return jit::Leave::kStay;
  uint32_t loop = row.polls.index();
  const LoopCopy* c = loop_copy(m, row.polls);
  const Version* copy = c == nullptr ? nullptr : c->version.load(std::memory_order_acquire);
  const Version* back = m.shape->osr[loop].load(std::memory_order_acquire);
  tell_observed(m, *t, loop, from.polls()[loop], 0);
  bool moves = usable(copy) && usable(back) && ready_slab(m, *t, *copy) &&
               prepare_move(s, from, row, *copy->code);
  if (!moves) return jit::Leave::kStay;
  t->burst = {kBurstRounds, now_ns()};
  return jit::Leave::kEnter;
}

// The header of a loop in a copy, whose word was cleared.
jit::Leave RuntimeImpl::observed_round(Method& m, jit::LeaveState& s, const jit::Code& from,
                                       const jit::ExitRow& row) noexcept {
  uint32_t loop = row.polls.index();
  jit::PollWord& word = from.polls()[loop];
  AttachedThread* t = here();
  if (t != nullptr && burst_goes_on(m, *t, from)) {
    raise_word(word, OsrOut::kObserve);
    if (row.polls != from.observed_loop()) return jit::Leave::kStay;
    --t->burst.rounds_left;
    count_optimized(m, *t);
    return jit::Leave::kStay;
  }
  const Version* back = m.shape->osr[loop].load(std::memory_order_acquire);
  if (!usable(back)) {
    ask_for_newer(m, loop, from, word);
    return jit::Leave::kStay;
  }
  raise_word(word, OsrOut::kObserve);  // for the next frame
  if (!prepare_move(s, from, row, *back->code)) return jit::Leave::kStay;
  uint64_t ns = t == nullptr ? 0 : now_ns() - t->burst.began_ns;
  if (ns > kLongBurstNs) {
    // By now it may say that the frame is to be observed again.
    jit::PollWord& next = back->polls.words()[loop];
    auto again = static_cast<uint32_t>(OsrOut::kObserve);
    next.compare_exchange_strong(again, 0, std::memory_order_relaxed);
    tell_observed(m, *t, loop, next, ns);
  }
  return jit::Leave::kEnter;
}

// Whether the frame is to stay in the copy. Not where its thread counts for another one by now, or
// none of it is in service.
bool RuntimeImpl::burst_goes_on(const Method& m, AttachedThread& t,
                                const jit::Code& from) const noexcept {
  const Version* copy = loop_copy(m, from.observed_loop())->version.load(std::memory_order_acquire);
  if (copy == nullptr || copy->code.get() != &from) return false;
  if (counted_copy(t.state(m.id).optimized_slab) != copy->copy_number) return false;
  return t.burst.rounds_left != 0 && now_ns() - t.burst.began_ns < kBurstNs;
}

// `word`: what the frame finds next. Without room in the ring it asks again.
void RuntimeImpl::tell_observed(Method& m, AttachedThread& t, uint32_t loop, jit::PollWord& word,
                                uint64_t burst_ns) noexcept {
  sampler::Note n;
  n.kind = sampler::NoteKind::kFrame;
  n.method = m.id.index();
  n.loop = loop;
  n.calls = burst_ns;
  if (t.ring().push(n, {})) return wake_worker();
  raise_word(word, OsrOut::kObserve);
}

// A point that the stress plan forces: every third one goes to a copy, which is made on the spot.
bool RuntimeImpl::stress_observe(Method& m, jit::LeaveState& s, const jit::Code& from,
                                 const jit::ExitRow& row) noexcept {
  AttachedThread* t = here();
  bool turn = stress_.forced(StressKind::kOsrOut) % 3 == 1;
  if (!turn || t == nullptr || from.observed_loop().valid()) return false;
  {
    std::lock_guard lock(state_mutex_);
    if (!copies_->rules().may_observe(m)) return false;
    own_loop_copy(m, row.polls);
  }
  const LoopCopy& c = *loop_copy(m, row.polls);
  if (!usable(c.version.load(std::memory_order_acquire))) {
    compile_and_install({.method = m.id,
                         .tier = Tier::kOptimized,
                         .copy = Copy::kInstrumented,
                         .osr_loop = row.polls,
                         .use_profile = true});
  }
  const Version* copy = c.version.load(std::memory_order_acquire);
  bool moves = usable(copy) && ready_slab(m, *t, *copy) && prepare_move(s, from, row, *copy->code);
  if (moves) count_optimized(m, *t);
  return moves;
}

}  // namespace uptier::tiering
