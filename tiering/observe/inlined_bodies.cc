#include "tiering/observe/inlined_bodies.h"

#include <algorithm>

#include "profile/base/numbers.h"
#include "profile/trace/data.h"
#include "profile/data/inlined.h"
#include "profile/trace/events.h"
#include "tiering/control/copy_control.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {

std::vector<InlinedSection> sections_of(const jit::Code& code) {
  std::vector<InlinedSection> sections;
  uint32_t body = 0;
  for (const jit::InlinedCount& c : code.tables().inlined_counts) {
    if (c.body != body) sections.push_back({jit::path_of(code, c.body), {}, c.offset / 8});
    body = c.body;
    sections.back().sites.push_back(c.site);
    sections.back().slots.emplace_back(SlotKind::kBlock, c.site);
  }
  for (const jit::InlinedProbe& p : code.tables().inlined_probes) {
    jit::InlinePath path = jit::path_of(code, p.body);
    auto at = std::ranges::find(sections, path, &InlinedSection::path);
    at->slots.emplace_back(slot_kind_of(p.kind), p.site);
  }
  for (InlinedSection& s : sections) std::ranges::sort(s.slots);
  return sections;
}

uint32_t words_in(const Method& m, const Version& copy) {
  if (!copy.slots.empty()) return copy.slots.back().word + copy.slots.back().words;
  if (copy.sections.empty()) return m.probes->optimized_plan().bytes / 8;
  const InlinedSection& last = copy.sections.back();
  return last.word + static_cast<uint32_t>(last.sites.size());
}

const Version* copy_numbered(const Method& m, uint32_t number) {
  if (number == 0) return nullptr;
  for (const auto& v : m.versions) {
    if (v->copy_number == number) return v.get();
  }
  return nullptr;
}

std::vector<uint64_t> inlined_since(Method& m, uint32_t thread, const Version& copy,
                                    std::span<const uint64_t> counts) {
  size_t own = m.probes->optimized_plan().bytes / 8;
  if (copy.sections.empty()) return {};
  const InlinedSection& end = copy.sections.back();
  std::vector<uint64_t> came(end.word + end.sites.size() - own);
  InlinedWords& last = m.optimizing.own().words[thread];
  if (last.copy != copy.copy_number) last = {copy.copy_number, {}, {}};
  last.words.resize(came.size());
  for (size_t i = 0; i < came.size() && own + i < counts.size(); ++i) {
    uint64_t now = counts[own + i];
    came[i] = now - std::min(last.words[i], now);
    last.words[i] = now;
  }
  return came;
}

void observe_inlined(const Method& m, const Version& copy, std::vector<bool>& observed,
                     const jit::LoopScope* scope) {
  auto here = [&](const InlinedSection& s) {
    return scope == nullptr || scope->sites[s.path.front().site - 1];
  };
  for (const InlinedSection& s : copy.sections) {
    observed.resize(s.word + s.sites.size(), here(s));
  }
  for (const InlinedSlot& s : copy.slots) {
    observed.resize(s.word + s.words, s.at.of_call && here(copy.sections[s.section]));
  }
  observed.resize(words_in(m, copy));
}

Origin origin_of(Method& m, const Version& v, const Version& copy, const CopyWindows& windows) {
  Origin o;
  o.known = windows.observed;
  o.counts = v.made_from;
  o.counts.resize(o.known.size());
  o.error = v.made_error;
  std::vector<std::pair<double, double>> parts;  // mass and error
  double all = 0;
  for (double c : v.made_from) all += c;
  double targets = add_made_targets(m, windows.known, v.made_targets, o.counts, o.known);
  parts.emplace_back(targets, v.made_error);
  all += targets;
  for (const InlinedSection& s : copy.sections) {
    auto at = std::ranges::find_if(v.made_inlined,
                                   [&](const InlinedOrigin& i) { return i.path == s.path; });
    bool same = at != v.made_inlined.end() && !at->blocks.empty();
    double mass = 0;
    for (size_t i = 0; i < s.sites.size(); ++i) {
      SiteId site = s.sites[i];
      o.known[s.word + i] = o.known[s.word + i] && same;
      if (!same || site > at->blocks.size()) continue;
      o.counts[s.word + i] = at->blocks[site - 1];
      mass += o.counts[s.word + i];
    }
    all += mass;
    if (same) parts.emplace_back(mass, at->error);
  }
  for (const InlinedSlot& s : copy.slots) {
    if (!s.at.of_call) continue;
    auto at =
        std::ranges::find(v.made_inlined, copy.sections[s.section].path, &InlinedOrigin::path);
    double mass = add_made_slot(m, v, copy, s, windows.known, o);
    all += mass;
    if (at != v.made_inlined.end()) parts.emplace_back(mass, at->error);
  }
  for (auto [mass, error] : parts) o.error += all > 0 ? mass / all * std::min(error, 1.0) : 0;
  return o;
}

std::map<jit::InlinePath, jit::InlinedBlocks> seen_of_inlined(const Version& copy,
                                                              const CopyWindows& windows) {
  std::map<jit::InlinePath, jit::InlinedBlocks> out;
  const std::vector<double>& known = windows.known;
  for (const InlinedSection& s : copy.sections) {
    if (!windows.observed[s.word]) continue;
    jit::InlinedBlocks& b = out[s.path];
    for (size_t i = 0; i < s.sites.size() && s.word + i < known.size(); ++i) {
      b.counts.resize(s.sites[i]);
      b.known.resize(s.sites[i]);
      b.counts.back() = known[s.word + i];
      b.known.back() = true;
    }
  }
  return out;
}

