// RuntimeImpl: the runtime behind the public wall; it owns everything and decides nothing.
//
// Three locks, taken in this order:
//   CompileTurn     one method is described and compiled by one thread at a time
//   state_mutex_    streams, queue, versions, threads, limbo, log
//   (CodeSpace's own)
// Slow paths reached from compiled code take none of them, but where docs/notes/0003 says so.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "jit/code/code_registry.h"
#include "jit/code/code_space.h"
#include "jit/code/faults.h"
#include "jit/code/float_state.h"
#include "jit/code/leave.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "jit/compile/compile.h"
#include "profile/upf/timeline.h"
#include "sampler/fast_sample.h"
#include "sampler/fork.h"
#include "sampler/schedule.h"
#include "tiering/base/clock.h"
#include "tiering/base/log.h"
#include "tiering/base/notices.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/eviction.h"
#include "tiering/control/frequent_exits.h"
#include "tiering/control/newer_code.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/trials.h"
#include "tiering/control/value_guards.h"
#include "tiering/control/wanted_frames.h"
#include "tiering/events/events.h"
#include "tiering/events/loss_counts.h"
#include "tiering/events/version_log.h"
#include "tiering/model/looking_around.h"
#include "tiering/model/method.h"
#include "tiering/model/method_table.h"
#include "tiering/model/places.h"
#include "tiering/model/thread_stop.h"
#include "tiering/model/threads.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/worker_thread.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"
#include "tiering/serve/retired_hosts.h"
#include "uptier/profile_calls.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

// Has a context carry a trap, also where no invoke is under way; and takes it out (invoke.cc).
void put_trap(sampler::ThreadContext& c, TrapCode code, uint64_t detail) noexcept;
Trap take_trap(sampler::ThreadContext& c);

class RuntimeImpl final : public Runtime, private Relay::Service {
 public:
  static Result<std::unique_ptr<Runtime>> create(const Options& options, TraceSink* sink,
                                                 Policy* policy);
  ~RuntimeImpl() override;
  // In the child of a fork nothing is done: members could not be destroyed, who waits on them is gone.
  static void operator delete(RuntimeImpl* r, std::destroying_delete_t);

