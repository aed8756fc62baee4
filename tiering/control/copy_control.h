// CopyControl: instrumented copies of optimized code: when they are made, when they go, and what their
// windows say.
//
//   of calls    observe_optimized.cc    one call in optimized_interval runs the copy
//   of loops    observe_loops.cc        frames that stay in a loop run some rounds of it there
//   windows     copy_windows.cc         like those before? like what the code was made from?
//   drift       phase.cc                what the next version is made from
//
// Law: there is at most one copy of a method's calls, and one of each loop, in service, and none
// without the plain version that it is the copy of.
//
//   Thread: the worker, or without one whoever flushes, with the state mutex.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sampler/snapshot_ring.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/newer_code.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/wanted_frames.h"
#include "tiering/model/method_table.h"
#include "tiering/model/places.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/policy.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"
#include "uptier/options.h"

namespace uptier::tiering {

// Whether a copy of calls is in service. Thread: any.
inline bool observes_optimized(const Method& m) noexcept {
  return usable(m.optimizing->copy.load(std::memory_order_acquire));
}

class CopyControl {
 public:
  // What it works on; all outlive it.
  struct Parts {
    const Options& options;
    const Options& live;          // what of the options changes, and
    const PolicyOptions& policy;  // what follows from it
    bool always_instrumented;     // every call is counted
    const MethodTable& methods;
    const Places& places;
    Observer& observer;
    RateControl& rates;
    Requests& requests;
    Reclaimer& reclaimer;
    const System& system;
    WantedFrames& frames;
    NewerCode& newer;
    InService& in_service;
  };
  explicit CopyControl(const Parts& parts);

  // Whether optimized code of the method may have copies at all.
  bool observes_copies(const Method& m) const;

  // ---- Of calls -----------------------------------------------------------------------------------

  // Asks for the copy of a method that is still called after it was optimized.
  void want_optimized_copy(Method& m);
  // The copy has been made: it comes into service, unless the method has been evicted meanwhile.
  void begin_observing_optimized(Method& m, Version& v);
  // Another optimized version is in service: the copy of the one before goes.
  void retire_optimized_copy(Method& m);

  // ---- Of loops -----------------------------------------------------------------------------------

  // The copy of a loop has been made; likewise.
  void begin_observing_loop(Method& m, Version& v);
  // A version has come into service whose frames may stay in it.
  void watch_frames_of(Method& m, const Version& v);
  // What is observed has changed.
  void watch_all_frames();
  // Has frames answer that it is time to observe.
  void call_watched_if_due();
  // A frame has answered: what it needs to be observed is made, or its next turn comes.
  void take_frame(Method& m, const sampler::Note& note);

  // ---- Windows ------------------------------------------------------------------------------------

  // Takes what a thread hands over of a copy. Returns whether the policy is to be asked about the
  // method.
  bool take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts);
  // A version is to be made for the drift of the one in service.
  void follow_drift(Method& m);

 private:
  // observe_optimized.cc
  bool can_observe_optimized(const Method& m) const;
  void request_optimized_copy(Method& m);
  void number_copy(Method& m, Version& v);
  // observe_loops.cc
  void call_watched(const Method& m);
  void take_rounds(Method& m, LoopId loop, const Version& copy, sampler::Window w);
  void consider_loop(Method& m, LoopId loop, const Version& v);
  // copy_windows.cc
  bool learn_window(Method& m, CopyWindows& o, const Version& copy, const sampler::Window& w);
  bool compare_with_profile(Method& m, CopyWindows& o, const Version& v, const Version& copy);
  // phase.cc
  void follow_loop_drift(Method& m, const Version& copy, CopyWindows& o);
  // observe_inlined.cc
  std::string block_name(const Method& m, const Version& copy, size_t word) const;

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  const bool always_instrumented_;
  const MethodTable& methods_;
  const Places& places_;
  Observer& observer_;
  RateControl& rates_;
  Requests& requests_;
  Reclaimer& reclaimer_;
  const System& system_;
  WantedFrames& frames_;
  NewerCode& newer_;
  InService& in_service_;
};

}  // namespace uptier::tiering
