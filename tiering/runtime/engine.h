// Engine: the state of one runtime, and the owners of its parts.
//
// Each part has an owner in a lower floor, whose header states its law. The classes of
// tiering/runtime/ are the operations that use several owners; each of them is given this struct.
// It is constructed in one place (engine.cc), in the order of dependencies.
//
// Three locks, taken in this order:
//   CompileTurn    one method is described and compiled by one thread at a time
//   state_mutex    streams, queue, versions, threads, code that waits to be freed, log
//   CodeSpace's own
//
// Code below guest frames takes none of them (guest.h). The state mutex has an incomplete type
// here, so a file can lock it only if it includes base/state_lock.h.
//
//   Thread: const members, atomic ones, and those that say so: any. All else: with the state mutex.
#pragma once

#include <atomic>
#include <cassert>
#include <memory>
#include <optional>
#include <vector>

#include "jit/code/code_registry.h"
#include "jit/code/faults.h"
#include "jit/code/routines.h"
#include "jit/compile/compile.h"
#include "tiering/base/notices.h"
#include "tiering/base/stress.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/control/wanted_frames.h"
#include "tiering/events/events.h"
#include "tiering/events/loss_counts.h"
#include "tiering/events/version_log.h"
#include "tiering/model/places.h"
#include "tiering/model/threads.h"
#include "tiering/policy/policy.h"
#include "uptier/runtime.h"

namespace uptier::jit {
class CodeSpace;
class PollWords;
class StubTable;
}  // namespace uptier::jit

namespace uptier::sampler {
class FastSampling;
}

namespace uptier::tiering {

class Attachments;
class CopyControl;
class Eviction;
class Finding;
class FrequentExits;
class GoneHosts;
class ImageCode;
class InService;
class KeptBodies;
class KnownMethods;
class Looks;
class MachineRates;
class MethodCompiler;
class NewerCode;
class Observer;
class RateControl;
class Reclaimer;
class Relay;
class Requests;
class SavedProfile;
class StackSampling;
class System;
class TallyWords;
class Trials;
class ValueGuards;
class WaitedMutex;
class WorkerThread;
class WorkerWake;
struct CodeEntries;
struct Guest;

struct Engine {
  // `facade`: the public runtime, which owns this. `sink` and `policy` may be null.
  Engine(Runtime& facade, const Options& options, const StressPlan& plan, TraceSink* sink,
         Policy* policy);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Makes the code space and its contents, and the owners that need it. `entries`: the functions
  // that code calls. Errors: kResourceExhausted, kUnsupported (the processor lacks features that
  // code needs).
  Status start(const CodeEntries& entries);

  // Returns the calling thread's record if it is attached to this runtime, else null. Thread: any.
  AttachedThread* here() const noexcept {
    sampler::ThreadContext* c = sampler::current_context();
    return c->runtime == this ? static_cast<AttachedThread*>(c->owner) : nullptr;
  }
  // The method at a place that was used, in service or not. Thread: any.
  Method& method(uint32_t index) const {
    assert(index < methods.size());
    return methods.at(index);
  }
  // Says whether the id belongs to a method that was added and not removed. Reads no Method.
  // Thread: any.
  bool is_method(MethodId m) const { return methods.serves(m); }
  // Returns a method, removed or not, or null if its place was given to another. Thread: any.
  Method* known(MethodId m) const { return methods.known(m); }
  // Says whether a method was removed. Takes the state mutex.
  bool is_removed(const Method& m) const;
  // Says whether the calling thread is inside a `build`, which must not call `call`: that might
  // wait for its own caller. Logs it. Thread: any.
  bool is_in_build(const char* call) const;

  // Delivers events at the end of a scope if no worker does it. No lock is held then.
  class Delivery {
   public:
    // In the child of a fork, another thread's delivery may have been cut short: nothing is
    // delivered.
    explicit Delivery(Engine& e)
        : events_(e.options.workers == 0 && !e.forked() ? &e.events : nullptr) {}
    ~Delivery() {
      if (events_ != nullptr) events_->deliver();
    }
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;

   private:
    Events* events_;
  };
  // Says whether the calling thread is in a subscriber of events, which must not call `call`. Logs
  // it. Thread: any.
  bool is_in_subscriber(const char* call) const;

  // Says whether this is a child of the process that made the runtime; and the error of its calls
  // then.
  bool forked() const noexcept;
  static Error forked_error();

