// Observing code that frames stay in: programs that live in one call.
//
//   a frame is in the code that it entered at a loop for kLongStay times as long as that took to
//   compile --its words say kObserve--> it tells so --> the loop's instrumented copy is made -->
//     its words say so again --> it tells, and runs that for some rounds
//       (transitions/observe_round.cc) --> a rest --> again
//     --64 rounds--> window --> like those before? like what the code was made from?
//
// What is compiled for nothing but this takes no more than one part in kLongStay of the time since
// then, but for the first.
//
// Frames are found by their own answers: a version that nobody runs answers nothing, and nothing
// more is done about it. The rest is kRestNs, and kRestPart times what the rounds took, so copies have
// a 64th of the time at most; but one round is the least, however long.
//
// Windows are of the loop alone: how the rest of the body runs is not drawn evenly. Their samples are
// rounds, so they are no weights of calls: nobody counts the rounds of plain code, and in estimates
// each round that was seen stands for itself. What is decided by windows is decided about the
// shares inside the loop.
//
// A loop whose code lies too far from what it was made from is made anew by (2) of policy.h, with
// the time that its code has been in service for what it has run: from the windows inside of the
// loop, from all that was seen outside (phase.cc). Frames go there as they do to any newer code.
//
// Not observed: loops that do not ask (jit/opt/poll_loops.h); a frame of a version that calls reach,
// where its thread has called it often.
//
//   Thread: the worker, with the state mutex; loop_copy() any.
#include <algorithm>

#include "tiering/base/clock.h"
#include "tiering/control/copy_control.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/inlined_bodies.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kRestNs = 10'000'000;
constexpr uint64_t kRestPart = 64;
constexpr uint64_t kLongStay = 100;
// As in osr_out.cc: what is called more often is observed by calls.
constexpr uint64_t kFewCalls = 8;

bool asks(const Version& v) {
  if (v.code == nullptr || v.polls.words().empty()) return false;
  return std::ranges::any_of(v.code->tables().exits,
                             [](const jit::ExitRow& row) { return row.polls.valid(); });
}

// Calls `visit` with each plain version that frames may stay in.
template <typename Visit>
void each_plain(const Method& m, Visit visit) {
  auto one = [&](const Version* v) {
    if (usable(v) && asks(*v)) visit(*v);
  };
  const Version* normal = m.optimized.load(std::memory_order_relaxed);
  one(normal);
  if (usable(normal)) one(normal->general);
  for (uint32_t l = 0; l < m.shape->loop_count; ++l) {
    one(m.shape->osr[l].load(std::memory_order_relaxed));
    one(m.shape->osr_from_host[l].load(std::memory_order_relaxed));
  }
}

}  // namespace

LoopCopy* loop_copy(const Method& m, LoopId loop) noexcept {
  LoopCopies* all = m.optimizing->loop_copies.made();
  return all == nullptr ? nullptr : &all->at[loop.index()];
}

LoopCopy& own_loop_copy(Method& m, LoopId loop) {
  MadeLater<LoopCopies>& all = m.optimizing.own().loop_copies;
  if (all.made() == nullptr) {
    all.put({std::make_unique<LoopCopy[]>(m.shape->loop_count), now_ns(), 0});
  }
  return *loop_copy(m, loop);
}

// ---- Frames -----------------------------------------------------------------------------------

// `v` has come into service.
void CopyControl::watch_frames_of(Method& m, const Version& v) {
  if (!asks(v) || !observes_copies(m)) return;
  if (!v.osr_loop.valid() && rates_.progress_of(m).calls > kFewCalls) return;
  frames_.watch(m, now_ns() + std::max(kRestNs, kLongStay * v.compile_ns));
}

// After a change of what is observed.
void CopyControl::watch_all_frames() {
  for (const auto& m : methods_.all()) {
    bool any = false;
    if (!m->removed) each_plain(*m, [&](const Version&) { any = true; });
    if (any) frames_.watch(*m, now_ns());
  }
}

void CopyControl::call_watched_if_due() {
  frames_.take_watched([&](const Method& m) { call_watched(m); });
}

void CopyControl::call_watched(const Method& m) {
  bool off = rates_.sampling() == Sampling::kOff;
  if (off || !observes_copies(m)) return;
  each_plain(m, [](const Version& v) { v.call_back(OsrOut::kObserve); });
}

