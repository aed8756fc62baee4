#include "profile/data/inlined.h"

#include <algorithm>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/data/schema.h"
#include "profile/data/slot_sums.h"

namespace uptier {
namespace {

bool is_empty_site(SlotKind kind, const InlinedSite& s) {
  if (s.samples != 0 || !s.table.empty()) return false;
  const std::span<const profile::Word> words = profile::words_of(kind);
  if (s.counts.size() != words.size() || s.estimates.size() != words.size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (is_sum(words[i].rule) && (s.counts[i] != 0 || s.estimates[i] != 0)) return false;
  }
  return true;
}

const char* broken_rule(SlotKind kind, SiteId site, const InlinedSite& s) {
  const bool elsewhere = kind == SlotKind::kBlock || kind == SlotKind::kLoop;
  if (elsewhere || slot_words(kind) == 0) return "a site of a kind that it has not";
  if (site == 0) return "a site 0";
  if (!profile::as_method(kind, site, s).check().ok()) return "words or a table that no site has";
  return is_empty_site(kind, s) ? "a site without a count" : nullptr;
}

}  // namespace

Status InlinedBody::check(const InlinedKey& key) const {
  const auto broken = [](const char* rule) {
    return Error{ErrorCode::kInvalidInput, std::string("inlined body: ") + rule};
  };
  const auto no_site = [](const InlinedCall& call) { return call.site == 0; };
  const auto nothing = [](const auto& item) { return item.second == InlinedBlock{}; };
  if (key.path.empty()) return broken("no call leads to it");
  if (key.path.size() > profile::kMostInlinedCalls) return broken("more calls than lead to one");
  if (std::ranges::any_of(key.path, no_site)) return broken("a call of site 0");
  if (code.size() != key.path.size() + 1) return broken("not a hash for each method");
  if (blocks.empty() && sites.empty()) return broken("no blocks");
  if (blocks.contains(0)) return broken("a block of site 0");
  if (std::ranges::any_of(blocks, nothing)) return broken("a block without a count");
  for (const auto& [at, site] : sites) {
    if (const char* rule = broken_rule(at.first, at.second, site)) return broken(rule);
  }
  return {};
}

namespace profile {
namespace {

constexpr uint64_t InlinedBlock::*kNumbers[] = {&InlinedBlock::count, &InlinedBlock::estimate,
                                                &InlinedBlock::samples};

// The least and the greatest of no values are 0.
void settle_extremes(SlotKind kind, InlinedSite& s) {
  const std::span<const Word> words = words_of(kind);
  for (size_t i = 0; i < words.size() && s.counts[0] == 0; ++i) {
    const bool extreme = words[i].rule == WordRule::kMin || words[i].rule == WordRule::kMax;
    if (extreme) s.counts[i] = 0;
  }
}

void remove_empty(InlinedBodies& bodies) {
  for (auto& [key, body] : bodies) {
    std::erase_if(body.blocks, [](const auto& item) { return item.second == InlinedBlock{}; });
    std::erase_if(body.sites,
                  [](const auto& item) { return is_empty_site(item.first.first, item.second); });
  }
  std::erase_if(bodies, [](const auto& item) {
    return item.second.blocks.empty() && item.second.sites.empty();
  });
}

}  // namespace

uint64_t add(InlinedBlock& into, const InlinedBlock& value) {
  uint64_t saturated = 0;
  for (auto n : kNumbers) saturated += add_saturating(into.*n, value.*n) ? 1 : 0;
  return saturated;
}

uint64_t add(SlotKind kind, InlinedSite& into, const InlinedSite& value) {
  uint64_t saturated = 0;
  const std::span<const Word> words = words_of(kind);
  into.counts.resize(words.size());
  into.estimates.resize(words.size());
  sum_slot(words, into.counts.data(), value.counts.data(), saturated);
  sum_estimates(words, into.estimates.data(), value.estimates.data(), saturated);
  sum_table(into.table, value.table, saturated);
  add_counted(into.samples, value.samples, saturated);
  return saturated;
}

uint64_t take_off(SlotKind kind, InlinedSite& from, const InlinedSite& what) {
  uint64_t missing = 0;
  const std::span<const Word> words = words_of(kind);
  from.counts.resize(words.size());
  from.estimates.resize(words.size());
  take_off(words, from.counts.data(), what.counts.data(), missing);
  take_off(words, from.estimates.data(), what.estimates.data(), missing);
  take_off(from.table, what.table, missing);
  take_off(from.samples, what.samples, missing);
  settle_extremes(kind, from);
  return missing;
}

MethodProfile as_method(SlotKind kind, SiteId site, const InlinedSite& s, uint32_t top) {
  MethodProfile m;
  m.schema.add(kind, site, top);
  m.counts = s.counts;
  m.estimates = s.estimates;
  m.sampled_calls = s.samples;
  if (!s.table.empty()) m.tables[{kind, site}] = s.table;
  return m;
}

namespace {

// `body` is copied, or moved.
template <typename Body>
void add_body(InlinedBodies& into, const InlinedKey& key, Body&& body, MergeReport& report) {
  if (!body.check(key).ok()) {
    report.dropped.push_back(key.root);
    return;
  }
  const auto [at, added] = into.try_emplace(key, std::forward<Body>(body));
  if (added) return;
  InlinedBody& kept = at->second;
  const bool usable = kept.check(key).ok();
  if (usable && kept.code == body.code) {
    for (const auto& [site, block] : body.blocks) {
      report.saturated += add(kept.blocks[site], block);
    }
    for (const auto& [at, site] : body.sites) {
      report.saturated += add(at.first, kept.sites[at], site);
    }
    return;
  }
  report.dropped.push_back(key.root);
  if (!usable || kept.code < body.code) kept = std::forward<Body>(body);
}

}  // namespace

void add(InlinedBodies& into, const InlinedBodies& from, MergeReport& report) {
  for (const auto& [key, body] : from) add_body(into, key, body, report);
}

void add(InlinedBodies& into, InlinedBodies&& from, MergeReport& report) {
  for (auto& [key, body] : from) add_body(into, key, std::move(body), report);
}

uint64_t scale(InlinedBodies& bodies, uint64_t numerator, uint64_t denominator) {
  Factor factor{numerator, denominator};
  for (auto& [key, body] : bodies) {
    if (!body.check(key).ok()) continue;
    for (auto& [site, block] : body.blocks) {
      for (auto n : kNumbers) factor.apply(block.*n);
    }
    for (auto& [at, site] : body.sites) {
      factor.apply(words_of(at.first), site.counts.data());
      factor.apply(words_of(at.first), site.estimates.data());
      factor.apply(site.table);
      factor.apply(site.samples);
      settle_extremes(at.first, site);
    }
  }
  remove_empty(bodies);
  return factor.saturated;
}

uint64_t take_off(InlinedBodies& from, const InlinedBodies& what) {
  uint64_t missing = 0;
  for (const auto& [key, body] : what) {
    const auto at = from.find(key);
    if (at == from.end() || at->second.code != body.code) continue;
    if (!body.check(key).ok() || !at->second.check(key).ok()) continue;
    for (const auto& [site, block] : body.blocks) {
      InlinedBlock& kept = at->second.blocks[site];
      for (auto n : kNumbers) {
        missing += kept.*n < block.*n ? 1 : 0;
        kept.*n -= std::min(kept.*n, block.*n);
      }
    }
    for (const auto& [place, site] : body.sites) {
      missing += take_off(place.first, at->second.sites[place], site);
    }
  }
  remove_empty(from);
  return missing;
}

uint64_t trim(InlinedBodies& bodies, size_t entries) {
  uint64_t count = 0;
  for (auto& [key, body] : bodies) {
    if (!body.check(key).ok()) continue;
    for (auto& [at, site] : body.sites) {
      if (!has_table(at.first)) continue;
      const auto [moved, moved_count] = trim_table(site.table, entries);
      const uint32_t other = other_word({.kind = at.first});
      add_saturating(site.counts[other], moved.count);
      add_saturating(site.estimates[other], moved.estimate);
      count += moved_count;
    }
  }
  return count;
}

}  // namespace profile
}  // namespace uptier
