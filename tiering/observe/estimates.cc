#include "tiering/observe/estimates.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "profile/algebra/rake.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {
namespace {

void sort_by_count(std::vector<std::pair<Method*, uint64_t>>& methods) {
  std::sort(methods.begin(), methods.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first->id.index() < b.first->id.index();
  });
}

}  // namespace

// Returns the factor by which a stream's estimates fall short of everything its thread ran, because
// sampling paused.
double Estimates::stretch_of(const Method& m, const Stream& s) const {
  if (!one_burst_ || s.ended || !stand_for_all(m, options_)) return 1;
  Totals t =
      m.probes->shared() ? totals(m) : Totals{s.calls, s.sampled_calls, s.iterations, s.bursts};
  return s.coverage.stretch(t.calls, t.iterations, slot_of(m, live_));
}

bool Estimates::one_countdown(const Method& m) const {
  return options_.gap == GapMode::kExact && !m.probes->shared();
}

profile::StreamSum Estimates::stream_sum(const Method& m) const {
  std::span<const profile::Draw> draws = m.probes->draws();
  if (!m.only_baseline) draws = {};
  return {m.probes->schema(), draws, one_countdown(m)};
}

// Adds a stream to a sum, scaled to everything its thread ran. If threads share counters, one
// stream has all counts, and all calls are attributed to its samples.
void Estimates::add_to_sum(const Method& m, const Stream& s, bool counted, profile::StreamSum& sum,
                           profile::Observed& seen) const {
  assert(seen.counts.empty() || seen.counts.size() == m.probes->schema().words());
  uint64_t burst = one_burst_ ? slot_of(m, live_) : 0;
  profile::StreamSum::Stream stream{
      s.calls, s.iterations, s.sampled_calls + s.bursts, s.coverage.squares, s.coverage.covered,
      burst};
  if (m.probes->shared()) {
    if (!counted) return;
    Totals t = totals(m);
    stream.calls = t.calls;
    stream.iterations = t.iterations;
    stream.samples = t.sampled_calls + t.bursts;
  }
  if (s.ended) return sum.add_raked(stream, s.sampled);
  sum.add(stream, seen);
}

MethodProfile Estimates::empty_profile_of(const Method& m) const {
  MethodProfile p;
  p.key = m.info.key;
  p.name = m.info.name;
  p.schema = m.probes->schema();
  p.behind = m.ran_optimized;
  p.counts.resize(p.schema.words());
  p.estimates.resize(p.schema.words());
  return p;
}

MethodProfile Estimates::profile_of(const Method& m) const {
  Profile sum;
  bool mixed = false, brought = stand_for_all(m, options_);
  uint64_t interval = 0;
  profile::StreamSum streams = stream_sum(m);
  for (const auto& [thread, s] : m.flushed->streams) {
    MethodProfile p = empty_profile_of(m);
    profile::Observed seen = s.seen;
    if (brought) add_to_sum(m, s, !s.seen.counts.empty(), streams, seen);
    p.counts = std::move(seen.counts);
    p.estimates = std::move(seen.estimates);
    p.tables = std::move(seen.tables);
    p.counts.resize(p.schema.words());
    p.estimates.resize(p.schema.words());
    p.calls = s.calls;
    p.sampled_calls = m.probes->counts_by_calls() ? s.calls : s.sampled_calls;
    p.iterations = s.iterations;
    p.bursts = s.bursts;
    p.weight_squares = s.coverage.squares;
    mixed |= s.mixed || (interval != 0 && s.interval != 0 && s.interval != interval);
    if (s.interval != 0) interval = s.interval;
    Profile one;
    one.methods.emplace(p.key, std::move(p));
    if (sum.methods.empty()) {
      sum = std::move(one);
    } else {
      merge(sum, std::move(one));
    }
  }
  if (sum.methods.empty()) return empty_profile_of(m);
  MethodProfile p = std::move(sum.methods.begin()->second);
  p.interval = mixed ? 0 : interval;
  if (!brought) return p;
  profile::Observed all{std::move(p.counts), std::move(p.estimates), std::move(p.tables)};
  streams.finish(all);
  p.counts = std::move(all.counts);
  p.estimates = std::move(all.estimates);
  p.tables = std::move(all.tables);
  p.weight_squares = streams.squares();
  return p;
}

std::vector<uint64_t> Estimates::block_estimates(const Method& m) const {
  Totals t = totals(m);
  if (samples_in(t, m) < policy_.min_samples && m.saved == nullptr) return {};
  std::vector<uint64_t> counts(m.shape->block_weights.size());
  bool empty = true;
  if (m.saved != nullptr) {
    std::vector<double> saved(counts.size());
    add_saved(m, saved);
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] = static_cast<uint64_t>(std::min(saved[i], 0x1p62));
      empty &= counts[i] == 0;
    }
  }
  for (const auto& [thread, s] : m.flushed->streams) {
    for (size_t i = 0; i < std::min(counts.size(), s.seen.estimates.size()); ++i) {
      counts[i] += s.seen.estimates[i];
      empty &= counts[i] == 0;
    }
  }
  return empty ? std::vector<uint64_t>{} : counts;
}

