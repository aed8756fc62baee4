#include "tools/report_json.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tiering/report/losses.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

template <typename Tag>
ordered_json to_json(Id<Tag> id) {
  return id.valid() ? ordered_json(id.number()) : ordered_json(nullptr);
}

ordered_json to_json(const VersionReport& v) {
  ordered_json j;
  j["version"] = v.version;
  j["tier"] = tier_name(v.tier);
  j["copy"] = copy_name(v.copy);
  j["osr_loop"] = to_json(v.osr_loop);
  if (v.inlined != 0) j["inlined"] = v.inlined;
  j["code_bytes"] = v.code_bytes;
  j["probe_bytes"] = v.probe_bytes;
  j["compile_ns"] = v.compile_ns;
  j["retired"] = v.retired;
  j["freed"] = v.freed;
  return j;
}

// In the form that --opt-range takes.
std::string hash_text(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

template <typename T>
ordered_json to_json(const std::optional<T>& n) {
  return n ? ordered_json(*n) : ordered_json(nullptr);
}

ordered_json to_json(SlotKind kind, const TopEntry& e) {
  ordered_json j;
  if (kind == SlotKind::kCallTarget) {
    j["name"] = e.name;
  } else {
    j["value"] = e.value;
  }
  j["estimate"] = e.estimate;
  j["share"] = e.share;
  return j;
}

ordered_json to_json(const SiteReport& s) {
  ordered_json j;
  j["kind"] = slot_kind_name(s.kind);
  j["site"] = s.site;
  if (s.kind == SlotKind::kGauge) {
    j["value"] = s.gauge;
    return j;
  }
  j["estimate"] = s.estimate;
  if (has_table(s.kind)) {
    j["top"] = ordered_json::array();
    for (const TopEntry& e : s.top) j["top"].push_back(to_json(s.kind, e));
  }
  if (s.kind == SlotKind::kValue || s.kind == SlotKind::kRange) {
    j["min"] = to_json(s.min);
    j["max"] = to_json(s.max);
  }
  if (s.kind == SlotKind::kLog) j["lost"] = s.lost;
  return j;
}

ordered_json to_json(const ExitReport& e) {
  ordered_json j;
  j["block"] = e.block;
  j["guard"] = e.guard != 0 ? ordered_json(e.guard) : ordered_json(nullptr);
  j["reason"] = guard_reason_name(e.reason);
  j["location"] = e.location;
  if (!e.source.empty()) j["source"] = position_text(e.source[0]);
  j["exits"] = e.exits;
  j["retries"] = e.retries;
  j["banned"] = e.banned;
  return j;
}

ordered_json to_json(const MethodReport& m) {
  ordered_json j;
  j["method"] = to_json(m.method);
  j["name"] = m.name;
  j["module_key"] = m.key.module_key;
  j["function_index"] = m.key.function_index;
  j["hash"] = hash_text(m.hash);
  j["tier"] = tier_name(m.tier);
  j["calls"] = m.calls;
  j["sampled_calls"] = m.sampled_calls;
  j["loop_iterations"] = m.loop_iterations;
  j["bursts"] = m.bursts;
  j["flushes"] = m.flushes;
  j["osr_entries"] = m.osr_entries;
  j["osr_outs"] = m.osr_outs;
  j["left"] = m.left;
  j["left_for_host"] = m.left_for_host;
  j["observing"] = observing_name(m.observing);
  j["interval"] = m.interval != 0 ? ordered_json(m.interval) : ordered_json(nullptr);
  j["error_bound"] = to_json(m.error_bound);
  j["dual_error"] = to_json(m.dual_error);
  j["sites"] = ordered_json::array();
  for (const SiteReport& s : m.sites) j["sites"].push_back(to_json(s));
  j["exits"] = ordered_json::array();
  for (const ExitReport& e : m.exits) j["exits"].push_back(to_json(e));
  j["versions"] = ordered_json::array();
  for (const VersionReport& v : m.versions) j["versions"].push_back(to_json(v));
  j["behind"] = m.behind;
  j["last_error"] = m.last_error;
  return j;
}

ordered_json to_json(const DecisionRecord& d) {
  ordered_json j;
  j["sequence"] = d.sequence;
  j["method"] = to_json(d.method);
  j["method_name"] = d.method_name;
  j["action"] = d.action;
  j["reason"] = d.reason;
  j["calls"] = d.calls;
  j["samples"] = d.samples;
  j["loop_iterations"] = d.loop_iterations;
  j["priority"] = d.priority;
  j["inputs"] = d.inputs;
  if (!d.source.empty()) j["source"] = position_text(d.source[0]);
  return j;
}

ordered_json to_json(const TimeRow& r) {
  ordered_json j;
  j["place"] = time_place_name(r.place);
  j["method"] = to_json(r.method);
  j["name"] = r.name;
  j["tier"] = tier_name(r.tier);
  j["copy"] = copy_name(r.copy);
  j["osr"] = r.osr;
  j["inlined"] = r.inlined;
  j["samples"] = r.samples;
  j["ns"] = r.ns;
  j["share"] = r.share.share;
  j["low"] = r.share.low;
  j["high"] = r.share.high;
  return j;
}

ordered_json to_json(const TimeNode& n) {
  return {{"parent", n.parent}, {"name", n.name}, {"samples", n.samples}, {"ns", n.ns}};
}

ordered_json to_json(const TimeReport& t) {
  ordered_json j;
  j["hz"] = t.hz;
  j["engine"] = t.engine == SampleEngine::kTaskClock ? "task_clock" : "cpu_timer";
  j["samples"] = t.samples;
  j["asked_ns"] = t.asked_ns;
  j["sampled_ns"] = t.sampled_ns;
  j["unattributed_ns"] = t.unattributed_ns;
  j["dropped"] = t.dropped;
  j["dropped_ns"] = t.dropped_ns;
  j["stale"] = t.stale;
  j["paths_cut"] = t.paths_cut;
  j["gaps"] = ordered_json::array();
  for (const TimeGap& g : t.gaps) {
    j["gaps"].push_back({{"reason", g.reason}, {"samples", g.samples}, {"ns", g.ns}});
  }
  j["rows"] = ordered_json::array();
  for (const TimeRow& r : t.rows) j["rows"].push_back(to_json(r));
  j["nodes"] = ordered_json::array();
  for (const TimeNode& n : t.nodes) j["nodes"].push_back(to_json(n));
  return j;
}

ordered_json to_json(const LossReport& l) {
  ordered_json j;
  tiering::each_loss(l, [&](const char* name, uint64_t value) { j[name] = value; });
  return j;
}

ordered_json to_json(const std::vector<StressCount>& counts) {
  ordered_json j = ordered_json::object();
  for (const StressCount& c : counts) j[c.kind] = {{"points", c.points}, {"forced", c.forced}};
  return j;
}

}  // namespace

