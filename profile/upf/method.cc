#include "profile/upf/method.h"

#include <array>

#include "profile/base/corrupt.h"
#include "profile/base/varint.h"
#include "profile/data/schema.h"

namespace uptier::profile {
namespace {

constexpr size_t kRunLeast = 4;  // bytes
constexpr size_t kTableHead = 16;
constexpr size_t kTableEntry = 32;

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
  if (!in.ok() || in.rest() != 0) return corrupt("bytes after the last table");
  return tables;
}

// Returns the broken rule, or null.
const char* read_entry(ByteSpan& bytes, std::vector<uint64_t>& words_out, MethodView& view) {
  VarintReader all(bytes);
  VarintReader in(all.take(all.number()));
  if (!all.ok()) return "a method is cut off";
  view.key.function_index = in.small();
  view.name = in.small();
  for (uint64_t* word :
       {&view.calls, &view.sampled_calls, &view.iterations, &view.bursts, &view.interval}) {
    *word = in.number();
  }
  const uint64_t flags = in.number();
  const bool has_squares = (flags & kHasSquares) != 0;
  view.weight_squares = has_squares ? in.number() : 0;
  if ((flags & kHasTime) != 0) view.time = in.number();
  view.guessed_calls = (flags & kHasGuessed) != 0 ? in.number() : 0;
  view.behind = (flags & kIsBehind) != 0;
  view.tables = in.small();
  const uint64_t words = in.number();
  view.desc = in.take(in.number());
  if (!in.ok()) return "a method of numbers that are not possible";
  if ((flags & ~uint64_t{kSameEstimates | kHasSquares | kHasTime | kIsBehind | kHasGuessed}) != 0)
    return "a method has unknown flags";
  const uint64_t lists = (flags & kSameEstimates) != 0 ? 1 : 2;
  if (words > in.rest().size() / lists) return "counts reach past their method";
  words_out.resize(words * lists);
  const std::optional<Varints> taken = take_varints(in.rest(), words_out);
  if (!taken) return "counts reach past their method, or 64 bits";
  view.counts = std::span(words_out).first(words);
  view.estimates = std::span(words_out).last(words);
  view.bound = taken->bound;
  view.table_bytes = in.rest().subspan(taken->bytes);
  if (view.tables > view.table_bytes.size() / kTableHead) return "tables reach past their method";
  bytes = all.rest();
  return nullptr;
}

}  // namespace

Result<Schema> schema_of(const MethodView& view) {
  if (view.format == 0) return old_schema(view);
  VarintReader in(view.desc);
  const uint32_t version = in.small();
  const uint64_t cfg_hash = in.fixed();
  const uint64_t count = in.number();
  if (!in.ok() || count > in.rest().size() / kRunLeast) return corrupt("runs that are not there");
  std::vector<SlotRun> runs;
  runs.reserve(count);
  uint64_t words = 0, data_words = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t kind = in.number();
    if (kind > UINT8_MAX) return corrupt("slot kind " + std::to_string(kind) + " is unknown");
    SlotRun run;
    run.kind = static_cast<SlotKind>(kind);
    run.words_each = slot_words(run.kind);
    if (run.words_each == 0) return corrupt("slot kind " + std::to_string(kind) + " is unknown");
    run.first_site = in.small();
    run.count = in.small();
    run.top = in.small();
    // Factors of 32 bits and a check after each product: no sum wraps.
    words += uint64_t{run.words_each} * run.count;
    if (words > view.counts.size()) return corrupt("runs need more words than there are");
    data_words += (run.words_each + 2 * uint64_t{run.top}) * run.count;
    if (data_words > Schema::kMaxWords) return corrupt("data of more words than the cap");
    runs.push_back(run);
  }
  if (!in.ok() || !in.rest().empty()) return corrupt("runs of another length");
  if (words != view.counts.size()) return corrupt("runs need fewer words than there are");
  return schema_of_runs(version, cfg_hash, runs, static_cast<uint32_t>(data_words));
}

std::optional<EntryHead> head_of(uint64_t module_key, ByteSpan bytes) {
  VarintReader all(bytes);
  VarintReader in(all.take(all.number()));
  EntryHead head;
  head.key = {module_key, in.small()};
  head.name = in.small();
  head.size = all.at();
  if (!all.ok() || !in.ok()) return std::nullopt;
  return head;
}

Bytes desc_bytes(const Schema& schema) {
  Bytes out;
  append_varint(schema.version, out);
  ByteWriter(out).u64(schema.cfg_hash);
  const std::vector<SlotRun> runs = runs_of(schema);
  append_varint(runs.size(), out);
  for (const SlotRun& run : runs) {
    append_varints(std::array{uint64_t{static_cast<uint8_t>(run.kind)}, uint64_t{run.first_site},
                              uint64_t{run.count}, uint64_t{run.top}},
                   out);
  }
  return out;
}

void append_entry(const MethodProfile& method, uint32_t name, uint64_t time, Bytes& out) {
  const bool same = method.estimates == method.counts;
  const Bytes desc = desc_bytes(method.schema);
  const bool has_squares = method.weight_squares != 0;
  const bool has_time = method.time != time;
  const uint64_t flags = uint64_t{same ? kSameEstimates : 0} | (has_squares ? kHasSquares : 0) |
                         (has_time ? kHasTime : 0) | (method.behind ? kIsBehind : 0) |
                         (method.guessed_calls != 0 ? kHasGuessed : 0);
  Bytes entry;
  append_varints(
      std::array{uint64_t{method.key.function_index}, uint64_t{name}, method.calls,
                 method.sampled_calls, method.iterations, method.bursts, method.interval, flags},
      entry);
  if (has_squares) append_varint(method.weight_squares, entry);
  if (has_time) append_varint(method.time, entry);
  if (method.guessed_calls != 0) append_varint(method.guessed_calls, entry);
  append_varints(std::array{uint64_t{method.tables.size()}, uint64_t{method.counts.size()},
                            uint64_t{desc.size()}},
                 entry);
  entry.insert(entry.end(), desc.begin(), desc.end());
  append_varints(method.counts, entry);
  if (!same) append_varints(method.estimates, entry);
  ByteWriter writer(entry);
  for (const auto& [site, table] : method.tables) {
    append_table(site.first, site.second, table, writer);
  }
  append_varint(entry.size(), out);
  out.insert(out.end(), entry.begin(), entry.end());
}

Status take_entry(uint16_t format, uint64_t module_key, ByteSpan& bytes,
                  std::vector<uint64_t>& words, MethodView& view) {
  view.format = format;
  if (format == 0) return take_old_entry(bytes, words, view);
  view.version = 0;
  view.key.module_key = module_key;
  if (const char* rule = read_entry(bytes, words, view)) return corrupt(rule);
  return {};
}

Result<MethodProfile> method_of(const MethodView& view, std::string_view name) {
  Result<Schema> schema = schema_of(view);
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
  method.guessed_calls = view.guessed_calls;
  method.iterations = view.iterations;
  method.bursts = view.bursts;
  method.interval = view.interval;
  method.weight_squares = view.weight_squares;
  method.time = view.time;
  method.behind = view.behind;
  if (const Status status = method.check(); !status.ok()) return corrupt(status.error().message);
  return method;
}

}  // namespace uptier::profile
