#include "profile/trace/events.h"

#include <algorithm>
#include <optional>

#include "profile/base/corrupt.h"
#include "profile/trace/data.h"

namespace uptier {

std::string_view flush_reason_name(FlushReason reason) {
  switch (reason) {
    case FlushReason::kCalls: return "call-threshold";
    case FlushReason::kLoops: return "loop-threshold";
    case FlushReason::kFinal: return "final";
    case FlushReason::kDemand: return "demand";
  }
  return "unknown";
}

}  // namespace uptier

namespace uptier::profile {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kDescHead = 3;  // regions before the runs
constexpr size_t kRunRegions = 3;
constexpr size_t kDrawsInWord = 32;
constexpr uint64_t kExactTotals = uint64_t{1} << 63;  // FlushEvent::exact_totals, in `burst`
constexpr size_t kPlaceHead = 2;                      // regions after the runs, of an inlined body
constexpr size_t kStepRegions = 2;

Result<InstrumentationDesc> decode_desc(ByteReader& in) {
  InstrumentationDesc desc;
  desc.id = in.u64();
  desc.version = in.u32();
  if (in.u32() != 0) return corrupt("a reserved field is not zero");
  desc.desc_shape = in.copy();
  desc.desc = in.copy();
  desc.data_shape = in.copy();
  return desc;
}

Result<FlushEvent> decode_flush(ByteReader& in) {
  FlushEvent flush;
  flush.id = in.u64();
  flush.calls = in.u64();
  flush.sampled_calls = in.u64();
  flush.thread = in.u64();
  flush.flush_index = in.u32();
  const uint32_t reason = in.u32();
  const bool known = reason >= static_cast<uint32_t>(FlushReason::kCalls) &&
                     reason <= static_cast<uint32_t>(FlushReason::kDemand);
  if (in.ok() && !known) return corrupt("flush reason " + std::to_string(reason) + " is unknown");
  flush.reason = static_cast<FlushReason>(reason);
  flush.interval = in.u64();
  flush.iterations = in.u64();
  flush.bursts = in.u64();
  const uint64_t burst = in.u64();
  flush.burst = burst & ~kExactTotals;
  flush.exact_totals = (burst & kExactTotals) != 0;
  return flush;
}

Result<MethodDetails> decode_method(ByteReader& in) {
  MethodDetails method;
  method.handle = in.u64();
  method.module_key = in.u64();
  method.function_index = in.u32();
  if (in.u32() != 0) return corrupt("a reserved field is not zero");
  method.name = in.text();
  if (in.ok() && method.handle == 0) return corrupt("handle 0 is invalid");
  return method;
}

Result<BulkType> decode_type(ByteReader& in) {
  BulkType type;
  type.handle = in.u64();
  type.name = in.text();
  if (in.ok() && type.handle == 0) return corrupt("handle 0 is invalid");
  return type;
}

Result<FirstCallEvent> decode_first_call(ByteReader& in) {
  FirstCallEvent call;
  call.handle = in.u64();
  call.position = in.u64();
  if (in.ok() && call.handle == 0) return corrupt("handle 0 is invalid");
  return call;
}

Provenance decode_provenance(ByteReader& in) {
  Provenance provenance;
  provenance.interval = in.u64();
  provenance.engine = in.text();
  provenance.gap = in.text();
  provenance.options = in.text();
  return provenance;
}

InstrumentationData decode_data(ByteReader& in) {
  InstrumentationData data;
  data.id = in.u64();
  data.data = in.copy();
  return data;
}

template <typename Event>
Result<TraceEvent> as_event(Result<Event> event) {
  if (!event.ok()) return event.error();
  return TraceEvent(std::move(*event));
}

Result<TraceEvent> decode_fields(RecordKind kind, ByteReader& in) {
  switch (kind) {
    case RecordKind::kProvenance: return TraceEvent(decode_provenance(in));
    case RecordKind::kMethodDetails: return as_event(decode_method(in));
    case RecordKind::kBulkType: return as_event(decode_type(in));
    case RecordKind::kDesc: return as_event(decode_desc(in));
    case RecordKind::kData: return TraceEvent(decode_data(in));
    case RecordKind::kFlush: return as_event(decode_flush(in));
    case RecordKind::kFirstCall: return as_event(decode_first_call(in));
    case RecordKind::kFileHeader:
    case RecordKind::kEnd: break;
  }
  return corrupt("the record is not an event");
}

struct Encoder {
  ByteWriter out;

