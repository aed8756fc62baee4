#include "profile/data/schema.h"

#include <algorithm>
#include <tuple>

#include "profile/data/text.h"

namespace uptier {
namespace {

Error broken(size_t index, const std::string& rule) {
  return Error{ErrorCode::kInvalidInput, "schema: slot " + std::to_string(index) + ": " + rule};
}

Status check_slot(const Schema& schema, size_t i, uint64_t next_word) {
  const Slot& slot = schema.slots[i];
  if (slot.site == 0) return broken(i, "site 0 is invalid");
  const uint32_t words = slot_words(slot.kind);
  if (words == 0) {
    return broken(i, "kind " + std::to_string(static_cast<unsigned>(slot.kind)) +
                         " is not known in schema version 1");
  }
  const auto kind = [&] { return std::string(slot_kind_name(slot.kind)); };
  if (slot.words != words) {
    return broken(i, "a slot of kind " + kind() + " takes " + std::to_string(words) +
                         " words, not " + std::to_string(slot.words));
  }
  if (has_table(slot.kind) != (slot.top != 0)) {
    return broken(i, "a table of " + std::to_string(slot.top) + " entries at kind " + kind());
  }
  if (slot.word != next_word) {
    return broken(i, "starts at word " + std::to_string(slot.word) + ", the next free one is " +
                         std::to_string(next_word));
  }
  if (i == 0) return {};
  const Slot& previous = schema.slots[i - 1];
  if (std::tie(previous.kind, previous.site) >= std::tie(slot.kind, slot.site)) {
    return broken(i, "slots must ascend by kind and site");
  }
  return {};
}

// Returns whether a slot continues a run: it follows a valid slot of the same kind, so no other
// check is needed.
bool goes_on(const Slot& before, const Slot& slot, uint64_t next_word) {
  return slot.kind == before.kind && slot.words == before.words && slot.top == before.top &&
         slot.word == next_word && slot.site > before.site;
}

}  // namespace

std::string_view slot_kind_name(SlotKind kind) {
  switch (kind) {
    case SlotKind::kBlock: return "block";
    case SlotKind::kEdge: return "edge";
    case SlotKind::kCallTarget: return "call_target";
    case SlotKind::kValue: return "value";
    case SlotKind::kLoop: return "loop";
    case SlotKind::kLog: return "log";
    case SlotKind::kCounter: return "counter";
    case SlotKind::kRange: return "range";
    case SlotKind::kGauge: return "gauge";
  }
  return "unknown";
}

uint32_t slot_words(SlotKind kind) { return static_cast<uint32_t>(profile::words_of(kind).size()); }

bool has_table(SlotKind kind) { return kind == SlotKind::kCallTarget || kind == SlotKind::kValue; }

Schema Schema::block_schema(uint32_t blocks, uint64_t cfg_hash) {
  Schema schema;
  schema.cfg_hash = cfg_hash;
  schema.slots.reserve(blocks);
  for (uint32_t i = 0; i < blocks; ++i) schema.add(SlotKind::kBlock, i + 1);
  return schema;
}

void Schema::add(SlotKind kind, SiteId site, uint32_t top) {
  slots.push_back({kind, site, words(), slot_words(kind), has_table(kind) ? top : 0});
}

uint32_t Schema::words() const {
  return slots.empty() ? 0 : slots.back().word + slots.back().words;
}

uint64_t Schema::data_words() const {
  uint64_t sum = words();
  for (const Slot& slot : slots) sum += 2 * uint64_t{slot.top};
  return sum;
}

Status Schema::check() const {
  if (version != kVersion) {
    return Error{ErrorCode::kUnsupported,
                 "schema: version " + std::to_string(version) + " is not known"};
  }
  if (slots.size() > kMaxWords) {
    return Error{ErrorCode::kResourceExhausted, "schema: " + std::to_string(slots.size()) +
                                                    " slots are more than the cap of " +
                                                    std::to_string(kMaxWords) + " words"};
  }
  uint64_t next_word = 0, data_words = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i == 0 || !goes_on(slots[i - 1], slots[i], next_word)) {
      if (const Status status = check_slot(*this, i, next_word); !status.ok()) return status;
    }
    next_word += slots[i].words;
    data_words += slots[i].words + 2 * uint64_t{slots[i].top};
  }
  if (data_words > kMaxWords) {
    return Error{ErrorCode::kResourceExhausted, "schema: " + std::to_string(data_words) +
                                                    " words of data are more than the cap of " +
                                                    std::to_string(kMaxWords)};
  }
  return {};
}

