#include "tiering/observe/policy_advisor.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tiering/observe/stream_sums.h"
#include "tiering/policy/replay.h"

namespace uptier::tiering {
namespace {

// Says whether a version for another loop than this one is in service or requested.
bool osr_elsewhere(const Method& m, uint32_t loop) {
  for (uint32_t l = 0; l < m.shape->loop_count; ++l) {
    const bool any =
        m.shape->osr_requested[l] || m.shape->osr[l].load(std::memory_order_relaxed) != nullptr;
    if (l != loop && any) return true;
  }
  return false;
}

// A thread that has run this many times the calls or iterations of a first flush should have
// samples.
constexpr uint64_t kManyFlushes = 8;

double work_of(const Method& m, const Stream& s) {
  size_t blocks = std::min(m.shape->block_weights.size(), s.seen.estimates.size());
  double work = 0;
  for (size_t i = 0; i < blocks; ++i) {
    work += static_cast<double>(s.seen.estimates[i]) * m.shape->block_weights[i];
  }
  return work;
}

}  // namespace

PolicyAdvisor::PolicyAdvisor(const Options& options, const Options& live,
                             const PolicyOptions& policy, Policy* hosts_policy,
                             const Estimates& estimates, DecisionLog& decisions)
    : options_(options),
      live_(live),
      policy_(policy),
      hosts_policy_(hosts_policy),
      opt_range_(*OptRange::parse(options.opt_range)),
      estimates_(estimates),
      decisions_(decisions) {}

// Threads that end before their first flush take no samples, however many threads there are;
// waiting for samples does not help then.
bool PolicyAdvisor::never_sampled(const Method& m, const sampler::Note& note) const {
  if (note.kind != sampler::NoteKind::kFlushFinal) return false;
  Totals t = totals(m);
  return t.calls >= kManyFlushes * live_.flush_first ||
         t.iterations >= kManyFlushes * live_.loop_flush_first;
}

MethodSnapshot PolicyAdvisor::snapshot(const Method& m, const sampler::Note& note) const {
  MethodSnapshot s;
  const Version* best = m.optimized.load(std::memory_order_relaxed);
  const Version* plain = m.plain.load(std::memory_order_relaxed);
  bool in_host = plain == nullptr && m.info.host_entry != nullptr;
  s.tier = best != nullptr ? Tier::kOptimized : in_host ? Tier::kHost : Tier::kBaseline;
  s.optimized_requested = m.optimized_requested;
  s.can_instrument = options_.tier == TierMode::kAuto && !never_sampled(m, note);
  s.failed = m.optimize_failed;
  s.guard_banned = m.guard_banned;
  s.excluded = !opt_range_.contains(method_hash(m.info));
  s.instructions = m.shape->instructions;
  s.loops = m.shape->loop_count;
  s.optimized_versions = m.optimizing->versions;
  const Optimizing& o = *m.optimizing;
  s.drift = o.windows.drift;
  s.drift_samples = o.windows.samples;
  s.drift_versions = m.optimizing->drift_versions;
  s.phase_drift = m.flushed->adaptation.drift;
  s.phase_drifts = m.flushed->convergence.drifts();
  s.slower_calls = m.optimizing->slower_calls;
  if (note.loop < m.shape->loop_count) {
    s.at_loop = LoopId(note.loop);
    s.osr_requested = m.shape->osr_requested[note.loop];
    const auto& entries = in_host ? m.shape->osr_from_host : m.shape->osr;
    s.osr_ready = entries[note.loop].load(std::memory_order_relaxed) != nullptr;
    s.osr_elsewhere = !in_host && osr_elsewhere(m, note.loop);
  }
  Totals t = totals(m);
  s.calls = t.calls;
  s.version_calls = s.calls - std::min(s.calls, o.calls_before);
  s.samples = samples_in(t, m);
  s.iterations = t.iterations;
  // Estimates stand for everything that ran, so nothing is left to scale.
  s.sampled_share = 1;
  for (const auto& [thread, stream] : m.flushed->streams) {
    double work = work_of(m, stream) * estimates_.stretch_of(m, stream);
    s.sampled_work += static_cast<uint64_t>(std::min(work, 0x1p62));
  }
  if (m.saved != nullptr) {
    const MethodProfile& p = m.saved->profile;
    double work = 0;
    for (const Slot& slot : p.schema.slots) {
      if (slot.kind != SlotKind::kBlock || slot.site > m.shape->block_weights.size()) continue;
      work += static_cast<double>(p.estimates[slot.word]) * m.shape->block_weights[slot.site - 1];
    }
    s.saved_work = static_cast<uint64_t>(std::min(work / m.saved->runs, 0x1p62));
    uint64_t calls = m.probes->counts_by_calls() ? p.calls : p.sampled_calls;
    s.saved_samples = calls + std::min(p.bursts, UINT64_MAX - calls);
  }
  return s;
}

// A frame in baseline code behind optimized code is found when it asks; iterations count from then
// on. What one of them executes is what calls and iterations did in the mean until then.
uint64_t PolicyAdvisor::behind_work(Method& m, const sampler::Note& note) {
  if (!m.has_shape() || note.loop >= m.shape->loop_count) return 0;
  if (m.optimized.load(std::memory_order_relaxed) == nullptr && !osr_elsewhere(m, note.loop)) {
    if (Optimizing* o = m.optimizing.made()) o->left_behind = {};
    return 0;
  }
  LeftBehind& l = m.optimizing.own().left_behind;
  Totals t = totals(m);
  if (!l.found) {
    double work = 0;
    for (const auto& [thread, stream] : m.flushed->streams) {
      if ((thread & kOptimizedStream) == 0)
        work += work_of(m, stream) * estimates_.stretch_of(m, stream);
    }
    double by_shape = m.shape->instructions / (1.0 + m.shape->loop_count);
    double rounds = static_cast<double>(t.calls) + static_cast<double>(t.iterations);
    l = {true, t.iterations, work > 0 && rounds > 0 ? work / rounds : by_shape};
  }
  double rounds = static_cast<double>(t.iterations - std::min(t.iterations, l.from));
  return static_cast<uint64_t>(std::min(rounds * l.per_round, 0x1p62));
}

MethodSnapshot PolicyAdvisor::snapshot_of(const Method& m) const {
  sampler::Note none;
  none.loop = UINT32_MAX;
  return snapshot(m, none);
}

Decision PolicyAdvisor::ask_saved(Method& m, const SystemSnapshot& system) {
  sampler::Note none;
  none.loop = UINT32_MAX;
  none.kind = sampler::NoteKind::kFlushFinal;  // a decision to do nothing is not worth a record
  MethodSnapshot s = snapshot(m, none);
  s.tier = Tier::kBaseline;  // the tier where it begins otherwise, even if the host has an
                             // interpreter
  return answer(m, none, s, system);
}

Decision PolicyAdvisor::ask(Method& m, const sampler::Note& note, const SystemSnapshot& system) {
  MethodSnapshot s = snapshot(m, note);
  s.behind_work = behind_work(m, note);
  // A thread that ends flushes all its counts: no reason to compile a method that an interpreter
  // ran once.
  bool early = note.kind == sampler::NoteKind::kFlushFinal && s.tier == Tier::kHost &&
               s.calls < live_.flush_first && s.iterations < live_.loop_flush_first;
  if (early) return Decision();
  bool window = note.kind == sampler::NoteKind::kOptimized;
  bool* told = window ? &m.optimizing.own().windows.told : nullptr;
  return answer(m, note, s, system, told);
}

// The frame is one call that still runs: rule (2) of policy.h uses its time, not the counts.
Decision PolicyAdvisor::ask_loop(Method& m, LoopId loop, CopyWindows& windows, double ns,
                                 const SystemSnapshot& system) {
  sampler::Note note;
  note.loop = UINT32_MAX;
  note.kind = sampler::NoteKind::kFrame;
  MethodSnapshot s = snapshot(m, note);
  assert(loop.index() < m.shape->loop_count);
  s.tier = Tier::kOptimized;
  s.optimized_requested = m.shape->osr_requested[loop.index()];
  s.optimized_versions = m.shape->osr_versions[loop.index()];
  s.slower_calls = 0;
  s.drift = windows.drift;
  s.drift_samples = windows.samples;
  s.calls = s.version_calls = s.samples = 1;
  s.sampled_share = 1;
  s.saved_work = 0;
  double speedup = system.speedup > 0 ? system.speedup : policy_.speedup;
  double baseline_ns = system.baseline_ns > 0 ? system.baseline_ns : policy_.baseline_ns;
  assert(baseline_ns >= 0 && ns >= 0);
  s.sampled_work = static_cast<uint64_t>(std::min(ns * speedup / baseline_ns, 0x1p62));
  return answer(m, note, s, system, &windows.told);
}

// `told`: whether a window's decision to do nothing has been recorded before; null for other
// questions.
Decision PolicyAdvisor::answer(Method& m, const sampler::Note& note, const MethodSnapshot& s,
                               const SystemSnapshot& system, bool* told) {
  Decision d = hosts_policy_ == nullptr ? decide(s, system, policy_)
                                        : follow(*hosts_policy_, s, system, policy_);
  assert(s.sampled_share > 0 && s.sampled_share <= 1);
  m.flushed.own().adaptation.drift = 0;
  // Threads may come and go for ever: a decision to do nothing at their end is not worth a record.
  bool goes = note.kind == sampler::NoteKind::kFlushFinal;
  if (goes && s.phase_drift == 0 && d.action == Action::kKeep) return d;
  // Nor is the same decision at every window.
  bool nothing = d.action == Action::kKeep && s.phase_drift == 0;
  if (told != nullptr && nothing && std::exchange(*told, true)) return d;
  DecisionRecord r;
  r.method = m.id;
  r.method_name = m.info.name;
  r.action = logged_action(d);
  r.inputs = inputs_text(s, system);
  r.reason = d.reason;
  r.calls = s.calls;
  r.samples = s.samples;
  r.loop_iterations = s.iterations;
  r.priority = d.priority;
  decisions_.push_back(std::move(r));
  return d;
}

}  // namespace uptier::tiering
