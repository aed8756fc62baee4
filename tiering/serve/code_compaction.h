// Relay: moves code together, so that pages between it become free.
//
// policy/compaction_plan.h says when and which. A move installs a copy that differs only in its place
// (jit/code/copy_code.h):
//
//   room for all in a row -> copy -> Version in the place of the old one -> cell -> old one retired
//
// so calls reach the copy by the one store of any install, frames go on where they are, and the old
// bytes are freed by the law of reclaimer.h, whole pages with the last body in them. Nothing is
// decided, described or compiled again: profile, serial, trials that are over, exits and all else
// that is known of the code is the copy's.
//
// What stays where it is: code of methods that a trial times, or that have a version for values
// (its guard jumps to both); what waits for its second chance (eviction.h); instrumented copies of
// optimized code; what hosts made; guards, stubs and routines.
//
// It is looked whether there is something to do when kLeastChanges versions have come or gone or
// counts been handed over, by the worker when it has nothing to compile (without one, by a thread
// that hands over counts), and where rates are measured, relay_gap_ms after it last was at least,
// and so seldom that looking and moving take 1 % of the time. Besides, when the
// budget refuses code. At most kMostBytes, and a quarter of the budget, move at once, and nothing
// while half as much of what was moved before is not free yet.
//
//   Thread: the worker's, or without one the program's; for_room() any. Takes the state mutex for one body,
//   or some dozens of methods that are looked at, at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "jit/code/code_space.h"
#include "jit/code/poll_words.h"
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
  // What it asks of those who look at methods, and compile, beside it (LookingAround). The caller does
  // not hold the state mutex where it looks.
  class Service {
   public:
    // For LookingAround.
    virtual void begin_look(Places::Look& look) = 0;
    virtual void end_look(Places::Look& look) = 0;
    virtual void wake_worker() noexcept = 0;

   protected:
    ~Service() = default;
  };
  // The parts that it works on. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;  // what of the options changes: read with the state mutex
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
  // Looks after Options::relay_gap_ms for the first time.
  explicit Relay(const Parts& parts);

  // Looks whether code is to be laid anew, if it is time to, and does so. The caller holds no lock.
  void if_due();
  // How long the worker is to wait, at most, until it calls that; 0: until it is woken.
  uint64_t wait_ms() const;
  // The budget has refused code. Returns whether pages are free now that were not. The caller does
  // not hold the state mutex.
  bool for_room();

  // The caller holds the state mutex. Versions have come or gone, or counts were handed over; the
  // worker is woken when that is enough to look again.
  void note_changes(uint64_t n);
  // A version that was moved elsewhere has been freed: nobody needs to know of it.
  void forget_locked(const Version& v);
  // A point of the stress plan: lays everything anew that can be.
  void stress_point();
  const RelayReport& report() const { return report_; }

 private:
  // What can be moved: which version of which method.
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
  void look_at(const Method& m, Found& f) const;
  void look_at_code(const Method& m, const Version& v, Found& f) const;
  void finish_locked(Found& f, uint64_t most_bytes) const;
  Found look_locked(uint64_t most_bytes) const;
  uint64_t most_bytes_locked() const;
  std::optional<jit::CodeRoom> room_for(const RelayPlan& plan, bool beyond_budget) const;
  bool move_locked(const Candidate& c, jit::CodeRoom& room);
  void move_version(Method& m, Version& from, std::atomic<const Version*>& place,
                    std::unique_ptr<Version> to);
  void end_locked(const RelayPlan& plan, uint64_t started_ns);

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

  std::atomic<uint64_t> changes_{0};  // relaxed: whoever is late looks later
  std::mutex looking_;                // by whoever is in if_due(), which nobody waits for
  uint64_t due_ns_;                   // likewise
  // Guarded by the state mutex.
  uint64_t due_room_ns_ = 0;
  uint64_t waiting_bytes_ = 0;  // of code that was moved and is not free yet
  RelayReport report_;
};

}  // namespace uptier::tiering
