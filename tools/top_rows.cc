#include "tools/top_rows.h"

#include <algorithm>
#include <utility>

namespace uptier::tools {
namespace {

// Two readings of one process never shrink; a reading of another process might.
uint64_t grown(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

TopSums sums_since(uint64_t samples, uint64_t ns, uint64_t samples_before, uint64_t ns_before) {
  return {grown(samples, samples_before), grown(ns, ns_before), samples, ns};
}

void add_sums(TopSums& to, const TopSums& more) {
  to.samples += more.samples;
  to.ns += more.ns;
  to.all_samples += more.all_samples;
  to.all_ns += more.all_ns;
}

}  // namespace

ShareEstimate TopTable::share(const TopRow& r) const {
  return share_of_time(static_cast<double>(r.sums.ns) / 1e3, static_cast<double>(sums.ns) / 1e3,
                       static_cast<double>(squares));
}

TopRows::Key TopRows::key_of(const LiveRow& r) {
  return {r.place, r.method.number(), r.tier, r.copy, r.osr, r.inlined};
}

TopTable TopRows::next(LiveTime now) {
  const std::vector<LiveRow> rows = std::exchange(now.rows, {});
  TopTable table;
  table.sums = sums_since(now.samples, now.sampled_ns, last_.samples, last_.sampled_ns);
  table.squares = grown(now.squares, last_.squares);
  table.asked_ns = grown(now.asked_ns, last_.asked_ns);
  table.dropped = grown(now.dropped, last_.dropped);
  table.ns = grown(now.age_ns, last_.age_ns);
  std::map<std::pair<TimePlace, uint32_t>, TopRow> methods;
  for (const LiveRow& r : rows) {
    const LiveRow& before = rows_[key_of(r)];
    const TopSums sums = sums_since(r.samples, r.ns, before.samples, before.ns);
    rows_[key_of(r)] = r;
    TopRow& m = methods[{r.place, r.method.number()}];
    m.method = r;
    m.code.push_back({r.tier, r.copy, r.osr, r.inlined, sums});
    add_sums(m.sums, sums);
  }
  for (auto& [key, m] : methods) {
    if (m.sums.samples == 0) continue;
    std::ranges::stable_sort(m.code, std::ranges::greater(),
                             [](const TopCode& c) { return c.sums.ns; });
    table.rows.push_back(std::move(m));
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater(),
                           [](const TopRow& r) { return std::pair(r.sums.ns, r.sums.all_ns); });
  last_ = now;
  table.now = std::move(now);
  return table;
}

}  // namespace uptier::tools
