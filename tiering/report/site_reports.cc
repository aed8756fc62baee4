#include "tiering/report/site_reports.h"

#include <algorithm>
#include <cassert>

namespace uptier::tiering {
namespace {

std::string callee_name(const TableKey& key, const MethodNames& names) {
  auto at = names.find({key.module_key, static_cast<uint32_t>(key.value)});
  if (at != names.end()) return std::string(at->second);
  return "function " + std::to_string(key.value) + " of another module";
}

// Estimated executions, including those in the table.
double total_of(const MethodProfile& p, const Slot& slot) {
  std::optional<Estimate> e = p.estimate(slot.kind, slot.site);
  return e ? e->total : 0;
}

void add_top(const MethodProfile& p, const Slot& slot, const MethodNames& names, SiteReport& r) {
  assert(r.estimate >= 0);
  const Table* table = p.table(slot.kind, slot.site);
  if (table == nullptr) return;
  for (const auto& [key, entry] : *table) {
    TopEntry e;
    e.estimate = static_cast<double>(entry.estimate);
    e.share = r.estimate == 0 ? 0 : e.estimate / r.estimate;
    e.value = static_cast<int64_t>(key.value);
    if (slot.kind == SlotKind::kCallTarget) e.name = callee_name(key, names);
    r.top.push_back(std::move(e));
  }
  std::stable_sort(r.top.begin(), r.top.end(),
                   [](const TopEntry& a, const TopEntry& b) { return a.estimate > b.estimate; });
  if (r.top.size() > SiteReport::kTop) r.top.resize(SiteReport::kTop);
}

SiteReport report_of(const MethodProfile& p, const Slot& slot, const MethodNames& names) {
  const uint64_t* words = &p.counts[slot.word];
  SiteReport r{slot.kind, slot.site, total_of(p, slot), {}, {}, {}, 0, 0};
  bool extremes = slot.kind == SlotKind::kValue || slot.kind == SlotKind::kRange;
  if (extremes && words[slot_word::kCount] != 0) {
    r.min = static_cast<int64_t>(words[slot_word::kMin]);
    r.max = static_cast<int64_t>(words[slot_word::kMax]);
  }
  if (slot.kind == SlotKind::kGauge) r.gauge = words[slot_word::kGaugeValue];
  if (slot.kind == SlotKind::kLog) r.lost = words[slot_word::kLogLost];
  add_top(p, slot, names, r);
  return r;
}

}  // namespace

std::vector<SiteReport> site_reports(const MethodProfile& p, const MethodNames& names) {
  std::vector<SiteReport> sites;
  for (const Slot& slot : p.schema.slots) {
    bool shown = slot.kind > SlotKind::kEdge && slot.kind != SlotKind::kLoop;
    if (!shown) continue;
    SiteReport r = report_of(p, slot, names);
    if (r.estimate > 0 || r.gauge != 0) sites.push_back(std::move(r));
  }
  std::stable_sort(sites.begin(), sites.end(), [](const SiteReport& a, const SiteReport& b) {
    return a.estimate > b.estimate;
  });
  return sites;
}

}  // namespace uptier::tiering
