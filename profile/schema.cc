#include "profile/schema.h"

#include <algorithm>
#include <tuple>

#include "profile/text.h"

namespace uptier {
namespace {

// Returns whether version 1 can merge slots of this kind: sums of one word.
bool is_sum(SlotKind kind) {
  return kind == SlotKind::kBlock || kind == SlotKind::kEdge || kind == SlotKind::kCounter;
}

Error broken(size_t index, const std::string& rule) {
  return Error{ErrorCode::kInvalidInput, "schema: slot " + std::to_string(index) + ": " + rule};
}

Status check_slot(const Schema& schema, size_t i, uint64_t next_word) {
  const Slot& slot = schema.slots[i];
  if (slot.site == 0) return broken(i, "site 0 is invalid");
  if (!is_sum(slot.kind)) {
    return broken(i, "kind " + std::string(slot_kind_name(slot.kind)) + " (" +
                         std::to_string(static_cast<unsigned>(slot.kind)) +
                         ") has no merge rule in schema version 1");
  }
  if (slot.words != 1) return broken(i, "a sum takes one word, not " + std::to_string(slot.words));
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
  }
  return "unknown";
}

Schema Schema::block_schema(uint32_t blocks, uint64_t cfg_hash) {
  Schema schema;
  schema.cfg_hash = cfg_hash;
  schema.slots.reserve(blocks);
  for (uint32_t i = 0; i < blocks; ++i) schema.slots.push_back({SlotKind::kBlock, i + 1, i, 1});
  return schema;
}

uint32_t Schema::words() const {
  return slots.empty() ? 0 : slots.back().word + slots.back().words;
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
  uint64_t next_word = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (const Status status = check_slot(*this, i, next_word); !status.ok()) return status;
    next_word += slots[i].words;
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

std::vector<SlotRun> runs_of(const Schema& schema) {
  std::vector<SlotRun> runs;
  for (const Slot& slot : schema.slots) {
    if (!runs.empty()) {
      SlotRun& run = runs.back();
      const bool continues = run.kind == slot.kind && run.words_each == slot.words &&
                             slot.site - run.first_site == run.count;
      if (continues) {
        ++run.count;
        continue;
      }
    }
    runs.push_back({slot.kind, slot.words, slot.site, 1});
  }
  return runs;
}

Result<Schema> schema_of_runs(uint32_t version, uint64_t cfg_hash, std::span<const SlotRun> runs,
                              uint32_t words) {
  if (words > Schema::kMaxWords) {
    return Error{ErrorCode::kInvalidInput,
                 "schema: " + std::to_string(words) + " words are more than the cap"};
  }
  uint64_t needed = 0;
  for (const SlotRun& run : runs) {
    needed += uint64_t{run.words_each} * run.count;
    const bool fits = run.words_each != 0 && run.count != 0 && needed <= words;
    if (!fits) return Error{ErrorCode::kInvalidInput, "schema: runs do not fill the slab"};
  }
  if (needed != words) return Error{ErrorCode::kInvalidInput, "schema: runs do not fill the slab"};
  Schema schema;
  schema.version = version;
  schema.cfg_hash = cfg_hash;
  uint32_t word = 0;
  for (const SlotRun& run : runs) {
    for (uint32_t i = 0; i < run.count; ++i, word += run.words_each) {
      schema.slots.push_back({run.kind, run.first_site + i, word, run.words_each});
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
    if (run.words_each > 1) out += " x" + std::to_string(run.words_each);
  }
  return out;
}

}  // namespace uptier::profile
