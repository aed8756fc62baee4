#include "tiering/runtime/report_maker.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "jit/code/float_state.h"
#include "sampler/fast_sample.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/compile/requests.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/image/image_code.h"
#include "tiering/model/positions.h"
#include "tiering/model/thread.h"
#include "tiering/observe/observer.h"
#include "tiering/observe/timed_loops.h"
#include "tiering/report/site_reports.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/unattached_calls.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

VersionReport report_of(const Version& v) {
  const uint64_t rows = v.code == nullptr ? 0 : v.code->tables().probes.size();
  return {v.tier,       v.copy,       v.osr_loop,
          v.code_bytes, v.compile_ns, v.retired.load(),
          v.freed,      v.inlined,    rows * sizeof(jit::ProbeRow),
          v.serial};
}

MethodReport report_of(const Method& m) UPTIER_REQUIRES(state_lock) {
  MethodReport r;
  r.method = m.id;
  r.key = m.info.key;
  r.name = m.info.name;
  r.hash = method_hash(m.info);
  r.osr_entries = m.shape->osr_entries.load(std::memory_order_relaxed);
  r.behind = m.ran_uncounted;
  r.last_error = *m.last_error;
  r.osr_outs = m.shape->osr_outs.load(std::memory_order_relaxed);
  r.left = m.shape->left.load(std::memory_order_relaxed);
  r.left_for_host = m.shape->left_for_host.load(std::memory_order_relaxed);
  r.exits = m.shape->exits.report();
  for (ExitReport& e : r.exits) {
    if (e.location != 0) e.source = positions_of(m, e.location);
  }
  if (const ValueVersions& s = *m.value_versions; s.missed != 0) {
    r.exits.push_back({1, 0, GuardReason::kValue, 0, s.missed, s.retries, s.banned});
  }
  for (const auto& [thread, s] : m.flushed->streams) {
    r.calls += s.calls;
    r.sampled_calls += s.sampled_calls;
    r.loop_iterations += s.iterations;
    r.bursts += s.bursts;
    r.flushes += s.flushes;
  }
  for (const auto& v : m.versions) {
    if (v->moved) continue;  // its new version is in the list as well
    r.versions.push_back(report_of(*v));
    bool calls_reach_it = !v->osr_loop.valid() && !v->retired && !v->enterable;
    if (calls_reach_it) r.tier = std::max(r.tier, v->tier);
  }
  return r;
}

}  // namespace

Report ReportMaker::make_report() const {
  if (engine_.forked()) return {};
  jit::StandardFloats floats;
  PackedDecisions decisions;
  Report r;
  fill(r, decisions);
  // Words take long, and need no lock.
  r.decisions.reserve(decisions.size());
  decisions.each([&](uint64_t number, const LoggedDecision& d) {
    r.decisions.push_back(record_of(d, number));
  });
  HeldState lock(engine_.state_mutex);
  for (DecisionRecord& d : r.decisions) {
    const Method* m = d.location == 0 ? nullptr : engine_.methods.known(d.method);
    if (m != nullptr) d.source = positions_of(*m, d.location);
  }
  return r;
}

void ReportMaker::fill(Report& r, PackedDecisions& decisions) const {
  HeldState lock(engine_.state_mutex);
  MethodNames names;
  for (const auto& m : engine_.methods.all()) names[m->info.key] = m->info.name;
  for (const auto& m : engine_.methods.all()) {
    if (!m->flushed->streams.empty() || !m->versions.empty() || !m->last_error->empty()) {
      r.methods.push_back(report_of(*m));
      report_observing(*m, r.methods.back());
      r.methods.back().sites = site_reports(engine_.observer->settled.profile_of(*m), names);
    }
  }
  for (const MethodReport& m : r.methods) {
    for (const VersionReport& v : m.versions) r.probe_bytes += v.freed ? 0 : v.probe_bytes;
  }
  std::stable_sort(r.methods.begin(), r.methods.end(),
                   [](const MethodReport& a, const MethodReport& b) {
                     return a.calls + a.loop_iterations > b.calls + b.loop_iterations;
                   });
  decisions = engine_.observer->decisions.kept();
  r.losses = losses_locked();
  r.stress = engine_.stress.counts();
  r.methods_registered = engine_.places.methods_seen();
  r.code_bytes_in_service = engine_.space->bytes_in_service();
  assert(engine_.space->bytes_freed() >= engine_.machine->bytes_freed());
  r.code_bytes_freed = engine_.space->bytes_freed() - engine_.machine->bytes_freed();
  r.compile_ns_total = engine_.machine->compile_ns_total();
  r.saved = engine_.saved->report();
  r.image = engine_.image->report();
  r.relay = engine_.relay->report();
  r.compile_rate_ns = engine_.machine->compile_ns();
  r.time = engine_.stack_sampling->report();
  r.overhead_share = engine_.rates->spent_share();
}

