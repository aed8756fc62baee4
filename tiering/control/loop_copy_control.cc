#include "tiering/control/loop_copy_control.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tiering/base/clock.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/inlined_bodies.h"
#include "tiering/observe/phase.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kRestNs = 10'000'000;
constexpr uint64_t kRestPart = 64;
constexpr uint64_t kLongStay = 100;
// As in osr_exit.h: methods with more calls are observed by calls.
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

LoopCopyControl::LoopCopyControl(const Parts& p)
    : rules_(p.rules),
      methods_(p.methods),
      observer_(p.observer),
      drift_(p.drift),
      rates_(p.rates),
      requests_(p.requests),
      reclaimer_(p.reclaimer),
      system_(p.system),
      frames_(p.frames),
      newer_(p.newer),
      in_service_(p.in_service) {}

// ---- Frames -----------------------------------------------------------------------------------

// `v` has been installed.
void LoopCopyControl::watch_frames_of(Method& m, const Version& v) {
  if (!asks(v) || !rules_.may_observe(m)) return;
  if (!v.osr_loop.valid() && rates_.progress_of(m).calls > kFewCalls) return;
  frames_.watch(m, now_ns() + std::max(kRestNs, kLongStay * v.compile_ns));
}

void LoopCopyControl::watch_all_frames() {
  for (const auto& m : methods_.all()) {
    bool any = false;
    if (!m->removed) each_plain(*m, [&](const Version&) { any = true; });
    if (any) frames_.watch(*m, now_ns());
  }
}

void LoopCopyControl::call_watched_if_due() {
  frames_.take_watched([&](const Method& m) { call_watched(m); });
}

void LoopCopyControl::call_watched(const Method& m) {
  bool off = rates_.sampling() == Sampling::kOff;
  if (off || !rules_.may_observe(m)) return;
  each_plain(m, [](const Version& v) { v.call_back(OsrOut::kObserve); });
}

void LoopCopyControl::take_frame(Method& m, const sampler::Note& note) {
  assert(note.loop < m.shape->loop_count);
  if (m.removed || !rules_.may_observe(m)) return;
  in_service_.touch(m);
  LoopId loop(note.loop);
  LoopCopy& c = own_loop_copy(m, loop);
  // Limit the compile time: a method may have many loops, each with its own versions.
  LoopCopies& all = *m.optimizing->loop_copies.made();
  uint64_t due = all.began_ns + kLongStay * all.compile_ns;
  bool whole = usable(m.shape->osr[note.loop].load(std::memory_order_relaxed)) &&
               usable(c.version.load(std::memory_order_relaxed));
  if (!whole && now_ns() < due) return frames_.watch(m, due);
  if (!usable(m.shape->osr[note.loop].load(std::memory_order_relaxed))) {
    if (m.shape->osr_asked[note.loop].exchange(true, std::memory_order_relaxed)) return;
    // It will probably take about as long as the others did.
    uint64_t most = 0;
    each_plain(m, [&](const Version& v) { most = std::max(most, v.compile_ns); });
    all.compile_ns += most;
    return newer_.want(m, note.loop);
  }
  if (usable(c.version.load(std::memory_order_relaxed))) {
    // A long burst is reported twice; the second report has its duration.
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

void LoopCopyControl::begin_observing(Method& m, Version& v) {
  assert(v.osr_loop.valid() && v.copy == Copy::kInstrumented && !v.retired);
  in_service_.retire_loop_copy(m, v.osr_loop);
  if (!usable(m.shape->osr[v.osr_loop.index()].load(std::memory_order_relaxed))) {
    return reclaimer_.retire(v);  // frames would have no way back
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
  rules_.number(m, v);
  for (uint32_t l = 0; l < v.polls.words().size(); ++l) {
    if (!v.scope.inner[l]) raise_word(v.polls.words()[l], OsrOut::kObserve);
  }
  c.version.store(&v, std::memory_order_release);  // pairs with observe_frame()
  frames_.watch(m, now_ns());
}

// ---- Windows ----------------------------------------------------------------------------------

void LoopCopyControl::take_rounds(Method& m, const Version& copy, sampler::Window w) {
  const LoopId loop = copy.osr_loop;
  assert(loop_copy(m, loop) != nullptr);
  LoopCopy& c = *loop_copy(m, loop);
  // A late window belongs to a version that is no longer in service.
  if (c.version.load(std::memory_order_relaxed) != &copy) return;
  CopyWindows& o = c.windows;
  for (size_t i = 0; i < w.counts.size(); ++i) {
    if (i >= o.observed.size() || !o.observed[i]) w.counts[i] = 0;
  }
  const Version* v = m.shape->osr[loop.index()].load(std::memory_order_relaxed);
  if (!drift_.learn_window(m, o, copy, w) || !usable(v)) return;
  if (drift_.compare_with_profile(m, o, *v, copy)) consider(m, loop, *v);
}

void LoopCopyControl::consider(Method& m, LoopId loop, const Version& v) {
  LoopCopy& c = *loop_copy(m, loop);
  const Version& copy = *c.version.load(std::memory_order_relaxed);
  auto ns = static_cast<double>(now_ns() - v.installed_ns);
  Decision d = observer_.advisor.ask_loop(m, loop, c.windows, ns, system_.snapshot(m));
  bool follows = d.action == Action::kRecompile || d.action == Action::kSpecialize;
  if (follows) follow_drift(m, copy, c.windows);
}

// Frames request newer code by themselves (osr_exit.h).
void LoopCopyControl::follow_drift(Method& m, const Version& copy, CopyWindows& o) {
  begin_loop_phase(m, copy, o, observer_.estimates);
  uint32_t loop = copy.osr_loop.index();
  auto* v = const_cast<Version*>(m.shape->osr[loop].exchange(nullptr, std::memory_order_acq_rel));
  m.shape->osr_asked[loop].store(false, std::memory_order_relaxed);
  in_service_.retire_loop_copy(m, copy.osr_loop);
  if (v != nullptr) in_service_.give_up(*v, OsrOut::kNewer);
}

}  // namespace uptier::tiering
