// The observations at the sites of a method, for the report's page.
#include <cmath>

#include "profile/base/numbers.h"
#include "tools/report_data.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;
namespace word = slot_word;

ordered_json rounded_json(double n) { return std::round(n); }

double total_of(const MethodProfile& m, const Slot& slot) {
  const auto e = m.estimate(slot.kind, slot.site);
  return e ? e->total : 0;
}

ordered_json signed_text(uint64_t bits) { return std::to_string(static_cast<int64_t>(bits)); }

// Entries, the most seen first.
std::vector<std::pair<TableKey, uint64_t>> entries_of(const MethodProfile& m, const Slot& slot) {
  std::vector<std::pair<TableKey, uint64_t>> entries;
  const Table* table = m.table(slot.kind, slot.site);
  if (table == nullptr) return entries;
  for (const auto& [key, entry] : *table) entries.emplace_back(key, entry.estimate);
  std::ranges::stable_sort(entries, std::greater<>{}, [](const auto& e) { return e.second; });
  return entries;
}

void add_targets(const MethodProfile& m, const Slot& slot, const ReportRows& rows,
                 ordered_json& j) {
  j.push_back(m.estimates[slot.word + word::kTargetOther]);
  ordered_json list = ordered_json::array();
  for (const auto& [key, estimate] : entries_of(m, slot)) {
    const MethodKey callee = {key.module_key, static_cast<uint32_t>(key.value)};
    const int64_t row = rows.find(callee);
    ordered_json who = row;
    if (row < 0) who = "function " + std::to_string(callee.function_index);
    list.push_back({who, estimate});
  }
  j.push_back(std::move(list));
}

// Adds min, max and mean of the observed values; null if there were none.
void add_range(const MethodProfile& m, const Slot& slot, ordered_json& j) {
  const uint64_t count = m.counts[slot.word];
  if (count == 0) {
    for (int i = 0; i < 3; ++i) j.push_back(nullptr);
    return;
  }
  const auto sum = profile::load_wide(&m.counts[slot.word + word::kSum]);
  j.push_back(signed_text(m.counts[slot.word + word::kMin]));
  j.push_back(signed_text(m.counts[slot.word + word::kMax]));
  j.push_back(static_cast<double>(sum) / static_cast<double>(count));
}

void add_values(const MethodProfile& m, const Slot& slot, ordered_json& j) {
  j.push_back(m.estimates[slot.word + word::kValueOther]);
  add_range(m, slot, j);
  ordered_json list = ordered_json::array();
  for (const auto& [key, estimate] : entries_of(m, slot)) {
    list.push_back({signed_text(key.value), estimate});
  }
  j.push_back(std::move(list));
}

void add_loop(const MethodProfile& m, const Slot& slot, ordered_json& j) {
  j.push_back(m.estimates[slot.word + word::kLoopEntries]);
  j.push_back(m.estimates[slot.word + word::kLoopIterations]);
  j.push_back(m.counts[slot.word + word::kLoopTimed]);
  const auto cycles = m.loop_cycles(slot.site);
  const bool timed = cycles && m.counts[slot.word + word::kLoopTimed] != 0;
  j.push_back(timed ? rounded_json(cycles->total) : nullptr);
  j.push_back(timed ? rounded_json(cycles->low) : nullptr);
  j.push_back(timed ? rounded_json(cycles->high) : nullptr);
}

void add_count(const MethodProfile& m, const Slot& slot, ordered_json& j) {
  const auto e = m.estimate(slot.kind, slot.site);
  j.push_back(m.counts[slot.word]);
  j.push_back(e ? rounded_json(e->total) : nullptr);
  if (!e || e->low == e->high) return;  // exact
  j.push_back(rounded_json(e->low));
  j.push_back(rounded_json(e->high));
}

ordered_json site_json(const MethodProfile& m, const Slot& slot, const ReportRows& rows) {
  ordered_json j = {static_cast<unsigned>(slot.kind), slot.site};
  switch (slot.kind) {
    case SlotKind::kBlock:
    case SlotKind::kEdge:
    case SlotKind::kCounter: add_count(m, slot, j); break;
    case SlotKind::kCallTarget:
      j.push_back(rounded_json(total_of(m, slot)));
      add_targets(m, slot, rows, j);
      break;
    case SlotKind::kValue:
      j.push_back(rounded_json(total_of(m, slot)));
      add_values(m, slot, j);
      break;
    case SlotKind::kRange:
      j.push_back(rounded_json(total_of(m, slot)));
      add_range(m, slot, j);
      break;
    case SlotKind::kLoop: add_loop(m, slot, j); break;
    case SlotKind::kGauge: j.push_back(m.counts[slot.word]); break;
    case SlotKind::kLog:
      j.push_back(m.counts[slot.word + word::kLogEvents]);
      j.push_back(m.counts[slot.word + word::kLogLost]);
      break;
  }
  return j;
}

}  // namespace

ordered_json sites_json(const MethodProfile& method, const ReportRows& rows) {
  ordered_json list = ordered_json::array();
  for (const Slot& slot : method.schema.slots) list.push_back(site_json(method, slot, rows));
  return list;
}

}  // namespace uptier::tools