std::string report_json(const Report& r) {
  ordered_json j;
  j["methods_registered"] = r.methods_registered;
  j["code_bytes_in_service"] = r.code_bytes_in_service;
  j["code_bytes_freed"] = r.code_bytes_freed;
  j["probe_bytes"] = r.probe_bytes;
  j["compile_ns_total"] = r.compile_ns_total;
  j["compile_rate_ns"] = r.compile_rate_ns;
  j["overhead_share"] = to_json(r.overhead_share);
  j["methods"] = ordered_json::array();
  for (const MethodReport& m : r.methods) j["methods"].push_back(to_json(m));
  j["decisions"] = ordered_json::array();
  for (const DecisionRecord& d : r.decisions) j["decisions"].push_back(to_json(d));
  j["losses"] = to_json(r.losses);
  j["stress"] = to_json(r.stress);
  if (const RelayReport& relay = r.relay; relay.looks + relay.relays != 0) {
    j["relay"] = {{"relays", relay.relays},
                  {"bodies", relay.bodies},
                  {"bytes", relay.bytes},
                  {"pages_before", relay.pages_before},
                  {"pages_after", relay.pages_after},
                  {"ns", relay.ns},
                  {"looks", relay.looks},
                  {"look_ns", relay.look_ns}};
  }
  if (r.time.samples != 0) j["time"] = to_json(r.time);
  if (!r.saved.file.empty()) {
    j["saved"] = {{"file", r.saved.file},           {"problem", r.saved.problem},
                  {"runs", r.saved.runs},           {"methods", r.saved.methods},
                  {"recovered", r.saved.recovered}, {"matched", r.saved.matched},
                  {"stale", r.saved.stale},         {"compiled", r.saved.compiled}};
  }
  if (!r.image.file.empty()) {
    j["image"] = {{"file", r.image.file},
                  {"problem", r.image.problem},
                  {"bytes", r.image.bytes},
                  {"methods", r.image.methods},
                  {"placed", r.image.placed},
                  {"refused", r.image.refused},
                  {"first_refused", r.image.first_refused},
                  {"open_ms", r.image.open_ms}};
  }
  // Names come from the module and may be any bytes.
  return j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace uptier::tools
