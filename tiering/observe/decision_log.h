// DecisionLog: numbers and emits decisions, and keeps the last ones in their order with their
// times. It keeps the kDecided records that it hears.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "tiering/base/state_lock.h"
#include "tiering/events/events.h"
#include "tiering/model/method.h"
#include "uptier/report.h"

namespace uptier::tiering {

// Times, by now_ns(), are separate from the records, because no decision depends on them.
class DecisionLog final : public EventListener {
 public:
  // Keeps the last `kept` records. `events` outlives this.
  DecisionLog(Events& events, uint64_t kept) : events_(events), kept_(kept) {
    events.listen(*this, kinds_of(EventKind::kDecided));
  }

  // Numbers a record and emits it.
  void push_back(DecisionRecord r) UPTIER_REQUIRES(state_lock);
  // Keeps a record that was emitted; drops the oldest if there are too many. If memory runs out,
  // the record is dropped at once.
  void hear(const Event& e) noexcept UPTIER_REQUIRES(state_lock) override;
  // Logs a decision about a method that was made elsewhere, or (without inputs) an observation.
  void log(const Method& m, std::string action, std::string reason, std::string inputs = {},
           uint32_t location = 0) UPTIER_REQUIRES(state_lock);
  // Logs an event that concerns no method.
  void log_event(std::string action, std::string what) UPTIER_REQUIRES(state_lock);

  void keep(uint64_t kept) UPTIER_REQUIRES(state_lock);
  uint64_t forgotten() const UPTIER_REQUIRES(state_lock) { return made_ - records_.size(); }
  const std::deque<DecisionRecord>& records() const UPTIER_REQUIRES(state_lock) { return records_; }
  const std::deque<uint64_t>& times() const UPTIER_REQUIRES(state_lock) { return times_; }

 private:
  Events& events_;
  uint64_t kept_, made_ = 0;
  std::deque<DecisionRecord> records_;
  std::deque<uint64_t> times_;
};

}  // namespace uptier::tiering
