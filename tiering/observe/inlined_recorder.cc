#include "tiering/observe/inlined_recorder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "jit/probes/inlined_counts.h"
#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/trace/data.h"
#include "profile/trace/events.h"
#include "tiering/observe/inlined_bodies.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {

namespace {

// Marks ids of inlined methods, within the method they are inlined into.
constexpr uint32_t kInlinedStream = 1u << 30;

InlinedSite empty_site(SlotKind kind) {
  std::vector<uint64_t> zeros(slot_words(kind));
  return {zeros, zeros, {}, 0};
}

Schema schema_of(const Method& callee, const InlinedSection& section, const Version& copy) {
  Schema schema;
  schema.cfg_hash = callee.shape->cfg_hash;
  for (const auto& [kind, site] : section.slots) {
    auto at = std::ranges::find_if(copy.slots, [&, k = kind, n = site](const InlinedSlot& s) {
      return &copy.sections[s.section] == &section && s.kind == k && s.at.site == n;
    });
    schema.add(kind, site, at == copy.slots.end() ? Slot::kDefaultTop : at->at.top);
  }
  return schema;
}

}  // namespace

// Says whether all methods of a path are still registered: the copy, and with it an inlined method,
// may be gone before the counts arrive.
bool InlinedRecorder::all_known(const jit::InlinePath& path) const {
  return std::ranges::all_of(path, [&](const jit::InlineStep& step) {
    state_lock.known_held();
    return directory_.method_of(step.method) != nullptr;
  });
}

InlinedStream& InlinedRecorder::stream_of(Method& m, const InlinedSection& section,
                                          const Version& copy) {
  Flushed& flushed = m.flushed.own();
  auto [at, fresh] = flushed.inlined_streams.try_emplace({section.path, section.slots});
  InlinedStream& s = at->second;
  assert(all_known(section.path));
  if (fresh) {
    s.number = ++flushed.inlined_numbers;
    s.schema = schema_of(*directory_.method_of(section.path.back().method), section, copy);
    s.seen.counts.resize(section.sites.size());
    for (const auto& [kind, site] : section.slots) {
      if (kind != SlotKind::kBlock) profile::add(kind, s.sites[{kind, site}], empty_site(kind));
    }
  }
  return s;
}

void InlinedRecorder::take(Method& m, uint32_t thread, const Version& copy,
                           std::span<const uint64_t> counts, std::span<const uint64_t> root,
                           std::vector<uint64_t>& came, uint64_t samples) {
  if (copy.sections.empty()) return;
  size_t own = m.probes->optimized_plan().bytes / 8;
  // The same calls as for the root's own blocks.
  assert(copy.copy == Copy::kInstrumented && came.size() + own >= copy.sections.back().word);
  uint64_t weight = m.flushed.own().streams[thread | kOptimizedStream].interval;
  for (const InlinedSection& section : copy.sections) {
    if (!all_known(section.path)) continue;
    std::span words = std::span(came).subspan(section.word - own, section.sites.size());
    note(m, section, words, root, samples, weight);
    if (!trace_.on()) continue;
    InlinedStream& s = stream_of(m, section, copy);
    for (size_t i = 0; i < words.size(); ++i) s.seen.counts[i] += words[i];
    s.weight = weight;
    s.samples += samples;
    s.flushes++;
  }
  came.resize(words_in(m, copy) - own);
  std::vector<Step> steps = take_slots(m, thread, copy, counts, samples, weight);
  for (size_t i = 0; i < steps.size(); ++i) {
    assert(copy.slots[i].section < copy.sections.size());
    const InlinedSlot& slot = copy.slots[i];
    const InlinedSection& section = copy.sections[slot.section];
    add_slot_targets(m, copy, slot, steps[i].before, steps[i].now, own, came);
    if (!all_known(section.path)) continue;
    auto move_on = [&](InlinedSites& sites) {
      InlinedSite& all = sites[{slot.kind, slot.at.site}];
      profile::take_off(slot.kind, all, steps[i].before);
      profile::add(slot.kind, all, steps[i].now);
    };
    move_on(m.flushed.own().inlined_seen[section.path].sites);
    if (trace_.on()) move_on(stream_of(m, section, copy).sites);
  }
  for (const InlinedSection& section : copy.sections) {
    if (!trace_.on() || !all_known(section.path)) continue;
    emit(m, section.path, stream_of(m, section, copy));
  }
}

// Adds the new counts of a section. A new path first removes the paths of methods that are gone.
void InlinedRecorder::note(Method& m, const InlinedSection& section, std::span<const uint64_t> came,
                           std::span<const uint64_t> root, uint64_t samples, uint64_t weight) {
  assert(came.size() == section.sites.size());
  InlinedSeen& seen = m.flushed.own().inlined_seen;
  if (!seen.contains(section.path)) {
    std::erase_if(seen, [&](const auto& item) {
      state_lock.known_held();
      return !all_known(item.first);
    });
  }
  auto& [blocks, sites, beside] = seen[section.path];
  beside.resize(std::max(beside.size(), root.size()));
  for (size_t i = 0; i < root.size(); ++i) {
    beside[i] += static_cast<double>(root[i]) * static_cast<double>(weight);
  }
  for (size_t i = 0; i < came.size(); ++i) {
    const uint64_t estimate = profile::mul_saturating(came[i], weight);
    profile::add(blocks[section.sites[i]], {came[i], estimate, samples});
  }
}