Report ReportMaker::report() const try { return make_report(); } catch (const std::exception&) {
  return {};
}

SavedReport ReportMaker::saved_report() const try {
  if (engine_.forked()) return {};
  HeldState lock(engine_.state_mutex);
  return engine_.saved->report();
} catch (const std::exception&) { return {}; }

Profile ReportMaker::profile() const try {
  if (engine_.forked()) return {};
  jit::StandardFloats floats;
  HeldState lock(engine_.state_mutex);
  Profile p;
  for (const auto& m : engine_.methods.all()) {
    if (m->probes->schema().slots.empty() || m->flushed->streams.empty()) continue;
    Profile one;
    MethodProfile own = engine_.observer->settled.profile_of(*m);
    settle_loops(*m, engine_.loops_off(), own);
    one.methods.emplace(m->info.key, std::move(own));
    one.inlined = engine_.observer->inlined.bodies_of(*m);
    engine_.observer->settled.settle_inlined(*m, one.inlined);
    merge(p, std::move(one));
  }
  return p;
} catch (const std::exception&) { return {}; }

std::vector<LogRecord> ReportMaker::read_log() try {
  if (engine_.forked()) return {};
  HeldState lock(engine_.state_mutex);
  return engine_.threads.read_log();
} catch (const std::exception&) { return {}; }

std::optional<ProfileAnswer> ReportMaker::query(std::string_view stage, std::string_view scope_hash,
                                                std::string_view key) try {
  if (engine_.forked()) return std::nullopt;
  HeldState lock(engine_.state_mutex);
  return engine_.saved->query(stage, scope_hash, key);
} catch (const std::exception&) { return std::nullopt; }

LossReport ReportMaker::losses_locked() const {
  LossReport l = engine_.losses.counts();
  l.polls_refused = engine_.compiler->polls_refused();
  l.calls_unattached = unattached_calls_.calls_locked();
  l.keys_shared = engine_.observer->directory.keys().shared();
  l.unstable_bodies = engine_.compiler->describer().unstable_bodies();
  l.trace_events_lost = engine_.observer->trace.events_lost();
  l.decisions_forgotten = engine_.observer->decisions.forgotten();
  l.flushes_lost = engine_.flushes_lost.load(std::memory_order_relaxed);
  l.code_names_lost = engine_.in_service->code_names_lost();
  engine_.threads.add_losses(l);
  return l;
}

void ReportMaker::report_observing(const Method& m, MethodReport& r) const {
  auto dual = m.flushed->streams.find(0);
  bool both = engine_.options.counters == CounterMode::kDual && dual != m.flushed->streams.end();
  if (both) r.dual_error = dual->second.dual_error;
  bool measured = engine_.options.adaptive && m.flushed->convergence.samples() > 0;
  if (measured) r.error_bound = std::min(m.flushed->convergence.error_bound(), 1.0);
  bool nothing = m.probes.made() == nullptr ? !m.has_shape() : m.probes->schema().slots.empty();
  bool off = !engine_.schedule.sample_calls || m.removed || nothing ||
             m.optimized.load(std::memory_order_relaxed) != nullptr;
  if (off) return;
  r.observing = static_cast<Observing>(static_cast<uint8_t>(m.flushed->adaptation.phase) + 1);
  static_assert(static_cast<uint8_t>(Adaptation::Phase::kLearning) + 1 ==
                    static_cast<uint8_t>(Observing::kLearning) &&
                static_cast<uint8_t>(Adaptation::Phase::kLooking) + 1 ==
                    static_cast<uint8_t>(Observing::kLooking));
  r.interval = engine_.options.interval;
  if (!engine_.rates->has_rates()) return;
  sampler::Rate rate = engine_.fast->rate(m.id.index()).load();
  r.interval = rate.samples() ? engine_.schedule.ladder.interval(rate.rung()) : 0;
}

}  // namespace uptier::tiering
