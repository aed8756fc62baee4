#include "profile/algebra/quorum.h"

#include <algorithm>

#include "profile/algebra/algebra.h"
#include "profile/base/numbers.h"
#include "profile/data/schema.h"

namespace uptier::profile {
namespace {

bool saw_something(const MethodProfile& m) {
  const auto some = [](uint64_t n) { return n != 0; };
  return m.calls != 0 || m.iterations != 0 || !m.tables.empty() ||
         std::ranges::any_of(m.counts, some);
}

}  // namespace

std::vector<Fraction> cap_factors(std::span<const Contribution> inputs, uint64_t cap) {
  std::map<std::string, uint64_t> runs;
  for (const Contribution& c : inputs) (void)add_saturating(runs[c.voter], c.runs);
  std::vector<Fraction> factors;
  for (const Contribution& c : inputs) {
    const uint64_t all = runs[c.voter];
    const bool capped = cap != 0 && all > cap;
    factors.push_back(capped ? Fraction{cap, all} : Fraction{});
  }
  return factors;
}

void Quorum::see(uint32_t voter, const MethodProfile& m) {
  if (!m.check().ok() || !saw_something(m)) return;
  Seen& seen = seen_[{m.key, m.schema.cfg_hash}];
  seen.votes.add(voter);
  for (const auto& [site, table] : m.tables) {
    for (const auto& [key, entry] : table) {
      seen.entries[{site.first, site.second, key}].add(voter);
    }
  }
}

void Quorum::see(uint32_t voter, const InlinedBodies& bodies) {
  for (const auto& [key, body] : bodies) {
    Seen& seen = inlined_[{key, body.code}];
    seen.votes.add(voter);
    for (const auto& [at, site] : body.sites) {
      for (const auto& [entry, count] : site.table) {
        seen.entries[{at.first, at.second, entry}].add(voter);
      }
    }
  }
}

void Quorum::see(uint32_t voter, const CallProfile& calls) {
  for (const auto& [call, count] : calls.graph) {
    if (count != 0) calls_[call].add(voter);
  }
  for (const auto& [key, shape] : calls.shapes) shapes_[key][shape].add(voter);
}

uint64_t Quorum::Seen::take_out(std::pair<SlotKind, SiteId> site, Table& table, uint64_t least,
                                uint64_t& other, uint64_t& other_estimate) const {
  return std::erase_if(table, [&](const auto& item) {
    const auto found = entries.find({site.first, site.second, item.first});
    if (found != entries.end() && found->second.count >= least) return false;
    (void)add_saturating(other, item.second.count);
    (void)add_saturating(other_estimate, item.second.estimate);
    return true;
  });
}

// Moves entries of a method's tables that fewer have seen into `other`; returns how many entries.
uint64_t Quorum::Seen::take_out(MethodProfile& m, uint64_t least) const {
  uint64_t moved = 0;
  for (auto& [key, table] : m.tables) {
    const uint32_t other = other_word(*m.schema.find(key.first, key.second));
    moved += take_out(key, table, least, m.counts[other], m.estimates[other]);
  }
  std::erase_if(m.tables, [](const auto& item) { return item.second.empty(); });
  return moved;
}

const Quorum::Seen& Quorum::seen_of(const MethodProfile& m) const {
  static const Seen kNobody;
  const auto found = seen_.find({m.key, m.schema.cfg_hash});
  return found != seen_.end() ? found->second : kNobody;
}

uint64_t Quorum::finish(CallProfile& calls, const Profile& kept, uint64_t least) const {
  if (least == 0) return 0;
  const size_t before = calls.graph.size();
  calls.shapes.clear();
  for (const auto& [key, shapes] : shapes_) {
    for (const auto& [shape, votes] : shapes) {
      const MethodProfile* m = kept.find(key);
      const bool told = m != nullptr && m->schema.cfg_hash == shape.cfg_hash;
      if (told && votes.count >= least) calls.shapes[key] = shape;
    }
  }
  restrict_to(calls, kept);
  std::erase_if(calls.graph, [&](const auto& item) {
    const auto votes = calls_.find(item.first);
    return votes == calls_.end() || votes->second.count < least;
  });
  return before - calls.graph.size();
}

Quorum::Report Quorum::finish(Profile& sum, uint64_t least) const {
  Report report;
  if (least == 0) return report;
  for (auto at = sum.methods.begin(); at != sum.methods.end();) {
    MethodProfile& m = at->second;
    const Seen& seen = seen_of(m);
    if (seen.votes.count < least) {
      at = sum.methods.erase(at);
      ++report.methods;
      continue;
    }
    report.entries += seen.take_out(m, least);
    ++at;
  }
  // Other code that is removed while its method stays is not counted: the method is still reported.
  std::erase_if(sum.other_code, [&](const auto& item) {
    return !sum.methods.contains(item.first.first) || seen_of(item.second).votes.count < least;
  });
  for (auto& [at, m] : sum.other_code) report.entries += seen_of(m).take_out(m, least);
  report.inlined = std::erase_if(sum.inlined, [&](const auto& item) {
    const auto votes = inlined_.find({item.first, item.second.code});
    const bool enough = votes != inlined_.end() && votes->second.votes.count >= least;
    return !enough || !sum.methods.contains(item.first.root);
  });
  for (auto& [key, body] : sum.inlined) {
    const Seen& seen = inlined_.at({key, body.code});
    for (auto& [at, site] : body.sites) {
      if (!has_table(at.first)) continue;
      const uint32_t other = other_word({.kind = at.first});
      report.entries +=
          seen.take_out(at, site.table, least, site.counts[other], site.estimates[other]);
    }
  }
  return report;
}

}  // namespace uptier::profile
