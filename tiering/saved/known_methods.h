// KnownMethods: methods that earlier processes ran, which the worker compiles before they are
// called; and the order of first calls, for the next process.
//
//   a thread attaches, first call of any method --> listed, once for each event. At the first call, all
//     methods of a module are registered; at the attach, they are if the host attaches threads after that
//     --worker, when it has nothing else to do--> compiled one by one: hot methods first, placed next to
//       their callees; then the rest, beginning with the method that was called last. The caller makes
//       the methods that are called next: if the worker took those first, it would make each method just
//       when it is called, and one of the two would wait for the other
//
// Once a method was compiled ahead, first calls of such methods are not recorded any more, so this
// process saves no order of its own.
//
//   Thread: the caller holds the runtime's state mutex, unless stated otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "tiering/saved/profile_store.h"

namespace uptier::tiering {

class KnownMethods {
 public:
  // Says whether to list them now: once, at a first call. Thread: any.
  bool claim_listing() noexcept { return wanted_.exchange(false, std::memory_order_relaxed); }
  // The same when a thread attaches and there are methods.
  bool claim_early_listing() noexcept {
    return wanted_early_.exchange(false, std::memory_order_relaxed);
  }
  // Lists the methods that `may` be compiled ahead and that are in the store, except those it has
  // examined before. Methods listed earlier stay ahead of these.
  void list(const MethodTable& methods, ProfileStore& store,
            const std::function<bool(const Method&)>& may) UPTIER_REQUIRES(state_lock);
  // Returns the next method in service without code, or null.
  Method* next(const std::function<bool(Method&)>& has_code);
  // The method is being removed.
  void forget(const Method& m) { std::erase(known_, &m); }

  // A method was compiled ahead of its first call.
  void note_made_ahead() { made_ahead_ = true; }
  // A method was called, perhaps for the first time.
  void note_call(Method& m) UPTIER_REQUIRES(state_lock) {
    if (m.first_call == 0) m.first_call = ++first_calls_;
  }
  // Adds the position of a method's first call, if it was recorded.
  void tell_first_call(const Method& m, CallProfile& calls) const UPTIER_REQUIRES(state_lock);

 private:
  std::atomic<bool> wanted_{true}, wanted_early_{true};
  size_t looked_at_ = 0;        // methods examined so far
  std::vector<Method*> known_;  // the next one last
  bool made_ahead_ = false;
  uint64_t first_calls_ = 0;  // methods that were called
};

}  // namespace uptier::tiering