  void operator()(const Provenance& event) {
    out.u64(event.interval);
    out.text(event.engine);
    out.text(event.gap);
    out.text(event.options);
  }
  void operator()(const MethodDetails& event) {
    out.u64(event.handle);
    out.u64(event.module_key);
    out.u32(event.function_index);
    out.u32(0);
    out.text(event.name);
  }
  void operator()(const FirstCallEvent& event) {
    out.u64(event.handle);
    out.u64(event.position);
  }
  void operator()(const BulkType& event) {
    out.u64(event.handle);
    out.text(event.name);
  }
  void operator()(const InstrumentationDesc& event) {
    out.u64(event.id);
    out.u32(event.version);
    out.u32(0);
    out.array(event.desc_shape);
    out.array(event.desc);
    out.array(event.data_shape);
  }
  void operator()(const InstrumentationData& event) {
    out.u64(event.id);
    out.array(event.data);
  }
  void operator()(const FlushEvent& event) {
    out.u64(event.id);
    out.u64(event.calls);
    out.u64(event.sampled_calls);
    out.u64(event.thread);
    out.u32(event.flush_index);
    out.u32(static_cast<uint32_t>(event.reason));
    out.u64(event.interval);
    out.u64(event.iterations);
    out.u64(event.bursts);
    out.u64((event.burst & ~kExactTotals) | (event.exact_totals ? kExactTotals : 0));
  }
};

struct KindOf {
  RecordKind operator()(const Provenance&) { return RecordKind::kProvenance; }
  RecordKind operator()(const MethodDetails&) { return RecordKind::kMethodDetails; }
  RecordKind operator()(const BulkType&) { return RecordKind::kBulkType; }
  RecordKind operator()(const InstrumentationDesc&) { return RecordKind::kDesc; }
  RecordKind operator()(const InstrumentationData&) { return RecordKind::kData; }
  RecordKind operator()(const FlushEvent&) { return RecordKind::kFlush; }
  RecordKind operator()(const FirstCallEvent&) { return RecordKind::kFirstCall; }
};

}  // namespace

std::string_view record_kind_name(RecordKind kind) {
  switch (kind) {
    case RecordKind::kFileHeader: return "file header";
    case RecordKind::kProvenance: return "provenance";
    case RecordKind::kMethodDetails: return "method";
    case RecordKind::kBulkType: return "type";
    case RecordKind::kDesc: return "desc";
    case RecordKind::kData: return "data";
    case RecordKind::kFlush: return "flush";
    case RecordKind::kFirstCall: return "first call";
    case RecordKind::kEnd: return "end";
  }
  return "unknown";
}

RecordKind kind_of(const TraceEvent& event) { return std::visit(KindOf{}, event); }

Region region_at(ByteSpan shape, size_t i) {
  return static_cast<Region>((static_cast<unsigned>(shape[i / 4]) >> (2 * (i % 4))) & 3);
}

void set_region(Bytes& shape, size_t i, Region region) {
  if (shape.size() <= i / 4) shape.resize(i / 4 + 1);
  const auto shift = static_cast<unsigned>(2 * (i % 4));
  shape[i / 4] &= ~(std::byte{3} << shift);
  shape[i / 4] |= static_cast<std::byte>(region) << shift;
}

Status check_shape(ByteSpan shape, size_t size) {
  if (size % kWord != 0) {
    return corrupt("a length of " + std::to_string(size) + " is not a multiple of 8");
  }
  const size_t regions = size / kWord;
  if (shape.size() != shape_bytes(regions)) {
    return corrupt("a shape of " + std::to_string(shape.size()) + " bytes does not fit " +
                   std::to_string(regions) + " regions");
  }
  for (size_t i = 0; i < shape.size() * 4; ++i) {
    const Region region = region_at(shape, i);
    if (i >= regions && region != Region::kBytes) return corrupt("shape padding is not zero");
    if (region == Region::kReserved) {
      return corrupt("region " + std::to_string(i) + " has the reserved shape 11");
    }
  }
  return {};
}