const Slot* Schema::find(SlotKind kind, SiteId site) const {
  const auto less = [](const Slot& a, const std::pair<SlotKind, SiteId>& b) {
    return std::tie(a.kind, a.site) < std::tie(b.first, b.second);
  };
  const auto at = std::lower_bound(slots.begin(), slots.end(), std::pair(kind, site), less);
  return at != slots.end() && at->kind == kind && at->site == site ? &*at : nullptr;
}

}  // namespace uptier

namespace uptier::profile {

std::span<const Word> words_of(SlotKind kind) {
  using enum WordRule;
  static constexpr Word kCount[] = {{"count", kSum}};
  static constexpr Word kCallTarget[] = {{"other", kOther}};
  static constexpr Word kValue[] = {{"count", kSum}, {"sum", kWide}, {"", kWideHigh},
                                    {"min", kMin},   {"max", kMax},  {"other", kOther}};
  static constexpr Word kLoop[] = {
      {"entries", kSum}, {"iterations", kSum},       {"timed", kSum},    {"timed_iterations", kSum},
      {"cycles", kSum},  {"exclusive_cycles", kSum}, {"squares", kWide}, {"", kWideHigh}};
  static constexpr Word kLog[] = {{"events", kSum}, {"lost", kSum}};
  static constexpr Word kRange[] = {
      {"count", kSum}, {"sum", kWide}, {"", kWideHigh}, {"min", kMin}, {"max", kMax}};
  static constexpr Word kGauge[] = {{"value", kGreatest}};
  switch (kind) {
    case SlotKind::kBlock:
    case SlotKind::kEdge:
    case SlotKind::kCounter: return kCount;
    case SlotKind::kCallTarget: return kCallTarget;
    case SlotKind::kValue: return kValue;
    case SlotKind::kLoop: return kLoop;
    case SlotKind::kLog: return kLog;
    case SlotKind::kRange: return kRange;
    case SlotKind::kGauge: return kGauge;
  }
  return {};
}

uint32_t other_word(const Slot& slot) {
  const bool value = slot.kind == SlotKind::kValue;
  return slot.word + (value ? slot_word::kValueOther : slot_word::kTargetOther);
}

std::vector<SlotRun> runs_of(const Schema& schema) {
  std::vector<SlotRun> runs;
  for (const Slot& slot : schema.slots) {
    if (!runs.empty()) {
      SlotRun& run = runs.back();
      const bool continues = run.kind == slot.kind && run.words_each == slot.words &&
                             run.top == slot.top && slot.site - run.first_site == run.count;
      if (continues) {
        ++run.count;
        continue;
      }
    }
    runs.push_back({slot.kind, slot.words, slot.site, 1, slot.top});
  }
  return runs;
}

Result<Schema> schema_of_runs(uint32_t version, uint64_t cfg_hash, std::span<const SlotRun> runs,
                              uint32_t data_words) {
  if (data_words > Schema::kMaxWords) {
    return Error{ErrorCode::kInvalidInput,
                 "schema: " + std::to_string(data_words) + " words are more than the cap"};
  }
  uint64_t needed = 0;
  bool fits = true;
  for (const SlotRun& run : runs) {
    // A factor of at most 2^20 and a check after each product: no sum wraps.
    const uint64_t each = run.words_each + 2 * uint64_t{run.top};
    const bool sized = run.words_each != 0 && run.count != 0 && each <= data_words;
    needed += sized ? each * run.count : 0;
    fits = fits && sized && needed <= data_words;
    if (!fits) break;
  }
  if (!fits || needed != data_words) {
    return Error{ErrorCode::kInvalidInput, "schema: runs do not fill the data"};
  }
  Schema schema;
  schema.version = version;
  schema.cfg_hash = cfg_hash;
  uint32_t word = 0;
  for (const SlotRun& run : runs) {
    for (uint32_t i = 0; i < run.count; ++i, word += run.words_each) {
      schema.slots.push_back({run.kind, run.first_site + i, word, run.words_each, run.top});
    }
  }
  if (const Status status = schema.check(); !status.ok()) return status.error();
  if (!std::ranges::equal(runs_of(schema), runs)) {
    return Error{ErrorCode::kInvalidInput, "schema: runs are not maximal"};
  }
  return schema;
}

std::string to_text(const Schema& schema) {
  std::string out = "schema " + std::to_string(schema.version) + " cfg " + hex(schema.cfg_hash) +
                    " words " + std::to_string(schema.words()) + ":";
  for (const SlotRun& run : runs_of(schema)) {
    out += " " + std::string(slot_kind_name(run.kind)) + " " + std::to_string(run.first_site);
    if (run.count > 1) out += ".." + std::to_string(run.first_site + run.count - 1);
    if (run.top != 0) out += " top " + std::to_string(run.top);
  }
  return out;
}

}  // namespace uptier::profile
