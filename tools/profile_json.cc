#include "tools/profile_json.h"

#include <nlohmann/json.hpp>

#include "profile/base/numbers.h"
#include "profile/data/estimate.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "tools/time_json.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;
using profile::Word;
using profile::WordRule;

ordered_json to_json(uint64_t count, const std::optional<Estimate>& e) {
  ordered_json j;
  j["count"] = count;
  j["estimate"] = e ? ordered_json(e->total) : ordered_json(nullptr);
  j["low"] = e ? ordered_json(e->low) : ordered_json(nullptr);
  j["high"] = e ? ordered_json(e->high) : ordered_json(nullptr);
  return j;
}

// One word by its rule: a sum with its estimate, a wide sum as text, an extreme of something seen.
ordered_json to_json(const MethodProfile& m, WordRule rule, uint32_t at, bool seen) {
  const uint64_t count = m.counts[at];
  switch (rule) {
    case WordRule::kSum:
    case WordRule::kOther: return to_json(count, profile::estimate_in(m, count, m.estimates[at]));
    case WordRule::kWide: return profile::to_text(profile::load_wide(&m.counts[at]));
    case WordRule::kMin:
    case WordRule::kMax: return seen ? ordered_json(static_cast<int64_t>(count)) : nullptr;
    default: return count;
  }
}

ordered_json to_json(const MethodProfile& m, SlotKind kind, const TableKey& key,
                     const TableEntry& entry) {
  ordered_json j;
  if (kind == SlotKind::kValue) {
    j["value"] = static_cast<int64_t>(key.value);
  } else {
    j["module_key"] = key.module_key;
    j["function_index"] = key.value;
  }
  j.update(to_json(entry.count, profile::estimate_in(m, entry.count, entry.estimate)));
  return j;
}

ordered_json table_json(const MethodProfile& m, const Slot& slot) {
  ordered_json entries = ordered_json::array();
  const Table* table = m.table(slot.kind, slot.site);
  if (table == nullptr) return entries;
  for (const auto& [key, entry] : *table) entries.push_back(to_json(m, slot.kind, key, entry));
  return entries;
}

ordered_json mean_json(const MethodProfile& m, const Slot& slot) {
  const uint64_t count = m.counts[slot.word];
  if (count == 0) return nullptr;
  const uint64_t* sum = &m.counts[slot.word + slot_word::kSum];
  return static_cast<double>(profile::load_wide(sum)) / static_cast<double>(count);
}

// The loop's cycles over all its executions; null where none was timed.
ordered_json cycles_json(const MethodProfile& m, const Slot& slot) {
  const std::optional<Estimate> cycles = m.loop_cycles(slot.site);
  if (!cycles) return nullptr;
  return {{"estimate", cycles->total}, {"low", cycles->low}, {"high", cycles->high}};
}

ordered_json to_json(const MethodProfile& m, const Slot& slot) {
  ordered_json j;
  j["kind"] = slot_kind_name(slot.kind);
  j["site"] = slot.site;
  const std::span<const Word> words = profile::words_of(slot.kind);
  if (words.size() == 1 && words[0].rule == WordRule::kSum) {
    j.update(to_json(m.counts[slot.word], m.estimate(slot.kind, slot.site)));
    return j;
  }
  const bool seen = m.counts[slot.word] != 0;
  for (uint32_t i = 0; i < words.size(); ++i) {
    if (words[i].rule == WordRule::kWideHigh) continue;
    const std::string name(words[i].name);
    j[name] = to_json(m, words[i].rule, slot.word + i, seen);
    if (words[i].rule != WordRule::kWide) continue;
    j[name + "_estimate"] = profile::to_text(profile::load_wide(&m.estimates[slot.word + i]));
  }
  if (slot.kind == SlotKind::kValue || slot.kind == SlotKind::kRange)
    j["mean"] = mean_json(m, slot);
  if (slot.kind == SlotKind::kLoop) j["total_cycles"] = cycles_json(m, slot);
  if (has_table(slot.kind)) j["top"] = slot.top;
  if (has_table(slot.kind)) j["table"] = table_json(m, slot);
  return j;
}

ordered_json to_json(const MethodProfile& m) {
  ordered_json j;
  j["module_key"] = m.key.module_key;
  j["function_index"] = m.key.function_index;
  j["name"] = m.name;
  j["calls"] = m.calls;
  j["sampled_calls"] = m.sampled_calls;
  j["iterations"] = m.iterations;
  j["bursts"] = m.bursts;
  j["weight_squares"] = m.weight_squares;
  j["interval"] = m.interval != 0 ? ordered_json(m.interval) : ordered_json(nullptr);
  j["time"] = m.time != 0 ? ordered_json(m.time) : ordered_json(nullptr);
  j["behind"] = m.behind;
  j["cfg_hash"] = m.schema.cfg_hash;
  j["sites"] = ordered_json::array();
  for (const Slot& slot : m.schema.slots) j["sites"].push_back(to_json(m, slot));
  return j;
}

ordered_json methods_json(const Profile& profile) {
  ordered_json methods = ordered_json::array();
  for (const auto& [key, method] : profile.methods) {
    if (method.check().ok()) methods.push_back(to_json(method));
  }
  return methods;
}

