// Reclaimer: frees retired code when nothing can run it any more.
//
// The law (epoch-based reclamation): retiring code advances the epoch to e, after the last word
// that led to it has been overwritten. A thread that passes a quiescent point afterwards copies an
// epoch >= e, holds no frame of that code, and cannot get one. So code retired at e is free once
// for every attached thread, its epoch is >= e, or the thread is blocked and no word of its stacks,
// suspended ones included (stack.h), points into the code or at its description: then the thread
// will continue in its present frames only. A thread that does neither keeps the code alive, since
// it may be running it. A removed method is left behind by the same law, with pins (method_pin.h)
// in the place of words: slow paths read it without a lock. If there is no memory for the list, the
// code is never freed, since it may be running.
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

  // The versions that were freed, and the removed methods that no thread can be reading any more.
  struct Freed {
    std::vector<Version*> versions;
    std::vector<Method*> methods;
  };

  // The current epoch; a quiescent thread stores it. seq_cst: ordered after the stores to cells,
  // and before the thread's later loads of cells.
  uint64_t epoch() const { return epoch_.load(std::memory_order_seq_cst); }
  bool has_limbo() const { return limbo_size_.load(std::memory_order_relaxed) != 0; }

  // Takes a version out of service for good. Nothing may lead new calls to it any more.
  void retire(Version& v);
  // Finds out when no thread can be using a method any more. No id may lead to it any more.
  void leave(Method& m);
  // Destroys a freed version, or a trial of such versions, once no thread can be reading it.
  // Nothing may lead to it any more.
  void drop(std::unique_ptr<Version> v);
  void drop(std::unique_ptr<Trial> t);
  // Advances the epoch of the calling thread, which is blocked, if its stacks refer to nothing in
  // the list. Code made by a host has an unknown extent, so it may be referred to.
  void pass_if_unneeded(AttachedThread& t) const;
  // Called before versions are freed, if there are any.
  using BeforeFree = void (*)(void* user, std::span<Version* const> versions) noexcept;
  void set_before_free(BeforeFree f, void* user) {
    before_free_ = f;
    before_free_user_ = user;
  }
  // Frees everything that all `threads` have left behind. If memory runs out, it frees nothing (it
  // throws before anything is freed).
  Freed reclaim(std::span<const std::unique_ptr<AttachedThread>> threads);

 private:
  struct Item {
    Version* version;  // its code is freed; null: `dropped` is destroyed, or a method is left
    uint64_t epoch;
    std::unique_ptr<Version> dropped = nullptr;
    std::unique_ptr<Trial> trial = nullptr;
    Method* method = nullptr;
  };
  void push(Item item) noexcept;
  // Says whether a scan of stacks can show that the item is not needed: the extent of code made by
  // a host is not known.
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
