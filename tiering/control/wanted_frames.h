// WantedFrames: the frames of optimized code that the worker has to act on later.
//
//   newer     a frame of old code is at a loop: newer code must be made when it is due (osr_exit.h)
//   watched   frames of a method must report for observation when that is due (loop_copy_control.h)
//
//   Thread: wait(): any; the rest: with the runtime's state mutex.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

class WantedFrames {
 public:
  // Newer code for a loop.
  struct Newer {
    Method* method;
    uint32_t loop;
    uint64_t due_ns;    // by now_ns()
    uint64_t osr_outs;  // number of moved frames when it was requested
  };

  // Says whether anything is not due yet.
  bool wait() const noexcept { return wait_.load(std::memory_order_relaxed); }

  void want_newer(const Newer& n) UPTIER_REQUIRES(state_lock) {
    assert(n.method != nullptr && !n.method->removed);
    newer_.push_back(n);
    note_wait();
  }
  // Calls `make` with each that is due; `make` may request it again.
  template <typename Make>
  void take_newer(Make make) {
    if (newer_.empty()) return;
    uint64_t now = now_ns();
    for (const Newer& n : std::exchange(newer_, {})) {
      if (n.due_ns > now) {
        newer_.push_back(n);
      } else {
        make(n);
      }
    }
    note_wait();
  }

  // Makes a method's frames report at a given time, once; the earlier time holds.
  void watch(Method& m, uint64_t due_ns) {
    auto at = std::ranges::find(watched_, &m, &Watched::method);
    assert(std::ranges::count(watched_, &m, &Watched::method) <= 1);
    if (at == watched_.end()) {
      watched_.push_back({&m, due_ns});
    } else {
      at->due_ns = std::min(at->due_ns, due_ns);
    }
    note_wait();
  }
  void unwatch(const Method& m) {
    std::erase_if(watched_, [&](const Watched& w) { return w.method == &m; });
    note_wait();
  }
  // Calls `call` with each method whose frames are due.
  template <typename Call>
  void take_watched(Call call) {
    if (watched_.empty()) return;
    uint64_t now = now_ns();
    std::erase_if(watched_, [&](const Watched& w) {
      if (w.due_ns > now) return false;
      call(*w.method);
      return true;
    });
    note_wait();
  }

  // The method is being removed.
  void forget(const Method& m) {
    std::erase_if(newer_, [&](const Newer& n) { return n.method == &m; });
    unwatch(m);
  }

 private:
  // Frames that must report for observation.
  struct Watched {
    Method* method;
    uint64_t due_ns;
  };

  void note_wait() noexcept {
    wait_.store(!newer_.empty() || !watched_.empty(), std::memory_order_relaxed);
  }

  std::vector<Newer> newer_;
  std::vector<Watched> watched_;  // each method once
  std::atomic<bool> wait_{false};
};

}  // namespace uptier::tiering
