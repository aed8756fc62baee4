#include "tiering/runtime/place_taking.h"
#include "profile/base/wall.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>

#include "jit/code/code_space.h"
#include "jit/code/stubs.h"
#include "sampler/site_counts.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/event_of.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/model/thread.h"
#include "tiering/observe/forgotten_targets.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/flushes.h"
#include "tiering/runtime/note_intake.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

bool has(const Method& m, SlotKind kind) {
  return std::ranges::any_of(m.probes->schema().slots,
                             [&](const Slot& s) { return s.kind == kind; });
}

// The stubs: a table entry's key is the address of a stub.
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

// Adds to `held` the counts of methods in `places` from the tables of a slab or of its snapshot. If
// a table kept changing, it may hold any counts: uses UINT64_MAX for each method.
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

Result<PlaceTaking::Place> PlaceTaking::take_place_locked(const std::string& name) {
  uint32_t count = engine_.methods.size();
  Status room =
      count < engine_.options.max_methods ? engine_.stubs->ensure(MethodId(count)) : Status{};
  bool fresh = count < engine_.options.max_methods && room.ok();
  if (fresh) finishes([&] { engine_.in_service->name_stubs(); });
  if (std::optional<size_t> kept =
          engine_.places.looks_for_more(fresh, engine_.live.removed_kept)) {
    free_places_locked(*kept);
    if (engine_.places.none_free() && !fresh) free_places_locked(0);
    engine_.places.looked_for_more();
  }
  if (std::optional<uint32_t> index = engine_.places.take()) {
    Method& old = engine_.method(*index);
    MethodId id(*index, old.id.generation() + 1);
    assert(old.removed && *index < count);
    forget_locked(old);
    return Place{id, true};
  }
  if (!room) return room.error();
  if (fresh) return Place{MethodId(count)};
  size_t removed = engine_.places.removed();
  std::string waiting = removed == 0 ? ""
                                     : ", and each of the " + std::to_string(removed) +
                                           " removed ones is still in use";
  return Error{ErrorCode::kResourceExhausted, name + ": the runtime has max_methods = " +
                                                  std::to_string(engine_.options.max_methods) +
                                                  " methods" + waiting};
}

void PlaceTaking::free_places_locked(size_t kept) {
  engine_.in_service->reclaim_locked();
  note_intake_.drain_locked();
  Places::Set places = engine_.places.candidates(kept);
  if (std::ranges::find(places, true) == places.end()) return;
  assert(places.size() <= engine_.methods.size());
  engine_.in_service->withdraw_what_refers_to_locked(places);
  engine_.in_service->reclaim_locked();
  engine_.places.keep_what_code_means(places);
  forget_in_tables_locked(places);
  engine_.places.forget_paths(places);
  engine_.places.free(places);
}

void PlaceTaking::forget_locked(Method& m) {
  // Frames may have counted after the method was retired; they are gone now.
  if (m.retired && !m.forgotten) flushes_.flush_removed_locked(m, HostUse::kOver);
  if (!m.forgotten) engine_.events.emit(event_of(EventKind::kForgotten, m));
  assert(m.removed && !engine_.is_method(m.id));
  m.forgotten = true;
  engine_.observer->directory.forget(m);
  engine_.rates->forget(m.id.index());
  for (const auto& v : m.versions) engine_.in_service->forget_caller_locked(*v);
  if (engine_.options.gap == GapMode::kExact) {
    engine_.stubs->shared_countdown(m.id).store(0, std::memory_order_relaxed);
  }
  for (const auto& t : engine_.threads) {
    sampler::MethodState& s = t->state(m.id);
    static constexpr sampler::MethodState kUnseen{};
    if (std::memcmp(&s, &kUnseen, sizeof s) == 0) continue;  // its page may not exist
    // A record in the ring has the address of the slab word that counts it if it is lost.
    if (has(m, SlotKind::kLog)) engine_.threads.keep_log(*t);
    if (s.slab != nullptr && s.slab != m.shape->shared) {
      t->slabs().give(s.slab, m.slab_words.load(std::memory_order_relaxed));
    }
    give_optimized_slab(t->slabs(), s.optimized_slab);
    std::memset(static_cast<void*>(&s), 0, sizeof s);
  }
}

// A method that is no longer called gets no new table entries. So notes in the rings, and later
// notes of counts from before this, name only methods that are found here.
void PlaceTaking::forget_in_tables_locked(const Places::Set& places) {
  if (std::ranges::find(places, true) == places.end()) return;
  note_intake_.drain_locked();
  const Stubs stubs{*engine_.space, *engine_.stubs};
  for (const auto& m : engine_.methods.all()) {
    if (m->forgotten || !m->has_shape() || m->probes->target_tables(false).empty()) continue;
    std::map<uint32_t, ForgottenTargets> held;
    for (const auto& t : engine_.threads) {
      sampler::MethodState& s = t->state(m->id);
      // The owner sets each pointer once, or changes it to a larger slab.
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
      if (!entries.empty())
        forget_targets(*m, number, entries, engine_.observer->directory.method_at());
    }
  }
}

}  // namespace uptier::tiering
