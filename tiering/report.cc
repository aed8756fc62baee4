// What the runtime did, as data and as text.
#include "uptier/report.h"

#include <algorithm>
#include <cstdio>

#include "tiering/runtime_impl.h"

namespace uptier {
namespace {

// Adds a line. Names come from modules: what could steer a terminal is shown as '?'.
template <typename... Args>
void line(std::string& out, const char* format, Args... args) {
  char buffer[512];
  int n = std::snprintf(buffer, sizeof buffer, format, args...);
  for (char c : std::string_view(buffer, static_cast<size_t>(std::clamp(n, 0, 511)))) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  out += '\n';
}

using ull = unsigned long long;

uint64_t compile_ns(const MethodReport& m) {
  uint64_t sum = 0;
  for (const VersionReport& v : m.versions) sum += v.compile_ns;
  return sum;
}

uint64_t code_bytes(const MethodReport& m) {
  uint64_t sum = 0;
  for (const VersionReport& v : m.versions) sum += v.freed ? 0 : v.code_bytes;
  return sum;
}

std::string version_text(const VersionReport& v) {
  std::string text = v.tier == Tier::kOptimized      ? "optimized"
                     : v.copy == Copy::kInstrumented ? "instrumented"
                                                     : "baseline";
  if (v.osr_loop.valid()) text += "@loop" + std::to_string(v.osr_loop.index());
  if (v.freed) return text + " (freed)";
  return v.retired ? text + " (retired)" : text;
}

void methods_table(std::string& out, const Report& r, size_t shown) {
  line(out, "%-28s %-10s %12s %9s %12s %8s %7s %5s %10s %9s", "method", "tier", "calls", "samples",
       "iterations", "bursts", "flushes", "osr", "code", "compile");
  for (size_t i = 0; i < std::min(shown, r.methods.size()); ++i) {
    const MethodReport& m = r.methods[i];
    line(out, "%-28.28s %-10s %12llu %9llu %12llu %8llu %7llu %5llu %8llu B %6.2f ms",
         m.name.c_str(), tier_name(m.tier), ull(m.calls), ull(m.sampled_calls),
         ull(m.loop_iterations), ull(m.bursts), ull(m.flushes), ull(m.osr_entries),
         ull(code_bytes(m)), compile_ns(m) / 1e6);
    std::string versions;
    for (const VersionReport& v : m.versions) {
      versions += (versions.empty() ? "" : ", ") + version_text(v);
    }
    // Both of any length, so not through line().
    if (!versions.empty()) out += "    " + versions + "\n";
    if (!m.last_error.empty()) out += "    error: " + m.last_error + "\n";
  }
  if (r.methods.size() > shown) { line(out, "... and %zu methods more", r.methods.size() - shown); }
}

void decisions_table(std::string& out, const Report& r, size_t shown) {
  // A decision to keep is only of interest where it is the last word on a method.
  std::vector<const DecisionRecord*> rows;
  for (const DecisionRecord& d : r.decisions) {
    if (d.action != "keep") rows.push_back(&d);
  }
  line(out, "decisions: %zu, of which %zu ask for a compilation", r.decisions.size(), rows.size());
  for (size_t i = 0; i < std::min(shown, rows.size()); ++i) {
    const DecisionRecord& d = *rows[i];
    line(out, "  #%-5llu %-28.28s %-18s %s", ull(d.sequence), d.method_name.c_str(),
         d.action.c_str(), d.reason.c_str());
  }
  if (rows.size() > shown) line(out, "  ... and %zu more", rows.size() - shown);
}

void losses_table(std::string& out, const LossReport& l) {
  const std::pair<const char*, uint64_t> rows[] = {
      {"samples without an instrumented copy", l.samples_without_copy},
      {"slabs refused", l.slabs_refused},
      {"flushes delayed", l.flushes_delayed},
      {"requests dropped", l.requests_dropped},
      {"compilations failed", l.compiles_failed},
      {"code refused", l.code_refused},
      {"evictions", l.evictions},
      {"trace events lost", l.sink_errors},
  };
  std::string text;
  for (auto [what, n] : rows) {
    if (n != 0) text += (text.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(n);
  }
  line(out, "losses: %s", text.empty() ? "none" : text.c_str());
}

void stress_table(std::string& out, const StressReport& s) {
  struct Row {
    const char* kind;
    uint64_t forced, points;
  };
  const Row rows[] = {
      {"osr", s.osr_forced, s.osr_points},       {"copy", s.copy_forced, s.copy_points},
      {"guard", s.guard_forced, s.guard_points}, {"compile", s.compile_forced, s.compile_points},
      {"code", s.code_forced, s.code_points},    {"delay", s.delay_forced, s.delay_points},
      {"flip", s.flip_forced, s.flip_points},
  };
  std::string text;
  for (const Row& r : rows) {
    if (r.points == 0) continue;
    text += text.empty() ? "" : ", ";
    text +=
        std::string(r.kind) + " " + std::to_string(r.forced) + " of " + std::to_string(r.points);
  }
  if (!text.empty()) line(out, "stress: %s forced", text.c_str());
}

}  // namespace

std::string Report::text(size_t methods_shown) const {
  size_t shown = methods_shown == 0 ? SIZE_MAX : methods_shown;
  std::string out;
  methods_table(out, *this, shown);
  decisions_table(out, *this, shown);
  line(out,
       "methods: %llu registered, %zu called; code: %llu bytes in service, %llu freed; "
       "compile time %.2f ms",
       ull(methods_registered), methods.size(), ull(code_bytes_in_service), ull(code_bytes_freed),
       compile_ns_total / 1e6);
  losses_table(out, losses);
  stress_table(out, stress);
  return out;
}

namespace tiering {
namespace {

VersionReport report_of(const Version& v) {
  return {v.tier, v.copy, v.osr_loop, v.code_bytes, v.compile_ns, v.retired.load(), v.freed};
}

MethodReport report_of(const Method& m) {
  MethodReport r;
  r.method = m.id;
  r.key = m.info.key;
  r.name = m.info.name;
  r.hash = method_hash(m.info);
  r.osr_entries = m.osr_entries.load(std::memory_order_relaxed);
  r.last_error = m.last_error;
  for (const auto& [thread, s] : m.streams) {
    r.calls += s.calls;
    r.sampled_calls += s.sampled_calls;
    r.loop_iterations += s.iterations;
    r.bursts += s.bursts;
    r.flushes += s.flushes;
  }
  for (const auto& v : m.versions) {
    r.versions.push_back(report_of(*v));
    bool calls_reach_it = !v->osr_loop.valid() && !v->retired;
    if (calls_reach_it) r.tier = std::max(r.tier, v->tier);
  }
  return r;
}

}  // namespace

Report RuntimeImpl::report() const {
  std::lock_guard lock(state_mutex_);
  Report r;
  for (const auto& m : owned_methods_) {
    if (!m->streams.empty() || !m->versions.empty() || !m->last_error.empty()) {
      r.methods.push_back(report_of(*m));
    }
  }
  std::stable_sort(r.methods.begin(), r.methods.end(),
                   [](const MethodReport& a, const MethodReport& b) {
                     return a.calls + a.loop_iterations > b.calls + b.loop_iterations;
                   });
  r.decisions = observer_.decisions();
  r.losses = losses_;
  r.losses.sink_errors = observer_.sink_errors();
  for (const auto& t : threads_) {
    r.losses.samples_without_copy += t->samples_without_copy;
    r.losses.slabs_refused += t->slabs_refused;
    r.losses.flushes_delayed += t->flushes_delayed;
  }
  r.stress = {stress_.points(StressKind::kOsr),     stress_.forced(StressKind::kOsr),
              stress_.points(StressKind::kCopy),    stress_.forced(StressKind::kCopy),
              stress_.points(StressKind::kGuard),   stress_.forced(StressKind::kGuard),
              stress_.points(StressKind::kCompile), stress_.forced(StressKind::kCompile),
              stress_.points(StressKind::kCode),    stress_.forced(StressKind::kCode),
              stress_.points(StressKind::kDelay),   stress_.forced(StressKind::kDelay),
              stress_.points(StressKind::kFlip),    stress_.forced(StressKind::kFlip)};
  r.methods_registered = owned_methods_.size();
  r.code_bytes_in_service = space_->bytes_in_service();
  r.code_bytes_freed = space_->bytes_freed();
  r.compile_ns_total = compile_ns_total_;
  return r;
}

Profile RuntimeImpl::profile() const {
  std::lock_guard lock(state_mutex_);
  Profile p;
  for (const auto& m : owned_methods_) {
    if (m->probes.schema().slots.empty() || m->streams.empty()) continue;
    Profile one;
    one.methods.emplace(m->info.key, observer_.profile_of(*m));
    merge(p, one);
  }
  return p;
}

}  // namespace tiering
}  // namespace uptier
