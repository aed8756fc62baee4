#include "tiering/observe/indirect_targets.h"

#include <algorithm>

namespace uptier::tiering {
namespace {

struct Place {
  SiteId site = 0;
  uint32_t word = 0;   // the first of the table
  uint32_t words = 0;  // number of words
};

// Returns the words where the copy counts call targets. Values seen by probes are left out, because
// they do not influence the layout of code.
std::vector<Place> places_in(const Method& m) {
  std::vector<Place> places;
  const jit::ProbePlan& plan = m.probes->optimized_plan();
  for (uint32_t i = 0; i < plan.sites.size(); ++i) {
    const jit::ProbePlan::Site& s = plan.sites[i];
    if (s.offset == jit::ProbePlan::kNone || !s.of_call) continue;
    auto blocks = static_cast<SiteId>(m.shape->block_weights.size());
    places.push_back({blocks + 1 + i, s.offset / 8, s.top + 1});
  }
  return places;
}

uint32_t word_of(Method& m, const Place& p, const MethodKey& callee) {
  auto& words = m.optimizing.own().target_words;
  if (auto at = words.find({p.site, callee}); at != words.end()) return at->second;
  auto used = std::ranges::count_if(words, [&](const auto& w) { return w.first.first == p.site; });
  auto next = static_cast<uint32_t>(used + 1);
  if (next >= p.words) return p.word;
  return words[{p.site, callee}] = p.word + next;
}

}  // namespace

void add_target_counts(Method& m, const profile::Observed& before, const profile::Observed& now,
                       std::vector<uint64_t>& window) {
  window.resize(m.probes->optimized_plan().bytes / 8);
  for (const Place& p : places_in(m)) {
    const Slot* slot = m.probes->schema().find(SlotKind::kCallTarget, p.site);
    if (slot == nullptr) continue;
    size_t other = slot->word + slot_word::kTargetOther;
    uint64_t last = other < before.counts.size() ? before.counts[other] : 0;
    window[p.word] += now.counts[other] - std::min(last, now.counts[other]);
    auto table = now.tables.find({SlotKind::kCallTarget, p.site});
    if (table == now.tables.end()) continue;
    auto earlier = before.tables.find(table->first);
    for (const auto& [key, entry] : table->second) {
      uint64_t had = 0;
      if (earlier != before.tables.end()) {
        auto at = earlier->second.find(key);
        if (at != earlier->second.end()) had = at->second.count;
      }
      MethodKey callee{key.module_key, static_cast<uint32_t>(key.value)};
      window[word_of(m, p, callee)] += entry.count - std::min(had, entry.count);
    }
  }
}

void observe_targets(const Method& m, const jit::Code& copy, std::vector<bool>& observed,
                     const jit::LoopScope* scope) {
  observed.resize(m.probes->optimized_plan().bytes / 8);
  const auto& rows = copy.tables().probes;
  for (const Place& p : places_in(m)) {
    bool counted = std::ranges::any_of(
        rows, [&](const jit::ProbeRow& r) { return r.body == 0 && r.site == p.site; });
    if (scope != nullptr) counted = counted && scope->sites[p.site - 1];
    std::fill_n(observed.begin() + p.word, p.words, counted);
  }
}

namespace {

double sum_of(const std::vector<double>& counts, size_t first, size_t size) {
  double sum = 0;
  for (size_t i = first; i < std::min(first + size, counts.size()); ++i) sum += counts[i];
  return sum;
}

}  // namespace

double add_made_targets(Method& m, const std::vector<double>& known, const TargetsBySite& made,
                        std::vector<double>& counts, std::vector<bool>& comparable) {
  double blocks = sum_of(counts, 0, m.shape->block_weights.size());
  double known_blocks = sum_of(known, 0, m.shape->block_weights.size());
  double mass = 0;
  for (const Place& p : places_in(m)) {
    auto at = made.find(p.site);
    double all = 0;
    if (at != made.end()) {
      all = at->second.other;
      for (const auto& [callee, count] : at->second.of) all += count;
    }
    if (all <= 0 || known_blocks <= 0) {
      std::fill_n(comparable.begin() + p.word, p.words, false);
      continue;
    }
    double site = sum_of(known, p.word, p.words) / known_blocks * blocks;
    counts[p.word] += at->second.other / all * site;
    for (const auto& [callee, count] : at->second.of) {
      counts[word_of(m, p, callee)] += count / all * site;
    }
    mass += site;
  }
  return mass;
}

TargetCounts target_counts(const jit::SiteTargets& site, const MethodTable& methods) {
  TargetCounts made;
  uint64_t named = 0;
  for (const jit::TargetShare& t : site.targets) {
    made.of[methods.at(t.method.index()).info.key] = static_cast<double>(t.count);
    named += t.count;
  }
  made.other = static_cast<double>(site.total - std::min(named, site.total));
  return made;
}

TargetsBySite seen_targets(const Method& m, const CopyWindows& windows) {
  TargetsBySite out;
  const std::vector<double>& known = windows.known;
  for (const Place& p : places_in(m)) {
    if (p.word + p.words > known.size() || !windows.observed[p.word]) continue;
    TargetCounts t;
    t.other = known[p.word];
    double all = t.other;
    for (const auto& [at, word] : m.optimizing->target_words) {
      if (at.first != p.site || known[word] <= 0) continue;
      t.of[at.second] = known[word];
      all += known[word];
    }
    if (all > 0) out[p.site] = std::move(t);
  }
  return out;
}

std::string target_name(const Method& m, size_t word) {
  for (const auto& [at, w] : m.optimizing->target_words) {
    if (w == word) {
      return "function " + std::to_string(at.second.function_index) + " as a target of call " +
             std::to_string(at.first);
    }
  }
  return "another target";
}

}  // namespace uptier::tiering
