// GoneHosts: determines when the host of a retired method is no longer asked.
//
// The law: while a method is in service, its host is asked by calls and compilations. After that
// only frames ask it: they exit their code to host_resume, or to baseline code that is made from
// `build`. Such a frame is in a version of the method itself, or in one that has inlined its body.
// So these versions are counted (Method::holds), plus one for the threads that were looking at the
// method when it was retired:
//
//   retired --(no holds, no compilation that began before)--> its enterable code retired
//           --(that is freed, too)--> gone
//
// Enterable code itself has no baseline code to exit to: its guards go to the host, by host_resume.
// So the code is waited for; but no frame enters it any more.
//
//   Thread: functions with _locked: with the state mutex, which the others take. Hosts are told without it,
//   and only by the program's own threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <span>
#include <vector>

#include "tiering/base/state_lock.h"
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

  // A version exists, which may ask hosts; it has been freed.
  void hold_locked(const Version& v) UPTIER_REQUIRES(state_lock);
  void let_go_locked(const Version& v) UPTIER_REQUIRES(state_lock);
  // The method has one hold less.
  void let_go_locked(Method& m) UPTIER_REQUIRES(state_lock);
  // Retires enterable code that no frame can enter any more. Returns whether it did: such code may
  // be free at once.
  bool leave_locked() UPTIER_REQUIRES(state_lock);
  // Says whether leave_locked() has methods to examine, perhaps again.
  bool wait_to_leave() const { return !left_.empty(); }

  // Schedules telling a host about a method; its `host_use` says so.
  void tell_later_locked(Method& m) noexcept UPTIER_REQUIRES(state_lock);
  // Tells all hosts that are scheduled. Cost: one load if there are none.
  void tell() noexcept {
    if (wait_.load(std::memory_order_relaxed)) tell_slow();  // or a later thread will
  }
  // The end of the runtime, when nothing runs: tells all remaining hosts.
  void leave_all();
  // Waits while other threads tell the hosts of these methods, which may be destroyed afterwards.
  void await_tellers(std::span<const MethodId> methods);

  // Says whether `build` may be called. The caller has the method's turn; the code that forbids it
  // waits for that turn.
  bool may_ask(const Method& m) const;

 private:
  void tell_slow() noexcept;

  WaitedMutex& state_mutex_;
  const MethodTable& methods_;
  const Places& places_;
  Reclaimer& reclaimer_;
  void leave_later_locked(Method& m) noexcept;

  // Retired methods that, as far as is known, only their enterable code holds. A method that could
  // not be added for lack of memory is told of at the end of the runtime.
  std::vector<Method*> left_;
  Method *first_gone_ = nullptr, *last_gone_ = nullptr;  // hosts to be told, linked by
                                                         // Method::next_gone
  std::atomic<bool> wait_{false};                        // there are such hosts
  std::condition_variable_any told_;
};

}  // namespace uptier::tiering
