#include "profile/trace/validate.h"

#include <utility>

#include "profile/base/corrupt.h"
#include "profile/base/numbers.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

std::string id_text(uint64_t id) { return "id " + std::to_string(id); }

// Announces a handle; repeating the same words is allowed.
template <typename Event>
Status announce(std::map<uint64_t, Event>& known, const Event& event, uint64_t& count) {
  if (event.handle == 0) return corrupt("handle 0 is invalid");
  const auto [at, added] = known.emplace(event.handle, event);
  if (!added && at->second != event) {
    return corrupt("handle " + std::to_string(event.handle) + " was announced differently before");
  }
  count += added;
  return {};
}

// Numbers that do not fall from one flush of an id to the next.
constexpr std::pair<uint64_t FlushEvent::*, const char*> kRising[] = {
    {&FlushEvent::calls, "calls"},
    {&FlushEvent::sampled_calls, "sampled calls"},
    {&FlushEvent::iterations, "iterations"},
    {&FlushEvent::bursts, "bursts"}};

// Adds up the counts of a table's pairs, from its first word on, and its `other`.
UnsignedWide table_total(const Slot& slot, std::span<const uint64_t> words, size_t first) {
  UnsignedWide sum = words[other_word(slot)];
  for (uint32_t i = 0; i < slot.top; ++i) sum += words[first + 2 * size_t{i} + 1];
  return sum;
}

// Returns the name of a word or table that is less than before, if there is one.
// `settles`: counts of control flow may fall.
std::optional<std::string> find_fallen(const Schema& schema, std::span<const uint64_t> before,
                                       std::span<const uint64_t> after, bool settles) {
  size_t table = schema.words();
  for (const Slot& slot : schema.slots) {
    if (settles && (slot.kind == SlotKind::kBlock || slot.kind == SlotKind::kEdge)) continue;
    const std::span<const Word> words = words_of(slot.kind);
    for (size_t i = 0; i < words.size(); ++i) {
      const size_t at = slot.word + i;
      const bool falls = words[i].rule == WordRule::kSum && after[at] < before[at];
      if (falls) return "word " + std::to_string(at);
    }
    if (slot.top == 0) continue;
    if (table_total(slot, after, table) < table_total(slot, before, table)) {
      return "table of " + std::string(slot_kind_name(slot.kind)) + " " + std::to_string(slot.site);
    }
    table += 2 * size_t{slot.top};
  }
  return std::nullopt;
}

Status check_shapes(const InstrumentationDesc& desc) {
  if (const Status shape = check_shape(desc.desc_shape, desc.desc.size()); !shape.ok()) {
    return corrupt("desc: " + shape.error().message);
  }
  for (size_t i = 0; i < desc.data_shape.size() * 4; ++i) {
    if (region_at(desc.data_shape, i) == Region::kReserved) {
      return corrupt("data shape: region " + std::to_string(i) + " has the reserved shape 11");
    }
  }
  if (desc.desc.empty() || region_at(desc.desc_shape, 0) == Region::kBytes) {
    return corrupt("the first region of a desc is not a type or method handle");
  }
  return {};
}

}  // namespace

Status TraceLaws::check(const TraceEvent& event) {
  if (awaited_ && !std::holds_alternative<InstrumentationData>(event)) {
    return corrupt("a flush of " + id_text(*awaited_) + " without data after it");
  }
  ++summary_.events;
  return std::visit([this](const auto& e) { return take(e); }, event);
}

Status TraceLaws::check_end() const {
  if (awaited_) return corrupt("a flush of " + id_text(*awaited_) + " without data after it");
  return {};
}

Status TraceLaws::take(const Provenance&) {
  ++summary_.provenances;
  return {};
}

Status TraceLaws::take(const MethodDetails& method) {
  return announce(methods_, method, summary_.methods);
}

Status TraceLaws::take(const BulkType& type) { return announce(types_, type, summary_.types); }

Status TraceLaws::take(const FirstCallEvent& call) {
  if (!methods_.contains(call.handle)) {
    return corrupt("unknown method handle " + std::to_string(call.handle));
  }
  const bool fresh = first_calls_.insert(call.handle).second;
  return fresh ? Status{} : corrupt("two first calls of one method");
}

Status TraceLaws::take(const InstrumentationDesc& desc) {
  if (const auto at = streams_.find(desc.id); at != streams_.end()) {
    if (at->second.desc == desc) return {};
    return corrupt(id_text(desc.id) + " was described differently before");
  }
  if (const Status shapes = check_shapes(desc); !shapes.ok()) return shapes;
  if (const Status handles = check_handles(desc.desc_shape, desc.desc, false); !handles.ok()) {
    return handles;
  }
  Stream stream;
  stream.desc = desc;
  if (is_known_desc(desc.version)) {
    const Result<Schema> schema = schema_of(desc);
    if (!schema.ok()) return corrupt(schema.error().message);
    stream.known = true;
    stream.sized = true;
    stream.size = schema->data_words() * kWordBytes;
  } else {
    ++summary_.opaque;
  }
  streams_.emplace(desc.id, std::move(stream));
  ++summary_.descs;
  return {};
}

