// TimelineMaker: makes the timeline of the profile file (profile/upf/timeline.h).
//
//   Thread: the caller holds the state mutex.
#pragma once

#include "profile/upf/timeline.h"
#include "tiering/base/state_lock.h"

namespace uptier::tiering {

struct Engine;
class ReportMaker;

class TimelineMaker {
 public:
  // All outlive this.
  TimelineMaker(Engine& engine, ReportMaker& report_maker)
      : engine_(engine), report_maker_(report_maker) {}

  // Returns the timeline up to now.
  profile::Timeline timeline_locked() const UPTIER_REQUIRES(state_lock);

 private:
  Engine& engine_;
  ReportMaker& report_maker_;
};

}  // namespace uptier::tiering
