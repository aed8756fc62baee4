// DecisionLog: the last decisions in their order, and when each was made: what kDecided records leave.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <deque>

#include "tiering/events/events.h"
#include "uptier/report.h"

namespace uptier::tiering {

class DecisionLog final : public EventListener {
 public:
  static constexpr EventKinds kHears = kinds_of(EventKind::kDecided);
  explicit DecisionLog(uint64_t kept) : kept_(kept) {}

  // Takes a decision; the oldest goes where there are too many. One that memory is refused to is
  // forgotten at once.
  void hear(const Event& e) noexcept override;
  // Keeps so many from here on.
  void keep(uint64_t kept);
  // Returns how many decisions are not in records() any more.
  uint64_t forgotten() const { return made_ - records_.size(); }
  const std::deque<DecisionRecord>& records() const { return records_; }
  // Returns when they were made, by now_ns(). The time is apart from the record, because no decision
  // depends on it.
  const std::deque<uint64_t>& times() const { return times_; }

 private:
  uint64_t kept_, made_ = 0;
  std::deque<DecisionRecord> records_;
  std::deque<uint64_t> times_;
};

}  // namespace uptier::tiering
