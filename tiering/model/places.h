// Places: how the place of a removed method is used again. A place is an index, and by that a stub, a
// cell, and words in every thread's context.
//
//   in service --remove_methods--> removed --(nothing means it)--> free --add_method--> in service
//            \--retire_methods--> retired --(retired_hosts.h)--> removed
//
// A removed method keeps its place, and the report and the profile keep what is known of it, until
// Options::removed_kept later ones have been removed or places have run out. From then on the place
// may go to a new method, as soon as nothing is left that could take the new one for the old:
//
//   what could                   why it does not
//   ---------------------------  ------------------------------------------------------------------
//   frames of its code           its versions are freed when none is left (reclaimer.h)
//   frames that leave code of    its host is there until none is left, and told before (retired_hosts.h);
//     a retired one for it         one that was removed has no such
//   threads that found it in     all have been quiescent since, or stand still and hold no address
//     service, in slow paths       of it (Reclaimer::leave)
//   code of other methods that   Version::refers_to names it; what is in service is withdrawn, as if
//     calls it, has its body in  it were evicted, and frames are called back; waited for until freed.
//     it, or compares its stub   What is compiled from then on calls Routines::gone() in its place
//   compilations that began      LookingAround: waited for. They may compare its stub already, so
//     before it was removed        what they make names it all the same (removed_meanwhile)
//   requests, notes, lists       taken out of queue, rings and lists when it is removed
//   threads' contexts            cleared, its slabs given back, when the place is given away
//   tables of call targets       what they hold of it is nobody's from then on: it is known how much
//                                that is, at most (observe/forgotten_targets.cc)
//   whoever keeps its id         the id carries a generation, so it is nobody's id any more
//   traces                       handles are Method::ordinal, which is not used again
//   log records, profiles        carry the whole id; keys of the host's
//
// The host may keep the entry address. A call of it ends with the trap kNoCode while the place waits,
// and reaches the new method from then on. The code that the stub leads to (Guest) reads nothing of the
// old method, which another thread may be destroying.
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
#include "tiering/model/look.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

class Places {
 public:
  // Places by index: whether each is one of those that a step is about.
  using Set = std::vector<bool>;
  using Look = tiering::Look;

  // While there are places that no method has had, they are looked for again after so many removals
  // at least, or an eighth of all places, so that looking costs each removal a constant.
  static constexpr uint64_t kLeastRemovals = 32;

  explicit Places(const MethodTable& methods) : methods_(methods) {}

  // Returns how many methods there have been, which is Method::ordinal of the last.
  uint64_t methods_seen() const { return methods_seen_; }
  void note_added() { ++methods_seen_; }
  // The method has just been removed: it is the latest one that was.
  void note_removed(Method& m) {
    assert(m.removed_at <= removals_);
    m.removed_at = ++removals_;
    finishes([&] { removed_.push_back(m.id.index()); });  // else its place is nobody's for good
  }
  // Returns how many of those that were removed have their place still.
  size_t removed() const { return removed_.size(); }

  // Begins and ends a LookingAround.
  void begin_look(Look& look) noexcept;
  void end_look(Look& look) noexcept;
  // Returns whether a method was removed after the earliest look that goes on began.
  bool removed_meanwhile(const Method& m) const {
    return first_look_ != nullptr && m.removed_at > first_look_->since;
  }

  // Returns the place that has been free for the longest time, or nothing.
  std::optional<uint32_t> take();
  // Takes one back that take() has returned, and that no method came to have.
  void return_place(uint32_t index) noexcept {
    finishes([&] { free_.push_front(index); });
  }
  bool none_free() const { return free_.empty(); }
  // Returns how many of the latest removals keep their places if other places are looked for now, or
  // nothing if no place is to be looked for. `fresh`: there is a place that no method has had; `kept`: Options::removed_kept.
  std::optional<size_t> looks_for_more(bool fresh, uint64_t kept) const;
  // They were looked for.
  void looked_for_more();

  // The steps by which they are found, in this order; the runtime's are between them.
  //
  // Returns the places of all removals except the last `kept`, if nothing runs the methods' own
  // code. What frames that leave others' code go on in goes with those (retired_hosts.h).
  Set candidates(size_t kept) const;
  // Leaves those alone that code means, or whose methods are looked at.
  void keep_what_code_means(Set& places) const;
  // Nothing that is kept of other methods leads to these by an id.
  void forget_paths(const Set& places) const;
  // They may have other methods.
  void free(const Set& places);

 private:
  const MethodTable& methods_;
  std::deque<uint32_t> removed_, free_;  // places of methods that have been removed, in that order
  uint64_t methods_seen_ = 0, removals_ = 0;  // methods that were added, and that were removed
  uint64_t next_look_ = 0;                    // removals at which places are looked for again
  Look *first_look_ = nullptr, *last_look_ = nullptr;  // in the order in which they began
};

// Returns whether a version that is not freed refers to a method of one of the places.
bool means_one_of(const Version& v, const Places::Set& places);

}  // namespace uptier::tiering
