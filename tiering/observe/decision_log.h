// DecisionLog: numbers and emits decisions, and keeps the last ones in their order.
//
// It keeps what a decision depends on, some 50 bytes; the words are made when they are read
// (policy/logged_decision.h, packed_decisions.h), and for subscribers of kDecided.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <string_view>

#include "tiering/base/state_lock.h"
#include "tiering/events/events.h"
#include "tiering/model/method.h"
#include "tiering/observe/packed_decisions.h"
#include "uptier/report.h"

namespace uptier::tiering {

class DecisionLog {
 public:
  // Keeps the last `kept` records. `events` outlives this.
  DecisionLog(Events& events, uint64_t kept) : events_(events), kept_(kept) {}

  // Numbers a record, emits it and keeps it; drops the oldest if there are too many. If memory runs
  // out, the record is emitted, but not kept. Time and sequence are set here.
  void add(LoggedDecision d) UPTIER_REQUIRES(state_lock);
  // Logs a decision about a method that a rule of policy.h or value_policy.h has made from `inputs`
  // and `options`. Its reason stands after `before`. `location`: of what it is about, or 0.
  void log(const Method& m, const DecisionInputs& inputs, const PolicyOptions& options,
           std::string_view before = {}, uint32_t location = 0) UPTIER_REQUIRES(state_lock);
  // Logs an observation about a method.
  void log(const Method& m, std::string_view action, std::string_view reason)
      UPTIER_REQUIRES(state_lock);
  // Logs an event that concerns no method.
  void log_event(std::string_view action, std::string_view what) UPTIER_REQUIRES(state_lock);

  void keep(uint64_t kept) UPTIER_REQUIRES(state_lock);
  uint64_t forgotten() const UPTIER_REQUIRES(state_lock) { return made_ - kept_records_.size(); }
  const PackedDecisions& kept() const UPTIER_REQUIRES(state_lock) { return kept_records_; }

 private:
  LoggedDecision about(const Method& m) const UPTIER_REQUIRES(state_lock);

  Events& events_;
  uint64_t kept_, made_ = 0;
  PackedDecisions kept_records_;
};

}  // namespace uptier::tiering
