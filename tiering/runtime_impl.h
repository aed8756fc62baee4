// RuntimeImpl: the runtime behind the public wall; it owns everything and decides nothing.
//
// Three locks, taken in this order:
//   Method::compile_mutex   one method is described and compiled by one thread at a time
//   state_mutex_            streams, queue, versions, threads, limbo, log
//   (CodeSpace's own)
// Slow paths reached from compiled code take none of them, but where docs/notes/0003 says so.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <semaphore>
#include <set>
#include <vector>

#include "jit/code/code_registry.h"
#include "jit/code/code_space.h"
#include "jit/code/faults.h"
#include "jit/code/leave.h"
#include "jit/code/native_tools.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "jit/compile.h"
#include "jit/ir/spare_build.h"
#include "profile/upf/timeline.h"
#include "sampler/budget.h"
#include "sampler/cost.h"
#include "sampler/fast_sample.h"
#include "sampler/fork.h"
#include "sampler/schedule.h"
#include "tiering/code/queue.h"
#include "tiering/code/reclaim.h"
#include "tiering/code/relay.h"
#include "tiering/code/worker_thread.h"
#include "tiering/looking.h"
#include "tiering/method.h"
#include "tiering/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/observe/tick_list.h"
#include "tiering/policy/baseline_rate.h"
#include "tiering/policy/compile_rate.h"
#include "tiering/policy/speedup_rate.h"
#include "tiering/policy/value_policy.h"
#include "tiering/stress.h"
#include "tiering/thread.h"
#include "tiering/transitions/wanted_frames.h"
#include "tiering/waited_mutex.h"
#include "uptier/profile_calls.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class ProfileStore;
struct SeenRun;

void operator+=(sampler::Progress& a, const sampler::Progress& b);
// Adds what a thread has lost.
void add_losses(LossReport& l, const AttachedThread& t);

// Has a context carry a trap, also where no invoke is under way; and takes it out (invoke.cc).
void put_trap(sampler::ThreadContext& c, TrapCode code, uint64_t detail) noexcept;
Trap take_trap(sampler::ThreadContext& c);

