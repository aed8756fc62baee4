#include "tiering/observe/tallied.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <span>

#include "profile/base/wall.h"
#include "tiering/observe/add_shares.h"
#include "tiering/observe/ran_so_far.h"

namespace uptier::tiering {
void Tallied::follow_calls(Method& m) noexcept {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  if (v != nullptr && v->general != nullptr) v = v->general;
  uint64_t serial = usable(v) ? v->serial : 0;
  if (serial == m.optimizing->served) return;
  finishes([&] {
    state_lock.known_held();
    Optimizing& o = m.optimizing.own();
    uint64_t now = calls_so_far(m, words_.threads());
    if (o.served != 0) {
      o.calls_of[o.served] += static_cast<double>(now - std::min(now, o.served_since));
    }
    o.served = serial;
    o.served_since = now;
  });
}

double Tallied::entries_of(const Method& m, const Version& v) const {
  if (v.tallies.counts_entries()) {
    return static_cast<double>(words_.count(v.tallies.words[jit::TallyTable::kEntries].at));
  }
  const Optimizing& o = *m.optimizing;
  auto at = o.calls_of.find(v.serial);
  double calls = at == o.calls_of.end() ? 0 : at->second;
  if (o.served == v.serial) {
    uint64_t now = calls_so_far(m, words_.threads());
    calls += static_cast<double>(now - std::min(now, o.served_since));
  }
  for (const auto& other : m.versions) {
    if (other->general == &v && !other->tallies.words.empty()) calls -= entries_of(m, *other);
  }
  return std::max(calls, 0.0);
}

void Tallied::add(const Method& m, const Version& v, TalliedSum& to) const {
  const jit::TallyTable& table = v.tallies;
  if (table.words.empty()) return;
  std::vector<double> counts{entries_of(m, v)};
  for (const jit::TallyWord& w : std::span(table.words).subspan(1)) {
    assert(w.step != 0);
    counts.push_back(static_cast<double>(words_.count(w.at)) / w.step);
  }
  if (!v.osr_loop.valid()) to.calls += counts[jit::TallyTable::kEntries];
  add_shares(table, v.tally_paths, counts, to);
}

TalliedSum Tallied::sum_of(const Method& m) const {
  TalliedSum sum = m.optimizing->tallied;
  for (const auto& v : m.versions) add(m, *v, sum);
  return sum;
}

void Tallied::keep(Method* m, Version& v) {
  if (v.tallies.words.empty()) return;
  if (m != nullptr) keep_counts(*m, v);
  if (v.tallies.taken() != 0) words_.give(v.tallies.first(), v.tallies.taken());
  v.tallies = {};
  v.tally_paths.clear();
}

void Tallied::keep_counts(Method& m, const Version& v) {
  assert(v.freed);
  Optimizing& o = m.optimizing.own();
  TalliedSum sum = o.tallied;  // a copy: if memory runs out, nothing may be counted twice
  add(m, v, sum);
  auto general = std::ranges::find(m.versions, v.general, &std::unique_ptr<Version>::get);
  bool shares = v.general != nullptr && general != m.versions.end() && !(*general)->freed;
  if (shares) o.calls_of[(*general)->serial] -= entries_of(m, v);
  if (o.served != v.serial) o.calls_of.erase(v.serial);
  o.tallied = std::move(sum);
}

}  // namespace uptier::tiering
