// InService: which code calls and frames of a method reach, and how it is taken from them.
//
// The law: calls go through the method's cell, and that leads to the first of these which there is,
//
//   the trial routine, or a guard        while two optimized versions are in service (trial.h,
//                                        value_versions.h)
//   optimized code
//   the instrumented copy                where every call is counted
//   baseline code
//   the host's interpreter, or the place where code is made
//
// link_locked() points it there; each change of this list is followed by a call of it. Pointers to a
// version are overwritten before the version is retired; from then on it is freed by the law of
// reclaimer.h. Frames
// that loop in it are called back (osr_exit.h), all others go on to their end.
//
// A method that has been given its second chance (eviction.h) has its code, and its cell asks; so has
// one that was evicted, and no code.
//
//   Thread: the caller holds the runtime's state mutex, but in current_entry(), which any may ask, and
//   in relink(), which takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "jit/symbols/native_tools.h"
#include "sampler/fast_sample.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
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
  // The parts that it works on. All outlive it.
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
    const std::unique_ptr<Relay>& relay;  // there before any code is freed
    Events& events;
  };
  explicit InService(const Parts& parts);

  // Opens what tells profilers and debuggers of code, as the options say.
  Status open_native_tools(const jit::Routines& routines);

  // Tells them of a version, and of the stubs that have been made since. With the state mutex.
  void tell_native_tools(const Method& m, const Version& v);
  void name_stubs();

  // Says that something was heard of a method: it is not cold.
  void touch(Method& m) { m.last_active = ++activity_; }

  // ---- Calls (installer.cc, registry.cc, eviction.h) --------------------------------------------------

  // Returns whether calls go to the host's interpreter before there is code, or after it was taken away.
  bool interprets_first_locked(const Method& m) const;
  // Returns where calls go that find no code.
  const void* first_target_locked(const Method& m) const;
  // Returns where a plain call goes now; null before the first compilation.
  const void* current_entry(const Method& m) const noexcept {
    const void* target = stubs_.target(m.id);
    return target == stubs_.tail(m.id) ? nullptr : target;
  }
  // Points the cell, and the quick path of samples, at the best that is in service.
  void link_locked(Method& m);
  // Has the cell ask, while the code stays; and points it at the code again. relink() returns whether
  // it asked.
  void unlink_locked(Method& m);
  bool relink(Method& m);

  // ---- Versions come (installer.cc, osr_exit.h) -----------------------------------------------------

  // A version has been added to its method's.
  void note_version(Method& m, const Version& v);
  // Likewise: the copy of one that was moved, which has taken its place.
  void take_moved_locked(Method& m, Version& v);
  // Bodies that the file of perf_map or jit_dump lacks. Thread: any.
  uint64_t code_names_lost() const { return native_tools_.lost(); }
  // A version for a loop, of a body or of a host's interpreter, takes the place of the one before.
  void replace_osr(Method& m, const Version& v);
  // The version hears of it when callees can be reached past their stubs.
  void watch_callees(Version& v);
  // The method has its first optimized version for calls.
  void tell_callers(Method& callee);
  // Callees tell the version nothing any more.
  void forget_caller_locked(Version& v);

  // ---- Versions go (installer.cc, eviction.h) --------------------------------------------------------

  // Takes a version out of service that nothing leads to, and calls back the frames that loop in it.
  void give_up(Version& v, OsrOut why);
  // Gives up the optimized versions for calls that `v` has taken the place of.
  void retire_optimized_before(Method& m, const Version& v);
  // Retires the baseline copies; frames in them leave by OSR or by returning.
  void retire_baseline(Method& m);
  // Gives up the versions of loops: others are made when the loops are next entered.
  void drop_osr_versions(Method& m);
  // Gives up the instrumented copies of these, of one loop or of all.
  void retire_loop_copy(Method& m, LoopId loop);
  void retire_loop_copies(Method& m);
  // Takes all code of a method out of service that can be made again; or after the method was removed,
  // all code that it still has.
  void withdraw_locked(Method& m);
  // Likewise, to make room.
  void evict_locked(Method& m);
  // Likewise, of each method that has code in service which means a method of one of the places; and
  // calls back the frames of all such code (place_taking.cc).
  void withdraw_what_refers_to_locked(const Places::Set& places);
  // Frees the retired versions that nobody can run any more.
  void reclaim_locked() noexcept;

 private:
  void forget_versions_locked(Method& m);
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
  size_t stubs_named_ = 0;  // chunks
  uint64_t activity_ = 0;   // rises with whatever is heard of any method
};

}  // namespace uptier::tiering
