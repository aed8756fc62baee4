// LoopReports: reports of timed loops, from the profile and the compiler's data about them.
//
// The cycles of a nest are settled, so that no loop has more than the one around it
// (profile/data/loop_nest.h). Exclusive cycles are differences of these. The timer's own exclusive
// cycles (profile.h) leave out only those inner executions that were timed, and most are not.
//
//   Thread: any; functions with _locked: with the state mutex, which the others take.
#pragma once

#include <cstdint>
#include <vector>

#include "uptier/report.h"
#include "uptier/result.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;

class LoopReports {
 public:
  // `engine` outlives this.
  explicit LoopReports(Engine& engine) : engine_(engine) {}

  // See uptier/runtime.h.
  Status set_loop_meter(const LoopMeter& meter);
  void keep_loop_executions(uint32_t count);
  std::vector<LoopExecution> loop_executions() const;
  std::vector<LoopReport> loops() const;
  // Adds the executions that a thread has kept.
  void add_executions_locked(const AttachedThread& t, std::vector<LoopExecution>& to) const;

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
