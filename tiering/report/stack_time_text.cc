// The times of stack samples, as a readable table and as lines for flame graph tools.
#include "uptier/stack_time.h"

#include <algorithm>
#include <cstdio>

namespace uptier {
namespace {

// Names come from modules: characters that could steer a terminal, or break a line's form, are
// shown as '?'.
std::string safe_name(const std::string& name, const char* refused) {
  std::string out(name);
  for (char& c : out) {
    bool bad = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
               std::string_view(refused).find(c) != std::string_view::npos;
    if (bad) c = '?';
  }
  return out;
}

template <typename... Args>
void add_line(std::string& out, const char* format, Args... args) {
  char buffer[256];
  int n = std::snprintf(buffer, sizeof buffer, format, args...);
  out.append(buffer, static_cast<size_t>(std::clamp(n, 0, 255)));
}

std::string code_of_row(const TimeRow& r) {
  if (r.place != TimePlace::kMethod) return "";
  if (r.tier == Tier::kHost) return "stub";
  std::string text = tier_name(r.tier);
  if (r.copy == Copy::kInstrumented)
    text = r.tier == Tier::kOptimized ? "optimized instr." : "instrumented";
  if (r.osr) text += "@loop";
  if (r.inlined) text += ", inlined";
  return text;
}

double percent_of(double part, double all) { return all > 0 ? 100 * part / all : 0; }

const char* engine_text(SampleEngine e) {
  return e == SampleEngine::kTaskClock ? "task_clock" : "cpu_timer";
}

}  // namespace

std::string TimeReport::text(size_t shown) const try {
  std::string out;
  add_line(out,
           "time: %llu samples by %s stand for %.1f ms, %.2f %% of the processor time; not "
           "attributed %.2f %%\n",
           static_cast<unsigned long long>(samples), engine_text(engine), sampled_ns / 1e6,
           percent_of(sampled_ns, asked_ns), percent_of(unattributed_ns, sampled_ns));
  size_t most = shown == 0 ? rows.size() : std::min(shown, rows.size());
  add_line(out, "%8s  %-17s %8s %10s  %-24s %s\n", "share", "95 % interval", "samples", "ms",
           "code", "method");
  for (size_t i = 0; i < most; ++i) {
    const TimeRow& r = rows[i];
    add_line(out, "%6.2f %%  %6.2f - %6.2f %% %8llu %10.2f  %-24s ", 100 * r.share.share,
             100 * r.share.low, 100 * r.share.high, static_cast<unsigned long long>(r.samples),
             r.ns / 1e6, code_of_row(r).c_str());
    out += safe_name(r.name, "") + "\n";
  }
  if (most < rows.size()) add_line(out, "... and %zu more rows of time\n", rows.size() - most);
  for (const TimeGap& g : gaps) {
    add_line(out, "  samples without a complete stack (%s): %llu\n", g.reason.c_str(),
             static_cast<unsigned long long>(g.samples));
  }
  if (dropped != 0) {
    add_line(out, "  samples dropped, the ring was full: %llu, %.1f ms\n",
             static_cast<unsigned long long>(dropped), dropped_ns / 1e6);
  }
  return out;
} catch (const std::exception&) { return {}; }

std::string TimeReport::folded() const try {
  std::string out;
  std::vector<std::string> paths(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TimeNode& n = nodes[i];
    if (n.parent != i) paths[i] = paths[n.parent] + ";";
    paths[i] += safe_name(n.name, "; ");
    if (n.samples == 0) continue;
    out += paths[i];
    add_line(out, " %.0f\n", n.ns / 1e3);
  }
  return out;
} catch (const std::exception&) { return {}; }

}  // namespace uptier
