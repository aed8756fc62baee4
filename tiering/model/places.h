// Places: reuses the places of removed methods. A place is an index, and with it a stub, a cell,
// and words in every thread's context.
//
//   in service --remove_methods--> removed --(no references)--> free --add_method--> in service
//            \--retire_methods--> retired --(retired_hosts.h)--> removed
//
// A removed method keeps its place, and the report and the profile keep its data, until
// Options::removed_kept later methods have been removed or places have run out. Then the place may
// go to a new method, as soon as nothing is left that could mistake the new method for the old one:
//
//   possible reference           why it is harmless
//   ---------------------------  ------------------------------------------------------------------
//   frames of its code           its versions are freed when no frame is left (reclaimer.h)
//   frames that exit code of     its host is kept until none is left, and told first (retired_hosts.h);
//     a retired method             a removed method has no such frames
//   threads that found it in     all have been quiescent since, or stand still and have not pinned
//     service, in slow paths       it (Reclaimer::leave, method_pin.h)
//   code of other methods that   Version::refers_to lists it; such code in service is withdrawn, as if
//     calls it, has inlined it,    it were evicted, and its frames are called back; waits until it is
//     or compares its stub         freed. Code compiled later calls Routines::gone() instead
//   compilations that began      LookingAround: waits for them. They may already compare its stub, so
//     before it was removed        their code lists it as well (removed_meanwhile)
//   requests, notes, lists       removed from queue, rings and lists when it is removed
//   threads' contexts            cleared, its slabs given back, when the place is given away
//   tables of call targets       its entries belong to no method from then on; their greatest possible
//                                  count is known (observe/forgotten_targets.cc)
//   code that keeps its id       the id has a generation, so it no longer names any method
//   traces                       handles are Method::ordinal, which is never reused
//   log records, profiles        use the whole id, or keys of the host
//
// The host may keep the entry address. A call of it ends with the trap kNoCode while the place
// waits, and reaches the new method after that. The code that the stub leads to (Guest) never
// dereferences the old method, which may be destroyed concurrently.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/look.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

class Places {
 public:
  // A set of places, by index.
  using Set = std::vector<bool>;
  using Look = tiering::Look;

  // While there are unused places, the search for places to reuse is repeated after at least this
  // many removals, or an eighth of all places, so that its cost per removal is constant.
  static constexpr uint64_t kLeastRemovals = 32;

  explicit Places(const MethodTable& methods) : methods_(methods) {}

  // Returns how many methods were ever added: Method::ordinal of the last one.
  uint64_t methods_seen() const UPTIER_REQUIRES(state_lock) { return methods_seen_; }
  void note_added() UPTIER_REQUIRES(state_lock) { ++methods_seen_; }
  // Records that the method has just been removed; it is the latest removal.
  void note_removed(Method& m) UPTIER_REQUIRES(state_lock) {
    assert(m.removed_at <= removals_);
    m.removed_at = ++removals_;
    // If memory runs out, its place is never reused.
    finishes([&] { removed_.push_back(m.id.index()); });
  }
  // Returns how many removed methods still have their place.
  size_t removed() const UPTIER_REQUIRES(state_lock) { return removed_.size(); }

  // Begin and end a LookingAround.
  void begin_look(Look& look) noexcept UPTIER_REQUIRES(state_lock);
  void end_look(Look& look) noexcept UPTIER_REQUIRES(state_lock);
  // Says whether a method was removed after the earliest current look began.
  bool removed_meanwhile(const Method& m) const UPTIER_REQUIRES(state_lock) {
    return first_look_ != nullptr && m.removed_at > first_look_->since;
  }

  // Returns the place that has been free longest, or nothing.
  std::optional<uint32_t> take() UPTIER_REQUIRES(state_lock);
  // Returns a place that take() gave out and that was not used.
  void return_place(uint32_t index) noexcept UPTIER_REQUIRES(state_lock) {
    finishes([&] { free_.push_front(index); });
  }
  bool none_free() const UPTIER_REQUIRES(state_lock) { return free_.empty(); }
  // Returns how many of the latest removals keep their places if places to reuse are searched for
  // now; nothing if no search is due. `fresh`: there are unused places; `kept`:
  // Options::removed_kept.
  std::optional<size_t> looks_for_more(bool fresh, uint64_t kept) const UPTIER_REQUIRES(state_lock);
  // Records that a search was made.
  void looked_for_more() UPTIER_REQUIRES(state_lock);

  // The steps of a search, in this order; the runtime has steps of its own between them.
  //
  // Returns the places of all removals except the last `kept`, if nothing runs the methods' own
  // code. Enterable code, for frames that exit other methods' code, does not matter: it goes with
  // that code (retired_hosts.h).
  Set candidates(size_t kept) const UPTIER_REQUIRES(state_lock);
  // Excludes places that code refers to, or whose methods are being looked at.
  void keep_what_code_means(Set& places) const UPTIER_REQUIRES(state_lock);
  // Removes data of other methods that refers to these places by id.
  void forget_paths(const Set& places) const UPTIER_REQUIRES(state_lock);
  // Frees the places for other methods.
  void free(const Set& places) UPTIER_REQUIRES(state_lock);

 private:
  const MethodTable& methods_;
  std::deque<uint32_t> removed_, free_;       // places of removed methods, and free places, in that
                                              // order
  uint64_t methods_seen_ = 0, removals_ = 0;  // methods added so far, and removed so far
  uint64_t next_look_ = 0;                    // number of removals at which to search again
  Look *first_look_ = nullptr, *last_look_ = nullptr;  // in the order of their begin
};

// Says whether a version that is not freed refers to a method of one of the places.
bool means_one_of(const Version& v, const Places::Set& places) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
