// DecisionLog: the last decisions in their order, and when each was made.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "tiering/model/method.h"
#include "uptier/report.h"

namespace uptier::tiering {

// Times, by now_ns(), are apart from the records, because no decision depends on them.
class DecisionLog {
 public:
  // Keeps the last `kept` records.
  explicit DecisionLog(uint64_t kept) : kept_(kept) {}

  // Numbers a record and takes it; the oldest goes where there are too many.
  void push_back(DecisionRecord r);
  // Logs what was decided about a method elsewhere, or (without inputs) noticed.
  void log(const Method& m, std::string action, std::string reason, std::string inputs = {});
  // Logs what concerns no method.
  void log_event(std::string action, std::string what);

  void keep(uint64_t kept);
  uint64_t forgotten() const { return made_ - records_.size(); }
  const std::deque<DecisionRecord>& records() const { return records_; }
  const std::deque<uint64_t>& times() const { return times_; }

 private:
  uint64_t kept_, made_ = 0;
  std::deque<DecisionRecord> records_;
  std::deque<uint64_t> times_;
};

}  // namespace uptier::tiering