double Estimates::sample_weight(const Method& m) const {
  double estimates = mass_of(m), counts = 0;
  for (const auto& [thread, s] : m.flushed->streams) {
    for (size_t i = 0; i < std::min(m.shape->block_weights.size(), s.seen.counts.size()); ++i) {
      counts += static_cast<double>(s.seen.counts[i]);
    }
  }
  if (m.saved != nullptr) {
    double factor = saved_factor(*m.saved);
    const MethodProfile& p = m.saved->profile;
    for (const Slot& slot : p.schema.slots) {
      if (slot.kind != SlotKind::kBlock) continue;
      estimates += factor * static_cast<double>(p.estimates[slot.word]);
      counts += static_cast<double>(p.counts[slot.word]);
    }
  }
  return counts > 0 && estimates > 0 ? estimates / counts : 1;
}

void Estimates::take_over(const TargetCounts& phase, Targets& targets) const {
  targets.methods.clear();
  targets.total = static_cast<uint64_t>(phase.other);
  for (const auto& [key, count] : phase.of) {
    auto seen = static_cast<uint64_t>(count);
    targets.total += seen;
    if (Method* callee = directory_.method_of(key)) targets.methods.emplace_back(callee, seen);
  }
  sort_by_count(targets.methods);
}

std::vector<Estimates::Targets> Estimates::targets_of(const Method& m) const {
  std::map<SiteId, Targets> sites;
  std::map<SiteId, std::map<Method*, uint64_t>> counts;
  auto add = [&](SiteId site, const Table& table, double factor) {
    state_lock.known_held();
    for (const auto& [key, entry] : table) {
      auto count = static_cast<uint64_t>(factor * static_cast<double>(entry.estimate));
      sites[site].total += count;
      Method* callee =
          directory_.method_of(MethodKey{key.module_key, static_cast<uint32_t>(key.value)});
      if (callee != nullptr) counts[site][callee] += count;
    }
  };
  for (const auto& [thread, s] : m.flushed->streams) {
    for (const Slot& slot : m.probes->schema().slots) {
      if (slot.kind != SlotKind::kCallTarget || slot.word >= s.seen.estimates.size()) continue;
      sites[slot.site].total += s.seen.estimates[slot.word + slot_word::kTargetOther];
      auto table = s.seen.tables.find({slot.kind, slot.site});
      if (table != s.seen.tables.end()) add(slot.site, table->second, 1);
    }
  }
  if (m.saved != nullptr) {
    for (const auto& [at, table] : m.saved->profile.tables) {
      if (at.first == SlotKind::kCallTarget) add(at.second, table, saved_factor(*m.saved));
    }
  }
  std::vector<Targets> out;
  for (auto& [site, t] : sites) {
    t.site = site;
    t.methods.assign(counts[site].begin(), counts[site].end());
    sort_by_count(t.methods);
    out.push_back(std::move(t));
  }
  return out;
}

uint64_t Estimates::samples_of(const Method& m) const { return samples_in(totals(m), m); }

// A saved profile counts as a stream that ended before this process began: a single run with weight
// profile_decay, so that the counts of this process soon outweigh it.
double Estimates::saved_factor(const SavedMethod& saved) const {
  assert(saved.runs >= 1);
  return std::max(live_.profile_decay, 1e-6) / saved.runs;
}

void Estimates::add_saved(const Method& m, std::vector<double>& blocks) const {
  if (m.saved == nullptr) return;
  double factor = saved_factor(*m.saved);
  const MethodProfile& p = m.saved->profile;
  for (const Slot& slot : p.schema.slots) {
    if (slot.kind != SlotKind::kBlock || slot.site > blocks.size()) continue;
    blocks[slot.site - 1] += factor * static_cast<double>(p.estimates[slot.word]);
  }
}

double Estimates::mass_of(const Method& m) const {
  double sum = 0;
  for (const auto& [thread, s] : m.flushed->streams) {
    for (size_t i = 0; i < std::min(m.shape->block_weights.size(), s.seen.estimates.size()); ++i) {
      sum += static_cast<double>(s.seen.estimates[i]);
    }
  }
  return sum;
}

double Estimates::target_mass_of(const Method& m) const {
  double sum = 0;
  for (const auto& [thread, s] : m.flushed->streams) {
    for (const auto& [at, table] : s.seen.tables) {
      if (at.first != SlotKind::kCallTarget) continue;
      for (const auto& [key, entry] : table) sum += static_cast<double>(entry.estimate);
    }
  }
  return sum;
}

}  // namespace uptier::tiering
