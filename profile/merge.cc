// merge, scale and trim: the arithmetic of profiles, word by word as words_of says.
#include <algorithm>
#include <functional>
#include <utility>

#include "profile/inlined.h"
#include "profile/numbers.h"
#include "profile/schema.h"

namespace uptier {
namespace {

using profile::add_saturating;
using profile::Wide;
using profile::Word;
using profile::WordRule;

void add_counted(uint64_t& sum, uint64_t value, uint64_t& saturated) {
  saturated += add_saturating(sum, value) ? 1 : 0;
}

void add_wide(uint64_t* into, const uint64_t* from) {
  const Wide sum = profile::add_wrapping(profile::load_wide(into), profile::load_wide(from));
  profile::store_wide(into, sum);
}

// Keeps the extreme of the sides that have seen a value; `count` says how many each has seen.
void keep_extreme(WordRule rule, uint64_t& into, uint64_t into_count, uint64_t from,
                  uint64_t from_count) {
  const bool less = static_cast<int64_t>(from) < static_cast<int64_t>(into);
  const bool extreme = rule == WordRule::kMin ? less : !less;
  if (into_count == 0 && from_count == 0) {
    into = 0;
  } else if (into_count == 0 || (from_count != 0 && extreme)) {
    into = from;
  }
}

// Adds one slot's words; `into` and `from` start at its first word.
void sum_slot(std::span<const Word> words, uint64_t* into, const uint64_t* from,
              uint64_t& saturated) {
  const uint64_t into_count = into[0], from_count = from[0];
  for (size_t i = 0; i < words.size(); ++i) {
    switch (words[i].rule) {
      case WordRule::kSum:
      case WordRule::kOther: add_counted(into[i], from[i], saturated); break;
      case WordRule::kWide: add_wide(into + i, from + i); break;
      case WordRule::kWideHigh: break;
      case WordRule::kMin:
      case WordRule::kMax:
        keep_extreme(words[i].rule, into[i], into_count, from[i], from_count);
        break;
      case WordRule::kGreatest: into[i] = std::max(into[i], from[i]); break;
    }
  }
}

void sum_estimates(std::span<const Word> words, uint64_t* into, const uint64_t* from,
                   uint64_t& saturated) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].rule == WordRule::kWide) {
      add_wide(into + i, from + i);
    } else if (words[i].rule <= WordRule::kOther) {
      add_counted(into[i], from[i], saturated);
    }
  }
}

void sum_tables(Tables& into, const Tables& from, uint64_t& saturated) {
  for (const auto& [site, table] : from) {
    Table& sum = into[site];
    for (const auto& [key, entry] : table) {
      TableEntry& kept = sum[key];
      add_counted(kept.count, entry.count, saturated);
      add_counted(kept.estimate, entry.estimate, saturated);
    }
  }
}

// Sums two profiles of one method under one schema.
void sum_methods(MethodProfile& into, const MethodProfile& from, MergeReport& report) {
  for (const Slot& slot : into.schema.slots) {
    const std::span<const Word> words = profile::words_of(slot.kind);
    sum_slot(words, &into.counts[slot.word], &from.counts[slot.word], report.saturated);
    sum_estimates(words, &into.estimates[slot.word], &from.estimates[slot.word], report.saturated);
  }
  sum_tables(into.tables, from.tables, report.saturated);
  add_counted(into.calls, from.calls, report.saturated);
  add_counted(into.sampled_calls, from.sampled_calls, report.saturated);
  add_counted(into.iterations, from.iterations, report.saturated);
  add_counted(into.bursts, from.bursts, report.saturated);
  add_counted(into.weight_squares, from.weight_squares, report.saturated);
  if (into.interval != from.interval) into.interval = 0;
  into.name = std::max(into.name, from.name);
  ++report.merged;
}

// `from` is copied, or moved.
template <typename From>
void merge_method(Profile& into, const MethodKey& key, From&& from, MergeReport& report) {
  const bool usable = from.key == key && from.check().ok();
  if (!usable) {
    report.dropped.push_back(key);
    return;
  }
  const auto [at, added] = into.methods.try_emplace(key, std::forward<From>(from));
  if (added) {
    ++report.added;
    return;
  }
  MethodProfile& kept = at->second;
  const bool keep = kept.key == key && kept.check().ok();
  if (keep && kept.schema == from.schema) {
    sum_methods(kept, from, report);
    return;
  }
  report.dropped.push_back(key);
  if (!keep || kept.schema < from.schema) kept = std::forward<From>(from);
}

