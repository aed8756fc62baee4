#include <utility>

#include "profile/estimate.h"
#include "profile/trace/events.h"
#include "profile/trace/trace_file.h"
#include "uptier/inlined.h"

namespace uptier {
namespace {

Error broken(std::string rule) { return Error{ErrorCode::kCorruptInput, std::move(rule)}; }

}  // namespace

Status InlinedBuilder::add(const TraceEvent& event) {
  if (const auto* method = std::get_if<MethodDetails>(&event)) {
    details_.emplace(method->handle, *method);
    return {};
  }
  if (const auto* flush = std::get_if<FlushEvent>(&event)) {
    const auto at = streams_.find(flush->id);
    if (at != streams_.end()) at->second.pending = *flush;
    return {};
  }
  if (const auto* desc = std::get_if<InstrumentationDesc>(&event)) {
    if (desc->version != profile::kInlinedDescVersion || streams_.contains(desc->id)) return {};
    Result<Schema> schema = profile::schema_of(*desc);
    if (!schema.ok()) return schema.error();
    Stream s;
    s.profile.profile.schema = std::move(*schema);
    const auto key = [this](uint64_t handle) -> const MethodDetails* {
      const auto at = details_.find(handle);
      return at == details_.end() ? nullptr : &at->second;
    };
    const profile::InlinedPlace place = profile::place_of(*desc);
    const MethodDetails* root = key(place.root);
    if (root == nullptr) return broken("unknown method handle " + std::to_string(place.root));
    s.profile.root = {root->module_key, root->function_index};
    for (const profile::InlinedStep& step : place.path) {
      const MethodDetails* callee = key(step.callee);
      if (callee == nullptr) return broken("unknown method handle " + std::to_string(step.callee));
      s.profile.path.push_back({step.site, {callee->module_key, callee->function_index}});
      s.profile.profile.name = callee->name;
    }
    s.profile.profile.key = s.profile.path.back().callee;
    streams_.emplace(desc->id, std::move(s));
    return {};
  }
  const auto* data = std::get_if<InstrumentationData>(&event);
  if (data == nullptr) return {};
  const auto at = streams_.find(data->id);
  if (at == streams_.end()) return {};
  MethodProfile& p = at->second.profile.profile;
  const FlushEvent& flush = at->second.pending;
  if (data->data.size() != p.schema.words() * sizeof(uint64_t)) {
    return broken("data of id " + std::to_string(data->id) + " has another length than its shape");
  }
  profile::Observed seen{std::move(p.counts), std::move(p.estimates), {}};
  profile::Observed now;
  now.counts = profile::words_of(*data);
  profile::advance(seen, p.schema, std::move(now), flush.interval);
  p.counts = std::move(seen.counts);
  p.estimates = std::move(seen.estimates);
  p.calls = flush.calls;
  p.sampled_calls = flush.sampled_calls;
  return {};
}

std::vector<InlinedProfile> InlinedBuilder::profiles() const {
  std::vector<InlinedProfile> out;
  for (const auto& [id, s] : streams_) {
    if (!s.profile.profile.counts.empty()) out.push_back(s.profile);
  }
  return out;
}

Result<std::vector<InlinedProfile>> inlined_from_trace(std::span<const std::byte> file) {
  profile::TraceReader reader(file);
  InlinedBuilder builder;
  while (reader.next()) {
    if (const Status status = builder.add(reader.event()); !status.ok()) return status.error();
  }
  if (reader.state() == profile::TraceReader::State::kCorrupt) return reader.error();
  return builder.profiles();
}

std::string to_text(std::span<const InlinedProfile> profiles, const Profile& names) {
  const auto name = [&names](const MethodKey& key) {
    const MethodProfile* p = names.find(key);
    return p != nullptr ? p->name : "function " + std::to_string(key.function_index);
  };
  std::string out;
  for (const InlinedProfile& p : profiles) {
    out += "# inlined in " + name(p.root);
    for (const InlinedCall& c : p.path) {
      const bool last = &c == &p.path.back();
      out += " at " + std::to_string(c.site) + " " + (last ? p.profile.name : name(c.callee));
    }
    out += ": " + std::to_string(p.profile.sampled_calls) + " samples\n";
    for (const Slot& slot : p.profile.schema.slots) {
      out += "#   block " + std::to_string(slot.site) + " " +
             std::to_string(p.profile.counts[slot.word]) + " ~" +
             std::to_string(p.profile.estimates[slot.word]) + "\n";
    }
  }
  return out;
}

}  // namespace uptier