InlinedBodies InlinedRecorder::bodies_of(const Method& m) const {
  InlinedBodies bodies;
  for (const auto& [path, seen] : m.flushed->inlined_seen) {
    if (!all_known(path)) continue;
    InlinedKey key{m.info.key, {}};
    InlinedBody body{{m.shape->cfg_hash}, seen.blocks, seen.sites};
    for (const jit::InlineStep& step : path) {
      const Method& callee = *directory_.method_of(step.method);
      key.path.push_back({step.site, callee.info.key});
      body.code.push_back(callee.shape->cfg_hash);
    }
    bodies.emplace(std::move(key), std::move(body));
  }
  return bodies;
}

// Emits an inlined method under its own id: see profile/trace/events.h.
void InlinedRecorder::emit(Method& m, const jit::InlinePath& path, InlinedStream& s) {
  uint64_t root = trace_.announce(m);
  assert(s.number != 0 && s.number < kInlinedStream);
  uint64_t id = root << 32 | kInlinedStream | s.number;
  if (!s.described) {
    std::vector<profile::InlinedStep> steps;
    for (const jit::InlineStep& step : path) {
      steps.push_back({step.site, trace_.announce(*directory_.method_of(step.method))});
    }
    trace_.emit(profile::make_inlined_desc(id, root, steps, s.schema));
  }
  s.described = true;
  profile::Observed all = s.seen;
  for (const auto& [at, site] : s.sites) {
    all.counts.insert(all.counts.end(), site.counts.begin(), site.counts.end());
    if (!site.table.empty()) all.tables[at] = site.table;
  }
  // Callees are announced before the data that names them.
  std::vector<uint64_t> words =
      profile::data_words(s.schema, all.counts, all.tables, [&](const MethodKey& key) {
        state_lock.known_held();
        Method* callee = directory_.method_of(key);
        return callee == nullptr ? 0 : trace_.announce(*callee);
      });
  trace_.emit(FlushEvent{.id = id,
                         .calls = totals(m).calls,
                         .sampled_calls = s.samples,
                         .flush_index = s.flushes,
                         .reason = FlushReason::kCalls,
                         .interval = s.weight});
  trace_.emit(profile::make_data(id, words));
}

// ---- Slots ------------------------------------------------------------------------------------------

InlinedSite InlinedRecorder::read_slot(const Version& copy, const InlinedSlot& slot,
                                       std::span<const uint64_t> counts) const {
  InlinedSite s;
  jit::SiteCounts seen = jit::site_counts(slot.at, counts);
  s.counts = std::move(seen.words);
  s.estimates.resize(s.counts.size());
  bool extremes = slot.kind == SlotKind::kValue || slot.kind == SlotKind::kRange;
  if (extremes && s.counts[0] == 0) s.counts[slot_word::kMin] = s.counts[slot_word::kMax] = 0;
  for (const sampler::TableEntry& e : seen.entries) {
    if (slot.kind != SlotKind::kCallTarget) {
      s.table[{0, e.key}].count += e.count;
      continue;
    }
    std::optional<MethodKey> key = directory_.method_at(e.key);
    const Method* callee = key ? directory_.method_of(*key) : nullptr;
    bool was_there = callee != nullptr &&
                     (callee->id.generation() == 0 || callee->ordinal <= copy.newest_method);
    if (was_there) {
      s.table[{key->module_key, key->function_index}].count += e.count;
    } else {
      s.counts[slot_word::kTargetOther] += e.count;
    }
  }
  return s;
}

std::vector<InlinedRecorder::Step> InlinedRecorder::take_slots(Method& m, uint32_t thread,
                                                               const Version& copy,
                                                               std::span<const uint64_t> counts,
                                                               uint64_t samples, uint64_t weight) {
  std::vector<Step> steps;
  std::vector<InlinedSite>& last = m.optimizing.own().words[thread].slots;
  last.resize(copy.slots.size());
  for (size_t i = 0; i < last.size(); ++i) {
    const InlinedSlot& slot = copy.slots[i];
    if (slot.word + slot.words > counts.size()) break;
    InlinedSite now = read_slot(copy, slot, counts);
    Schema schema;
    schema.add(slot.kind, slot.at.site, slot.at.top);
    std::pair at{slot.kind, slot.at.site};
    profile::Observed seen{last[i].counts, last[i].estimates, {}};
    profile::Observed next{std::move(now.counts), std::move(now.estimates), {}};
    if (!last[i].table.empty()) seen.tables[at] = last[i].table;
    if (!now.table.empty()) next.tables[at] = std::move(now.table);
    profile::advance(seen, schema, std::move(next), weight);
    InlinedSite reached{std::move(seen.counts), std::move(seen.estimates),
                        std::move(seen.tables[at]), last[i].samples + samples};
    last[i].counts.resize(reached.counts.size());
    last[i].estimates.resize(reached.counts.size());
    steps.push_back({std::exchange(last[i], reached), reached});
  }
  return steps;
}

}  // namespace uptier::tiering