// A factor; counts what saturates.
struct Factor {
  uint64_t numerator;
  uint64_t denominator;
  uint64_t saturated = 0;

  void apply(uint64_t& count) {
    count = profile::mul_div(count, numerator, denominator, saturated);
  }
  void apply_wide(uint64_t* words) {
    const Wide wide = profile::load_wide(words);
    profile::store_wide(words, profile::mul_div(wide, numerator, denominator, saturated));
  }
  void apply(std::span<const Word> rules, uint64_t* words) {
    for (size_t i = 0; i < rules.size(); ++i) {
      if (rules[i].rule == WordRule::kWide) {
        apply_wide(words + i);
      } else if (rules[i].rule <= WordRule::kOther) {
        apply(words[i]);
      }
    }
  }
};

void scale_tables(Tables& tables, Factor& factor) {
  for (auto& [site, table] : tables) {
    for (auto& [key, entry] : table) {
      factor.apply(entry.count);
      factor.apply(entry.estimate);
    }
    std::erase_if(table, [](const auto& item) { return item.second == TableEntry{}; });
  }
  std::erase_if(tables, [](const auto& item) { return item.second.empty(); });
}

void scale_method(MethodProfile& method, Factor& factor) {
  for (const Slot& slot : method.schema.slots) {
    const std::span<const Word> words = profile::words_of(slot.kind);
    factor.apply(words, &method.counts[slot.word]);
    factor.apply(words, &method.estimates[slot.word]);
  }
  scale_tables(method.tables, factor);
  for (uint64_t* count : {&method.calls, &method.sampled_calls, &method.iterations, &method.bursts,
                          &method.weight_squares}) {
    factor.apply(*count);
  }
}

// Leaves the `entries` greatest of a table; returns what the others come to, and how many they are.
std::pair<TableEntry, uint64_t> trim_table(Table& table, size_t entries) {
  std::vector<Table::iterator> order;
  for (auto at = table.begin(); at != table.end(); ++at) order.push_back(at);
  // Stable, so that of equal counts the lesser key comes first.
  std::ranges::stable_sort(order, std::greater<>{}, [](auto at) { return at->second.count; });
  TableEntry moved;
  uint64_t count = 0;
  for (size_t i = entries; i < order.size(); ++i, ++count) {
    add_saturating(moved.count, order[i]->second.count);
    add_saturating(moved.estimate, order[i]->second.estimate);
    table.erase(order[i]);
  }
  return {moved, count};
}

uint64_t trim_method(MethodProfile& method, size_t entries) {
  uint64_t count = 0;
  for (auto& [site, table] : method.tables) {
    const Slot* slot = method.schema.find(site.first, site.second);
    const auto [moved, moved_count] = trim_table(table, entries);
    add_saturating(method.counts[profile::other_word(*slot)], moved.count);
    add_saturating(method.estimates[profile::other_word(*slot)], moved.estimate);
    count += moved_count;
  }
  std::erase_if(method.tables, [](const auto& item) { return item.second.empty(); });
  return count;
}

}  // namespace

MergeReport& MergeReport::operator+=(const MergeReport& other) {
  added += other.added;
  merged += other.merged;
  saturated += other.saturated;
  dropped.insert(dropped.end(), other.dropped.begin(), other.dropped.end());
  return *this;
}

MergeReport merge(Profile& into, const Profile& from) {
  MergeReport report;
  for (const auto& [key, method] : from.methods) merge_method(into, key, method, report);
  profile::add(into.inlined, from.inlined, report);
  return report;
}

MergeReport merge(Profile& into, Profile&& from) {
  MergeReport report;
  for (auto& [key, method] : from.methods) merge_method(into, key, std::move(method), report);
  profile::add(into.inlined, std::move(from.inlined), report);
  return report;
}

Result<uint64_t> scale(Profile& profile, uint64_t numerator, uint64_t denominator) {
  if (denominator == 0) {
    return Error{ErrorCode::kInvalidArgument, "scale: the denominator is 0"};
  }
  Factor factor{numerator, denominator};
  for (auto& [key, method] : profile.methods) {
    if (method.check().ok()) scale_method(method, factor);
  }
  return factor.saturated + profile::scale(profile.inlined, numerator, denominator);
}

uint64_t trim(Profile& profile, size_t entries) {
  uint64_t count = 0;
  for (auto& [key, method] : profile.methods) {
    if (method.check().ok()) count += trim_method(method, entries);
  }
  return count;
}

}  // namespace uptier
