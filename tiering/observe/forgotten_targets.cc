// What tables of call targets hold of methods that are forgotten.
//
// An entry's key is the address of a stub, which goes to another method. Its owner may be counting
// in the table, in code that takes no lock, or may not run for days; so nobody else writes to it,
// and no place waits for it. Instead it is written down, when a place is free, what entries hold of
// it, and readers give to the method that has the place now
//
//     count of the entry - min(count of the entry, what was written down)
//
// and the rest to `other`. Law: a method is never credited with another's calls.
//   - Nobody calls the old method any more, so its part of an entry never grows; it may get smaller,
//     by what the owner moves to `other`. So what was written down once stays at least its part.
//   - So does the least of what snapshots showed since; an entry that one does not show is gone, and
//     when it comes back it is the new method's.
//   - A table that would not hold still while it was copied (copy_table) may hold anything: then all
//     that its next snapshot shows is nobody's.
// What it costs the new method is at most what it was called up to that snapshot, and calls that
// went to `other` in the place of the old one's.
//
//   Thread: the caller holds the runtime's state mutex; the owners of the tables run meanwhile.
#include <algorithm>
#include <vector>

#include "profile/data/estimate.h"
#include "sampler/site_counts.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

// ---- Readers ----------------------------------------------------------------------------------

const ForgottenTargets& Observer::forgotten_in(const Method& m, uint32_t stream) {
  static const ForgottenTargets kNone;
  auto at = m.flushed->forgotten_targets.find(stream);
  return at == m.flushed->forgotten_targets.end() ? kNone : at->second;
}

// Brings what is nobody's in a stream down to what a new snapshot shows.
void Observer::keep_forgotten(Method& m, uint32_t stream, std::span<const uint64_t> words) {
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
  at->second = std::move(shown);
  if (at->second.empty()) all.erase(at);
}

void Observer::forget_targets(Method& m, uint32_t stream, const ForgottenTargets& held) {
  Flushed& flushed = m.flushed.own();
  ForgottenTargets& all = flushed.forgotten_targets[stream];
  for (const auto& [entry, count] : held) all[entry] = std::max(all[entry], count);
  auto at = flushed.streams.find(stream);
  if (at == flushed.streams.end() || at->second.seen.counts.empty()) return;
  // What was seen of them goes to `other` with its estimate, so that nothing comes on at the next
  // snapshot but what was counted.
  profile::Observed now = at->second.seen;
  for (const auto& [entry, count] : held) {
    const Slot* slot = m.probes->schema().find(SlotKind::kCallTarget, entry.first);
    auto table = now.tables.find({SlotKind::kCallTarget, entry.first});
    std::optional<MethodKey> callee = method_at_(entry.second);
    if (slot == nullptr || table == now.tables.end() || !callee) continue;
    auto seen = table->second.find({callee->module_key, callee->function_index});
    if (seen == table->second.end()) continue;
    uint64_t moved = std::min(seen->second.count, count);
    now.counts[slot->word + slot_word::kTargetOther] += moved;
    seen->second.count -= moved;
    if (seen->second.count == 0) table->second.erase(seen);
    if (table->second.empty()) now.tables.erase(table);
  }
  profile::advance(at->second.seen, m.probes->schema(), std::move(now), 1);
}

// ---- Tables that forget -----------------------------------------------------------------------

// Does to the words of a stream what their owner did behind the snapshot that they are from, so that
// what falls is not taken for counts that have come to `other`.
void Observer::age(Method& m, uint32_t stream, uint64_t entries) {
  Stream& s = m.flushed.own().streams[stream];
  jit::age_tables(m.probes->plan(), s.words.data());
  profile::Observed now =
      m.probes->read(s.words, s.traps, entries, method_at_, forgotten_in(m, stream));
  m.probes->keep_flow_rising(s.seen, now);
  profile::advance(s.seen, m.probes->schema(), std::move(now), 1);
}

void Observer::age_optimized(Method& m, uint32_t stream, std::span<const uint64_t> words) {
  std::vector<uint64_t> aged(words.begin(), words.end());
  jit::age_tables(m.probes->optimized_plan(), aged.data());
  profile::Observed now = m.probes->read_optimized(aged, method_at_, forgotten_in(m, stream));
  profile::advance(m.flushed.own().streams[stream].seen, m.probes->schema(), std::move(now), 1);
}

// ---- When places are given away ---------------------------------------------------------------

namespace {

// Where stubs are: what an entry's key is, where it is that of a method.
struct Stubs {
  const jit::CodeSpace& space;
  const jit::StubTable& table;

  bool name_one_of(uint64_t word, const Places::Set& places) const;
};

bool Stubs::name_one_of(uint64_t word, const Places::Set& places) const {
  auto* pc = reinterpret_cast<const void*>(word);  // NOLINT(performance-no-int-to-ptr)
  if (!space.contains(pc)) return false;
  MethodId m = table.method_of(pc);
  return m.valid() && m.index() < places.size() && places[m.index()];
}

// Writes down what the tables of a slab, or of a snapshot of it, hold of the methods of some places.
void forget_in_slab(const Method& m, uint32_t stream, const uint64_t* slab, uint64_t size,
                    const Stubs& stubs, const Places::Set& places, ForgottenTargets& held) {
  if (slab == nullptr) return;
  for (const TargetTable& t : m.probes->target_tables((stream & kOptimizedStream) != 0)) {
    if (t.word + t.shape.words() > size) return;
    std::vector<uint64_t> words(t.shape.words());
    if (!sampler::copy_table(slab + t.word, t.shape, words.data())) {
      for (uint32_t p = 0; p < places.size(); ++p) {
        if (!places[p]) continue;
        auto stub = reinterpret_cast<uintptr_t>(stubs.table.stub(MethodId(p)));
        held[{t.site, stub}] = UINT64_MAX;
      }
      continue;
    }
    for (const sampler::TableEntry& e : sampler::read_table(words, t.shape).entries) {
      if (!stubs.name_one_of(e.key, places)) continue;
      uint64_t& most = held[{t.site, e.key}];
      most = std::max(most, e.count);
    }
  }
}

}  // namespace

// No word becomes the address of a method that is not called any more; so whatever is in the rings
// by now, or comes later from before this, names no more than is found here.
void RuntimeImpl::forget_in_tables_locked(const Places::Set& places) {
  if (std::ranges::find(places, true) == places.end()) return;
  drain_locked();
  const Stubs stubs{*space_, *stubs_};
  for (const auto& m : methods_.all()) {
    if (m->forgotten || !m->has_shape() || m->probes->target_tables(false).empty()) continue;
    std::map<uint32_t, ForgottenTargets> held;
    for (const auto& t : threads_) {
      sampler::MethodState& s = t->state(m->id);
      // The owner sets them once, or changes to a larger one.
      auto* slab = __atomic_load_n(&s.slab, __ATOMIC_ACQUIRE);
      auto* optimized = __atomic_load_n(&s.optimized_slab, __ATOMIC_ACQUIRE);
      uint32_t number = t->number();
      forget_in_slab(*m, number, slab, m->slab_words.load(), stubs, places, held[number]);
      number |= kOptimizedStream;
      forget_in_slab(*m, number, optimized, optimized_words(optimized), stubs, places,
                     held[number]);
    }
    for (const auto& [number, s] : m->flushed->streams) {
      forget_in_slab(*m, number, s.words.data(), s.words.size(), stubs, places, held[number]);
    }
    for (const auto& [number, entries] : held) {
      if (!entries.empty()) observer_.forget_targets(*m, number, entries);
    }
  }
}

}  // namespace uptier::tiering
