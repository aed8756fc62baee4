#include "jit/probes/inlined_counts.h"

#include <algorithm>

namespace uptier::jit {
namespace {

// For counts and for probes.
template <typename Place>
bool comes_first(const Place& a, const Place& b) {
  return a.body != b.body ? a.body < b.body : a.site < b.site;
}

template <typename Place>
void keep_one_of_each(std::vector<Place>& places) {
  std::ranges::sort(places, comes_first<Place>);
  auto same = [](const Place& a, const Place& b) { return a.body == b.body && a.site == b.site; };
  auto copies = std::ranges::unique(places, same);
  places.erase(copies.begin(), copies.end());
}

template <typename Place>
const Place* find_place(const std::vector<Place>& places, uint32_t body, SiteId site) {
  Place key;
  key.body = body;
  key.site = site;
  auto at = std::ranges::lower_bound(places, key, comes_first<Place>);
  return at != places.end() && at->body == body && at->site == site ? &*at : nullptr;
}

ProbePlan::Site site_of(const InlinedProbe& p) { return {p.kind, p.offset, p.top, p.of_call}; }

}  // namespace

std::vector<InlinedCount> place_inlined_counts(const Function& f, uint32_t offset) {
  std::vector<InlinedCount> counts;
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      if (is_block_probe(i) && i.body != 0 && !resumes(i)) counts.push_back({0, i.aux, i.body});
    }
  }
  keep_one_of_each(counts);
  // A body is counted as a whole or not at all.
  if (counts.size() > kMostInlinedCounts) {
    uint32_t body = counts[kMostInlinedCounts].body;
    std::erase_if(counts, [&](const InlinedCount& c) { return c.body >= body; });
  }
  for (InlinedCount& c : counts) {
    c.offset = offset;
    offset += 8;
  }
  return counts;
}

std::vector<InlinedProbe> place_inlined_probes(const Function& f, const SiteProbeRequest& r,
                                               const std::vector<InlinedCount>& counts,
                                               uint32_t offset) {
  std::vector<InlinedProbe> probes;
  auto counted = [&](uint32_t body) {
    return std::ranges::binary_search(counts, body, {}, &InlinedCount::body);
  };
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      if (i.op != Opcode::kProbe || i.body == 0 || !counted(i.body)) continue;
      if (auto s = observed_as(r, i)) {
        probes.push_back({0, i.aux, i.body, s->kind, s->top, s->of_call});
      }
    }
  }
  keep_one_of_each(probes);
  size_t words = 0;
  for (const InlinedProbe& p : probes) {
    words += words_of(p);
    if (words <= kMostInlinedProbeWords) continue;
    uint32_t body = p.body;
    std::erase_if(probes, [&](const InlinedProbe& other) { return other.body >= body; });
    break;
  }
  for (InlinedProbe& p : probes) {
    p.offset = offset;
    offset += 8 * words_of(p);
  }
  return probes;
}

uint32_t words_of(const InlinedProbe& p) { return words_of(site_of(p), false); }

SiteCounts site_counts(const InlinedProbe& p, std::span<const uint64_t> slab) {
  return site_counts(site_of(p), false, slab.subspan(p.offset / 8, words_of(p)));
}

const InlinedCount* find_inlined_count(const std::vector<InlinedCount>& counts, uint32_t body,
                                       SiteId site) {
  return find_place(counts, body, site);
}

const InlinedProbe* find_inlined_probe(const std::vector<InlinedProbe>& probes, uint32_t body,
                                       SiteId site) {
  return find_place(probes, body, site);
}

}  // namespace uptier::jit
