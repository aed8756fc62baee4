// A place for a new method: one that no method has had, or that of one which was removed, once nothing
// means that any more (places.h).
#include <algorithm>
#include <cstring>

#include "tiering/model/event_of.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

bool has(const Method& m, SlotKind kind) {
  return std::ranges::any_of(m.probes->schema().slots,
                             [&](const Slot& s) { return s.kind == kind; });
}

}  // namespace

void RuntimeImpl::free_places_locked(size_t kept) {
  in_service_->reclaim_locked();
  drain_locked();
  Places::Set places = places_.candidates(kept);
  if (std::ranges::find(places, true) == places.end()) return;
  in_service_->withdraw_what_refers_to_locked(places);
  in_service_->reclaim_locked();
  places_.keep_what_code_means(places);
  forget_in_tables_locked(places);
  places_.forget_paths(places);
  places_.free(places);
}

// Clears what the runtime and its threads hold of a method whose place goes to another.
void RuntimeImpl::forget_locked(Method& m) {
  // What frames have counted since it was retired; they are gone.
  if (m.retired && !m.forgotten) flush_removed_locked(m, HostUse::kOver);
  if (!m.forgotten) events_.emit(event_of(EventKind::kForgotten, m));
  m.forgotten = true;
  observer_.directory.forget(m);
  rates_.forget(m.id.index());
  for (const auto& v : m.versions) in_service_->forget_caller_locked(*v);
  if (options_.gap == GapMode::kExact) {
    stubs_->shared_countdown(m.id).store(0, std::memory_order_relaxed);
  }
  for (const auto& t : threads_) {
    sampler::MethodState& s = t->state(m.id);
    static constexpr sampler::MethodState kUnseen{};
    if (std::memcmp(&s, &kUnseen, sizeof s) == 0) continue;  // its page may not exist
    // A record in the ring has the address of the slab's word that counts it when it is lost.
    if (has(m, SlotKind::kLog)) threads_.keep_log(*t);
    if (s.slab != nullptr && s.slab != m.shape->shared) {
      t->slabs().give(s.slab, m.slab_words.load(std::memory_order_relaxed));
    }
    give_optimized_slab(t->slabs(), s.optimized_slab);
    std::memset(static_cast<void*>(&s), 0, sizeof s);
  }
}

Result<RuntimeImpl::Place> RuntimeImpl::take_place_locked(const std::string& name) {
  uint32_t count = methods_.size();
  Status room = count < options_.max_methods ? stubs_->ensure(MethodId(count)) : Status{};
  bool fresh = count < options_.max_methods && room.ok();
  if (std::optional<size_t> kept = places_.looks_for_more(fresh, live_.removed_kept)) {
    free_places_locked(*kept);
    if (places_.none_free() && !fresh) free_places_locked(0);
    places_.looked_for_more();
  }
  if (std::optional<uint32_t> index = places_.take()) {
    Method& old = method(*index);
    MethodId id(*index, old.id.generation() + 1);
    forget_locked(old);
    return Place{id, true};
  }
  if (!room) return room.error();
  if (fresh) return Place{MethodId(count)};
  size_t removed = places_.removed();
  std::string waiting = removed == 0 ? ""
                                     : ", and something still means each of the " +
                                           std::to_string(removed) + " removed ones";
  return Error{ErrorCode::kResourceExhausted,
               name + ": the runtime has max_methods = " + std::to_string(options_.max_methods) +
                   " methods" + waiting};
}

}  // namespace uptier::tiering
