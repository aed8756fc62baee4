// CopyControl: instrumented copies of optimized code, by which changes of phase are seen after the last
// tier: when they are made, when they go, and what their windows say.
//
//   optimized --copy_after calls later--> its instrumented copy is made -->
//     some 500 calls a second run it at first, then fewer, and count to their ends
//       --64 samples--> window --> like those before?
//
// The copy counts in a slab of its own, in windows of its own; what baseline copies have counted,
// and how often they were entered, stays as it was. Both go into the estimates of the method: a
// thread's windows are a stream beside its other one. A block that the optimizer removed is not
// observed: nothing is added to it, and it takes no part in comparisons.
//
// Bodies that are inlined are counted too, each where it is. A window is one distribution over the
// method's own blocks and theirs: the code is laid out for all of them together. Their counts go
// into no method's profile (docs/notes/0028): what is decided by them is decided about this code,
// and readers get them apart (inlined_bodies.cc).
//
// Targets of indirect calls are counted by table, whether the call was guessed or not, and are a part
// of the distribution too: those of the method's own (indirect_targets.h), and those of inlined bodies,
// each where it is (inlined_slots.cc).
//
// Probes, the host's and those of telling parameters, observe as they do in baseline copies, at the
// same sites, but are no part of the distribution. What those of an inlined body see is told with its
// blocks.
//
// What windows say is in drift_detector.h; copies of code that frames stay in, which count rounds of
// a loop in the same slab, in loop_copy_control.h; what the next version is made from, in phase.h.
//
// Law: there is at most one copy of a method's calls in service, and none without the plain version that
// it is the copy of.
//
// What is not bounded: there are no checks in optimized code, so a sampled call counts to its end,
// loops and recursion (which goes from the copy to itself) included. The interval bounds the share
// of the time, not the length of one sample. A callee that optimized code reaches past its stub is
// not sampled; its callers are.
//
// Why an interval of 16384: a slow path is some dozens of times as long as a call of a tiny
// function (`./dev bench micro` times both), so even a program of nothing but such calls pays a few parts in
// a thousand; and a method that is called a million times a second shows a window each second.
//
//   Thread: the worker, or without a worker the thread that flushes, with the state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/snapshot_ring.h"
#include "tiering/compile/requests.h"
#include "tiering/control/copy_rules.h"
#include "tiering/control/loop_copy_control.h"
#include "tiering/control/rate_control.h"
#include "tiering/observe/drift_detector.h"
#include "tiering/observe/observer.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"
#include "uptier/options.h"
#include "uptier/policy.h"

namespace uptier::tiering {

// Returns whether a copy of calls is in service. Thread: any.
inline bool observes_optimized(const Method& m) noexcept {
  return usable(m.optimizing->copy.load(std::memory_order_acquire));
}

class CopyControl {
 public:
  // The parts that it works on. All outlive it.
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

  // Which code may be observed.
  const CopyRules& rules() const { return rules_; }
  // The copies of loops.
  LoopCopyControl& loops() { return loops_; }

  // Asks for the copy of a method that is still called after it was optimized.
  void want_optimized_copy(Method& m);
  // The copy has been made: it comes into service, unless the method has been evicted meanwhile.
  void begin_observing_optimized(Method& m, Version& v);
  // Another optimized version is in service: the copy of the one before goes.
  void retire_optimized_copy(Method& m);
  // Takes what a thread hands over of a copy. Returns whether the policy is to be asked about the
  // method.
  bool take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts);
  // `optimized_interval` has changed: the rates of all methods follow.
  void change_rates(const MethodTable& methods);
  // A version is to be made for the drift of the one in service.
  void follow_drift(Method& m);

 private:
  bool can_observe_optimized(const Method& m) const;
  void request_optimized_copy(Method& m);
  sampler::Rate rate_for(const Method& m) const;

  const PolicyOptions& policy_;
  Observer& observer_;
  RateControl& rates_;
  Requests& requests_;
  Reclaimer& reclaimer_;
  InService& in_service_;
  CopyRules rules_;
  DriftDetector drift_;
  LoopCopyControl loops_;
};

}  // namespace uptier::tiering
