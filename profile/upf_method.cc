#include "profile/upf_method.h"

#include <optional>

#include "profile/events.h"
#include "profile/schema.h"

namespace uptier::profile {
namespace {

constexpr size_t kRunBytes = 24;
constexpr size_t kDescHead = 24;
constexpr size_t kTableHead = 16;
constexpr size_t kTableEntry = 32;
constexpr uint64_t kMore = 0x80;  // of a byte: the number goes on

Error corrupt(std::string rule) { return Error{ErrorCode::kCorruptInput, std::move(rule)}; }

void append_words(std::span<const uint64_t> words, Bytes& out) {
  for (uint64_t word : words) {
    for (; word >= kMore; word >>= 7) out.push_back(static_cast<std::byte>(word | kMore));
    out.push_back(static_cast<std::byte>(word));
  }
}

// Returns the position behind the last number; nothing if one does not end, or not fit.
std::optional<size_t> unpack(ByteSpan bytes, std::span<uint64_t> words) {
  size_t at = 0;
  for (uint64_t& word : words) {
    if (at == bytes.size()) return std::nullopt;
    uint64_t byte = static_cast<uint64_t>(bytes[at++]);
    word = byte & (kMore - 1);
    for (unsigned shift = 7; (byte & kMore) != 0; shift += 7) {
      if (at == bytes.size() || shift > 63) return std::nullopt;
      byte = static_cast<uint64_t>(bytes[at++]);
      const uint64_t bits = byte & (kMore - 1);
      const bool fits = bits << shift >> shift == bits;
      if (!fits) return std::nullopt;
      word |= bits << shift;
    }
  }
  return at;
}

void append_table(SlotKind kind, SiteId site, const Table& table, ByteWriter& writer) {
  writer.u32(static_cast<uint32_t>(kind));
  writer.u32(site);
  writer.u64(table.size());
  for (const auto& [key, entry] : table) {
    for (const uint64_t word : {key.module_key, key.value, entry.count, entry.estimate}) {
      writer.u64(word);
    }
  }
}

Result<Schema> schema_at(const MethodView& view) {
  ByteReader in(view.desc);
  in.u64();  // the handle
  const uint64_t cfg_hash = in.u64();
  const uint32_t data_words = in.u32(), count = in.u32();
  std::vector<SlotRun> runs;
  runs.reserve(count);
  uint64_t words = 0;
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
    words += uint64_t{run.words_each} * run.count;
    if (words > view.counts.size()) return corrupt("runs need more words than there are");
    runs.push_back(run);
  }
  if (words != view.counts.size()) return corrupt("runs need fewer words than there are");
  return schema_of_runs(view.version, cfg_hash, runs, data_words);
}

Result<Tables> tables_at(const MethodView& view) {
  Tables tables;
  ByteReader in(view.table_bytes);
  for (uint32_t i = 0; i < view.tables; ++i) {
    const uint32_t kind = in.u32(), site = in.u32();
    const uint64_t entries = in.u64();
    if (!in.ok() || kind > UINT8_MAX || entries > in.rest() / kTableEntry) {
      return corrupt("a table reaches past its method");
    }
    const auto [at, added] = tables.try_emplace({static_cast<SlotKind>(kind), site});
    if (!added) return corrupt("two tables of one site");
    for (uint64_t e = 0; e < entries; ++e) {
      const TableKey key{in.u64(), in.u64()};
      const TableEntry entry{in.u64(), in.u64()};
      if (!at->second.emplace(key, entry).second) return corrupt("two entries of one key");
    }
  }
  if (!in.ok() || in.rest() != 0) return corrupt("bytes behind the last table");
  return tables;
}

}  // namespace

