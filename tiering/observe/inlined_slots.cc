// Indirect calls and probes of inlined bodies, as counted by the instrumented copy of optimized
// code.
//
// A thread's slot counts from 0 in each copy. Its contents are decoded as at any site. The sum over
// all threads and copies changes by
//
//     sum - contents in the thread's previous snapshot + contents in this one
//
// so a count that moves from a table's entry to `other` does so in the sum as well.
//
// The key of a table's entry is the address of a stub, which may have belonged to another method
// when the copy was installed. Then its counts go to `other`, for that copy. Law: a method is never
// credited with another method's calls. A copy that is made later begins with empty tables.
//
//   Thread: the caller holds the runtime's state mutex.
#include <algorithm>
#include <cassert>

#include "jit/probes/inlined_counts.h"
#include "tiering/observe/inlined_bodies.h"

namespace uptier::tiering {

std::vector<InlinedSlot> slots_of(const jit::Code& code) {
  std::vector<InlinedSlot> slots;
  std::vector<uint32_t> bodies;  // by section
  for (const jit::InlinedCount& c : code.tables().inlined_counts) {
    if (bodies.empty() || bodies.back() != c.body) bodies.push_back(c.body);
  }
  for (const jit::InlinedProbe& p : code.tables().inlined_probes) {
    auto section = std::ranges::find(bodies, p.body) - bodies.begin();
    assert(section < std::ssize(bodies));
    slots.push_back(
        {static_cast<uint32_t>(section), slot_kind_of(p.kind), p, p.offset / 8, jit::words_of(p)});
  }
  return slots;
}

// ---- Windows ----------------------------------------------------------------------------------

namespace {

uint32_t inlined_word_of(Method& m, const Version& copy, const InlinedSlot& slot,
                         const MethodKey& callee) {
  auto& words = m.optimizing.own().inlined_target_words;
  const jit::InlinePath& path = copy.sections[slot.section].path;
  SiteId site = slot.at.site;
  auto at = words.find({path, site, callee});
  if (at == words.end()) {
    auto used = std::ranges::count_if(words, [&](const auto& w) {
      return std::get<0>(w.first) == path && std::get<1>(w.first) == site;
    });
    at = words.emplace(std::tuple{path, site, callee}, static_cast<uint32_t>(used + 1)).first;
  }
  return at->second < slot.words ? slot.word + at->second : slot.word;
}

double inlined_sum_of(const std::vector<double>& counts, size_t first, size_t size) {
  double sum = 0;
  for (size_t i = first; i < std::min(first + size, counts.size()); ++i) sum += counts[i];
  return sum;
}

}  // namespace

void add_slot_targets(Method& m, const Version& copy, const InlinedSlot& slot,
                      const InlinedSite& before, const InlinedSite& now, size_t own,
                      std::vector<uint64_t>& window) {
  assert(slot.word >= own && slot.word + slot.words - own <= window.size());
  if (!slot.at.of_call) return;
  auto came = [](uint64_t had, uint64_t has) { return has - std::min(had, has); };
  window[slot.word - own] += came(before.counts[0], now.counts[0]);
  for (const auto& [key, entry] : now.table) {
    auto had = before.table.find(key);
    uint64_t count = had == before.table.end() ? 0 : had->second.count;
    MethodKey callee{key.module_key, static_cast<uint32_t>(key.value)};
    window[inlined_word_of(m, copy, slot, callee) - own] += came(count, entry.count);
  }
}

double add_made_slot(Method& m, const Version& v, const Version& copy, const InlinedSlot& slot,
                     const std::vector<double>& known, Origin& o) {
  assert(slot.at.of_call && slot.word + slot.words <= o.counts.size());
  double blocks = inlined_sum_of(o.counts, 0, m.shape->block_weights.size());
  double known_blocks = inlined_sum_of(known, 0, m.shape->block_weights.size());
  auto body =
      std::ranges::find(v.made_inlined, copy.sections[slot.section].path, &InlinedOrigin::path);
  const TargetCounts* made = nullptr;
  if (body != v.made_inlined.end()) {
    auto at = body->targets.find(slot.at.site);
    if (at != body->targets.end()) made = &at->second;
  }
  double all = 0;
  if (made != nullptr) {
    all = made->other;
    for (const auto& [callee, count] : made->of) all += count;
  }
  if (all <= 0 || known_blocks <= 0) {
    std::fill_n(o.known.begin() + slot.word, slot.words, false);
    return 0;
  }
  double site = inlined_sum_of(known, slot.word, slot.words) / known_blocks * blocks;
  o.counts[slot.word] += made->other / all * site;
  for (const auto& [callee, count] : made->of) {
    o.counts[inlined_word_of(m, copy, slot, callee)] += count / all * site;
  }
  return site;
}

std::map<jit::InlinePath, TargetsBySite> seen_slot_targets(const Method& m, const Version& copy,
                                                           const CopyWindows& windows) {
  std::map<jit::InlinePath, TargetsBySite> out;
  const std::vector<double>& known = windows.known;
  for (const InlinedSlot& slot : copy.slots) {
    if (slot.word + slot.words > known.size() || !windows.observed[slot.word]) continue;
    const jit::InlinePath& path = copy.sections[slot.section].path;
    TargetCounts t;
    double all = t.other = known[slot.word];
    for (const auto& [at, word] : m.optimizing->inlined_target_words) {
      const auto& [of, site, callee] = at;
      bool here = of == path && site == slot.at.site && word < slot.words;
      if (!here || known[slot.word + word] <= 0) continue;
      t.of[callee] = known[slot.word + word];
      all += known[slot.word + word];
    }
    if (all > 0) out[path][slot.at.site] = std::move(t);
  }
  return out;
}

const InlinedSlot* slot_at(const Version& copy, size_t word) {
  for (const InlinedSlot& s : copy.slots) {
    if (word >= s.word && word < s.word + s.words) return &s;
  }
  return nullptr;
}

std::string slot_target_name(const Method& m, const Version& copy, const InlinedSlot& slot,
                             size_t word) {
  std::string call = " as a target of call " + std::to_string(slot.at.site);
  for (const auto& [at, n] : m.optimizing->inlined_target_words) {
    const auto& [path, site, callee] = at;
    bool here = path == copy.sections[slot.section].path && site == slot.at.site;
    if (here && slot.word + n == word) {
      return "function " + std::to_string(callee.function_index) + call;
    }
  }
  return "another function" + call;
}

}  // namespace uptier::tiering
