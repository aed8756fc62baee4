// uptier options.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/json_out.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

ordered_json option_json(uint64_t n) { return n; }
ordered_json option_json(double n) { return n; }
ordered_json option_json(bool on) { return on; }
// The value as `-O` takes it.
ordered_json option_json(TierMode m) {
  constexpr const char* kNames[] = {"auto", "baseline", "instrumented", "optimized"};
  return kNames[static_cast<size_t>(m)];
}
ordered_json option_json(PolicyMode m) {
  constexpr const char* kNames[] = {"auto", "always", "never"};
  return kNames[static_cast<size_t>(m)];
}
ordered_json option_json(FlowMode m) { return m == FlowMode::kEdges ? "edges" : "blocks"; }
ordered_json option_json(CounterMode m) {
  constexpr const char* kNames[] = {"per_thread", "interlocked", "scalable", "racing", "dual"};
  return kNames[static_cast<size_t>(m)];
}
ordered_json option_json(SampleEngine e) {
  return e == SampleEngine::kTaskClock ? "task_clock" : "cpu_timer";
}
ordered_json option_json(FindMode m) {
  constexpr const char* kNames[] = {"counts", "samples", "both"};
  return kNames[static_cast<size_t>(m)];
}
ordered_json option_json(GapMode m) {
  constexpr const char* kNames[] = {"random", "fixed", "prime", "exact"};
  return kNames[static_cast<size_t>(m)];
}

ordered_json row(const char* name, const char* group, ordered_json value, ordered_json usual,
                 const char* unit, const char* reason) {
  return {
      {"name", name}, {"group", group},  {"value", std::move(value)}, {"default", std::move(usual)},
      {"unit", unit}, {"reason", reason}};
}

}  // namespace

int show_options(const Options& o, bool json) {
  if (!json) {
    std::fputs(o.table().c_str(), stdout);
    return kOk;
  }
  const Options usual;
  ordered_json rows = ordered_json::array();
  const auto numeric = [](const ordered_json& value) { return value.is_number(); };
  const char* group = "embedder";
#define X(kind, field, fallback, low, high, unit, reason)                                \
  rows.push_back(                                                                        \
      row(#field, group, option_json(o.field), option_json(usual.field), unit, reason)); \
  if (numeric(rows.back()["value"])) {                                                   \
    rows.back()["low"] = low;                                                            \
    rows.back()["high"] = high;                                                          \
  }
  UPTIER_EMBEDDER_OPTIONS(X)
  rows.push_back(row("profile", group, o.profile, "", "text", ""));
  rows.push_back(row("image", group, o.image, "", "text", ""));
  rows.push_back(row("listen", group, o.listen, "", "text", ""));
  group = "research";
  UPTIER_RESEARCH_OPTIONS(X)
#undef X
  const std::pair<const char*, const std::string*> texts[] = {
      {"stress", &o.stress}, {"opt_range", &o.opt_range}, {"time_loops", &o.time_loops}};
  for (const auto& [name, value] : texts) rows.push_back(row(name, group, *value, "", "text", ""));
  return print_json({{"options", std::move(rows)}});
}

}  // namespace uptier::tools