void append_entry(const MethodProfile& method, uint32_t name, Bytes& out) {
  const size_t start = out.size();
  ByteWriter writer(out);
  writer.u64(0);
  writer.u64(method.key.module_key);
  writer.u32(method.key.function_index);
  writer.u32(name);
  for (const uint64_t word :
       {method.calls, method.sampled_calls, method.iterations, method.bursts, method.interval}) {
    writer.u64(word);
  }
  const bool same = method.estimates == method.counts;
  writer.u32(method.schema.version);
  writer.u32(same ? kSameEstimates : 0);
  writer.u32(static_cast<uint32_t>(method.counts.size()));
  writer.u32(static_cast<uint32_t>(method.tables.size()));
  const InstrumentationDesc desc = make_desc(0, 0, method.schema);
  out.insert(out.end(), desc.desc.begin(), desc.desc.end());
  append_words(method.counts, out);
  if (!same) append_words(method.estimates, out);
  out.resize(start + ((out.size() - start + 7) & ~size_t{7}));
  for (const auto& [site, table] : method.tables) {
    append_table(site.first, site.second, table, writer);
  }
  store<uint64_t>(out, start, out.size() - start);
}

Result<MethodView> take_entry(ByteSpan& bytes, std::vector<uint64_t>& words_out) {
  if (bytes.size() < kEntryHead + kDescHead) return corrupt("a method is cut off");
  const uint64_t size = load<uint64_t>(bytes, 0);
  if (size % 8 != 0 || size < kEntryHead + kDescHead || size > bytes.size()) {
    return corrupt("a method of " + std::to_string(size) + " bytes is not possible");
  }
  ByteReader in(bytes.first(size));
  MethodView view;
  in.u64();
  view.key.module_key = in.u64();
  view.key.function_index = in.u32();
  view.name = in.u32();
  for (uint64_t* word :
       {&view.calls, &view.sampled_calls, &view.iterations, &view.bursts, &view.interval}) {
    *word = in.u64();
  }
  view.version = in.u32();
  const uint32_t flags = in.u32(), words = in.u32();
  view.tables = in.u32();
  if ((flags & ~kSameEstimates) != 0) return corrupt("a method has unknown flags");
  ByteSpan rest = bytes.subspan(kEntryHead, size - kEntryHead);
  const uint64_t runs = load<uint32_t>(rest, 20);
  if (runs > (rest.size() - kDescHead) / kRunBytes) return corrupt("runs reach past their method");
  view.desc = rest.first(kDescHead + runs * kRunBytes);
  rest = rest.subspan(view.desc.size());
  const bool same = (flags & kSameEstimates) != 0;
  const uint64_t both = uint64_t{words} * (same ? 1 : 2);
  if (both > rest.size()) return corrupt("counts reach past their method");
  words_out.resize(both);
  const std::optional<size_t> behind = unpack(rest, words_out);
  const size_t padded = behind ? (*behind + 7) & ~size_t{7} : SIZE_MAX;
  if (padded > rest.size()) return corrupt("counts reach past their method, or 64 bits");
  for (size_t i = *behind; i < padded; ++i) {
    if (rest[i] != std::byte{0}) return corrupt("padding is not zero");
  }
  view.counts = std::span(words_out).first(words);
  view.estimates = std::span(words_out).last(words);
  view.table_bytes = rest.subspan(padded);
  if (view.tables > view.table_bytes.size() / kTableHead) {
    return corrupt("tables reach past their method");
  }
  bytes = bytes.subspan(size);
  return view;
}

Result<MethodProfile> method_of(const MethodView& view, std::string_view name) {
  Result<Schema> schema = schema_at(view);
  if (!schema.ok()) return corrupt(schema.error().message);
  Result<Tables> tables = tables_at(view);
  if (!tables.ok()) return tables.error();
  MethodProfile method;
  method.key = view.key;
  method.name = name;
  method.schema = std::move(*schema);
  method.counts.assign(view.counts.begin(), view.counts.end());
  method.estimates.assign(view.estimates.begin(), view.estimates.end());
  method.tables = std::move(*tables);
  method.calls = view.calls;
  method.sampled_calls = view.sampled_calls;
  method.iterations = view.iterations;
  method.bursts = view.bursts;
  method.interval = view.interval;
  if (const Status status = method.check(); !status.ok()) return corrupt(status.error().message);
  return method;
}

}  // namespace uptier::profile
