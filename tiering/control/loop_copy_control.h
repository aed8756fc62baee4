// LoopCopyControl: instrumented copies of code that frames stay in, for programs that live in one call.
//
//   a frame is in the code that it entered at a loop for kLongStay times as long as that took to
//   compile --its words say kObserve--> it tells so --> the loop's instrumented copy is made -->
//     its words say so again --> it tells, and runs that for some rounds
//       (observed_rounds.h) --> a rest --> again
//     --64 rounds--> window --> like those before? like what the code was made from?
//
// Compilations that serve only this purpose take at most one part in kLongStay of the time since then;
// the first one is not limited.
//
// Frames are found by their own answers: a version that nobody runs answers nothing, and nothing
// more is done about it. The rest is kRestNs, and kRestPart times what the rounds took, so copies have
// a 64th of the time at most; but one round is the least, however long.
//
// Windows are of the loop alone: how the rest of the body runs is not drawn evenly. Their samples are
// rounds, so they are no weights of calls: nobody counts the rounds of plain code, and in estimates
// each round that was seen stands for itself. What is decided by windows is decided about the
// shares inside the loop.
//
// If the profile of a loop lies too far from the one its code was made from, the loop is compiled again
// by (2) of uptier/policy.h. The time that the code has been in service stands for the time that it ran.
// The new code is made from the windows inside of the loop, and from all counts outside (phase.h). Frames
// go there as they do to any newer code.
//
// Not observed: loops that do not ask (jit/opt/poll_loops.h); a frame of a version that calls reach,
// where its thread has called it often.
//
// Law: a loop has at most one copy in service, and none without the plain version that it is the copy of.
//
//   Thread: the worker, or without a worker the thread that flushes, with the state mutex.
#pragma once

#include "sampler/convergence.h"
#include "sampler/snapshot_ring.h"
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
  // The parts that it works on. All outlive it.
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

  // The copy of a loop has been made: it comes into service, unless the plain version has gone.
  void begin_observing(Method& m, Version& v);
  // A version has come into service whose frames may stay in it.
  void watch_frames_of(Method& m, const Version& v);
  // What is observed has changed.
  void watch_all_frames();
  // Has frames answer that it is time to observe.
  void call_watched_if_due();
  // A frame has answered: what it needs to be observed is made, or its next turn comes.
  void take_frame(Method& m, const sampler::Note& note);
  // Takes a window of rounds that a thread hands over.
  void take_rounds(Method& m, const Version& copy, sampler::Window w);

 private:
  void call_watched(const Method& m);
  void consider(Method& m, LoopId loop, const Version& v);
  void follow_drift(Method& m, const Version& copy, CopyWindows& o);

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