  // See uptier/runtime.h. In registry.cc, attach.cc, report.cc and transitions/, if nothing is said.
  Result<MethodId> add_method(Host& host, MethodInfo info) override;
  std::string error_of(MethodId m) const override;
  void remove_methods(std::span<const MethodId> methods) override;
  void retire_methods(std::span<const MethodId> methods) override;
  const void* entry_address(MethodId m) const override;
  const void* entry_address(MethodId m, const Signature& expected) const override;
  Status set(std::string_view name, std::string_view value) override;  // change_options.cc
  Status observe(Sampling how) override;                               // change_options.cc
  Outcome invoke(MethodId m, std::span<const uint64_t> args) override;
  Outcome invoke(MethodId m, std::span<const uint64_t> args, const InvokeLimits& limits) override;
  Status interrupt(uint32_t thread) override;  // transitions/interrupt.cc
  uint32_t thread_number() const noexcept override;
  uint64_t fuel_left() const noexcept override;
  size_t walk(std::span<CallSite> sites) noexcept override;
  // The same, by a call of `visit` for each, which returns whether it wants another.
  void walk_with(bool (*visit)(MethodId, uint32_t location, void*), void* to) noexcept;
  Status attach() override;
  void detach() override;
  void quiescent() noexcept override;
  void begin_blocked() noexcept override;
  void end_blocked() noexcept override;
  Result<NativeStack*> create_stack(void* low, size_t bytes) override;  // stacks.cc
  Status switch_stack(NativeStack* to) override;
  Status destroy_stack(NativeStack* stack) override;
  int32_t* loop_countdown(MethodId m) noexcept override;
  ptrdiff_t loop_countdown_offset(MethodId m) const noexcept override;
  std::optional<Outcome> osr_enter(MethodId m, LoopId loop, std::span<const uint64_t> args,
                                   const uint64_t* frame) override;
  uint64_t* counters(MethodId m) noexcept override;
  void flush() override;
  Report report() const override;
  Report make_report() const;  // the same, for those who have a wall of their own
  SavedReport saved_report() const override;
  Profile profile() const override;
  Status save_profile() override;                                               // saved/save_now.cc
  Result<uint64_t> subscribe(EventSubscriber& who, EventKinds kinds) override;  // subscribe.cc
  Status unsubscribe(EventSubscriber& who) override;
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key) override;
  std::vector<LoopReport> loops() const override;  // loops.cc
  Status set_loop_meter(const LoopMeter& meter) override;
  void keep_loop_executions(uint32_t count) override;
  std::vector<LoopExecution> loop_executions() const override;
  std::vector<LogRecord> read_log() override;
  Result<std::string> ir(MethodId m) override;

  static void thread_ends() noexcept;  // attach.cc
  // Returns the thread's record if it is attached to `r` and to none since, else null. Reads no `r`.
  static AttachedThread* attached_to(const Runtime& r) noexcept;  // attach.cc
  // Whether this is the child of a process that has made the runtime; what is said then.
  bool forked() const noexcept { return born_at_fork_ != sampler::forks(); }
  static Error forked_error();  // attach.cc
  // What becomes of a trap with no invoke under way (orphaned_trap.cc).
  [[noreturn]] void end_orphaned() noexcept;

  // What slow paths of code call (slow_paths.cc, slow_loops.cc). They return where to go on.
  const void* enter(uint32_t method) noexcept;
  jit::TrialCall trial_call(uint32_t method) noexcept;  // trial_call.cc
  const void* guard_told(uint32_t method) noexcept;     // likewise
  // `pc`: in the code that asks, which may be an older version than the one in service.
  const void* loop_plain(uint32_t method, uint32_t loop, const void* pc) noexcept;
  const void* loop_instrumented(uint32_t method, uint32_t loop, const void* pc) noexcept;
  // For those who look at methods (looking.h), which take the state mutex here.
  void begin_look(Places::Look& look) override;
  void end_look(Places::Look& look) override;
  // The calling thread's record if it is attached to this runtime, else null.
  AttachedThread* here() const noexcept;

  // What exits call; deopt.cc.
  jit::Leave leave(jit::LeaveState& s, bool forced) noexcept;
  jit::Leave ask_to_leave(jit::LeaveState& s) noexcept;
  // Has each loop of optimized code that asks at all do so once; osr_out.cc.
  void have_all_loops_ask() noexcept;
  // What a trap tells before it unwinds; notes.cc.
  void frames_dropped(uint32_t method, SiteId block, uint64_t frames) noexcept;

 private:
  RuntimeImpl(const Options& options, const StressPlan& plan, TraceSink* sink, Policy* policy);
  Status start();
  // Whether start() failed for want of a thread for the worker alone.
  bool lacks_worker() const { return lacks_worker_; }
  void make_owners();

  Method& method(uint32_t index) const { return methods_.at(index); }
  // Whether the id is that of a method that was added and not removed. Reads no Method.
  bool is_method(MethodId m) const { return methods_.serves(m); }
  // Returns a method, removed or not, or null when its place has gone to another.
  Method* known(MethodId m) const { return methods_.known(m); }
  std::optional<MethodKey> method_at(uint64_t address) const;

  // compile_service.cc
  void say_turn_refused(Method& m);
  bool first_call(Method& m) noexcept;
  void note_no_memory(Method& m) noexcept;
  bool note_first_call(Method& m);
  bool make_first(Method& m);
  bool compiles_first(Method& m);
  bool interpret(Method& m);
  std::vector<Plan> first_plans(const Method& m) const;
  Status compile_first(Method& m);
  void compile_and_install(const Plan& plan) noexcept;
  void compile_plan(const Plan& plan);
  // osr_enter.cc
  bool know_loops(Method& m);
  void refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken);
  void report_unknown_loop(Method& m, uint32_t loop, uint32_t loops);
  bool host_loop_event(Method& m, AttachedThread& t, LoopId loop);
  bool can_enter_loops(const Method& m) const noexcept;
  void stress_host_arrival(Method& m, AttachedThread& t, LoopId loop);
  const Version* host_loop_code(Method& m, LoopId loop, bool tells);
  Outcome call(const void* target, const Signature& signature, std::span<const uint64_t> args,
               CallLimits limits = {});
  void back_in_host(AttachedThread& t) noexcept;
  void reclaim_beside(AttachedThread& t) noexcept;
  Status leave_stack(AttachedThread& t, NativeStack& to, const void* frame);  // stacks.cc
  // registry.cc
  void die_if_in_use();
  void say_scopes() const;
  void say_noticed() noexcept;
  bool is_in_build(const char* call) const;
  // subscribe.cc
  // Delivers what has happened when it ends, where there is no worker that would: with no lock held.
  class Delivery {
   public:
    explicit Delivery(RuntimeImpl& r) : events_(r.options_.workers == 0 ? &r.events_ : nullptr) {}
    ~Delivery() {
      if (events_ != nullptr) events_->deliver();
    }
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;

   private:
    Events* events_;
  };
  void open_events();
  // Whether the caller is a subscriber, which must not make this call; says so in the log.
  bool is_in_subscriber(const char* call) const;
  void note_left(const jit::Code& from, const char* why, uint32_t exit) noexcept;
  void note_moved_frame(const Version& to, const jit::Code& from) noexcept;
  void take_out(std::span<const MethodId> all, HostUse after);
  std::span<const MethodId> refuse_calls(std::span<const MethodId> all, HostUse after,
                                         std::span<MethodId> room);
  void await_compilations(std::span<const MethodId> ids);
  void retire_code(std::span<const MethodId> ids, HostUse after);
  void take_out_locked(Method& m, HostUse after);
  void flush_removed_locked(Method& m, HostUse after);
  // code/take_place.cc
  struct Place {
    MethodId id;
    bool again = false;  // another method had it
  };
  Result<Place> take_place_locked(const std::string& name);
  void free_places_locked(size_t kept);
  void forget_in_tables_locked(const Places::Set& places);  // forgotten_targets.cc
  void forget_locked(Method& m);

  // saved/warm_start.cc
  bool warm(Method& m);
  void trust_saved(Method& m);
  bool hot_before(Method& m);
  void prepare(Method& m, uint32_t depth);
  std::vector<MethodId> likely_inlinees(Method& m);
  bool is_removed(const Method& m);
  bool compile_known();
  void wake_for_known();
  // saved/save_now.cc
  Status save_profile_locked();
  void save_at_end_locked();
  profile::Timeline timeline_locked() const;  // report/timeline.cc

  // install.cc; the caller holds state_mutex_.
  void install(Method& m, std::unique_ptr<Version> v);
  void put_in_service(Method& m, std::unique_ptr<Version> v);

  // trial_call.cc
  const void* enter_anew(Method& m) noexcept;

  // observe/unattached.cc
  void count_unattached(Method& m, sampler::ThreadContext& c) noexcept;
  uint64_t calls_unattached_locked() const noexcept;
  void begin_unattached(uint32_t index) noexcept;

  // slow_paths.cc
  static void raise_no_code(MethodId m) noexcept;
  const void* refuse_call(MethodId m) noexcept;
  sampler::CallEvent next_call_event(Method& m, AttachedThread& t) noexcept;
  const void* code_for_call(Method& m) noexcept;
  const void* best_entry(Method& m, const void* otherwise) const noexcept;
  void ask_until_it_can_count(Method& m, AttachedThread& t) noexcept;
  bool must_run_plain(Method& m, AttachedThread& t) noexcept;
  const void* run_plain(Method& m, AttachedThread& t) noexcept;
  void lose_sample(Method& m, AttachedThread& t) noexcept;
  bool ready_to_count(Method& m, AttachedThread& t) noexcept;
  bool has_slab(Method& m, AttachedThread& t) noexcept;
  const void* flip_target(Method& m, AttachedThread& t) noexcept;
  const void* osr_target(Method& m, uint32_t loop, AttachedThread& t) noexcept;
  const void* run_sample(Method& m, AttachedThread& t, const void* plain) noexcept;

  // deopt.cc
  jit::Leave leave_for_baseline(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                                uint32_t skipped) noexcept;
  const Method* find_enterable(const jit::Code& from, const jit::ExitRow& row, uint32_t skipped,
                               const jit::Code** to) noexcept;
  jit::Leave leave_for_host(Method& m, jit::LeaveState& s, const jit::Code& from,
                            const jit::ExitRow& row) noexcept;
  const Version* enterable_version(Method& m) noexcept;
  bool make_enterable(Method& m) noexcept;
  bool make_enterable_version(Method& m);
  void count_exit(Method& m, uint32_t exit) noexcept;

  // osr_out.cc
  jit::Leave poll(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row) noexcept;
  void ask_for_newer(Method& m, uint32_t loop, const jit::Code& from, jit::PollWord& word) noexcept;
  static bool known_for_calls(const Method& m, AttachedThread& t, const jit::Code& from) noexcept;
  static bool prepare_move(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                           const jit::Code& osr);
  jit::Leave stress_poll(Method& m, jit::LeaveState& s, const jit::Code& from,
                         const jit::ExitRow& row) noexcept;

  // observe_round.cc
  jit::Leave observe_frame(Method& m, jit::LeaveState& s, const jit::Code& from,
                           const jit::ExitRow& row) noexcept;
  jit::Leave observed_round(Method& m, jit::LeaveState& s, const jit::Code& from,
                            const jit::ExitRow& row) noexcept;
  bool burst_goes_on(const Method& m, AttachedThread& t, const jit::Code& from) const noexcept;
  void tell_observed(Method& m, AttachedThread& t, uint32_t loop, jit::PollWord& word,
                     uint64_t burst_ns) noexcept;
  bool stress_observe(Method& m, jit::LeaveState& s, const jit::Code& from,
                      const jit::ExitRow& row) noexcept;

  // slow_loops.cc
  const void* arrive(Method& m, AttachedThread& t, uint32_t loop, bool from_copy,
                     const void* pc) noexcept;
  bool loop_event(Method& m, AttachedThread& t, uint32_t loop, bool from_copy) noexcept;
  void count_crossing(Method& m, AttachedThread& t, uint32_t loop, bool in) noexcept;
  const void* stress_arrival(Method& m, uint32_t loop, AttachedThread& t, bool& in_copy) noexcept;

  // notes.cc
  static std::span<const uint64_t> counters(const Method& m,
                                            const sampler::MethodState& s) noexcept;
  uint64_t exact_calls(Method& m) const noexcept;
  bool post(Method& m, AttachedThread& t, sampler::NoteKind kind, uint32_t loop,
            uint64_t call = 0) noexcept;
  void brake(Method& m, sampler::Rate in_force) noexcept;

  void leave(AttachedThread& t) noexcept;                         // attach.cc
  void pass_quiescent(AttachedThread& t) noexcept;                // attach.cc
  void flush_and_wait();                                          // attach.cc
  void prepare_loop_timer(AttachedThread& t);                     // attach.cc
  LossReport losses_locked() const;                               // report.cc
  void report_observing(const Method& m, MethodReport& r) const;  // report.cc

  // change_options.cc
  const char* obstacle_to(std::string_view name, const Options& to) const;
  void apply_locked(std::string_view name);
  void change_policy_locked();

  // observe_optimized.cc
  sampler::Rate rate_of(const Method& m) const noexcept;
  // Acquire pairs with set(): the rung is in the ladder.
  sampler::Rate optimized_rate() const noexcept {
    return {optimized_rate_.load(std::memory_order_acquire)};
  }
  const void* optimized_sample(Method& m, AttachedThread& t) noexcept;
  bool ready_slab(Method& m, AttachedThread& t, const Version& copy) noexcept;
  bool post_optimized(Method& m, AttachedThread& t) noexcept;
  void count_optimized(Method& m, AttachedThread& t) noexcept;
  sampler::Note optimized_note(Method& m, AttachedThread& t) noexcept;
  bool awaits_optimized(const Method& m) const noexcept;
  void flush_optimized_locked(Method& m, AttachedThread& t);

  // worker.cc
  bool expects_known() const;
  void measure_machine();
  void run_worker();
  void await_work();
  void wake_worker() noexcept override;
  bool drain_locked();
  void drain_thread_locked(AttachedThread& t, uint32_t most = UINT32_MAX);
  void handle_note(AttachedThread& t, const sampler::Note& note, std::span<const uint64_t> counts);
  void forget_note(const sampler::Note& note) noexcept;
  void end_trial(Method& m);
  void back_to_baseline(Method& m);
  void take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts);
  void consider(Method& m, const sampler::Note& note);
  void run_queue();
  void flush_thread_locked(AttachedThread& t, sampler::NoteKind kind);
  void note_flush_lost() noexcept { flushes_lost_.fetch_add(1, std::memory_order_relaxed); }
  sampler::Note make_note(Method& m, AttachedThread& t, sampler::NoteKind kind) noexcept;

  const Options options_;
  const Log log_{options_};
  Notices notices_{log_};
  Options live_;  // what set() has changed of them; guarded by state_mutex_
  std::atomic<PolicyMode> policy_mode_;
  const ProbeChoice probe_choice_;
  PolicyOptions policy_;  // of live_; guarded by state_mutex_
  mutable Stress stress_;
  sampler::Schedule schedule_;
  sampler::Schedule counting_;  // the same without sampled calls: optimized or always instrumented
  std::atomic<uint64_t> optimized_rate_;  // of methods whose optimized code is observed
  const bool always_instrumented_;

  std::optional<jit::FaultHandlers> faults_;
  std::unique_ptr<jit::CodeSpace> space_;
  jit::CodeRegistration registration_;  // how fault handlers find the space; ends before it
  std::unique_ptr<jit::StubTable> stubs_;
  std::unique_ptr<jit::PollWords> poll_words_;
  std::unique_ptr<sampler::FastSampling> fast_;
  jit::Routines routines_;
  jit::Helpers helpers_;

  MethodTable methods_;

  CompileTurns turns_;
  mutable WaitedMutex state_mutex_;
  Events events_;
  LossCounts losses_;
  VersionLog versions_;  // hears where there is a profile to be saved
  Places places_;
  Reclaimer reclaimer_;
  GoneHosts hosts_;
  Stops stops_;  // before the threads
  Threads threads_;
  Observer observer_;
  SavedProfile saved_;
  KnownMethods known_;
  Requests requests_;
  WantedFrames frames_;
  std::atomic<uint64_t> flushes_lost_{0};      // LossReport
  std::atomic<uint64_t> calls_unattached_{0};  // up to the last event of each method
  RateControl rates_;
  const uint64_t born_ns_ = now_ns();
  const uint32_t born_at_fork_ = sampler::forks();
  bool lacks_worker_ = false;
  double cycles_per_ns_ = 1;                    // measured when loops are timed
  LoopMeter loop_meter_;                        // of threads that attach; begin is null for cycles
  uint32_t first_loops_ = 0;                    // executions that each of them keeps
  std::vector<LoopExecution> gone_executions_;  // of threads that have gone
  void tell_first_calls_locked();
  void add_executions_locked(const AttachedThread& t, std::vector<LoopExecution>& to) const;
  MachineRates machine_;
  KeptBodies bodies_;
  // From start() on.
  std::optional<System> system_;
  std::optional<MethodCompiler> compiler_;
  std::optional<InService> in_service_;
  std::optional<Relay> relay_;
  std::optional<Eviction> eviction_;
  std::optional<Trials> trials_;
  std::optional<ValueGuards> values_;
  std::optional<FrequentExits> exits_;
  std::optional<NewerCode> newer_;
  std::optional<CopyControl> copies_;
  WorkerThread worker_;
};

}  // namespace uptier::tiering
