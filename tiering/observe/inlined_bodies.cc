#include "tiering/observe/inlined_bodies.h"

#include <algorithm>
#include <cassert>

#include "tiering/observe/indirect_targets.h"

namespace uptier::tiering {

std::vector<InlinedSection> sections_of(const jit::Code& code) {
  std::vector<InlinedSection> sections;
  uint32_t body = 0;
  for (const jit::InlinedCount& c : code.tables().inlined_counts) {
    if (c.body != body) sections.push_back({jit::path_of(code, c.body), {}, c.offset / 8});
    body = c.body;
    assert(sections.back().sites.empty() || sections.back().sites.back() < c.site);
    sections.back().sites.push_back(c.site);
    sections.back().slots.emplace_back(SlotKind::kBlock, c.site);
  }
  for (const jit::InlinedProbe& p : code.tables().inlined_probes) {
    jit::InlinePath path = jit::path_of(code, p.body);
    auto at = std::ranges::find(sections, path, &InlinedSection::path);
    assert(at != sections.end());
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
  assert(number <= m.optimizing->copies);
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
  assert(end.word + end.sites.size() >= own);  // inlined bodies come after the method's own
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
  assert(v.copy == Copy::kPlain && copy.copy == Copy::kInstrumented);
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

std::string block_name(const MethodTable& methods, const Method& m, const Version& copy,
                       size_t word) {
  auto place = [&](const jit::InlinePath& steps) {
    std::string path;
    for (const jit::InlineStep& step : steps) {
      const Method* callee = methods.known(step.method);
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

}  // namespace uptier::tiering
