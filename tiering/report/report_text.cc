// The report as a readable table.
#include "uptier/report.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "profile/base/wall.h"

namespace uptier {
namespace {

constexpr size_t kSitesShown = 3;
constexpr size_t kTopShown = 3;

// Names come from modules: control characters, which could steer a terminal, are shown as '?'.
std::string text_only(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

// Adds a line.
template <typename... Args>
void line(std::string& out, const char* format, Args... args) {
  char buffer[512];
  int n = std::snprintf(buffer, sizeof buffer, format, args...);
  out += text_only({buffer, static_cast<size_t>(std::clamp(n, 0, 511))});
  out += '\n';
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

using ull = unsigned long long;

// Fits a name into a column of 28 characters; "..." replaces the rest.
std::string in_column(std::string_view name) {
  constexpr size_t kWidth = 28;
  if (name.size() <= kWidth) return std::string(name);
  size_t end = kWidth - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return std::string(name.substr(0, end)) + "...";
}

// Says how many rows a table leaves out, e.g. "... and 1 more site".
void more_line(std::string& out, const char* indent, size_t count, const char* what) {
  line(out, "%s... and %zu more %s%s", indent, count, what, count == 1 ? "" : "s");
}

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
  bool copy = v.copy == Copy::kInstrumented;
  std::string text = v.tier == Tier::kOptimized ? (copy ? "optimized instrumented" : "optimized")
                     : v.copy == Copy::kInstrumented ? "instrumented"
                                                     : "baseline";
  if (v.osr_loop.valid()) text += "@loop" + std::to_string(v.osr_loop.index());
  if (v.inlined != 0) text += " with " + std::to_string(v.inlined) + " inlined";
  if (v.freed) return text + " (freed)";
  return v.retired ? text + " (retired)" : text;
}

// Does not use line(), because the text may have any length. A single version is already shown in
// the column of tiers.
void versions_line(std::string& out, const MethodReport& m) {
  // Equal versions, which eviction leaves by the dozen, share one entry with their number.
  std::vector<std::pair<std::string, uint32_t>> kinds;
  for (const VersionReport& v : m.versions) {
    std::string one = version_text(v);
    auto same = std::ranges::find(kinds, one, &std::pair<std::string, uint32_t>::first);
    same == kinds.end() ? void(kinds.emplace_back(one, 1)) : void(++same->second);
  }
  std::string text;
  for (const auto& [kind, count] : kinds) {
    text += (text.empty() ? "" : ", ") + kind;
    if (count > 1) text += " x " + std::to_string(count);
  }
  if (!text.empty() && text != tier_name(m.tier)) out += "    " + text + "\n";
}

// "  sampling: learning, 1 call in 16; profile error < 3.10 %", before the lines of its sites; no
// line before the first sample.
void observing_line(std::string& out, const MethodReport& m) {
  const bool seen = m.interval != 0 || m.error_bound || m.dual_error;
  if (!seen && !m.behind) return;
  std::string text = seen ? std::string("sampling: ") + observing_name(m.observing) : "";
  if (m.interval != 0) text += ", 1 call in " + std::to_string(m.interval);
  if (m.error_bound) text += "; profile error < " + percent(*m.error_bound);
  if (m.dual_error) text += "; scalable counters off by " + percent(*m.dual_error);
  if (m.behind)
    text += (seen ? "; " : "") +
            std::string("counts fall behind: optimized code ran that counts nothing");
  line(out, "    %s", text.c_str());
}

std::string entry_text(const SiteReport& s, const TopEntry& e) {
  bool callee = s.kind == SlotKind::kCallTarget;
  return (callee ? e.name : std::to_string(e.value)) + " " + percent(e.share);
}

void site_line(std::string& out, const SiteReport& s) {
  std::string text = std::string(slot_kind_name(s.kind)) + " " + std::to_string(s.site) + ": ";
  if (s.kind == SlotKind::kGauge) {
    text += std::to_string(s.gauge);
  } else {
    char number[32];
    std::snprintf(number, sizeof number, "%.0f", s.estimate);
    text += number;
  }
  if (s.min && s.max) text += ", " + std::to_string(*s.min) + ".." + std::to_string(*s.max);
  for (size_t i = 0; i < std::min<size_t>(s.top.size(), kTopShown); ++i) {
    text += ", " + entry_text(s, s.top[i]);
  }
  if (s.lost != 0) text += ", lost " + std::to_string(s.lost);
  // Names may have any length.
  out += "      " + text_only(text) + '\n';
}

void sites_lines(std::string& out, const MethodReport& m) {
  for (size_t i = 0; i < std::min<size_t>(m.sites.size(), kSitesShown); ++i) {
    site_line(out, m.sites[i]);
  }
  if (m.sites.size() > kSitesShown) {
    more_line(out, "      ", m.sites.size() - kSitesShown, "site");
  }
}

void exits_lines(std::string& out, const MethodReport& m) {
  if (m.left != 0) {
    line(out, "      frames left: %llu for the host, %llu for baseline code", ull(m.left_for_host),
         ull(m.left - std::min(m.left, m.left_for_host)));
  }
  for (size_t i = 0; i < std::min<size_t>(m.exits.size(), kSitesShown); ++i) {
    const ExitReport& e = m.exits[i];
    std::string where =
        e.guard != 0 ? "guard " + std::to_string(e.guard) : "block " + std::to_string(e.block);
    std::string source = e.source.empty() ? "" : ", " + position_text(e.source[0]);
    // Names of files may have any length.
    std::string text = "left at " + where + " (" + guard_reason_name(e.reason) + source +
                       "): " + std::to_string(e.exits) + (e.banned ? ", banned" : "");
    out += "      " + text_only(text) + '\n';
  }
  if (m.exits.size() > kSitesShown) {
    more_line(out, "      ", m.exits.size() - kSitesShown, "exit");
  }
}

void methods_table(std::string& out, const Report& r, size_t shown) {
  line(out, "%-28s %-10s %12s %9s %12s %8s %7s %5s %10s %9s", "method", "tier", "calls", "samples",
       "iterations", "bursts", "flushes", "osr", "code", "compile");
  for (size_t i = 0; i < std::min(shown, r.methods.size()); ++i) {
    const MethodReport& m = r.methods[i];
    line(out, "%-28s %-10s %12llu %9llu %12llu %8llu %7llu %5llu %8llu B %6.2f ms",
         in_column(m.name).c_str(), tier_name(m.tier), ull(m.calls), ull(m.sampled_calls),
         ull(m.loop_iterations), ull(m.bursts), ull(m.flushes), ull(m.osr_entries),
         ull(code_bytes(m)), compile_ns(m) / 1e6);
    versions_line(out, m);
    observing_line(out, m);
    sites_lines(out, m);
    exits_lines(out, m);
    if (!m.last_error.empty()) out += "    error: " + text_only(m.last_error) + "\n";
  }
  if (r.methods.size() > shown) more_line(out, "", r.methods.size() - shown, "method");
}

void decisions_table(std::string& out, const Report& r, size_t shown) {
  // Decisions to keep are left out; they matter only as the last word on a method.
  std::vector<const DecisionRecord*> rows;
  for (const DecisionRecord& d : r.decisions) {
    if (d.action != "keep") rows.push_back(&d);
  }
  line(out, "decisions: %zu, of which %zu change something", r.decisions.size(), rows.size());
  for (size_t i = 0; i < std::min(shown, rows.size()); ++i) {
    const DecisionRecord& d = *rows[i];
    const std::string at = d.source.empty() ? "" : ", at " + position_text(d.source[0]);
    line(out, "  #%-5llu %-28s %-18s %s%s", ull(d.sequence), in_column(d.method_name).c_str(),
         d.action.c_str(), d.reason.c_str(), at.c_str());
  }
  if (rows.size() > shown) more_line(out, "  ", rows.size() - shown, "decision");
}

void losses_table(std::string& out, const LossReport& l) {
  const std::pair<const char*, uint64_t> rows[] = {
      {"samples without an instrumented copy", l.samples_without_copy},
      {"slabs refused", l.slabs_refused},
      {"flushes delayed", l.flushes_delayed},
      {"flushes lost", l.flushes_lost},
      {"requests dropped", l.requests_dropped},
      {"compilations failed", l.compiles_failed},
      {"code refused", l.code_refused},
      {"evictions", l.evictions},
      {"versions without poll words", l.polls_refused},
      {"removed methods forgotten", l.methods_forgotten},
      {"decisions forgotten", l.decisions_forgotten},
      {"freed versions forgotten", l.versions_forgotten},
      {"calls on threads that are not attached", l.calls_unattached},
      {"methods that share a key", l.keys_shared},
      {"bodies described differently each time", l.unstable_bodies},
      {"traps that nobody took", l.traps_lost},
      {"trace events lost", l.trace_events_lost},
      {"log records overwritten", l.log_records},
      {"stack samples dropped", l.stack_samples},
      {"bodies without a name for perf", l.code_names_lost},
      {"loops too deep to time", l.loops_full},
      {"loops whose end was not seen", l.loops_stale},
      {"loops spoiled by recursion", l.loops_spoiled},
  };
  std::string text;
  for (auto [what, n] : rows) {
    if (n != 0) text += (text.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(n);
  }
  out += "losses: " + (text.empty() ? "none" : text) + "\n";  // may have any length
}

void stress_line(std::string& out, const std::vector<StressCount>& counts) {
  std::string text;
  for (const StressCount& c : counts) {
    text += text.empty() ? "" : ", ";
    text += c.kind + " " + std::to_string(c.forced) + " of " + std::to_string(c.points);
  }
  if (!text.empty()) line(out, "stress: %s forced", text.c_str());
}

}  // namespace

const char* observing_name(Observing o) {
  switch (o) {
    case Observing::kOff: return "off";
    case Observing::kLearning: return "learning";
    case Observing::kKnown: return "known";
    case Observing::kLooking: return "looking";
  }
  return "?";
}

uint64_t Report::methods_called() const {
  return static_cast<uint64_t>(std::count_if(methods.begin(), methods.end(),
                                             [](const MethodReport& m) { return m.called(); }));
}

std::string Report::text(size_t methods_shown) const try {
  size_t shown = methods_shown == 0 ? SIZE_MAX : methods_shown;
  std::string out;
  methods_table(out, *this, shown);
  if (time.samples != 0) out += time.text(methods_shown);
  decisions_table(out, *this, shown);
  line(out,
       "methods: %llu registered, %llu called; code: %llu bytes in service, %llu freed; "
       "rows of blocks: %llu bytes; "
       "compile time %.2f ms (optimizing: %.0f ns an instruction)",
       ull(methods_registered), ull(methods_called()), ull(code_bytes_in_service),
       ull(code_bytes_freed), ull(probe_bytes), compile_ns_total / 1e6, compile_rate_ns);
  if (!saved.file.empty()) {
    line(out,
         "saved profile: %s; %llu runs, %llu methods known (%llu of another module, %llu matched "
         "by their calls), %llu "
         "stale, %llu optimized at once%s%s",
         saved.file.c_str(), ull(saved.runs), ull(saved.methods), ull(saved.recovered),
         ull(saved.matched), ull(saved.stale), ull(saved.compiled),
         saved.problem.empty() ? "" : "; ", saved.problem.c_str());
  }
  if (!image.file.empty()) {
    line(
        out,
        "image: %s; first code of %llu of its %llu methods, %llu others compiled%s%s; read in %.2f "
        "ms%s%s",
        image.file.c_str(), ull(image.placed), ull(image.methods), ull(image.refused),
        image.first_refused.empty() ? "" : ", first ", image.first_refused.c_str(), image.open_ms,
        image.problem.empty() ? "" : "; ", image.problem.c_str());
  }
  if (relay.relays != 0) {
    line(out,
         "code moved: %llu times, %llu bodies of %llu bytes in %.2f ms; last: pages %llu -> %llu",
         ull(relay.relays), ull(relay.bodies), ull(relay.bytes), relay.ns / 1e6,
         ull(relay.pages_before), ull(relay.pages_after));
  }
  if (overhead_share) line(out, "overhead: %s of the time", percent(*overhead_share).c_str());
  losses_table(out, losses);
  stress_line(out, stress);
  return out;
} catch (const std::exception&) { return {}; }

}  // namespace uptier