InstrumentationDesc make_desc(uint64_t id, uint64_t method_handle, const Schema& schema,
                              std::span<const Draw> draws) {
  const std::vector<SlotRun> runs = runs_of(schema);
  const bool drawn = std::ranges::any_of(draws, [](Draw d) { return d != Draw::kEither; });
  InstrumentationDesc desc;
  desc.id = id;
  desc.version = drawn ? kDrawnDescVersion : schema.version;
  ByteWriter out(desc.desc);
  out.u64(method_handle);
  out.u64(schema.cfg_hash);
  out.u32(static_cast<uint32_t>(schema.data_words()));
  out.u32(static_cast<uint32_t>(runs.size()));
  for (const SlotRun& run : runs) {
    out.u32(static_cast<uint32_t>(run.kind));
    out.u32(run.words_each);
    out.u32(run.first_site);
    out.u32(run.count);
    out.u32(run.top);
    out.u32(0);
  }
  for (size_t at = 0; drawn && at < schema.slots.size(); at += kDrawsInWord) {
    uint64_t word = 0;
    for (size_t i = at; i < std::min(draws.size(), at + kDrawsInWord); ++i) {
      word |= static_cast<uint64_t>(draws[i]) << 2 * (i - at);
    }
    out.u64(word);
  }
  desc.desc_shape.resize(shape_bytes(desc.desc.size() / kWord));
  set_region(desc.desc_shape, 0, Region::kMethod);
  desc.data_shape = data_shape(schema);
  return desc;
}

InstrumentationDesc make_inlined_desc(uint64_t id, uint64_t root, std::span<const InlinedStep> path,
                                      const Schema& schema) {
  InstrumentationDesc desc = make_desc(id, path.empty() ? 0 : path.back().callee, schema);
  const bool blocks = std::ranges::all_of(
      schema.slots, [](const Slot& slot) { return slot.kind == SlotKind::kBlock; });
  desc.version = (blocks ? kInlinedDescVersion : kInlinedSitesDescVersion) - Schema::kVersion;
  desc.version |= schema.version;
  const auto method = [&desc](ByteWriter& out, uint64_t handle) {
    set_region(desc.desc_shape, desc.desc.size() / kWord, Region::kMethod);
    out.u64(handle);
  };
  ByteWriter out(desc.desc);
  method(out, root);
  out.u32(static_cast<uint32_t>(path.size()));
  out.u32(0);
  for (const InlinedStep& step : path) {
    out.u32(step.site);
    out.u32(0);
    method(out, step.callee);
  }
  desc.desc_shape.resize(shape_bytes(desc.desc.size() / kWord));
  return desc;
}

namespace {

// Returns the number of regions before the part after the runs, for a desc with a complete head.
size_t behind_runs(const InstrumentationDesc& desc) {
  return kDescHead + size_t{load<uint32_t>(desc.desc, 2 * kWord + 4)} * kRunRegions;
}

// Reads the part after the runs; nothing unless it is as make_inlined_desc writes it.
std::optional<InlinedPlace> read_place(const InstrumentationDesc& desc) {
  const size_t regions = desc.desc.size() / kWord;
  const size_t at = behind_runs(desc);
  if (regions < at + kPlaceHead) return std::nullopt;
  ByteReader in(ByteSpan(desc.desc).subspan(at * kWord));
  InlinedPlace place;
  place.root = in.u64();
  const uint32_t calls = in.u32();
  in.u32();
  if (calls == 0 || regions - at - kPlaceHead != uint64_t{calls} * kStepRegions) {
    return std::nullopt;
  }
  for (uint32_t i = 0; i < calls; ++i) {
    InlinedStep step;
    step.site = in.u32();
    in.u32();
    step.callee = in.u64();
    place.path.push_back(step);
  }
  return place;
}

}  // namespace

InlinedPlace place_of(const InstrumentationDesc& desc) {
  if (!is_inlined_desc(desc.version)) return {};
  return read_place(desc).value_or(InlinedPlace{});
}

std::vector<Draw> draws_of(const InstrumentationDesc& desc, const Schema& schema) {
  if (desc.version != kDrawnDescVersion) return {};
  const size_t at = behind_runs(desc);
  std::vector<Draw> draws(schema.slots.size());
  for (size_t i = 0; i < draws.size(); ++i) {
    const auto word = load<uint64_t>(desc.desc, (at + i / kDrawsInWord) * kWord);
    draws[i] = static_cast<Draw>(word >> 2 * (i % kDrawsInWord) & 3);
  }
  return draws;
}

