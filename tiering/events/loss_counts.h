// LossCounts: the figures of LossReport that are counted from records.
//
// Others are counted where they happen, because a record for each would cost more than the loss:
// samples, slabs, flushes, loops, traps and log records on the slow paths of guest threads, and
// calls on unattached threads. Losses of the trace, of keys, of poll words and of unstable bodies
// are counted by their owners.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "tiering/base/state_lock.h"
#include "tiering/events/events.h"
#include "uptier/report.h"

namespace uptier::tiering {

class LossCounts final : public EventListener {
 public:
  static constexpr EventKinds kHears =
      kinds_of(EventKind::kFailed, EventKind::kRefused, EventKind::kDropped, EventKind::kEvicted,
               EventKind::kForgotten);

  void hear(const Event& e) noexcept UPTIER_REQUIRES(state_lock) override {
    switch (e.kind) {
      case EventKind::kFailed: counts_.compiles_failed++; break;
      case EventKind::kRefused: counts_.code_refused++; break;
      case EventKind::kDropped: counts_.requests_dropped++; break;
      case EventKind::kEvicted: counts_.evictions++; break;
      case EventKind::kForgotten:
        (e.version == 0 ? counts_.methods_forgotten : counts_.versions_forgotten)++;
        break;
      default: break;
    }
  }
  // Returns these figures; all others are 0.
  const LossReport& counts() const UPTIER_REQUIRES(state_lock) { return counts_; }

 private:
  LossReport counts_;
};

}  // namespace uptier::tiering
