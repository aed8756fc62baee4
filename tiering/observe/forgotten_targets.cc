#include "tiering/observe/forgotten_targets.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "profile/data/estimate.h"
#include "sampler/site_counts.h"

namespace uptier::tiering {

// ---- Readers ----------------------------------------------------------------------------------

const ForgottenTargets& forgotten_in(const Method& m, uint32_t stream) {
  static const ForgottenTargets kNone;
  auto at = m.flushed->forgotten_targets.find(stream);
  return at == m.flushed->forgotten_targets.end() ? kNone : at->second;
}

void keep_forgotten(Method& m, uint32_t stream, std::span<const uint64_t> words) {
  auto& all = m.flushed.own().forgotten_targets;
  auto at = all.find(stream);
  if (at == all.end()) return;
  ForgottenTargets shown;
  for (const TargetTable& t : m.probes->target_tables((stream & kOptimizedStream) != 0)) {
    if (t.word + t.shape.words() > words.size()) return;
    auto counts = sampler::read_table(words.subspan(t.word, t.shape.words()), t.shape);
    for (const sampler::TableEntry& e : counts.entries) {
      auto held = at->second.find({t.site, e.key});
      if (held != at->second.end()) shown[held->first] = std::min(held->second, e.count);
    }
  }
  assert(shown.size() <= at->second.size());  // no new targets appear
  at->second = std::move(shown);
  if (at->second.empty()) all.erase(at);
}

void forget_targets(Method& m, uint32_t stream, const ForgottenTargets& held,
                    const MethodAt& method_at) {
  Flushed& flushed = m.flushed.own();
  ForgottenTargets& all = flushed.forgotten_targets[stream];
  for (const auto& [entry, count] : held) all[entry] = std::max(all[entry], count);
  auto at = flushed.streams.find(stream);
  if (at == flushed.streams.end() || at->second.seen.counts.empty()) return;
  // Moves the counts of forgotten targets to `other`, with their estimates, so that the next
  // snapshot adds only new counts.
  profile::Observed now = at->second.seen;
  for (const auto& [entry, count] : held) {
    const Slot* slot = m.probes->schema().find(SlotKind::kCallTarget, entry.first);
    auto table = now.tables.find({SlotKind::kCallTarget, entry.first});
    std::optional<MethodKey> callee = method_at(entry.second);
    if (slot == nullptr || table == now.tables.end() || !callee) continue;
    auto seen = table->second.find({callee->module_key, callee->function_index});
    if (seen == table->second.end()) continue;
    assert(slot->word + slot_word::kTargetOther < now.counts.size());
    uint64_t moved = std::min(seen->second.count, count);
    now.counts[slot->word + slot_word::kTargetOther] += moved;
    seen->second.count -= moved;
    if (seen->second.count == 0) table->second.erase(seen);
    if (table->second.empty()) now.tables.erase(table);
  }
  profile::advance(at->second.seen, m.probes->schema(), std::move(now), 1);
}

// ---- Tables that forget -----------------------------------------------------------------------

void age_stream(Method& m, uint32_t stream, uint64_t entries, const MethodAt& method_at) {
  Stream& s = m.flushed.own().streams[stream];
  jit::age_tables(m.probes->plan(), s.words.data());
  profile::Observed now =
      m.probes->read(s.words, s.traps, entries, method_at, forgotten_in(m, stream));
  m.probes->keep_flow_rising(s.seen, now);
  profile::advance(s.seen, m.probes->schema(), std::move(now), 1);
}

void age_optimized_stream(Method& m, uint32_t stream, std::span<const uint64_t> words,
                          const MethodAt& method_at) {
  std::vector<uint64_t> aged(words.begin(), words.end());
  jit::age_tables(m.probes->optimized_plan(), aged.data());
  profile::Observed now = m.probes->read_optimized(aged, method_at, forgotten_in(m, stream));
  profile::advance(m.flushed.own().streams[stream].seen, m.probes->schema(), std::move(now), 1);
}

}  // namespace uptier::tiering