Result<Schema> schema_of(const InstrumentationDesc& desc) {
  if (!is_known_desc(desc.version)) {
    return Error{ErrorCode::kUnsupported,
                 "desc version " + std::to_string(desc.version) + " is not known"};
  }
  if (const Status shape = check_shape(desc.desc_shape, desc.desc.size()); !shape.ok()) {
    return shape.error();
  }
  const size_t regions = desc.desc.size() / kWord;
  if (regions < kDescHead) return corrupt("desc is shorter than its head");
  ByteReader in(desc.desc);
  const uint64_t handle = in.u64();
  const uint64_t cfg_hash = in.u64();
  const uint32_t words = in.u32();
  const uint32_t count = in.u32();
  const bool inlined = is_inlined_desc(desc.version);
  const bool more = inlined || desc.version == kDrawnDescVersion;
  const uint64_t run_regions = uint64_t{count} * kRunRegions;
  if (more ? regions - kDescHead < run_regions : regions - kDescHead != run_regions) {
    return corrupt("desc has another length than its " + std::to_string(count) + " runs");
  }
  if (desc.data_shape.size() != shape_bytes(words)) {
    return corrupt("data shape does not fit " + std::to_string(words) + " words");
  }
  Result<std::vector<SlotRun>> runs = take_runs(in, count);
  if (!runs.ok()) return runs.error();
  Result<Schema> schema = schema_of_runs(kDescVersion, cfg_hash, *runs, words);
  if (!schema.ok()) return corrupt(schema.error().message);
  if (inlined) {
    const std::optional<InlinedPlace> place = read_place(desc);
    if (!place || make_inlined_desc(desc.id, place->root, place->path, *schema) != desc) {
      return corrupt("the place of an inlined body is broken");
    }
    return schema;
  }
  std::vector<Draw> draws;
  if (more) {
    const size_t words = (schema->slots.size() + kDrawsInWord - 1) / kDrawsInWord;
    if (regions - kDescHead - run_regions != words) {
      return corrupt("desc has another length than its runs and draws");
    }
    draws = draws_of(desc, *schema);
  }
  if (make_desc(desc.id, handle, *schema, draws) != desc) {
    return corrupt("shapes differ from those of a schema");
  }
  return schema;
}

Result<std::vector<SlotRun>> take_runs(ByteReader& in, uint32_t count) {
  if (count > in.rest() / (kRunRegions * kWord)) return corrupt("runs reach past the desc");
  std::vector<SlotRun> runs;
  runs.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t kind = in.u32();
    if (kind > UINT8_MAX) return corrupt("slot kind " + std::to_string(kind) + " is unknown");
    SlotRun run;
    run.kind = static_cast<SlotKind>(kind);
    run.words_each = in.u32();
    run.first_site = in.u32();
    run.count = in.u32();
    run.top = in.u32();
    if (in.u32() != 0) return corrupt("a reserved field is not zero");
    runs.push_back(run);
  }
  return runs;
}

uint64_t handle_of(const InstrumentationDesc& desc) { return load<uint64_t>(desc.desc, 0); }

uint64_t cfg_hash_of(const InstrumentationDesc& desc) { return load<uint64_t>(desc.desc, kWord); }

InstrumentationData make_data(uint64_t id, std::span<const uint64_t> words) {
  const ByteSpan bytes = std::as_bytes(words);
  return InstrumentationData{id, Bytes(bytes.begin(), bytes.end())};
}

std::vector<uint64_t> words_of(const InstrumentationData& data) {
  std::vector<uint64_t> words(data.data.size() / kWord);
  for (size_t i = 0; i < words.size(); ++i) words[i] = load<uint64_t>(data.data, i * kWord);
  return words;
}

void encode(const TraceEvent& event, Bytes& out) { std::visit(Encoder{ByteWriter(out)}, event); }

Result<TraceEvent> decode(RecordKind kind, ByteSpan payload) {
  ByteReader in(payload);
  Result<TraceEvent> event = decode_fields(kind, in);
  if (!event.ok()) return event;
  if (!in.ok()) return corrupt("a field reaches past the record, or padding is not zero");
  if (in.rest() >= 16) return corrupt("bytes after the last field");
  const ByteSpan padding = payload.subspan(in.at());
  const bool zero = std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  if (!zero) return corrupt("padding is not zero");
  return event;
}

}  // namespace uptier::profile