  // Says whether code has rows for its lines: a tool wants them.
  bool has_lines() const { return options.gdb || options.jit_dump || options.line_rows; }

  // Counts a flush that was lost for lack of memory. Thread: any.
  void note_flush_lost() noexcept { flushes_lost.fetch_add(1, std::memory_order_relaxed); }
  // Makes each loop of optimized code that has a poll take it once. Thread: any, in signal handlers
  // too.
  void have_all_loops_ask() noexcept;

  // ---- Users and options
  // -------------------------------------------------------------------------

  Runtime& facade;
  const Options options;
  const Log log;
  Notices notices;
  Options live;  // the options with the changes by set()
  std::atomic<PolicyMode> policy_mode;
  const ProbeChoice probe_choice;
  PolicyOptions policy;  // derived from `live`
  Stress stress;
  sampler::Schedule schedule;
  sampler::Schedule counting;  // the same without sampled calls: optimized or always instrumented
  const bool always_instrumented;  // every call is counted

  // ---- Code (from start() on) --------------------------------------------------------------------

  std::optional<jit::FaultHandlers> faults;
  std::unique_ptr<jit::CodeSpace> space;
  jit::CodeRegistration registration;  // lets fault handlers find the space; ends before it
  std::unique_ptr<jit::StubTable> stubs;
  std::unique_ptr<jit::PollWords> poll_words;
  std::unique_ptr<sampler::FastSampling> fast;  // exists from the beginning
  jit::Routines routines;
  jit::Helpers helpers;

  // ---- Methods, threads and data about them
  // -------------------------------------------------------

  MethodTable methods;
  CompileTurns turns;
  const std::unique_ptr<WaitedMutex> state_mutex_owned;
  WaitedMutex& state_mutex;
  Places places;
  Events events;
  LossCounts losses;    // hears of losses
  VersionLog versions;  // hears of versions if there is a profile to save
  std::unique_ptr<Reclaimer> reclaimer;
  std::unique_ptr<GoneHosts> hosts;
  Stops stops;  // before the threads
  std::unique_ptr<StackSampling>
      stack_sampling;  // before the threads, whose clocks send its signal
  Threads threads;
  std::unique_ptr<TallyWords> tally_words;
  std::unique_ptr<Observer> observer;
  std::unique_ptr<SavedProfile> saved;
  std::unique_ptr<KnownMethods> known_methods;
  std::unique_ptr<Requests> requests;
  WantedFrames frames;
  std::atomic<uint64_t> calls_unattached{0};  // up to the last event of each method
  std::unique_ptr<RateControl> rates;
  std::unique_ptr<Finding> finding;
  const uint64_t born_ns;
  const uint32_t born_at_fork;
  std::atomic<uint64_t> flushes_lost{0};  // LossReport
  double cycles_per_ns = 1;               // measured when loops are timed
  LoopMeter loop_meter;                   // for threads that attach; begin is null for cycles
  // Returns the error of one timed execution of a loop, in units of the meter.
  double loops_off() const;
  uint32_t first_loops = 0;                    // executions that each thread keeps
  std::vector<LoopExecution> gone_executions;  // of threads that have detached
  std::unique_ptr<MachineRates> machine;
  std::unique_ptr<KeptBodies> bodies;
  std::unique_ptr<WorkerThread> worker_thread;
  std::unique_ptr<WorkerWake> worker_wake;
  std::unique_ptr<Looks> looks;

  // ---- From start() on ----------------------------------------------------------------------------

  std::unique_ptr<System> system;
  std::unique_ptr<ImageCode> image;
  std::unique_ptr<MethodCompiler> compiler;
  std::unique_ptr<InService> in_service;
  std::unique_ptr<Relay> relay;
  std::unique_ptr<Eviction> eviction;
  std::unique_ptr<Trials> trials;
  std::unique_ptr<ValueGuards> values;
  std::unique_ptr<FrequentExits> exits;
  std::unique_ptr<NewerCode> newer;
  std::unique_ptr<CopyControl> copies;

  // ---- Set by RuntimeImpl, which owns them ----------------------------------------------------------

  Guest* guest = nullptr;              // called by code
  Attachments* attachments = nullptr;  // called by a thread that ends

 private:
  void open_events();
  Status make_code_space();
  Status make_routines(const CodeEntries& entries);
  Status make_stubs();
  void make_helpers();
  void make_owners();
  std::optional<MethodKey> method_at(uint64_t address) const;
};

}  // namespace uptier::tiering