void CopyControl::take_frame(Method& m, const sampler::Note& note) {
  if (m.removed || !observes_copies(m)) return;
  in_service_.touch(m);
  LoopId loop(note.loop);
  LoopCopy& c = own_loop_copy(m, loop);
  // A body may have many loops, and each would have its versions.
  LoopCopies& all = *m.optimizing->loop_copies.made();
  uint64_t due = all.began_ns + kLongStay * all.compile_ns;
  bool whole = usable(m.shape->osr[note.loop].load(std::memory_order_relaxed)) &&
               usable(c.version.load(std::memory_order_relaxed));
  if (!whole && now_ns() < due) return frames_.watch(m, due);
  if (!usable(m.shape->osr[note.loop].load(std::memory_order_relaxed))) {
    if (m.shape->osr_asked[note.loop].exchange(true, std::memory_order_relaxed)) return;
    // It will take about as long as the others did.
    uint64_t most = 0;
    each_plain(m, [&](const Version& v) { most = std::max(most, v.compile_ns); });
    all.compile_ns += most;
    return newer_.want(m, note.loop);
  }
  if (usable(c.version.load(std::memory_order_relaxed))) {
    // A burst that took long is told of twice, and the second time counts.
    frames_.unwatch(m);
    return frames_.watch(m, now_ns() + std::max(kRestNs, kRestPart * note.calls));
  }
  if (std::exchange(c.asked, true)) return;
  requests_.add(m,
                {.method = m.id,
                 .tier = Tier::kOptimized,
                 .copy = Copy::kInstrumented,
                 .osr_loop = loop,
                 .use_profile = true},
                0);
}

// ---- Copies -----------------------------------------------------------------------------------

void CopyControl::begin_observing_loop(Method& m, Version& v) {
  in_service_.retire_loop_copy(m, v.osr_loop);
  if (!usable(m.shape->osr[v.osr_loop.index()].load(std::memory_order_relaxed))) {
    return reclaimer_.retire(v);  // there would be no way back
  }
  LoopCopy& c = own_loop_copy(m, v.osr_loop);
  c.asked = true;
  m.optimizing->loop_copies.made()->compile_ns += v.compile_ns;
  v.sections = sections_of(*v.code);
  v.slots = slots_of(*v.code);
  std::vector<bool>& observed = c.windows.observed;
  observed.assign(m.shape->block_weights.size(), false);
  for (SiteId site : jit::observed_sites(*v.code)) {
    if (site <= observed.size()) observed[site - 1] = v.scope.sites[site - 1];
  }
  observe_targets(m, *v.code, observed, &v.scope);
  observe_inlined(m, v, observed, &v.scope);
  number_copy(m, v);
  for (uint32_t l = 0; l < v.polls.words().size(); ++l) {
    if (!v.scope.inner[l]) raise_word(v.polls.words()[l], OsrOut::kObserve);
  }
  c.version.store(&v, std::memory_order_release);  // pairs with observe_frame()
  frames_.watch(m, now_ns());
}

// ---- Windows ----------------------------------------------------------------------------------

void CopyControl::take_rounds(Method& m, LoopId loop, const Version& copy, sampler::Window w) {
  LoopCopy& c = *loop_copy(m, loop);
  // What comes late is of a version that has gone.
  if (c.version.load(std::memory_order_relaxed) != &copy) return;
  CopyWindows& o = c.windows;
  for (size_t i = 0; i < w.counts.size(); ++i) {
    if (i >= o.observed.size() || !o.observed[i]) w.counts[i] = 0;
  }
  const Version* v = m.shape->osr[loop.index()].load(std::memory_order_relaxed);
  if (!learn_window(m, o, copy, w) || !usable(v)) return;
  if (compare_with_profile(m, o, *v, copy)) consider_loop(m, loop, *v);
}

void CopyControl::consider_loop(Method& m, LoopId loop, const Version& v) {
  LoopCopy& c = *loop_copy(m, loop);
  const Version& copy = *c.version.load(std::memory_order_relaxed);
  auto ns = static_cast<double>(now_ns() - v.installed_ns);
  Decision d = observer_.ask_loop(m, loop, c.windows, ns, system_.snapshot(m));
  bool follows = d.action == Action::kRecompile || d.action == Action::kSpecialize;
  if (follows) follow_loop_drift(m, copy, c.windows);
}

}  // namespace uptier::tiering
