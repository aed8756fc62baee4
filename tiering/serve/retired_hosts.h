// GoneHosts: when the host of a method that was retired is not asked any more.
//
// The law: a host is asked for a method by calls and compilations while it is in service, and from
// then on by frames alone, which leave their code for host_resume or for baseline code that is
// made of `build`. Such a frame is in a version of the method's own, or in one that has its body in
// it. So these are counted (Method::holds), and as one more who looked at the method when it went:
//
//   retired --(no holds, no compilation that began before)--> its enterable code retired
//           --(that freed, too)--> gone
//
// Enterable code has nothing to leave for: its guards go to the host, by host_resume, and so the
// code is waited for; but nobody goes into it any more.
//
//   Thread: what ends in _locked with the state mutex, which the others take. Hosts are told without
//   it, and by no thread but the program's own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <span>
#include <vector>

#include "tiering/base/waited_mutex.h"
#include "tiering/model/method_table.h"
#include "tiering/model/places.h"
#include "tiering/serve/reclaimer.h"

namespace uptier::tiering {

class GoneHosts {
 public:
  // All outlive this.
  GoneHosts(WaitedMutex& state_mutex, const MethodTable& methods, const Places& places,
            Reclaimer& reclaimer)
      : state_mutex_(state_mutex), methods_(methods), places_(places), reclaimer_(reclaimer) {}

  // A version is there, which may ask hosts; and it has been freed.
  void hold_locked(const Version& v);
  void let_go_locked(const Version& v);
  // One less holds the method.
  void let_go_locked(Method& m);
  // Retires enterable code that nothing can go into any more. Returns whether it did: such code may
  // be free at once.
  bool leave_locked();
  // Returns whether there are methods that leave_locked() has to look at, perhaps again.
  bool wait_to_leave() const { return !left_.empty(); }

  // A host is to be told of a method, whose `host_use` says so.
  void tell_later_locked(Method& m) noexcept;
  // Tells what there is to be told. Cost: one load, where there is nothing.
  void tell() noexcept {
    if (wait_.load(std::memory_order_relaxed)) tell_slow();  // whoever comes next tells
  }
  // The end of the runtime, where nothing runs: tells all that wait.
  void leave_all();
  // Waits while others tell hosts of these, which may die when they have been told.
  void await_tellers(std::span<const MethodId> methods);

  // Returns whether `build` may be asked. The caller has the method's turn, for which waits who says
  // that it may not.
  bool may_ask(const Method& m) const;

 private:
  void tell_slow() noexcept;

  WaitedMutex& state_mutex_;
  const MethodTable& methods_;
  const Places& places_;
  Reclaimer& reclaimer_;
  void leave_later_locked(Method& m) noexcept;

  // Retired methods that only their enterable code holds, as far as is known. One that is refused a
  // place here is told of at the end of the runtime.
  std::vector<Method*> left_;
  Method *first_gone_ = nullptr, *last_gone_ = nullptr;  // hosts to be told, by Method::next_gone
  std::atomic<bool> wait_{false};                        // there are such
  std::condition_variable_any told_;
};

}  // namespace uptier::tiering
