#include "profile/trace/data.h"

#include <algorithm>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/trace/events.h"

namespace uptier::profile {
namespace {

struct Pair {
  uint64_t key;
  uint64_t count;
};

Error broken_region(size_t region, const std::string& rule) {
  return Error{ErrorCode::kCorruptInput, "region " + std::to_string(region) + ": " + rule};
}

uint64_t wire_key(SlotKind kind, const TableKey& key, const HandleOf& handle_of) {
  if (kind == SlotKind::kValue) return key.value;
  return handle_of({key.module_key, static_cast<uint32_t>(key.value)});
}

// Returns the entries that data has room for, the greatest first; `other` receives the rest.
std::vector<Pair> top_pairs(const Slot& slot, const Table& table, const HandleOf& handle_of,
                            uint64_t& other) {
  std::vector<Pair> pairs;
  for (const auto& [key, entry] : table) {
    if (entry.count == 0) continue;
    const uint64_t wire = wire_key(slot.kind, key, handle_of);
    const bool named = wire != 0 || slot.kind == SlotKind::kValue;
    if (named) {
      pairs.push_back({wire, entry.count});
    } else {
      add_saturating(other, entry.count);
    }
  }
  // Stable in the order of the table, so that of equal counts the smaller key comes first.
  std::ranges::stable_sort(pairs, std::greater<>{}, &Pair::count);
  for (size_t i = slot.top; i < pairs.size(); ++i) add_saturating(other, pairs[i].count);
  pairs.resize(std::min<size_t>(pairs.size(), slot.top));
  return pairs;
}

// Adds one pair to a table; fails with the rule that it breaks.
Status add_pair(SlotKind kind, Pair pair, size_t region, const MethodOf& method_of, Table& table) {
  const bool callee = kind == SlotKind::kCallTarget;
  if (pair.count == 0) {
    if (pair.key != 0) return broken_region(region, "a key without a count");
    return {};
  }
  TableKey key{0, pair.key};
  if (callee) {
    if (pair.key == 0) return broken_region(region, "a count without a method handle");
    const std::optional<MethodKey> method = method_of(pair.key);
    if (!method) return broken_region(region, "unknown method handle " + std::to_string(pair.key));
    key = {method->module_key, method->function_index};
  }
  add_saturating(table[key].count, pair.count);
  return {};
}

void clear_unseen_extremes(const Slot& slot, std::vector<uint64_t>& counts) {
  const std::span<const Word> words = words_of(slot.kind);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool extreme = words[i].rule == WordRule::kMin || words[i].rule == WordRule::kMax;
    if (extreme && counts[slot.word] == 0) counts[slot.word + i] = 0;
  }
}

}  // namespace

std::vector<uint64_t> data_words(const Schema& schema, std::span<const uint64_t> counts,
                                 const Tables& tables, const HandleOf& handle_of) {
  std::vector<uint64_t> words(counts.begin(), counts.end());
  words.resize(schema.data_words());
  size_t at = schema.words();
  for (const Slot& slot : schema.slots) {
    const auto table = tables.find({slot.kind, slot.site});
    if (slot.top != 0 && table != tables.end()) {
      size_t pair_at = at;
      for (const Pair pair : top_pairs(slot, table->second, handle_of, words[other_word(slot)])) {
        words[pair_at++] = pair.key;
        words[pair_at++] = pair.count;
      }
    }
    at += 2 * size_t{slot.top};
  }
  return words;
}

Result<Observed> observed_of(const Schema& schema, std::span<const uint64_t> words,
                             const MethodOf& method_of) {
  if (words.size() != schema.data_words()) {
    return Error{ErrorCode::kCorruptInput, std::to_string(words.size()) + " words of data, not " +
                                               std::to_string(schema.data_words())};
  }
  Observed observed;
  const std::span<const uint64_t> counts = words.first(schema.words());
  observed.counts.assign(counts.begin(), counts.end());
  size_t at = schema.words();
  for (const Slot& slot : schema.slots) {
    clear_unseen_extremes(slot, observed.counts);
    Table table;
    for (uint32_t i = 0; i < slot.top; ++i, at += 2) {
      const Pair pair{words[at], words[at + 1]};
      const Status status = add_pair(slot.kind, pair, at, method_of, table);
      if (!status.ok()) return status.error();
    }
    if (!table.empty()) observed.tables.emplace(std::pair(slot.kind, slot.site), std::move(table));
  }
  return observed;
}

Bytes data_shape(const Schema& schema) {
  Bytes shape(shape_bytes(schema.data_words()));
  size_t at = schema.words();
  for (const Slot& slot : schema.slots) {
    for (uint32_t i = 0; i < slot.top; ++i, at += 2) {
      if (slot.kind == SlotKind::kCallTarget) set_region(shape, at, Region::kMethod);
    }
  }
  return shape;
}

}  // namespace uptier::profile
