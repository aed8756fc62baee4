// CopyControl: instrumented copies of optimized code, which detect changes of phase after the last
// tier. It makes and retires them and evaluates their windows.
//
//   optimized --copy_after calls later--> its instrumented copy is made -->
//     some 500 calls a second run it at first, then fewer, and count to their ends
//       --64 samples--> window --> like those before?
//
// The copy counts in a slab of its own, in windows of its own; the counts and entries of baseline
// copies stay as they were. Both contribute to the estimates of the method: the windows are a
// second stream of the thread. A block that the optimizer removed is not observed: nothing is added
// to it, and it takes no part in comparisons.
//
// Inlined bodies are counted too, each at its place. A window is one distribution over the method's
// own blocks and theirs, because the code is laid out for all of them together. Their counts are
// not added to any method's profile (docs/notes/0028): decisions based on them concern this code
// only, and readers get them separately (inlined_bodies.cc).
//
// Targets of indirect calls are counted by table, whether the call was guessed or not, and are part
// of the distribution, too: those of the method's own calls (indirect_targets.h), and those in
// inlined bodies, each at its place (inlined_slots.cc).
//
// Probes, of the host and of parameters, observe as in baseline copies, at the same sites, but are
// not part of the distribution. The results of probes in an inlined body are published with its
// blocks.
//
// See drift_detector.h for the evaluation of windows; loop_copy_control.h for copies of code that
// frames stay in, which count iterations in the same slab; phase.h for the profile of the next
// version.
//
// Law: at most one copy for calls of a method is in service, and only with the plain version it is
// the copy of.
//
// Not bounded: optimized code has no checks, so a sampled call counts to its end, including loops
// and recursion (the copy calls itself). The interval bounds the share of the time, not the length
// of one sample. A callee that optimized code calls past its stub is not sampled; its callers are.
//
// Why an interval of 16384: a slow path takes some dozens of times as long as a call of a tiny
// function (`./dev bench micro` times both), so even a program that only makes such calls pays a
// few parts in a thousand; and a method that is called a million times a second has a window each
// second.
//
//   Thread: the worker, or without a worker the thread that flushes, with the state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"
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

// Says whether a copy for calls is in service. Thread: any.
inline bool observes_optimized(const Method& m) noexcept {
  return usable(m.optimizing->copy.load(std::memory_order_acquire));
}

class CopyControl {
 public:
  // The components that it uses. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;          // the options with later changes,
    const PolicyOptions& policy;  // and the policy derived from them
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

  // Decides which code may be observed.
  const CopyRules& rules() const { return rules_; }
  // The copies of loops.
  LoopCopyControl& loops() { return loops_; }

  // Requests the copy of a method that is still called after it was optimized.
  void want_optimized_copy(Method& m) UPTIER_REQUIRES(state_lock);
  // The copy has been made: installs it, unless the method has been evicted meanwhile.
  void begin_observing_optimized(Method& m, Version& v) UPTIER_REQUIRES(state_lock);
  // Another optimized version is in service: retires the copy of the previous one.
  void retire_optimized_copy(Method& m) UPTIER_REQUIRES(state_lock);
  // Takes the counts of a copy from a thread. Returns whether to ask the policy about the method.
  bool take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  // `optimized_interval` has changed: adapts the rates of all methods.
  void change_rates(const MethodTable& methods) UPTIER_REQUIRES(state_lock);
  // A version will be made because the one in service has drifted.
  void follow_drift(Method& m) UPTIER_REQUIRES(state_lock);

 private:
  bool can_observe_optimized(const Method& m) const;
  // Says whether a copy takes little time beside that for which the method has been optimized.
  bool pays(Method& m) UPTIER_REQUIRES(state_lock);
  void request_optimized_copy(Method& m) UPTIER_REQUIRES(state_lock);
  sampler::Rate rate_for(const Method& m) const UPTIER_REQUIRES(state_lock);

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
