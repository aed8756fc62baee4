// InService: decides which code calls and frames of a method reach, and withdraws code from them.
//
// The law: calls go through the method's cell, which leads to the first of these that exists:
//
//   the trial routine, or a guard        while two optimized versions are in service (trial.h,
//                                        value_versions.h)
//   optimized code
//   the instrumented copy                if every call is counted
//   baseline code
//   the host's interpreter, or the routine that makes code
//
// link_locked() sets the cell; each change of this list is followed by a call of it. Pointers to a
// version are overwritten before the version is retired; from then on it is freed by the law of
// reclaimer.h. Frames that loop in it are called back (osr_exit.h); all others run to their end.
//
// If a method has been given its second chance (eviction.h), it has code, but its cell leads to the
// slow path; an evicted method has no code.
//
//   Thread: the caller holds the runtime's state mutex. Exceptions: current_entry(): any; relink() takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "jit/symbols/native_tools.h"
#include "sampler/fast_sample.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/model/method_table.h"
#include "tiering/model/threads.h"
#include "tiering/policy/policy.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/reclaimer.h"
#include "tiering/serve/retired_hosts.h"
#include "uptier/options.h"
#include "uptier/report.h"

namespace uptier::tiering {

class Tallied;

class InService {
 public:
  // The components that it uses. All outlive it.
  struct Parts {
    const Options& options;
    const PolicyOptions& policy;
    bool always_instrumented;  // every call is counted
    Stress& stress;
    WaitedMutex& state_mutex;
    const MethodTable& methods;
    const Threads& threads;
    const SavedProfile& saved;
    Reclaimer& reclaimer;
    GoneHosts& hosts;
    sampler::FastSampling& fast;
    jit::StubTable& stubs;
    Tallied& tallied;
    const std::unique_ptr<Relay>& relay;  // exists before any code is freed
    Events& events;
  };
  explicit InService(const Parts& parts);

  // Opens the interfaces to profilers and debuggers, according to the options.
  Status open_native_tools(const jit::Routines& routines);

  // Describe a version, and the new stubs, to those tools. With the state mutex.
  void tell_native_tools(const Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  void name_stubs();

  // Records activity of a method: it is not cold.
  void touch(Method& m) UPTIER_REQUIRES(state_lock) { m.last_active = ++activity_; }

  // ---- Calls (installer.cc, registry.cc, eviction.h) --------------------------------------------------

  // Says whether calls go to the host's interpreter before there is code, or after it was
  // withdrawn.
  bool interprets_first_locked(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Returns the target of calls that find no code.
  const void* first_target_locked(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Returns the current target of a plain call; null before the first compilation.
  const void* current_entry(const Method& m) const noexcept {
    const void* target = stubs_.target(m.id);
    return target == stubs_.tail(m.id) ? nullptr : target;
  }
  // Points the cell, and the quick path of samples, at the best version in service.
  void link_locked(Method& m) UPTIER_REQUIRES(state_lock);
  // Points the cell to the slow path while the code stays; points it at the code again. relink()
  // returns whether the cell was at the slow path.
  void unlink_locked(Method& m) UPTIER_REQUIRES(state_lock);
  bool relink(Method& m);

  // ---- Installing versions (installer.cc, osr_exit.h)
  // ------------------------------------------------

  // A version has been added to a method.
  void note_version(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  // The same for a moved copy, which has replaced the old version.
  void take_moved_locked(Method& m, Version& v) UPTIER_REQUIRES(state_lock);
  // Number of bodies that are missing in the perf_map or jit_dump file. Thread: any.
  uint64_t code_names_lost() const { return native_tools_.lost(); }
  // Replaces the version for a loop, of a body or of a host's interpreter.
  void replace_osr(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  // The version will be notified when its callees can be reached past their stubs.
  void watch_callees(Version& v);
  // The method has its first optimized version for calls: notifies its callers.
  void tell_callers(Method& callee);
  // Callees no longer notify the version.
  void forget_caller_locked(Version& v);

  // ---- Withdrawing versions (installer.cc, eviction.h)
  // -----------------------------------------------

  // Retires a version that nothing leads to, and calls back the frames that loop in it.
  void give_up(Version& v, OsrOut why);
  // Gives up the optimized versions for calls that `v` has replaced.
  void retire_optimized_before(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  // Retires the baseline copies; frames in them leave by on-stack replacement or by returning.
  void retire_baseline(Method& m) UPTIER_REQUIRES(state_lock);
  // Gives up the versions of loops: others are made when the loops are next entered.
  void drop_osr_versions(Method& m);
  // Give up the instrumented copies of such versions, for one loop or for all.
  void retire_loop_copy(Method& m, LoopId loop);
  void retire_loop_copies(Method& m);
  // Takes all code of a method out of service that can be made again; or, after the method was
  // removed, all code that it still has.
  void withdraw_locked(Method& m) UPTIER_REQUIRES(state_lock);
  // The same, to make room.
  void evict_locked(Method& m) UPTIER_REQUIRES(state_lock);
  // The same for each method with code in service that refers to a method of one of the places;
  // also calls back the frames of all such code (place_taking.cc).
  void withdraw_what_refers_to_locked(const Places::Set& places) UPTIER_REQUIRES(state_lock);
  // Frees the retired versions that no thread can run any more.
  void reclaim_locked() noexcept UPTIER_REQUIRES(state_lock);

 private:
  void forget_versions_locked(Method& m) UPTIER_REQUIRES(state_lock);
  static void call_back(Version& v);
  const sampler::LoopCell* loop_cells(Method& m, const Version* plain, const Version& copy);

  const Options& options_;
  const PolicyOptions& policy_;
  const bool always_instrumented_;
  Stress& stress_;
  WaitedMutex& state_mutex_;
  const MethodTable& methods_;
  const Threads& threads_;
  const SavedProfile& saved_;
  Reclaimer& reclaimer_;
  GoneHosts& hosts_;
  sampler::FastSampling& fast_;
  jit::StubTable& stubs_;
  Tallied& tallied_;
  const std::unique_ptr<Relay>& relay_;
  Events& events_;
  jit::NativeTools native_tools_;
  size_t stubs_named_ = 0;  // in chunks
  uint64_t activity_ = 0;   // rises with any activity of any method
};

}  // namespace uptier::tiering
