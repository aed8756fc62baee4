// Entries of version 0 of group chunks, with fixed fields: see upf/format.h.
#include "profile/base/corrupt.h"
#include "profile/base/varint.h"
#include "profile/data/schema.h"
#include "profile/trace/events.h"
#include "profile/upf/method.h"

namespace uptier::profile {
namespace {

constexpr size_t kEntryHead = 80;
constexpr size_t kRunBytes = 24;
constexpr size_t kDescHead = 24;
constexpr size_t kOldTableHead = 16;

}  // namespace

Result<Schema> old_schema(const MethodView& view) {
  ByteReader in(view.desc);
  in.u64();  // the handle
  const uint64_t cfg_hash = in.u64();
  const uint32_t data_words = in.u32(), count = in.u32();
  Result<std::vector<SlotRun>> runs = take_runs(in, count);
  if (!runs.ok()) return runs.error();
  uint64_t words = 0;
  for (const SlotRun& run : *runs) {
    words += uint64_t{run.words_each} * run.count;
    if (words > view.counts.size()) return corrupt("runs need more words than there are");
  }
  if (words != view.counts.size()) return corrupt("runs need fewer words than there are");
  return schema_of_runs(view.version, cfg_hash, *runs, data_words);
}

Status take_old_entry(ByteSpan& bytes, std::vector<uint64_t>& words_out, MethodView& view) {
  if (bytes.size() < kEntryHead + kDescHead) return corrupt("a method is cut off");
  const uint64_t size = load<uint64_t>(bytes, 0);
  if (size % 8 != 0 || size < kEntryHead + kDescHead || size > bytes.size()) {
    return corrupt("a method of " + std::to_string(size) + " bytes is not possible");
  }
  ByteReader in(bytes.first(size));
  in.u64();
  view.key.module_key = in.u64();
  view.key.function_index = in.u32();
  view.name = in.u32();
  for (uint64_t* word :
       {&view.calls, &view.sampled_calls, &view.iterations, &view.bursts, &view.interval}) {
    *word = in.u64();
  }
  view.weight_squares = 0;
  view.behind = false;
  view.guessed_calls = 0;
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
  const std::optional<Varints> taken = take_varints(rest, words_out);
  const size_t padded = taken ? (taken->bytes + 7) & ~size_t{7} : SIZE_MAX;
  if (padded > rest.size()) return corrupt("counts reach past their method, or 64 bits");
  for (size_t i = taken->bytes; i < padded; ++i) {
    if (rest[i] != std::byte{0}) return corrupt("padding is not zero");
  }
  view.counts = std::span(words_out).first(words);
  view.estimates = std::span(words_out).last(words);
  view.bound = taken->bound;
  view.table_bytes = rest.subspan(padded);
  if (view.tables > view.table_bytes.size() / kOldTableHead) {
    return corrupt("tables reach past their method");
  }
  bytes = bytes.subspan(size);
  return {};
}

}  // namespace uptier::profile
