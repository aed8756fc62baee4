#include <algorithm>
#include <limits>

#include "profile/schema.h"

namespace uptier {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

void add_saturating(uint64_t& sum, uint64_t value, uint64_t& saturated) {
  if (__builtin_add_overflow(sum, value, &sum)) {
    sum = kMax;
    ++saturated;
  }
}

// Returns value * numerator / denominator, at most 2^64-1.
uint64_t scaled(uint64_t value, uint64_t numerator, uint64_t denominator, uint64_t& saturated) {
  __extension__ using Wide = unsigned __int128;
  const Wide exact = Wide{value} * numerator / denominator;
  if (exact <= kMax) return static_cast<uint64_t>(exact);
  ++saturated;
  return kMax;
}

// Sums two profiles of one method under one schema.
void sum_methods(MethodProfile& into, const MethodProfile& from, MergeReport& report) {
  for (size_t i = 0; i < into.counts.size(); ++i) {
    add_saturating(into.counts[i], from.counts[i], report.saturated);
  }
  add_saturating(into.calls, from.calls, report.saturated);
  add_saturating(into.sampled_calls, from.sampled_calls, report.saturated);
  if (into.interval != from.interval) into.interval = 0;
  into.name = std::max(into.name, from.name);
  ++report.merged;
}

void merge_method(Profile& into, const MethodKey& key, const MethodProfile& from,
                  MergeReport& report) {
  const bool usable = from.key == key && from.check().ok();
  if (!usable) {
    report.dropped.push_back(key);
    return;
  }
  const auto [at, added] = into.methods.emplace(key, from);
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
  if (!keep || kept.schema < from.schema) kept = from;
}

}  // namespace

const MethodProfile* Profile::find(MethodKey key) const {
  const auto at = methods.find(key);
  return at == methods.end() ? nullptr : &at->second;
}

std::optional<uint64_t> MethodProfile::count(SlotKind kind, SiteId site) const {
  const Slot* slot = schema.find(kind, site);
  if (slot == nullptr || slot->word >= counts.size()) return std::nullopt;
  return counts[slot->word];
}

Status MethodProfile::check() const {
  if (const Status status = schema.check(); !status.ok()) return status;
  if (counts.size() == schema.words()) return {};
  return Error{ErrorCode::kInvalidInput, "profile of " + name + ": " +
                                             std::to_string(counts.size()) + " counts for " +
                                             std::to_string(schema.words()) + " words"};
}

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
  return report;
}

Result<uint64_t> scale(Profile& profile, uint64_t numerator, uint64_t denominator) {
  if (denominator == 0) {
    return Error{ErrorCode::kInvalidArgument, "scale: the denominator is 0"};
  }
  uint64_t saturated = 0;
  for (auto& [key, method] : profile.methods) {
    for (uint64_t& count : method.counts) {
      count = scaled(count, numerator, denominator, saturated);
    }
    method.calls = scaled(method.calls, numerator, denominator, saturated);
    method.sampled_calls = scaled(method.sampled_calls, numerator, denominator, saturated);
  }
  return saturated;
}

}  // namespace uptier