Status TraceLaws::take(const FlushEvent& flush) {
  const auto at = streams_.find(flush.id);
  if (at == streams_.end()) return corrupt("flush before desc: " + id_text(flush.id));
  std::optional<FlushEvent>& last = at->second.flush;
  if (last && flush.flush_index <= last->flush_index) {
    return corrupt("flush index " + std::to_string(flush.flush_index) + " of " + id_text(flush.id) +
                   " does not rise");
  }
  for (const auto& [count, what] : kRising) {
    const bool falls = last && flush.*count < (*last).*count;
    if (falls) return corrupt(std::string(what) + " of " + id_text(flush.id) + " fall");
  }
  last = flush;
  awaited_ = flush.id;
  ++summary_.flushes;
  return {};
}

Status TraceLaws::take(const InstrumentationData& data) {
  if (awaited_ && *awaited_ != data.id) {
    return corrupt("a flush of " + id_text(*awaited_) + " without data after it");
  }
  const bool flushed = awaited_.has_value();
  awaited_.reset();
  const auto at = streams_.find(data.id);
  if (at == streams_.end()) return corrupt("data before desc: " + id_text(data.id));
  Stream& stream = at->second;
  if (const Status status = check_data(stream, data); !status.ok()) return status;
  if (stream.known) {
    // Counts that follow from others are exact once no frame runs, and may have been too high before.
    const bool settles = flushed && (stream.flush->reason == FlushReason::kFinal ||
                                     stream.flush->reason == FlushReason::kDemand);
    if (const Status s = check_words(stream, data, settles); !s.ok()) return s;
  }
  stream.sized = true;
  stream.size = data.data.size();
  ++summary_.data;
  return {};
}

Status TraceLaws::check_data(const Stream& stream, const InstrumentationData& data) const {
  const size_t size = data.data.size();
  if (stream.sized && size != stream.size) {
    return corrupt("data of " + id_text(data.id) + " has " + std::to_string(size) +
                   " bytes, its data shape asks for " + std::to_string(stream.size));
  }
  if (const Status shape = check_shape(stream.desc.data_shape, size); !shape.ok()) {
    return corrupt("data of " + id_text(data.id) + ": " + shape.error().message);
  }
  return check_handles(stream.desc.data_shape, data.data, true);
}

Status TraceLaws::check_words(Stream& stream, const InstrumentationData& data, bool settles) const {
  if (stream.last.empty()) stream.schema = *schema_of(stream.desc);
  std::vector<uint64_t> words = words_of(data);
  // Handles have been checked; their methods do not matter here.
  const Result<Observed> pairs =
      observed_of(stream.schema, words, [](uint64_t) { return MethodKey{}; });
  if (!pairs.ok()) return corrupt("data of " + id_text(data.id) + ": " + pairs.error().message);
  if (!stream.last.empty()) {
    const auto fallen = find_fallen(stream.schema, stream.last, words, settles);
    if (fallen)
      return corrupt(*fallen + " of " + id_text(data.id) + " falls between two snapshots");
  }
  stream.last = std::move(words);
  return {};
}

Status TraceLaws::check_handles(ByteSpan shape, ByteSpan bytes, bool zero_allowed) const {
  for (size_t i = 0; i < bytes.size() / kWordBytes; ++i) {
    const Region region = region_at(shape, i);
    if (region == Region::kBytes) continue;
    const uint64_t handle = load<uint64_t>(bytes, i * kWordBytes);
    if (handle == 0 && zero_allowed) continue;
    const bool known =
        region == Region::kMethod ? methods_.contains(handle) : types_.contains(handle);
    if (!known) {
      return corrupt("unknown " + std::string(region == Region::kMethod ? "method" : "type") +
                     " handle " + std::to_string(handle) + " in region " + std::to_string(i));
    }
  }
  return {};
}

Result<TraceSummary> validate(ByteSpan file) {
  TraceReader reader(file);
  TraceLaws laws;
  while (reader.next()) {
    if (const Status status = laws.check(reader.event()); !status.ok()) {
      return corrupt("offset " + std::to_string(reader.offset()) + ": " + status.error().message);
    }
  }
  if (reader.state() != TraceReader::State::kComplete) return reader.error();
  if (const Status status = laws.check_end(); !status.ok()) {
    return corrupt("offset " + std::to_string(file.size()) + ": " + status.error().message);
  }
  TraceSummary summary = laws.summary();
  summary.skipped = reader.skipped();
  summary.dropped = reader.dropped();
  summary.bytes = file.size();
  return summary;
}

std::string to_text(const TraceSummary& summary) {
  const std::pair<const char*, uint64_t> fields[] = {
      {"events", summary.events},   {"provenances", summary.provenances},
      {"methods", summary.methods}, {"types", summary.types},
      {"descs", summary.descs},     {"data", summary.data},
      {"flushes", summary.flushes}, {"skipped", summary.skipped},
      {"opaque", summary.opaque},   {"dropped", summary.dropped},
      {"bytes", summary.bytes}};
  std::string out;
  for (const auto& [name, value] : fields) {
    out += std::string(name) + " " + std::to_string(value) + "\n";
  }
  return out;
}

}  // namespace uptier::profile