ordered_json to_json(const MethodKey& key) {
  return {{"module_key", key.module_key}, {"function_index", key.function_index}};
}

ordered_json to_json(const InlinedKey& key, const InlinedBody& body) {
  ordered_json j;
  j["root"] = to_json(key.root);
  j["root"]["cfg_hash"] = body.code[0];
  j["path"] = ordered_json::array();
  for (size_t i = 0; i < key.path.size(); ++i) {
    ordered_json call = {{"site", key.path[i].site}};
    call.update(to_json(key.path[i].callee));
    call["cfg_hash"] = body.code[i + 1];
    j["path"].push_back(std::move(call));
  }
  j["blocks"] = ordered_json::array();
  for (const auto& [site, block] : body.blocks) {
    ordered_json b = {{"site", site}};
    b.update(to_json(block.count, estimate_of(block.count, block.estimate, block.samples)));
    b["samples"] = block.samples;
    j["blocks"].push_back(std::move(b));
  }
  j["sites"] = ordered_json::array();
  for (const auto& [at, site] : body.sites) {
    const MethodProfile m = profile::as_method(at.first, at.second, site);
    ordered_json s = to_json(m, m.schema.slots[0]);
    s.erase("top");
    s["samples"] = site.samples;
    j["sites"].push_back(std::move(s));
  }
  return j;
}

ordered_json inlined_json(const Profile& profile) {
  ordered_json bodies = ordered_json::array();
  for (const auto& [key, body] : profile.inlined) {
    if (body.check(key).ok()) bodies.push_back(to_json(key, body));
  }
  return bodies;
}

ordered_json to_json(const ProfileInfo& info) {
  ordered_json uploads = ordered_json::array();
  for (const UploadId& id : info.uploads) uploads.push_back({{"time", id.time}, {"hash", id.hash}});
  return {{"engine", info.engine},      {"host", info.host},       {"schedule", info.schedule},
          {"time", info.time},          {"runs", info.runs},       {"weight", info.weight},
          {"interval", info.interval},  {"modules", info.modules}, {"uploads", std::move(uploads)},
          {"forgotten", info.forgotten}};
}

std::string_view anchor_name(AnchorKind kind) {
  switch (kind) {
    case AnchorKind::kCall: return "call";
    case AnchorKind::kIndirectCall: return "indirect_call";
    case AnchorKind::kHostCall: return "host_call";
    case AnchorKind::kProbe: return "probe";
    case AnchorKind::kLoop: return "loop";
  }
  return "unknown";
}

ordered_json shapes_json(const CallProfile& calls) {
  ordered_json shapes = ordered_json::array();
  for (const auto& [key, shape] : calls.shapes) {
    ordered_json j = to_json(key);
    j["cfg_hash"] = shape.cfg_hash;
    j["successors"] = ordered_json::array();
    for (size_t b = 0; b < shape.successors.size(); ++b) {
      j["successors"].push_back(shape.successors[b]);
    }
    j["anchors"] = ordered_json::array();
    for (const Anchor& a : shape.anchors) {
      j["anchors"].push_back({{"kind", anchor_name(a.kind)},
                              {"target", a.target},
                              {"block", a.block},
                              {"site", a.site}});
    }
    shapes.push_back(std::move(j));
  }
  return shapes;
}

ordered_json graph_json(const CallProfile& calls) {
  ordered_json graph = ordered_json::array();
  for (const auto& [call, count] : calls.graph) {
    graph.push_back(
        {{"caller", to_json(call.first)}, {"callee", to_json(call.second)}, {"estimate", count}});
  }
  return graph;
}

ordered_json order_json(const CallProfile& calls) {
  ordered_json order = ordered_json::array();
  for (const MethodKey& key : calls.order()) {
    const FirstCall& first = calls.first.at(key);
    ordered_json j = to_json(key);
    j["positions"] = first.positions;
    j["runs_thousandths"] = first.runs;
    j["mean_position"] = first.mean();
    order.push_back(std::move(j));
  }
  return order;
}

// Names come from the module and may be any bytes.
std::string pretty(const ordered_json& j) {
  return j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string profile_json(const Profile& profile) {
  return pretty({{"methods", methods_json(profile)}, {"inlined", inlined_json(profile)}});
}

std::string profile_json(const ProfileFile& file) {
  ordered_json j;
  j["provenance"] = to_json(file.info);
  j["methods"] = methods_json(file.profile);
  j["inlined"] = inlined_json(file.profile);
  j["shapes"] = shapes_json(file.calls);
  j["calls"] = graph_json(file.calls);
  j["first_calls"] = order_json(file.calls);
  j["time"] = time_json(file);
  return pretty(j);
}

std::string profile_json(const TraceProfile& trace) {
  ordered_json j;
  j["truncated"] = trace.truncated;
  j["skipped"] = trace.skipped;
  j["lost"] = trace.lost;
  j["methods"] = methods_json(trace.profile);
  j["inlined"] = inlined_json(trace.profile);
  return pretty(j);
}

}  // namespace uptier::tools