class RuntimeImpl final : public Runtime {
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
  Status set(std::string_view name, std::string_view value) override;  // change_options.cc
  Status observe(Sampling how) override;                               // change_options.cc
  Outcome invoke(MethodId m, std::span<const uint64_t> args) override;
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
  SavedReport saved_report() const override;
  Profile profile() const override;
  Status save_profile() override;  // saved.cc
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key) override;
  // saved_calls.cc
  void note_first_locked(const Method& m, CallProfile& calls) const;
  void learn_calls_locked(Method& m, const jit::Function& f);
  void add_calls_locked(const Method& m, const Profile& seen, CallProfile& calls) const;
  std::vector<LoopReport> loops() const override;  // loops.cc
  std::vector<LogRecord> read_log() override;      // log.cc
  Result<std::string> ir(MethodId m) override;

  static void thread_ends() noexcept;  // attach.cc
  // Whether this is the child of a process that has made the runtime; what is said then.
  bool forked() const noexcept { return born_at_fork_ != sampler::forks(); }
  static Error forked_error();  // attach.cc
  // What becomes of a trap with no invoke under way (orphaned_trap.cc).
  [[noreturn]] void end_orphaned() noexcept;

  // What slow paths of code call (slow_paths.cc, slow_loops.cc). They return where to go on.
  const void* enter(uint32_t method) noexcept;
  jit::TrialCall trial_call(uint32_t method) noexcept;  // trial.cc
  const void* guard_told(uint32_t method) noexcept;     // value_versions.cc
  // `pc`: in the code that asks, which may be an older version than the one in service.
  const void* loop_plain(uint32_t method, uint32_t loop, const void* pc) noexcept;
  const void* loop_instrumented(uint32_t method, uint32_t loop, const void* pc) noexcept;
  // What exits call; deopt.cc.
  jit::Leave leave(jit::LeaveState& s, bool forced) noexcept;
  jit::Leave ask_to_leave(jit::LeaveState& s) noexcept;
  // What a trap tells before it unwinds; notes.cc.
  void frames_dropped(uint32_t method, SiteId block, uint64_t frames) noexcept;

 private:
  friend class CallPaths;
  friend class StillHere;
  friend class LookingAround;

  RuntimeImpl(const Options& options, const StressPlan& plan, TraceSink* sink, Policy* policy);
  Status start();

  Method& method(uint32_t index) const { return methods_.at(index); }
  // Whether the id is that of a method that was added and not removed. Reads no Method.
  bool is_method(MethodId m) const { return methods_.serves(m); }
  // Whether a method was removed since the earliest LookingAround that is there began. The caller
  // has one, and does not hold the state mutex.
  bool removed_meanwhile(MethodId m) const;
  // Returns a method, removed or not, or null when its place has gone to another.
  Method* known(MethodId m) const { return methods_.known(m); }
  // The calling thread's record if it is attached to this runtime, else null.
  AttachedThread* here() const noexcept;

  std::optional<MethodKey> method_at(uint64_t address) const;

  // describe.cc
  enum class Observed : uint8_t { kYes, kNotYet };  // whether the code is of counts, or counts
  Result<jit::Function> describe(Method& m, Observed observed);
  Result<jit::Function> describe_anew(Method& m, Observed observed);
  Status describe_ahead(Method& m);
  Status check_callees(const Method& m, const jit::Function& f) const;
  bool plans_at_once(Method& m, const jit::Function& f);
  void place_probes(Method& m, jit::Function& f, Observed observed);
  void plan_probes(Method& m, const jit::Function& f, const jit::LoopForest& forest);
  void learn_own_locked(Method& m);
  // compile_service.cc
  bool first_call(Method& m);
  bool note_first_call(Method& m);
  bool make_first(Method& m);
  bool compiles_first(Method& m);
  bool interpret(Method& m);
  std::vector<Plan> first_plans(const Method& m) const;
  bool copies_first(const Method& m) const;
  Status compile_first(Method& m);
  Result<std::unique_ptr<Version>> make(Method& m, const Plan& plan);
  Status make_own(Method& m, const Plan& plan, Version& v);
  Status make_ours(Method& m, const Plan& plan, Version& v);
  Status make_baseline(Method& m, const Plan& plan, Version& v);
  Status make_optimized(Method& m, const Plan& plan, Version& v);
  void take_poll_words(Version& v, uint32_t loops);
  jit::BodyProfile known_profile(Method& m, const Plan& plan, Version& v);
  void compile_and_install(const Plan& plan);
  // osr_enter.cc
  bool know_loops(Method& m);
  void refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken);
  void report_unknown_loop(Method& m, uint32_t loop, uint32_t loops);
  bool host_loop_event(Method& m, AttachedThread& t, LoopId loop);
  bool can_enter_loops(const Method& m) const noexcept;
  static void ask_at_next_arrival(sampler::MethodState& s) noexcept;
  void stress_host_arrival(Method& m, AttachedThread& t, LoopId loop);
  const Version* host_loop_code(Method& m, LoopId loop, bool tells);
  Outcome call(const void* target, const Signature& signature, std::span<const uint64_t> args);
  void back_in_host(AttachedThread& t) noexcept;
  void reclaim_beside(AttachedThread& t) noexcept;
  Status leave_stack(AttachedThread& t, NativeStack& to, const void* frame);  // stacks.cc
  // registry.cc
  Status make_host_thunk(Method& m);
  void die_if_in_use();
  bool interprets_first_locked(const Method& m) const;
  const void* first_target_locked(const Method& m) const;

  void take_out(std::span<const MethodId> all, HostUse after);
  std::vector<MethodId> refuse_calls(std::span<const MethodId> all, HostUse after);
  void await_compilations(std::span<const MethodId> ids);
  void retire_code(std::span<const MethodId> ids, HostUse after);
  void take_out_locked(Method& m, HostUse after);
  void flush_removed_locked(Method& m, HostUse after);
  // code/gone.cc
  void hold_locked(const Version& v);
  void let_go_locked(const Version& v);
  void let_go_locked(Method& m);
  bool leave_hosts_locked();
  void tell_later_locked(Method& m);
  void leave_all_hosts();
  void tell_hosts() noexcept;
  void await_tellers(std::span<const MethodId> methods);
  bool may_ask_host(const Method& m) const;
  // code/removed.cc
  struct Place {
    MethodId id;
    bool again = false;  // another method had it
  };
  Result<Place> take_place_locked(const std::string& name);
  void free_places_locked(size_t kept);
  std::vector<bool> places_to_free(size_t kept) const;
  void withdraw_what_refers_to_locked(const std::vector<bool>& places);
  void keep_what_code_means_locked(std::vector<bool>& places) const;
  void forget_in_tables_locked(const std::vector<bool>& places);  // forgotten_targets.cc
  void forget_in_slab_locked(Method& m, uint32_t stream, const uint64_t* slab, uint64_t size,
                             const std::vector<bool>& places, ForgottenTargets& held) const;
  bool names_one_of(uint64_t word, const std::vector<bool>& places) const;
  void forget_paths_locked(const std::vector<bool>& places);
  void forget_locked(Method& m);

  // inlinees.cc
  friend class Inlinees;
  friend class Relay;
  bool inlines() const;
  bool guards_may_be_inlined() const;
  void keep_body_locked(Method& m, const jit::Function& f);
  void forget_body_locked(Method& m);
  jit::BodyProfile body_profile_locked(const Method& m);
  std::unique_ptr<jit::Inlinee> inlinee(MethodId id, bool profile, double& error);

  // saved.cc
  void adopt_saved_locked(Method& m);
  bool match_saved_locked(Method& m, SavedMethod& saved);
  bool warm(Method& m);
  void trust_saved(Method& m);
  bool hot_before(Method& m);
  void prepare(Method& m, uint32_t depth);
  std::vector<MethodId> likely_inlinees(Method& m);
  bool is_removed(const Method& m);
  void list_known_locked();
  std::vector<Method*> in_order_of_placement(std::span<const std::pair<double, Method*>> known);
  void put_in_order_of_calls(std::vector<Method*>& methods);
  bool compile_known();
  void wake_for_known();
  Method* next_known_locked();
  Status save_profile_locked();
  void see_locked(const Method& m, SeenRun& seen) const;
  SeenRun see_watched_locked() const;
  void save_at_end_locked();
  profile::Timeline timeline_locked() const;

  // install.cc; the caller holds state_mutex_.
  void install(Method& m, std::unique_ptr<Version> v);
  void put_in_service(Method& m, std::unique_ptr<Version> v);
  void forget_versions_locked(Method& m);
  void forget_caller_locked(Version& v);
  Status open_native_tools();
  void tell_native_tools(const Method& m, const Version& v);
  void link_locked(Method& m);
  const sampler::LoopCell* loop_cells(Method& m, const Version* plain, const Version& copy);
  void retire_optimized_before(Method& m, const Version& v);
  void retire_baseline(Method& m);
  void reclaim_locked();

  // trial.cc
  const void* enter_anew(Method& m) noexcept;
  void begin_trial(Method& m, const Version* before, const Version& now);
  void abandon_trial(Method& m);
  void end_trial(Method& m);
  void learn_rates(const Method& m, const TrialSnapshot& s);
  void back_to_baseline(Method& m);

  // value_versions.cc
  void consider_values(Method& m);
  bool may_have_value_version(const Method& m) const;
  void force_values(Method& m);
  std::vector<jit::SiteValues> guesses_locked(Method& m, const Plan& plan);
  ValueSnapshot value_snapshot(const Method& m, const MethodProfile& seen,
                               const jit::ParamSite& site) const;
  Status make_guard(Method& m, Version& v);
  void install_value_version(Method& m, Version& v);
  void begin_window(Method& m, Version& v);
  void watch_quietly(Method& m, Version& v);
  void consider_guard(Method& m);
  void take_back(Method& m, bool banned);

  // evict.cc
  std::vector<Method*> eviction_order_locked() const;
  void withdraw_locked(Method& m);
  void evict_locked(Method& m);
  void make_room_locked(uint64_t wanted, bool urgent);
  void unlink_locked(Method& m);
  bool relink(Method& m);
  void ask_again_after_eviction(Method& m);
  Result<std::unique_ptr<Version>> make_with_room(Method& m, const Plan& plan, bool urgent);
  bool plan_forces_refusals() const { return stress_.active(StressKind::kCode); }

  // slow_paths.cc
  static void raise_no_code(MethodId m) noexcept;
  const void* refuse_call(MethodId m) noexcept;
  sampler::CallEvent next_call_event(Method& m, AttachedThread& t) noexcept;
  const void* current_entry(Method& m) const noexcept;
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
  bool make_enterable(Method& m);
  void count_exit(Method& m, uint32_t exit) noexcept;
  void consider_exit(Method& m, uint32_t exit);
  void give_up(Version& v, OsrOut why);
  void drop_osr_versions(Method& m);
  void optimize_anew(Method& m);
  void withdraw_optimized(Method& m);
  void withdraw_code(Method& m);
  void make_callers_anew(const Method& m);

  // osr_out.cc
  void call_back(Version& v);
  void watch_callees(Version& v);
  void tell_callers(Method& callee);
  void replace_osr(Method& m, const Version& v);
  bool cannot_follow(const Method& m, uint32_t loop) const;
  uint64_t newer_due_ns(const Method& m) const;
  void want_newer(Method& m, uint32_t loop);
  void want_newer_if_due();
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

  void leave(AttachedThread& t);                    // attach.cc
  void pass_quiescent(AttachedThread& t) noexcept;  // attach.cc
  void flush_and_wait();                            // attach.cc
  void prepare_loop_timer(AttachedThread& t);       // attach.cc
  SavedReport saved_locked() const;
  LossReport losses_locked() const;                               // report.cc
  void report_observing(const Method& m, MethodReport& r) const;  // report.cc
  void keep_log_locked(AttachedThread& t);                        // log.cc

  // adapt.cc
  void tick_if_due();
  void tick_locked(uint64_t now_ns);
  bool load_of(Method& m, std::vector<sampler::MethodLoad>& loads);
  sampler::Progress progress_locked(Method& m) const;
  double opportunities(const Method& m, const sampler::Progress& p) const;
  void give_allowance_locked();
  void heed(Method& m, sampler::Verdict v);
  void rest(Method& m);
  void look_again(Method& m);
  void learn_on(Method& m);
  sampler::Rate off_rate() const;
  void begin_observing(Method& m);
  void want_copy(Method& m);

  // change_options.cc
  bool has_rates() const;
  const char* obstacle_to(std::string_view name, const Options& to) const;
  void apply_locked(std::string_view name);
  void change_interval_locked();
  void change_burst_locked();
  void change_flushes_locked();
  void change_policy_locked();
  Options live_options() const;
  void observe_again(Method& m);
  void put_rate(uint32_t method, sampler::Rate planned);

  // observe_optimized.cc
  bool observes_optimized(const Method& m) const noexcept;
  sampler::Rate rate_of(const Method& m) const noexcept;
  // Acquire pairs with set(): the rung is in the ladder.
  sampler::Rate optimized_rate() const noexcept {
    return {optimized_rate_.load(std::memory_order_acquire)};
  }
  const void* optimized_sample(Method& m, AttachedThread& t) noexcept;
  static uint64_t counted_copy(const uint64_t* optimized_slab) noexcept;
  static uint64_t optimized_words(const uint64_t* optimized_slab) noexcept;
  static void give_optimized_slab(AttachedThread& t, const sampler::MethodState& s);
  bool ready_slab(Method& m, AttachedThread& t, const Version& copy) noexcept;
  bool post_optimized(Method& m, AttachedThread& t) noexcept;
  void count_optimized(Method& m, AttachedThread& t) noexcept;
  sampler::Note optimized_note(Method& m, AttachedThread& t) noexcept;
  void want_optimized_copy(Method& m);
  bool can_observe_optimized(const Method& m) const;
  bool observes_copies(const Method& m) const;
  void request_optimized_copy(Method& m);
  bool awaits_optimized(const Method& m) const noexcept;
  void begin_observing_optimized(Method& m, Version& v);
  void number_copy(Method& m, Version& v);
  void retire_optimized_copy(Method& m);
  void take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts);
  void flush_optimized_locked(Method& m, AttachedThread& t);
  // copy_windows.cc
  bool learn_window(Method& m, CopyWindows& o, const Version& copy, const sampler::Window& w);
  bool compare_with_profile(Method& m, CopyWindows& o, const Version& v, const Version& copy);
  // observe_loops.cc
  void watch_frames(Method& m, uint64_t due_ns);
  void watch_frames_of(Method& m, const Version& v);
  void watch_all_frames();
  void call_watched_if_due();
  void call_watched(const Method& m);
  void take_frame(Method& m, const sampler::Note& note);
  void begin_observing_loop(Method& m, Version& v);
  void let_observed_back(const Method& m, LoopId loop);
  void retire_loop_copy(Method& m, LoopId loop);
  void retire_loop_copies(Method& m);
  void take_rounds(Method& m, LoopId loop, const Version& copy, sampler::Window w);
  void consider_loop(Method& m, LoopId loop, const Version& v);
  // observe_inlined.cc
  std::string block_name(const Method& m, const Version& copy, size_t word) const;

  // phase.cc; the caller holds state_mutex_.
  static constexpr double kDriftAlpha = sampler::ConvergenceOptions{}.drift_alpha;
  std::vector<uint64_t> blocks_to_compile_from(const Method& m) const;
  void begin_phase(Method& m);
  void follow_drift(Method& m);
  void follow_loop_drift(Method& m, const Version& copy, CopyWindows& o);
  double profile_error_locked(const Method& m, const std::vector<uint64_t>& blocks) const;
  void note_origin_locked(const Method& m, const jit::BodyProfile& p, Version& v) const;
  TargetCounts target_counts(const jit::SiteTargets& site) const;

  // worker.cc
  void run_worker();
  void calibrate();                                     // calibrate.cc
  SystemSnapshot system_locked(const Method& m) const;  // calibrate.cc
  uint64_t inlined_size(const Version& v) const;
  void await_work();
  void wake_worker() noexcept;
  bool drain_locked();
  void drain_thread_locked(AttachedThread& t, uint32_t most = UINT32_MAX);
  void handle_note(AttachedThread& t, const sampler::Note& note, std::span<const uint64_t> counts);
  void consider(Method& m, const sampler::Note& note);
  void request(Method& m, const Plan& plan, double priority);
  void forget_request(Method& m, const Plan& plan);
  void run_queue();
  void flush_thread_locked(AttachedThread& t, sampler::NoteKind kind);
  sampler::Note make_note(Method& m, AttachedThread& t, sampler::NoteKind kind) noexcept;

  const Options options_;
  Options live_;  // what set() has changed of them; guarded by state_mutex_
  std::atomic<PolicyMode> policy_mode_;
  std::atomic<Sampling> sampling_{Sampling::kByOptions};
  const ProbeChoice probe_choice_;
  PolicyOptions policy_;  // of live_; guarded by state_mutex_
  mutable Stress stress_;
  sampler::Schedule schedule_;
  sampler::Schedule counting_;  // the same without sampled calls: optimized or always instrumented
  std::atomic<uint64_t> optimized_rate_{0};  // of methods whose optimized code is observed
  bool always_instrumented_ = false;

  std::optional<jit::FaultHandlers> faults_;
  std::unique_ptr<jit::CodeSpace> space_;
  jit::CodeRegistration registration_;  // how fault handlers find the space; ends before it
  std::unique_ptr<jit::StubTable> stubs_;
  std::unique_ptr<jit::PollWords> poll_words_;
  std::unique_ptr<sampler::FastSampling> fast_;
  jit::NativeTools native_tools_;  // guarded by state_mutex_
  jit::Routines routines_;
  jit::Helpers helpers_;
  jit::SpareBuild spare_build_;

  MethodTable methods_;

  mutable WaitedMutex state_mutex_;
  // Places whose methods have been removed, in that order, and those that may have another.
  std::deque<uint32_t> removed_, free_places_;
  uint64_t methods_seen_ = 0, removals_ = 0;  // methods that were added, and that were removed
  uint64_t next_freeing_ = 0;                 // removals at which places are looked for again
  std::multiset<uint64_t> looking_;  // removals that there had been when each LookingAround began
  // Retired methods that only their enterable code holds, as far as is known; hosts to be told.
  std::vector<Method*> left_;
  std::deque<Method*> gone_;
  std::atomic<bool> hosts_wait_{false};  // there are such
  std::condition_variable_any told_;
  std::vector<std::unique_ptr<AttachedThread>> threads_;
  uint32_t threads_seen_ = 0;
  Observer observer_;
  std::unique_ptr<ProfileStore> store_;  // of Options::profile, or null
  bool profile_saved_ = false;
  // Methods that earlier processes ran, which the worker compiles before they are called: the next
  // one last. Guarded by state_mutex_ but for the flag.
  std::atomic<bool> known_wanted_{true};
  std::vector<Method*> known_;
  bool made_ahead_ = false;   // it has: first calls of such methods are not noticed
  uint64_t first_calls_ = 0;  // methods that were called
  CompileQueue queue_;
  std::vector<NewerWanted> newer_wanted_;  // that is not due yet
  std::atomic<bool> newer_waits_{false};   // there are such
  std::vector<WatchedFrames> watched_;     // methods whose frames are to be called, each once
  std::atomic<bool> watched_wait_{false};  // there are such
  std::atomic<uint64_t> serials_{0};       // versions that were begun
  Reclaimer reclaimer_;
  Relay relay_;
  LossReport losses_;
  // The adaptive schedule; guarded by state_mutex_ but for the flag.
  sampler::CycleClock clock_;
  sampler::CostModel cost_model_;
  sampler::CostCounts cost_seen_;
  sampler::CostCounts cost_gone_;  // of threads that have detached
  std::optional<sampler::Budget> budget_;
  uint64_t last_tick_ns_ = 0;
  TickList ticked_;                 // places of methods that have flushed (Method::has_flushed)
  std::deque<LogRecord> gone_log_;  // of threads that have detached
  const uint64_t born_ns_ = now_ns();
  const uint32_t born_at_fork_ = sampler::forks();
  uint64_t gone_lived_ns_ = 0;  // CPU time, while attached, of threads that have detached
  double cycles_per_ns_ = 1;    // measured when loops are timed
  uint64_t gone_cpu_ns_ = 0;    // of threads that have detached since the last tick
  sampler::Rate start_rate_;    // of new methods
  sampler::Rate fixed_rate_;    // of all methods, where rates do not adapt
  std::atomic<bool> worker_ticks_{false};  // threads have run since the last tick
  uint64_t activity_ = 0;                  // rises with whatever is heard of any method
  uint64_t compile_ns_total_ = 0;
  CompileRate compile_rate_;
  uint64_t kept_bytes_ = 0;                 // of Method::body
  std::atomic<bool> inline_guards_{false};  // a body that was kept has guards
  SpeedupRate speedup_;
  BaselineRate baseline_rate_;
  double ns_per_cycle_ = 0;  // of the time stamp counter; 0: not known yet

  WorkerThread worker_;
  std::counting_semaphore<> wake_{0};
  std::atomic<bool> wake_pending_{false};  // a release that the worker has not taken yet
  std::atomic<bool> stopping_{false};
  bool worker_idle_ = true;
  std::condition_variable_any idle_;
  uint64_t calibration_bytes_ = 0;  // of code that calibrate() had freed
};

}  // namespace uptier::tiering
