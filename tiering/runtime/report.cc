// What the runtime did, as data.
#include "uptier/report.h"

#include <algorithm>

#include "profile/base/wall.h"
#include "tiering/report/site_reports.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier {
namespace tiering {
namespace {

VersionReport report_of(const Version& v) {
  return {v.tier,       v.copy,           v.osr_loop, v.code_bytes,
          v.compile_ns, v.retired.load(), v.freed,    v.inlined};
}

MethodReport report_of(const Method& m) {
  MethodReport r;
  r.method = m.id;
  r.key = m.info.key;
  r.name = m.info.name;
  r.hash = method_hash(m.info);
  r.osr_entries = m.shape->osr_entries.load(std::memory_order_relaxed);
  r.behind = m.ran_optimized;
  r.last_error = *m.last_error;
  r.osr_outs = m.shape->osr_outs.load(std::memory_order_relaxed);
  r.left = m.shape->left.load(std::memory_order_relaxed);
  r.left_for_host = m.shape->left_for_host.load(std::memory_order_relaxed);
  r.exits = m.shape->exits.report();
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
    if (v->moved) continue;  // it is there once more
    r.versions.push_back(report_of(*v));
    bool calls_reach_it = !v->osr_loop.valid() && !v->retired && !v->enterable;
    if (calls_reach_it) r.tier = std::max(r.tier, v->tier);
  }
  return r;
}

}  // namespace

LossReport RuntimeImpl::losses_locked() const {
  LossReport l = losses_.counts();
  l.polls_refused = compiler_->polls_refused();
  l.calls_unattached = calls_unattached_locked();
  l.keys_shared = observer_.directory.keys().shared();
  l.unstable_bodies = compiler_->describer().unstable_bodies();
  l.trace_events_lost = observer_.trace.events_lost();
  l.flushes_lost = flushes_lost_.load(std::memory_order_relaxed);
  l.code_names_lost = in_service_->code_names_lost();
  l.decisions_forgotten = observer_.decisions.forgotten();
  threads_.add_losses(l);
  return l;
}

// What the schedule does with a method now.
void RuntimeImpl::report_observing(const Method& m, MethodReport& r) const {
  auto dual = m.flushed->streams.find(0);
  bool both = options_.counters == CounterMode::kDual && dual != m.flushed->streams.end();
  if (both) r.dual_error = dual->second.dual_error;
  bool measured = options_.adaptive && m.flushed->convergence.samples() > 0;
  if (measured) r.error_bound = std::min(m.flushed->convergence.error_bound(), 1.0);
  bool nothing = m.probes.made() == nullptr ? !m.has_shape() : m.probes->schema().slots.empty();
  bool off = !schedule_.sample_calls || m.removed || nothing ||
             m.optimized.load(std::memory_order_relaxed) != nullptr;
  if (off) return;
  r.observing = static_cast<Observing>(static_cast<uint8_t>(m.flushed->adaptation.phase) + 1);
  static_assert(static_cast<uint8_t>(Adaptation::Phase::kLearning) + 1 ==
                    static_cast<uint8_t>(Observing::kLearning) &&
                static_cast<uint8_t>(Adaptation::Phase::kLooking) + 1 ==
                    static_cast<uint8_t>(Observing::kLooking));
  r.interval = options_.interval;
  if (!rates_.has_rates()) return;
  sampler::Rate rate = fast_->rate(m.id.index()).load();
  r.interval = rate.samples() ? schedule_.ladder.interval(rate.rung()) : 0;
}

Report RuntimeImpl::report() const try { return make_report(); } catch (const std::exception&) {
  return {};
}

Report RuntimeImpl::make_report() const {
  if (forked()) return {};
  jit::StandardFloats floats;
  std::lock_guard lock(state_mutex_);
  Report r;
  MethodNames names;
  for (const auto& m : methods_.all()) names[m->info.key] = m->info.name;
  for (const auto& m : methods_.all()) {
    if (!m->flushed->streams.empty() || !m->versions.empty() || !m->last_error->empty()) {
      r.methods.push_back(report_of(*m));
      report_observing(*m, r.methods.back());
      r.methods.back().sites = site_reports(observer_.estimates.profile_of(*m), names);
    }
  }
  std::stable_sort(r.methods.begin(), r.methods.end(),
                   [](const MethodReport& a, const MethodReport& b) {
                     return a.calls + a.loop_iterations > b.calls + b.loop_iterations;
                   });
  r.decisions.assign(observer_.decisions.records().begin(), observer_.decisions.records().end());
  r.losses = losses_locked();
  r.stress = stress_.counts();
  r.methods_registered = places_.methods_seen();
  r.code_bytes_in_service = space_->bytes_in_service();
  r.code_bytes_freed = space_->bytes_freed() - machine_.bytes_freed();
  r.compile_ns_total = machine_.compile_ns_total();
  r.saved = saved_.report();
  r.relay = relay_->report();
  r.compile_rate_ns = machine_.compile_ns();
  if (std::optional<double> share = rates_.spent_share()) r.overhead_share = *share;
  return r;
}

SavedReport RuntimeImpl::saved_report() const try {
  if (forked()) return {};
  std::lock_guard lock(state_mutex_);
  return saved_.report();
} catch (const std::exception&) { return {}; }

std::optional<ProfileAnswer> RuntimeImpl::query(std::string_view stage, std::string_view scope_hash,
                                                std::string_view key) try {
  if (forked()) return std::nullopt;
  std::lock_guard lock(state_mutex_);
  return saved_.query(stage, scope_hash, key);
} catch (const std::exception&) { return std::nullopt; }

std::vector<LogRecord> RuntimeImpl::read_log() try {
  if (forked()) return {};
  std::lock_guard lock(state_mutex_);
  return threads_.read_log();
} catch (const std::exception&) { return {}; }

Profile RuntimeImpl::profile() const try {
  if (forked()) return {};
  jit::StandardFloats floats;
  std::lock_guard lock(state_mutex_);
  Profile p;
  for (const auto& m : methods_.all()) {
    if (m->probes->schema().slots.empty() || m->flushed->streams.empty()) continue;
    Profile one;
    one.methods.emplace(m->info.key, observer_.estimates.profile_of(*m));
    one.inlined = observer_.inlined.bodies_of(*m);
    merge(p, std::move(one));
  }
  return p;
} catch (const std::exception&) { return {}; }

}  // namespace tiering
}  // namespace uptier
