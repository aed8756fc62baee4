// Relay: moves code together, so that pages in between become free (code compaction).
//
// policy/compaction_plan.h decides when, and which code. A move installs a copy that differs only
// in its place (jit/code/copy_code.h):
//
//   room for all in a row -> copy -> Version in the place of the old one -> cell -> old one retired
//
// So calls reach the copy by the single store of any install, frames continue where they are, and
// the old bytes are freed by the law of reclaimer.h, whole pages with the last body in them.
// Nothing is decided, described or compiled again: profile, serial, ended trials, exits and all
// other data about the code move to the copy.
//
// Not moved: code of methods in a trial, or with a version for values (its guard jumps to both);
// code that waits for its second chance (eviction.h); instrumented copies of optimized code; code
// made by hosts; guards, stubs and routines.
//
// The worker checks whether there is something to do after kLeastChanges versions were installed or
// freed or counts were flushed, when it has nothing to compile (without a worker, a thread that
// flushes does). If rates are measured, it waits at least relay_gap_ms since the last check, and
// long enough that checking and moving take 1 % of the time. It also checks when the budget refuses
// code. At most kMostBytes, and a quarter of the budget, move at once, and nothing moves while more
// than half of that amount still waits to be freed from earlier moves.
//
//   Thread: the worker, or without one the program's threads; for_room(): any. Takes the state mutex for one
//   body, or for examining some dozens of methods, at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "jit/code/code_space.h"
#include "jit/code/poll_words.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/model/method_table.h"
#include "tiering/model/places.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/compaction_plan.h"
#include "tiering/serve/reclaimer.h"
#include "uptier/options.h"
#include "uptier/report.h"

namespace uptier::tiering {

class InService;

class Relay {
 public:
  // Its view of the component that tracks threads which look at methods or compile (LookingAround).
  // The caller does not hold the state mutex.
  class Service {
   public:
    // Used by LookingAround.
    virtual void begin_look(Places::Look& look) = 0;
    virtual void end_look(Places::Look& look) = 0;
    virtual void wake_worker() noexcept = 0;

   protected:
    ~Service() = default;
  };
  // The components that it uses. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;  // the options with later changes: read with the state mutex
    WaitedMutex& state_mutex;
    Stress& stress;
    const MethodTable& methods;
    Observer& observer;
    Reclaimer& reclaimer;
    jit::CodeSpace& space;
    jit::PollWords& poll_words;
    Service& service;
    InService& in_service;
    Events& events;
  };
  // The first check is after Options::relay_gap_ms.
  explicit Relay(const Parts& parts);

  // Checks whether code should move, if that is due, and moves it. The caller holds no lock.
  void if_due();
  // Returns how long the worker waits at most before it calls if_due(); 0: until it is woken.
  uint64_t wait_ms() const;
  // The budget has refused code. Returns whether it has freed any pages. The caller does not hold
  // the state mutex.
  bool for_room();

  // Versions were installed or freed, or counts were flushed; wakes the worker if that is enough
  // for a new check. The caller holds the state mutex.
  void note_changes(uint64_t n);
  // The old version of moved code has been freed: removes it.
  void forget_locked(const Version& v) UPTIER_REQUIRES(state_lock);
  // A stress point: moves all movable code.
  void stress_point() UPTIER_REQUIRES(state_lock);
  const RelayReport& report() const { return report_; }

 private:
  // A movable version of a method.
  struct Candidate {
    Method* method;
    uint64_t serial;
    bool enterable;
  };
  struct Found {
    RelaySnapshot snapshot;
    std::vector<Candidate> candidates;  // by number
  };

  bool possible() const;
  void look_at(const Method& m, Found& f) const UPTIER_REQUIRES(state_lock);
  void look_at_code(const Method& m, const Version& v, Found& f) const;
  void finish_locked(Found& f, uint64_t most_bytes) const;
  Found look_locked(uint64_t most_bytes) const UPTIER_REQUIRES(state_lock);
  uint64_t most_bytes_locked() const;
  std::optional<jit::CodeRoom> room_for(const RelayPlan& plan, bool beyond_budget) const;
  bool move_locked(const Candidate& c, jit::CodeRoom& room) UPTIER_REQUIRES(state_lock);
  void move_version(Method& m, Version& from, std::atomic<const Version*>& place,
                    std::unique_ptr<Version> to) UPTIER_REQUIRES(state_lock);
  void end_locked(const RelayPlan& plan, uint64_t started_ns) UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  WaitedMutex& state_mutex_;
  Stress& stress_;
  const MethodTable& methods_;
  Observer& observer_;
  Reclaimer& reclaimer_;
  jit::CodeSpace& space_;
  jit::PollWords& poll_words_;
  Service& service_;
  InService& in_service_;
  Events& events_;

  std::atomic<uint64_t> changes_{0};  // relaxed: a late thread checks later
  std::mutex looking_;                // held in if_due(); never waited for
  uint64_t due_ns_;                   // guarded by looking_
  // Guarded by the state mutex.
  uint64_t due_room_ns_ = 0;
  uint64_t waiting_bytes_ = 0;  // moved code that is not freed yet
  RelayReport report_;
};

}  // namespace uptier::tiering
