#include "tools/trace_json.h"

#include <nlohmann/json.hpp>
#include <span>
#include <variant>

namespace uptier::tools {

using nlohmann::ordered_json;

namespace {

ordered_json path_json(const profile::InlinedPlace& place) {
  ordered_json path = ordered_json::array();
  for (const profile::InlinedStep& step : place.path) {
    path.push_back({{"site", step.site}, {"callee", step.callee}});
  }
  return path;
}

// The words of each slot; then the entries of its table, if it has one.
ordered_json slots_json(const Schema& schema, std::span<const uint64_t> words) {
  ordered_json out = ordered_json::array();
  size_t entries = schema.words();
  for (const Slot& slot : schema.slots) {
    ordered_json j = {{"kind", slot_kind_name(slot.kind)}, {"site", slot.site}};
    j["words"] = words.subspan(slot.word, slot.words);
    const size_t size = 2 * size_t{slot.top};
    if (slot.top != 0) {
      ordered_json& table = j["entries"] = ordered_json::array();
      std::span<const uint64_t> pairs = words.subspan(entries, size);
      for (size_t i = 0; i < pairs.size(); i += 2) {
        if (pairs[i + 1] != 0) table.push_back({{"key", pairs[i]}, {"count", pairs[i + 1]}});
      }
    }
    entries += size;
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace

ordered_json EventJson::of(const TraceEvent& event) {
  return std::visit([this](const auto& e) { return one(e); }, event);
}

ordered_json EventJson::one(const Provenance& e) {
  return {{"event", "provenance"},
          {"engine", e.engine},
          {"interval", e.interval},
          {"gap", e.gap},
          {"options", e.options}};
}

ordered_json EventJson::one(const MethodDetails& e) {
  return {{"event", "method"},
          {"handle", e.handle},
          {"module", e.module_key},
          {"function", e.function_index},
          {"name", e.name}};
}

ordered_json EventJson::one(const BulkType& e) {
  return {{"event", "type"}, {"handle", e.handle}, {"name", e.name}};
}

ordered_json EventJson::one(const InstrumentationDesc& e) {
  ordered_json j = {{"event", "desc"}, {"id", e.id}, {"version", e.version}};
  Result<Schema> schema = profile::schema_of(e);
  if (!schema.ok()) {
    j["bytes"] = e.desc.size();
    return j;
  }
  j["method"] = profile::handle_of(e);
  j["cfg_hash"] = profile::cfg_hash_of(e);
  if (const profile::InlinedPlace place = profile::place_of(e); place.root != 0) {
    j["inlined_in"] = place.root;
    j["path"] = path_json(place);
  }
  j["slots"] = schema->slots.size();
  schemas_.insert_or_assign(e.id, std::move(*schema));
  return j;
}

ordered_json EventJson::one(const InstrumentationData& e) {
  ordered_json j = {{"event", "data"}, {"id", e.id}};
  auto schema = schemas_.find(e.id);
  bool known =
      schema != schemas_.end() && e.data.size() == schema->second.data_words() * sizeof(uint64_t);
  if (known) {
    j["slots"] = slots_json(schema->second, profile::words_of(e));
  } else {
    j["bytes"] = e.data.size();
  }
  return j;
}

ordered_json EventJson::one(const FlushEvent& e) {
  return {{"event", "flush"},
          {"id", e.id},
          {"index", e.flush_index},
          {"reason", flush_reason_name(e.reason)},
          {"thread", e.thread},
          {"calls", e.calls},
          {"sampled_calls", e.sampled_calls},
          {"interval", e.interval},
          {"iterations", e.iterations},
          {"bursts", e.bursts},
          {"burst", e.burst},
          {"exact_totals", e.exact_totals}};
}

ordered_json EventJson::one(const FirstCallEvent& e) {
  return {{"event", "first_call"}, {"handle", e.handle}, {"position", e.position}};
}

}  // namespace uptier::tools
