#include <algorithm>
#include <utility>

#include "profile/algebra/rake.h"
#include "profile/base/corrupt.h"
#include "profile/base/numbers.h"
#include "profile/base/wall.h"
#include "profile/trace/data.h"
#include "profile/trace/events.h"
#include "profile/trace/trace_file.h"

namespace uptier {
namespace {

bool is_inlined(const InstrumentationDesc& desc) { return profile::is_inlined_desc(desc.version); }

std::string stream_text(uint64_t id) { return "id " + std::to_string(id); }

}  // namespace

Status ProfileBuilder::add(const TraceEvent& event) {
  if (const auto* provenance = std::get_if<Provenance>(&event)) {
    interval_ = provenance->interval;
    one_countdown_ = provenance->gap == "exact";
  } else if (const auto* method = std::get_if<MethodDetails>(&event)) {
    if (method->handle == 0) return profile::corrupt("handle 0 is invalid");
    const auto [at, added] = details_.emplace(method->handle, *method);
    if (!added && at->second != *method) {
      return profile::corrupt("handle " + std::to_string(method->handle) +
                              " was announced differently before");
    }
  } else if (const auto* desc = std::get_if<InstrumentationDesc>(&event)) {
    return add_desc(*desc);
  } else if (const auto* data = std::get_if<InstrumentationData>(&event)) {
    return add_data(*data);
  } else if (const auto* call = std::get_if<FirstCallEvent>(&event)) {
    const std::optional<MethodKey> method = method_of(call->handle);
    if (!method) return profile::corrupt("unknown method handle " + std::to_string(call->handle));
    first_calls_.emplace(*method, call->position);
  } else if (const auto* flush = std::get_if<FlushEvent>(&event)) {
    const auto at = streams_.find(flush->id);
    if (at == streams_.end())
      return profile::corrupt("flush before desc: " + stream_text(flush->id));
    at->second.pending = *flush;
  }
  return {};
}

Status ProfileBuilder::add_desc(const InstrumentationDesc& desc) {
  if (const auto at = streams_.find(desc.id); at != streams_.end()) {
    if (at->second.desc == desc) return {};
    return profile::corrupt(stream_text(desc.id) + " was described differently before");
  }
  Stream stream;
  stream.desc = desc;
  if (const Status shape = profile::check_shape(desc.desc_shape, desc.desc.size()); !shape.ok()) {
    return shape;
  }
  const Region first = desc.desc.empty() ? Region::kBytes : profile::region_at(desc.desc_shape, 0);
  if (first == Region::kBytes) {
    return profile::corrupt("the first region of a desc is not a type or method handle");
  }
  if (first == Region::kMethod && profile::is_known_desc(desc.version)) {
    const Result<Schema> schema = profile::schema_of(desc);
    if (!schema.ok()) return schema.error();
    if (const Status known = check_handles(desc); !known.ok()) return known;
    stream.method = profile::handle_of(desc);
  } else {
    ++skipped_;
  }
  streams_.emplace(desc.id, std::move(stream));
  return {};
}

// Checks that all methods named by a desc were announced.
Status ProfileBuilder::check_handles(const InstrumentationDesc& desc) const {
  const profile::InlinedPlace place = profile::place_of(desc);
  std::vector<uint64_t> handles = {profile::handle_of(desc)};
  if (is_inlined(desc)) handles.push_back(place.root);
  for (const profile::InlinedStep& step : place.path) handles.push_back(step.callee);
  for (const uint64_t handle : handles) {
    if (!details_.contains(handle)) {
      return profile::corrupt("unknown method handle " + std::to_string(handle));
    }
  }
  return {};
}

Status ProfileBuilder::add_data(const InstrumentationData& data) {
  const auto at = streams_.find(data.id);
  if (at == streams_.end()) return profile::corrupt("data before desc: " + stream_text(data.id));
  Stream& stream = at->second;
  if (stream.method == 0) {
    ++skipped_;
    return {};
  }
  // The shape belongs to the schema, so it determines the length of the data up to three words.
  const bool sized =
      data.data.size() % sizeof(uint64_t) == 0 &&
      profile::shape_bytes(data.data.size() / sizeof(uint64_t)) == stream.desc.data_shape.size();
  if (sized && !stream.has_data) stream.schema = *profile::schema_of(stream.desc);
  if (!sized || data.data.size() != stream.schema.data_words() * sizeof(uint64_t)) {
    return profile::corrupt("data of " + stream_text(data.id) +
                            " has another length than its data shape");
  }
  Result<profile::Observed> now =
      profile::observed_of(stream.schema, profile::words_of(data),
                           [this](uint64_t handle) { return method_of(handle); });
  if (!now.ok())
    return profile::corrupt("data of " + stream_text(data.id) + ": " + now.error().message);
  profile::Observed seen{std::move(stream.counts), std::move(stream.estimates),
                         std::move(stream.tables)};
  profile::advance(seen, stream.schema, std::move(*now), stream.pending.interval);
  const FlushEvent& flush = stream.pending;
  profile::Coverage coverage{
      .covered = stream.covered, .samples = stream.samples, .squares = stream.weight_squares};
  uint64_t samples = flush.sampled_calls;
  profile::add_saturating(samples, flush.bursts);
  coverage.end_window(samples, flush.interval);
  stream.covered = coverage.covered;
  stream.samples = coverage.samples;
  stream.weight_squares = coverage.squares;
  stream.counts = std::move(seen.counts);
  stream.estimates = std::move(seen.estimates);
  stream.tables = std::move(seen.tables);
  stream.flushed = stream.pending;
  stream.interval = interval_;
  stream.has_data = true;
  return {};
}

std::optional<MethodKey> ProfileBuilder::method_of(uint64_t handle) const {
  const auto at = details_.find(handle);
  if (at == details_.end()) return std::nullopt;
  return MethodKey{at->second.module_key, at->second.function_index};
}

// Streams of one method and schema whose estimates are raked to all executions are added up.
Profile ProfileBuilder::profile(MergeReport* report) const {
  Profile result;
  const auto add = [&](MethodProfile method) {
    Profile one;
    one.methods.emplace(method.key, std::move(method));
    const MergeReport merged = merge(result, std::move(one));
    if (report != nullptr) *report += merged;
  };
  std::map<std::pair<uint64_t, uint64_t>, std::vector<const Stream*>> brought;  // by method, code
  for (const auto& [id, stream] : streams_) {
    if (!stream.has_data || is_inlined(stream.desc)) continue;
    if (stream.flushed.burst != 0) {
      brought[{stream.method, stream.schema.cfg_hash}].push_back(&stream);
    } else {
      add(method_of(stream));
    }
  }
  for (const auto& [at, streams] : brought) add(sum_of(streams));
  add_inlined(result, report);
  return result;
}

MethodProfile ProfileBuilder::method_of(const Stream& stream) const {
  const MethodDetails& details = details_.at(stream.method);
  MethodProfile method;
  method.key = {details.module_key, details.function_index};
  method.name = details.name;
  method.schema = stream.schema;
  method.counts = stream.counts;
  method.estimates = stream.estimates;
  method.tables = stream.tables;
  method.calls = stream.flushed.calls;
  method.sampled_calls = stream.flushed.sampled_calls;
  method.iterations = stream.flushed.iterations;
  method.bursts = stream.flushed.bursts;
  method.weight_squares = stream.weight_squares;
  method.interval = stream.interval;
  return method;
}

MethodProfile ProfileBuilder::sum_of(std::span<const Stream* const> streams) const {
  const Stream& first = *streams.front();
  std::vector<profile::Draw> draws;
  const bool exact_totals =
      std::ranges::all_of(streams, [](const Stream* s) { return s->flushed.exact_totals; });
  if (exact_totals) draws = profile::draws_of(first.desc, first.schema);
  profile::StreamSum streams_sum(first.schema, draws, one_countdown_);
  Profile sum;
  for (const Stream* stream : streams) {
    const FlushEvent& last = stream->flushed;
    profile::Observed seen{stream->counts, stream->estimates, stream->tables};
    uint64_t samples = last.sampled_calls;
    profile::add_saturating(samples, last.bursts);
    streams_sum.add(
        {last.calls, last.iterations, samples, stream->weight_squares, stream->covered, last.burst},
        seen);
    MethodProfile method = method_of(*stream);
    method.estimates = std::move(seen.estimates);
    method.tables = std::move(seen.tables);
    Profile one;
    one.methods.emplace(method.key, std::move(method));
    (void)merge(sum, std::move(one));
  }
  MethodProfile method = std::move(sum.methods.begin()->second);
  profile::Observed all{std::move(method.counts), std::move(method.estimates),
                        std::move(method.tables)};
  streams_sum.finish(all);
  method.counts = std::move(all.counts);
  method.estimates = std::move(all.estimates);
  method.tables = std::move(all.tables);
  method.weight_squares = streams_sum.squares();
  return method;
}

// Adds the data of inlined bodies, which are not part of their methods' profiles.
void ProfileBuilder::add_inlined(Profile& result, MergeReport* report) const {
  std::map<uint64_t, uint64_t> code;  // hash by handle
  for (const auto& [id, stream] : streams_) {
    if (stream.method == 0) continue;
    uint64_t& hash = code[stream.method];
    hash = std::max(hash, profile::cfg_hash_of(stream.desc));
  }
  for (const auto& [id, stream] : streams_) {
    if (!stream.has_data || !is_inlined(stream.desc)) continue;
    const profile::InlinedPlace place = profile::place_of(stream.desc);
    InlinedKey key{*method_of(place.root), {}};
    InlinedBody body{{code[place.root]}, {}};
    for (const profile::InlinedStep& step : place.path) {
      key.path.push_back({step.site, *method_of(step.callee)});
      body.code.push_back(code[step.callee]);
    }
    for (const Slot& slot : stream.schema.slots) {
      const uint64_t samples = stream.flushed.sampled_calls;
      if (slot.kind != SlotKind::kBlock) {
        const auto first = static_cast<ptrdiff_t>(slot.word);
        InlinedSite& site = body.sites[{slot.kind, slot.site}];
        site.counts.assign(stream.counts.begin() + first,
                           stream.counts.begin() + first + slot.words);
        site.estimates.assign(stream.estimates.begin() + first,
                              stream.estimates.begin() + first + slot.words);
        const auto table = stream.tables.find({slot.kind, slot.site});
        if (table != stream.tables.end()) site.table = table->second;
        site.samples = samples;
        continue;
      }
      const InlinedBlock block{stream.counts[slot.word], stream.estimates[slot.word], samples};
      if (block != InlinedBlock{}) body.blocks.emplace(slot.site, block);
    }
    Profile one;
    if (body.check(key).ok()) one.inlined.emplace(std::move(key), std::move(body));
    const MergeReport merged = merge(result, std::move(one));
    if (report != nullptr) *report += merged;
  }
}

Result<TraceProfile> profile_from_trace(std::span<const std::byte> file) try {
  using State = profile::TraceReader::State;
  profile::TraceReader reader(file);
  ProfileBuilder builder;
  while (reader.next()) {
    if (const Status status = builder.add(reader.event()); !status.ok()) {
      return profile::corrupt("offset " + std::to_string(reader.offset()) + ": " +
                              status.error().message);
    }
  }
  if (reader.state() == State::kCorrupt) return reader.error();
  TraceProfile result;
  result.profile = builder.profile(&result.report);
  result.first_calls = builder.first_calls();
  result.truncated = reader.state() == State::kTruncated;
  result.skipped = reader.skipped() + builder.skipped();
  result.lost = reader.dropped();
  return result;
} catch (const std::exception&) { return out_of_memory("profile"); }

}  // namespace uptier
