// merge, scale and trim: the arithmetic of profiles, word by word as words_of says.
#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "profile/data/slot_sums.h"
#include "profile/data/unite.h"

namespace uptier {
namespace {

using profile::add_counted;
using profile::add_saturating;
using profile::Factor;
using profile::sum_estimates;
using profile::sum_slot;
using profile::trim_table;
using profile::Word;

void sum_tables(Tables& into, const Tables& from, uint64_t& saturated) {
  for (const auto& [site, table] : from) profile::sum_table(into[site], table, saturated);
}

// Adds two profiles of one code with one schema.
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
  into.time = std::max(into.time, from.time);
  into.behind = into.behind || from.behind;
}

// Adds two profiles of one code that may have different observations.
void sum_code(MethodProfile& into, const MethodProfile& from, MergeReport& report) {
  if (into.schema == from.schema) return sum_methods(into, from, report);
  ++report.united;
  bool cut = false;
  const Schema both = profile::united(into.schema, from.schema, cut);
  if (cut) report.dropped.push_back(into.key);
  if (into.schema != both) profile::spread(both, into);
  if (from.schema == both) return sum_methods(into, from, report);
  MethodProfile other = from;
  profile::spread(both, other);
  sum_methods(into, other, report);
}

bool is_same_code(const MethodProfile& a, const MethodProfile& b) {
  return a.schema.version == b.schema.version && a.schema.cfg_hash == b.schema.cfg_hash;
}

bool is_later(const MethodProfile& a, const MethodProfile& b) {
  return std::pair(a.time, a.schema.cfg_hash) > std::pair(b.time, b.schema.cfg_hash);
}

// Adds a profile of other code than `kept` next to it, or makes it the current one if it is later.
template <typename From>
void merge_other(Profile& into, MethodProfile& kept, From&& from, MergeReport& report) {
  ++report.other_code;
  const uint64_t hash = from.schema.cfg_hash;
  const auto [at, added] = into.other_code.try_emplace({kept.key, hash}, std::forward<From>(from));
  if (!added) sum_code(at->second, from, report);
  if (!is_later(at->second, kept)) return;
  auto node = into.other_code.extract(at);
  std::swap(node.mapped(), kept);
  node.key().second = node.mapped().schema.cfg_hash;
  into.other_code.insert(std::move(node));
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
  if (!keep) {
    report.dropped.push_back(key);
    kept = std::forward<From>(from);
  } else if (is_same_code(kept, from)) {
    sum_code(kept, from, report);
    ++report.merged;
  } else {
    merge_other(into, kept, std::forward<From>(from), report);
  }
}

// Other code needs a current profile of its method; otherwise nothing would say which code is
// current.
template <typename Others>
void merge_others(Profile& into, Others&& others, MergeReport& report) {
  for (auto& [at, method] : others) {
    if (!into.methods.contains(at.first)) {
      report.dropped.push_back(at.first);
    } else if constexpr (std::is_rvalue_reference_v<Others&&>) {
      merge_method(into, at.first, std::move(method), report);
    } else {
      merge_method(into, at.first, method, report);
    }
  }
}

void scale_tables(Tables& tables, Factor& factor) {
  for (auto& [site, table] : tables) factor.apply(table);
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
  united += other.united;
  other_code += other.other_code;
  dropped.insert(dropped.end(), other.dropped.begin(), other.dropped.end());
  return *this;
}

MergeReport merge(Profile& into, const Profile& from) {
  MergeReport report;
  for (const auto& [key, method] : from.methods) merge_method(into, key, method, report);
  merge_others(into, from.other_code, report);
  profile::add(into.inlined, from.inlined, report);
  return report;
}

MergeReport merge(Profile& into, Profile&& from) {
  MergeReport report;
  for (auto& [key, method] : from.methods) merge_method(into, key, std::move(method), report);
  merge_others(into, std::move(from.other_code), report);
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
  for (auto& [at, method] : profile.other_code) {
    if (method.check().ok()) scale_method(method, factor);
  }
  return factor.saturated + profile::scale(profile.inlined, numerator, denominator);
}

uint64_t trim(Profile& profile, size_t entries) {
  uint64_t count = 0;
  for (auto& [key, method] : profile.methods) {
    if (method.check().ok()) count += trim_method(method, entries);
  }
  for (auto& [at, method] : profile.other_code) {
    if (method.check().ok()) count += trim_method(method, entries);
  }
  return count + profile::trim(profile.inlined, entries);
}

}  // namespace uptier
