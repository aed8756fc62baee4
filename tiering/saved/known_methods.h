// KnownMethods: methods that earlier processes ran, which the worker compiles before they are called;
// and in which order methods are called first, which the next process will want to know.
//
//   a thread attaches, first call of any method --> listed, once each: by the latter all that a module
//     brings are registered; by the former they are where the host attaches its threads then
//     --worker, when it has nothing else to do--> one after the other: what is hot first, side by
//       side with what it calls; then the rest, from the last that was called before. What is called
//       next is made by its caller meanwhile: taken from the first on, each method would be had at
//       the moment when it is called, and one of the two would wait for the other
//
// Once one was compiled ahead, first calls of such methods are not noticed any more, so this process
// leaves no order of its own.
//
//   Thread: the caller holds the runtime's state mutex, where nothing else is said.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tiering/model/method_table.h"
#include "tiering/saved/profile_store.h"

namespace uptier::tiering {

class KnownMethods {
 public:
  // Returns whether they are to be listed now: once at a first call. Thread: any.
  bool claim_listing() noexcept { return wanted_.exchange(false, std::memory_order_relaxed); }
  // The same when a thread attaches and there are methods.
  bool claim_early_listing() noexcept {
    return wanted_early_.exchange(false, std::memory_order_relaxed);
  }
  // Lists those of the methods that `may` be compiled ahead and that the store has, but for those that
  // it has looked at before. These stay ahead of what comes now.
  void list(const MethodTable& methods, ProfileStore& store,
            const std::function<bool(const Method&)>& may);
  // Returns the next one that is in service and has no code yet, or null.
  Method* next(const std::function<bool(Method&)>& has_code);
  // The method is being removed.
  void forget(const Method& m) { std::erase(known_, &m); }

  // A method was compiled ahead of its first call.
  void note_made_ahead() { made_ahead_ = true; }
  // A method was called, perhaps for the first time.
  void note_call(Method& m) {
    if (m.first_call == 0) m.first_call = ++first_calls_;
  }
  // Adds when a method was called first, if that was noticed.
  void tell_first_call(const Method& m, CallProfile& calls) const;

 private:
  std::atomic<bool> wanted_{true}, wanted_early_{true};
  size_t looked_at_ = 0;        // of all methods
  std::vector<Method*> known_;  // the next one last
  bool made_ahead_ = false;
  uint64_t first_calls_ = 0;  // methods that were called
};

}  // namespace uptier::tiering
