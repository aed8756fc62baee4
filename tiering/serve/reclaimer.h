// Reclaimer: frees retired code when nothing can run it any more.
//
// The law (epoch-based reclamation): retiring code advances the epoch to e, after the last word
// that led to it has been overwritten. A thread that passes a quiescent point afterwards copies an
// epoch >= e and holds no frame of that code, nor can it get one. So code retired at e is free once
// every attached thread's epoch is >= e, or the thread is blocked and no word of its stack, nor of
// those that it has suspended (stack.h), points into the code, or at what describes it: it will go
// on in the frames that it has, and in no others.
// A thread that does neither keeps the code alive: it is still running it, for all we know.
// A method that is removed is left behind by the same law, with the object that describes it in the
// place of code: slow paths look at it without a lock.
// If memory for the list is refused, the code is never freed: it may be running.
//
//   Thread: any; the caller holds the runtime's state mutex, except for epoch().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tiering/model/method.h"
#include "tiering/model/thread.h"

namespace uptier::tiering {

class Reclaimer {
 public:
  explicit Reclaimer(Events& events) : events_(events) {}

  // The versions that were freed, and the removed methods that no thread looks at any more.
  struct Freed {
    std::vector<Version*> versions;
    std::vector<Method*> methods;
  };

  // The current epoch; a quiescent thread stores it. seq_cst: ordered with the cell's stores before
  // and the thread's loads of cells after.
  uint64_t epoch() const { return epoch_.load(std::memory_order_seq_cst); }
  bool has_limbo() const { return limbo_size_.load(std::memory_order_relaxed) != 0; }

  // Takes a version out of service for good. Nothing may lead new calls to it any more.
  void retire(Version& v);
  // Asks when all threads have left a method behind. No id may lead to it any more.
  void leave(Method& m);
  // Destroys what says of a version that was freed, or of a trial of such, once no thread can be
  // looking at it. Nothing may lead to it any more.
  void drop(std::unique_ptr<Version> v);
  void drop(std::unique_ptr<Trial> t);
  // Moves the epoch of the calling thread, which is blocked, if its stacks need none of what waits;
  // code that a host made has an extent that is not known, and is needed for all we know.
  void pass_if_unneeded(AttachedThread& t) const;
  // Called with the versions that are about to be freed, when there are some.
  using BeforeFree = void (*)(void* user, std::span<Version* const> versions) noexcept;
  void set_before_free(BeforeFree f, void* user) {
    before_free_ = f;
    before_free_user_ = user;
  }
  // Frees what all `threads` have left behind.
  // Nothing, where memory for that is refused (it throws before anything is freed).
  Freed reclaim(std::span<const std::unique_ptr<AttachedThread>> threads);

 private:
  struct Item {
    Version* version;  // whose code goes; null: what is dropped goes, or a method is left
    uint64_t epoch;
    std::unique_ptr<Version> dropped = nullptr;
    std::unique_ptr<Trial> trial = nullptr;
    Method* method = nullptr;
  };
  void push(Item item) noexcept;
  // Returns whether one can say of a stack that it does not need the item: the extent of code that a host
  // made is not known.
  static bool is_known(const Item& item) {
    return item.version == nullptr || item.version->code_bytes != 0;
  }
  class Sought;
  // Marks the items that a blocked thread's stacks refer to.
  void pin_what_stacks_need(const AttachedThread& t, std::vector<bool>& pinned) const;
  void tell_before_free(const std::vector<bool>& pinned) const;
  Freed free_all_but(const std::vector<bool>& pinned);

  Events& events_;
  BeforeFree before_free_ = nullptr;
  void* before_free_user_ = nullptr;
  std::atomic<uint64_t> epoch_{1};
  std::atomic<size_t> limbo_size_{0};
  std::vector<Item> limbo_;  // epochs ascend
};

}  // namespace uptier::tiering
