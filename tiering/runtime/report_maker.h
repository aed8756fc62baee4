// ReportMaker: makes the reports of the runtime, as data.
//
//   Thread: any; functions with _locked: with the state mutex, which the others take.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tiering/base/state_lock.h"
#include "uptier/profile.h"
#include "uptier/report.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

struct Engine;
struct Method;
class PackedDecisions;
class UnattachedCalls;

class ReportMaker {
 public:
  // All outlive this.
  ReportMaker(Engine& engine, UnattachedCalls& unattached_calls)
      : engine_(engine), unattached_calls_(unattached_calls) {}

  // See uptier/runtime.h. `make_report` may throw std::bad_alloc, for callers that catch it.
  Report make_report() const;
  Report report() const;
  SavedReport saved_report() const;
  Profile profile() const;
  std::vector<LogRecord> read_log();
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key);
  // Returns the losses so far. The caller holds the state mutex.
  LossReport losses_locked() const UPTIER_REQUIRES(state_lock);

 private:
  Engine& engine_;
  UnattachedCalls& unattached_calls_;

  // Fills in a report, except for the words of its decisions.
  void fill(Report& r, PackedDecisions& decisions) const;
  // Fills in the current sampling state of a method.
  void report_observing(const Method& m, MethodReport& r) const UPTIER_REQUIRES(state_lock);
};

}  // namespace uptier::tiering