// How the log calls the block of a word.
std::string CopyControl::block_name(const Method& m, const Version& copy, size_t word) const {
  auto place = [&](const jit::InlinePath& steps) {
    std::string path;
    for (const jit::InlineStep& step : steps) {
      const Method* callee = methods_.known(step.method);
      std::string of = callee == nullptr ? "a removed method" : callee->info.name;
      path = " of " + of + " at call " + std::to_string(step.site) + path;
    }
    return path + " of " + m.info.name;
  };
  for (const InlinedSection& s : copy.sections) {
    if (word < s.word || word >= s.word + s.sites.size()) continue;
    return "block " + std::to_string(s.sites[word - s.word]) + place(s.path);
  }
  if (const InlinedSlot* s = slot_at(copy, word)) {
    return slot_target_name(m, copy, *s, word) + place(copy.sections[s->section].path);
  }
  if (word < m.shape->block_weights.size()) return "block " + std::to_string(word + 1);
  return target_name(m, word);
}

// ---- For readers ------------------------------------------------------------------------------

namespace {

// Set in the number of an id of what is inlined into a method.
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

// The copy may have gone before its counts come, and with it what it had inlined.
bool Observer::all_known(const jit::InlinePath& path) const {
  return std::ranges::all_of(
      path, [&](const jit::InlineStep& step) { return method_of_(step.method) != nullptr; });
}

InlinedStream& Observer::inlined_stream(Method& m, const InlinedSection& section,
                                        const Version& copy) {
  Flushed& flushed = m.flushed.own();
  auto [at, fresh] = flushed.inlined_streams.try_emplace({section.path, section.slots});
  InlinedStream& s = at->second;
  if (fresh) {
    s.number = ++flushed.inlined_numbers;
    s.schema = schema_of(*method_of_(section.path.back().method), section, copy);
    s.seen.counts.resize(section.sites.size());
    for (const auto& [kind, site] : section.slots) {
      if (kind != SlotKind::kBlock) profile::add(kind, s.sites[{kind, site}], empty_site(kind));
    }
  }
  return s;
}

void Observer::take_inlined(Method& m, uint32_t thread, const Version& copy,
                            std::span<const uint64_t> counts, std::vector<uint64_t>& came,
                            uint64_t samples) {
  if (copy.sections.empty()) return;
  size_t own = m.probes->optimized_plan().bytes / 8;
  // As the root's own blocks of the same calls.
  uint64_t weight = m.flushed.own().streams[thread | kOptimizedStream].interval;
  for (const InlinedSection& section : copy.sections) {
    if (!all_known(section.path)) continue;
    std::span words = std::span(came).subspan(section.word - own, section.sites.size());
    note_inlined(m, section, words, samples, weight);
    if (sink_ == nullptr) continue;
    InlinedStream& s = inlined_stream(m, section, copy);
    for (size_t i = 0; i < words.size(); ++i) s.seen.counts[i] += words[i];
    s.weight = weight;
    s.samples += samples;
    s.flushes++;
  }
  came.resize(words_in(m, copy) - own);
  std::vector<Step> steps = take_slots(m, thread, copy, counts, samples, weight);
  for (size_t i = 0; i < steps.size(); ++i) {
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
    if (sink_ != nullptr) move_on(inlined_stream(m, section, copy).sites);
  }
  for (const InlinedSection& section : copy.sections) {
    if (sink_ == nullptr || !all_known(section.path)) continue;
    emit_inlined(m, section.path, inlined_stream(m, section, copy));
  }
}

// Adds what came on in a section. Where a path is new, those of methods that have gone make room.
void Observer::note_inlined(Method& m, const InlinedSection& section,
                            std::span<const uint64_t> came, uint64_t samples, uint64_t weight) {
  InlinedSeen& seen = m.flushed.own().inlined_seen;
  if (!seen.contains(section.path)) {
    std::erase_if(seen, [&](const auto& item) { return !all_known(item.first); });
  }
  auto& blocks = seen[section.path].blocks;
  for (size_t i = 0; i < came.size(); ++i) {
    const uint64_t estimate = profile::mul_saturating(came[i], weight);
    profile::add(blocks[section.sites[i]], {came[i], estimate, samples});
  }
}

InlinedBodies Observer::inlined_of(const Method& m) const {
  InlinedBodies bodies;
  for (const auto& [path, seen] : m.flushed->inlined_seen) {
    if (!all_known(path)) continue;
    InlinedKey key{m.info.key, {}};
    InlinedBody body{{m.shape->cfg_hash}, seen.blocks, seen.sites};
    for (const jit::InlineStep& step : path) {
      const Method& callee = *method_of_(step.method);
      key.path.push_back({step.site, callee.info.key});
      body.code.push_back(callee.shape->cfg_hash);
    }
    bodies.emplace(std::move(key), std::move(body));
  }
  return bodies;
}

// An id of the inlined method: see profile/trace/events.h.
void Observer::emit_inlined(Method& m, const jit::InlinePath& path, InlinedStream& s) {
  uint64_t root = announce(m);
  uint64_t id = root << 32 | kInlinedStream | s.number;
  if (!s.described) {
    std::vector<profile::InlinedStep> steps;
    for (const jit::InlineStep& step : path) {
      steps.push_back({step.site, announce(*method_of_(step.method))});
    }
    emit(profile::make_inlined_desc(id, root, steps, s.schema));
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
        Method* callee = method_of(key);
        return callee == nullptr ? 0 : announce(*callee);
      });
  emit(FlushEvent{.id = id,
                  .calls = totals(m).calls,
                  .sampled_calls = s.samples,
                  .flush_index = s.flushes,
                  .reason = FlushReason::kCalls,
                  .interval = s.weight});
  emit(profile::make_data(id, words));
}

}  // namespace uptier::tiering
