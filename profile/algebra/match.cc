#include "profile/algebra/match.h"

#include <algorithm>
#include <cstdio>

#include "profile/base/numbers.h"
#include "profile/data/schema.h"

namespace uptier::profile {
namespace {

using AnchorPair = std::pair<uint32_t, uint32_t>;  // indices of one anchor in both bodies

// Returns the longest common subsequence of two lists of anchors, by dynamic programming.
std::vector<AnchorPair> align(const std::vector<Anchor>& a, const std::vector<Anchor>& b) {
  const size_t width = b.size() + 1;
  std::vector<uint16_t> best((a.size() + 1) * width);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const uint16_t skip = std::max(best[(i + 1) * width + j], best[i * width + j + 1]);
      const uint16_t take = best[(i + 1) * width + j + 1] + 1;
      best[i * width + j] = a[i].same(b[j]) ? std::max(skip, take) : skip;
    }
  }
  std::vector<AnchorPair> pairs;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint16_t here = best[i * width + j];
    if (a[i].same(b[j]) && here == best[(i + 1) * width + j + 1] + 1) {
      pairs.emplace_back(static_cast<uint32_t>(i++), static_cast<uint32_t>(j++));
    } else if (best[(i + 1) * width + j] == here) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

bool is_loop(const Anchor& anchor) { return anchor.kind == AnchorKind::kLoop; }

// Maps the blocks between two matched ones (exclusive) while their numbers of successors are equal.
void map_between(const CodeShape& there, const CodeShape& here, AnchorPair low, AnchorPair high,
                 std::vector<SiteId>& map) {
  const auto alike = [&](uint32_t a, uint32_t b) {
    return there.successors[a - 1].size() == here.successors[b - 1].size();
  };
  uint32_t a = low.first + 1, b = low.second + 1;
  uint32_t a_end = high.first, b_end = high.second;
  for (; a < a_end && b < b_end && alike(a, b); ++a, ++b) map[a - 1] = b;
  for (; a < a_end && b < b_end && alike(a_end - 1, b_end - 1); --a_end, --b_end) {
    map[a_end - 2] = b_end - 1;
  }
}

void map_blocks(const CodeShape& there, const CodeShape& here,
                const std::vector<AnchorPair>& anchors, std::vector<SiteId>& map) {
  map.assign(there.successors.size(), 0);
  std::vector<AnchorPair> fixed = {{1, 1}};
  for (const AnchorPair& pair : anchors) {
    const AnchorPair blocks = {there.anchors[pair.first].block, here.anchors[pair.second].block};
    // If a block was split, or two were merged, the first match counts.
    const bool behind = blocks.first > fixed.back().first && blocks.second > fixed.back().second;
    if (behind) fixed.push_back(blocks);
  }
  for (const AnchorPair& blocks : fixed) map[blocks.first - 1] = blocks.second;
  fixed.emplace_back(static_cast<uint32_t>(there.successors.size() + 1),
                     static_cast<uint32_t>(here.successors.size() + 1));
  for (size_t i = 1; i < fixed.size(); ++i) map_between(there, here, fixed[i - 1], fixed[i], map);
}

void refuse(MatchReport& report, std::string why) {
  report.accepted = false;
  report.why = std::move(why);
}

// Computes the similarity from the pairs, and decides whether it is enough.
bool judge(const CodeShape& there, const CodeShape& here, const std::vector<AnchorPair>& pairs,
           MatchReport& report) {
  const auto loops = [](const std::vector<Anchor>& a) {
    return static_cast<uint64_t>(std::ranges::count_if(a, is_loop));
  };
  const uint64_t loops_there = loops(there.anchors), loops_here = loops(here.anchors);
  const uint64_t loops_matched = static_cast<uint64_t>(std::ranges::count_if(
      pairs, [&](const AnchorPair& p) { return is_loop(there.anchors[p.first]); }));
  const bool calls = there.anchors.size() + here.anchors.size() > loops_there + loops_here;
  report.there = calls ? there.anchors.size() - loops_there : loops_there;
  report.here = calls ? here.anchors.size() - loops_here : loops_here;
  report.matched = calls ? pairs.size() - loops_matched : loops_matched;
  const uint64_t both = report.there + report.here;
  if (both == 0) {
    refuse(report, "it has no calls, probes or loops to be matched by");
    return false;
  }
  report.similarity = 2 * static_cast<double>(report.matched) / static_cast<double>(both);
  if (report.similarity < kMatchFloor) refuse(report, "too little is alike");
  return report.similarity >= kMatchFloor;
}

// Returns for each block the number of edges of the blocks before it.
std::vector<SiteId> edges_before(const CodeShape& shape) {
  std::vector<SiteId> before;
  for (size_t b = 0; b < shape.successors.size(); ++b) {
    before.push_back(static_cast<SiteId>(shape.successors.begin_of(b)));
  }
  before.push_back(static_cast<SiteId>(shape.successors.sites()));
  return before;
}

// Two bodies, and the index of each block's first edge.
struct Bodies {
  const CodeShape& there;
  const CodeShape& here;
  std::vector<SiteId> before_there = edges_before(there);
  std::vector<SiteId> before_here = edges_before(here);
};

// Returns the site of the new code that gets a slot's counts, or 0.
SiteId new_site(const Slot& slot, const Bodies& bodies, const SiteMap& map) {
  const auto find = [](const std::vector<SiteId>& list, SiteId site) {
    return site <= list.size() && site != 0 ? list[site - 1] : 0;
  };
  if (slot.kind == SlotKind::kBlock) return find(map.blocks, slot.site);
  if (slot.kind != SlotKind::kEdge) {
    const auto& sites = slot.kind == SlotKind::kLoop ? map.loops : map.sites;
    const auto at = sites.find(slot.site);
    return at == sites.end() ? 0 : at->second;
  }
  // Edge n is the n-th successor, counted over all blocks.
  const std::vector<SiteId>& before = bodies.before_there;
  if (slot.site == 0 || slot.site > before.back()) return 0;
  const auto behind = std::lower_bound(before.begin(), before.end(), slot.site);
  const auto b = static_cast<size_t>(behind - before.begin()) - 1;
  const SiteId edge = slot.site - before[b];
  const std::span<const SiteId> to = bodies.there.successors[b];
  const SiteId from = map.blocks[b];
  if (from == 0 || bodies.here.successors[from - 1].size() != to.size()) return 0;
  if (bodies.here.successors[from - 1][edge - 1] != find(map.blocks, to[edge - 1])) return 0;
  return bodies.before_here[from - 1] + edge;
}

bool has_counts(const MethodProfile& m, const Slot& slot) {
  const auto first = m.counts.begin() + slot.word;
  return std::any_of(first, first + slot.words, [](uint64_t n) { return n != 0; }) ||
         m.tables.contains({slot.kind, slot.site});
}

void take_slot(const MethodProfile& from, const Slot& slot, const Slot& to, MethodProfile& into) {
  std::copy_n(from.counts.begin() + slot.word, slot.words, into.counts.begin() + to.word);
  std::copy_n(from.estimates.begin() + slot.word, slot.words, into.estimates.begin() + to.word);
  const auto table = from.tables.find({slot.kind, slot.site});
  if (table != from.tables.end()) into.tables[{to.kind, to.site}] = table->second;
}

// Gives new blocks the flow into them. Several rounds, since it may come from other new blocks.
void infer_blocks(const CodeShape& here, const std::vector<bool>& known, MethodProfile& m) {
  constexpr int kRounds = 4;
  const size_t blocks = here.successors.size();
  const auto slot_of = [&](size_t b) {
    return m.schema.find(SlotKind::kBlock, static_cast<SiteId>(b + 1));
  };
  const auto flow_into = [&](std::vector<uint64_t>& words) {
    std::vector<uint64_t> in(blocks);
    for (size_t b = 0; b < blocks; ++b) {
      const Slot* slot = slot_of(b);
      if (slot == nullptr || here.successors[b].empty()) continue;
      for (const SiteId to : here.successors[b]) {
        add_saturating(in[to - 1], words[slot->word] / here.successors[b].size());
      }
    }
    for (size_t b = 0; b < blocks; ++b) {
      const Slot* slot = slot_of(b);
      if (!known[b] && slot != nullptr) words[slot->word] = in[b];
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    flow_into(m.counts);
    flow_into(m.estimates);
  }
}

void take_counts(const MethodProfile& old, const CodeShape& there, const CodeShape& here,
                 const SiteMap& map, MethodProfile& into, MatchReport& report) {
  std::vector<bool> known(here.successors.size());
  const Bodies bodies{there, here};
  for (const Slot& slot : old.schema.slots) {
    const SiteId site = new_site(slot, bodies, map);
    const Slot* to = site == 0 ? nullptr : into.schema.find(slot.kind, site);
    if (to == nullptr || to->words != slot.words) {
      if (has_counts(old, slot)) ++report.dropped;
      continue;
    }
    take_slot(old, slot, *to, into);
    if (slot.kind == SlotKind::kBlock) known[site - 1] = true;
  }
  report.recovered = static_cast<uint64_t>(std::ranges::count(known, true));
  report.inferred = report.blocks - report.recovered;
  infer_blocks(here, known, into);
  into.calls = old.calls;
  into.sampled_calls = old.sampled_calls;
  into.iterations = old.iterations;
  into.bursts = old.bursts;
  into.weight_squares = old.weight_squares;
  into.interval = old.interval;
  into.time = old.time;
  into.behind = old.behind;
}

}  // namespace

std::string MatchReport::text() const {
  char line[256];
  std::snprintf(line, sizeof line,
                "%llu of %llu anchors matched (similarity %.2f), %llu of %llu blocks recovered, "
                "%llu inferred, %llu slots dropped",
                static_cast<unsigned long long>(matched), static_cast<unsigned long long>(here),
                similarity, static_cast<unsigned long long>(recovered),
                static_cast<unsigned long long>(blocks), static_cast<unsigned long long>(inferred),
                static_cast<unsigned long long>(dropped));
  return why.empty() ? line : why + ": " + line;
}

SiteMap match_shapes(const CodeShape& there, const CodeShape& here, MatchReport& report) {
  report = {};
  report.blocks = here.successors.size();
  SiteMap map;
  const bool possible = !there.empty() && !here.empty() && there.anchors.size() <= kMaxAnchors &&
                        here.anchors.size() <= kMaxAnchors;
  if (!possible) {
    refuse(report, there.empty()  ? "the profile has no anchors of it"
                   : here.empty() ? "its code has no anchors"
                                  : "it has too many anchors");
    return map;
  }
  const std::vector<AnchorPair> pairs = align(there.anchors, here.anchors);
  if (!judge(there, here, pairs, report)) return map;
  map_blocks(there, here, pairs, map.blocks);
  for (const auto& [a, b] : pairs) {
    const bool loop = is_loop(there.anchors[a]);
    (loop ? map.loops : map.sites)[there.anchors[a].site] = here.anchors[b].site;
  }
  const auto found = static_cast<double>(map.blocks.size()) -
                     static_cast<double>(std::ranges::count(map.blocks, SiteId{0}));
  report.accepted = 2 * found >= kBlockFloor * static_cast<double>(there.successors.size() +
                                                                   here.successors.size());
  if (!report.accepted) refuse(report, "too few blocks are alike");
  return map;
}

MethodProfile match_profile(const MethodProfile& old, const CodeShape& there, const Schema& schema,
                            const CodeShape& here, MatchReport& report) {
  MethodProfile m;
  m.key = old.key;
  m.name = old.name;
  m.schema = schema;
  m.counts.resize(schema.words());
  m.estimates.resize(schema.words());
  const SiteMap map = match_shapes(there, here, report);
  if (report.accepted && there.cfg_hash == old.schema.cfg_hash) {
    take_counts(old, there, here, map, m, report);
  } else if (report.accepted) {
    refuse(report, "the profile's anchors are of yet other code");
  }
  if (report.accepted) return m;
  for (const Slot& slot : old.schema.slots) report.dropped += has_counts(old, slot) ? 1 : 0;
  return m;
}

}  // namespace uptier::profile
