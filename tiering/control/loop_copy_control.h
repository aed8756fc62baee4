// LoopCopyControl: instrumented copies of code that frames stay in, for programs that spend their
// life in one call.
//
//   a frame stays in code for kLongStay times as long as the code took to compile
//     --its poll words say kObserve--> it reports --> the instrumented copy of its loop is made -->
//     the poll words say so again --> it reports, and runs the copy for some iterations
//       (observed_rounds.h) --> a rest --> again
//     --64 iterations--> window --> like those before? like the profile of the code?
//
// Compilations for this purpose only take at most 1 part in kLongStay of the time since then; the
// first one is not limited.
//
// Frames are found by their own reports: for a version without frames nothing is reported, and
// nothing more is done. The rest is kRestNs, or kRestPart times the time of the iterations if that
// is longer, so copies run at most a 64th of the time; but at least one iteration is observed,
// however long it is.
//
// Windows cover the loop only, because the rest of the body is not sampled evenly. Their samples
// are iterations, not weights of calls. In estimates, a window stands for all iterations of
// optimized code since the window before, if the code counts them. Decisions based on windows
// concern the shares inside the loop.
//
// If the profile of a loop is too far from the one its code was made from, the loop is compiled
// again by rule (2) of uptier/policy.h; the code is assumed to have run since it was installed. The
// new code is made from the windows inside the loop, and from all counts outside (phase.h). Frames
// move there as to any newer code.
//
// Not observed: loops without polls (jit/opt/poll_loops.h); frames of a version for calls, if their
// thread has called it often.
//
// Law: at most one copy of a loop is in service, and only with the plain version it is the copy of.
//
//   Thread: the worker, or without a worker the thread that flushes, with the state mutex.
#pragma once

#include "sampler/convergence.h"
#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/copy_rules.h"
#include "tiering/control/newer_code.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/wanted_frames.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/drift_detector.h"
#include "tiering/observe/observer.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"

namespace uptier::tiering {

class LoopCopyControl {
 public:
  // The components that it uses. All outlive it.
  struct Parts {
    const CopyRules& rules;
    const MethodTable& methods;
    Observer& observer;
    DriftDetector& drift;
    RateControl& rates;
    Requests& requests;
    Reclaimer& reclaimer;
    const System& system;
    WantedFrames& frames;
    NewerCode& newer;
    InService& in_service;
  };
  explicit LoopCopyControl(const Parts& parts);

  // The copy of a loop has been made: installs it, unless the plain version is gone.
  void begin_observing(Method& m, Version& v) UPTIER_REQUIRES(state_lock);
  // A version was installed whose frames may stay in it.
  void watch_frames_of(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  // The choice of observed code has changed.
  void watch_all_frames() UPTIER_REQUIRES(state_lock);
  // Makes frames report when it is time to observe.
  void call_watched_if_due();
  // A frame has reported: makes the code it needs to be observed, or schedules its next turn.
  void take_frame(Method& m, const sampler::Note& note) UPTIER_REQUIRES(state_lock);
  // Takes a window of iterations from a thread.
  void take_rounds(Method& m, const Version& copy, sampler::Window w) UPTIER_REQUIRES(state_lock);

 private:
  void call_watched(const Method& m);
  void consider(Method& m, LoopId loop, const Version& v) UPTIER_REQUIRES(state_lock);
  void follow_drift(Method& m, const Version& copy, CopyWindows& o) UPTIER_REQUIRES(state_lock);

  const CopyRules& rules_;
  const MethodTable& methods_;
  Observer& observer_;
  DriftDetector& drift_;
  RateControl& rates_;
  Requests& requests_;
  Reclaimer& reclaimer_;
  const System& system_;
  WantedFrames& frames_;
  NewerCode& newer_;
  InService& in_service_;
};

}  // namespace uptier::tiering
