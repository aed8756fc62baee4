#include "tiering/runtime/runtime_impl.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "jit/code/global_locks.h"
#include "profile/base/wall.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace uptier {

Result<std::unique_ptr<Runtime>> Runtime::create(const Options& options, TraceSink* sink,
                                                 Policy* policy) {
  return tiering::RuntimeImpl::create(options, sink, policy);
}

namespace tiering {
namespace {

// The C side of the routines that compiled code calls.
extern "C" {
const void* uptier_enter(uint32_t method, void* runtime) noexcept {
  return static_cast<RuntimeImpl*>(runtime)->enter(method);
}
jit::TrialCall uptier_trial_call(uint32_t method, void* runtime) noexcept {
  return static_cast<RuntimeImpl*>(runtime)->trial_call(method);
}
const void* uptier_loop_plain(uint32_t method, uint32_t loop, void*, void* runtime) noexcept {
  const void* pc = __builtin_return_address(0);
  return static_cast<RuntimeImpl*>(runtime)->loop_plain(method, loop, pc);
}
const void* uptier_loop_instrumented(uint32_t method, uint32_t loop, void*,
                                     void* runtime) noexcept {
  const void* pc = __builtin_return_address(0);
  return static_cast<RuntimeImpl*>(runtime)->loop_instrumented(method, loop, pc);
}
const void* uptier_guard_told(uint32_t method, void* runtime) {
  return static_cast<RuntimeImpl*>(runtime)->guard_told(method);
}
jit::Leave uptier_leave(jit::LeaveState* s, void* runtime) {
  return static_cast<RuntimeImpl*>(runtime)->leave(*s, false);
}
jit::Leave uptier_ask_to_leave(jit::LeaveState* s, void* runtime) {
  return static_cast<RuntimeImpl*>(runtime)->ask_to_leave(*s);
}
void uptier_orphaned_trap(void* runtime) { static_cast<RuntimeImpl*>(runtime)->end_orphaned(); }
void uptier_frames_dropped(uint32_t method, SiteId block, uint64_t frames, void* runtime) {
  static_cast<RuntimeImpl*>(runtime)->frames_dropped(method, block, frames);
}
}

sampler::GapKind gap_kind(GapMode m) {
  switch (m) {
    case GapMode::kRandom: return sampler::GapKind::kRandom;
    case GapMode::kPrime: return sampler::GapKind::kPrime;
    default: return sampler::GapKind::kFixed;
  }
}

// Tier mode `instrumented` is interval 1 by another name.
Options effective(Options o) {
  if (o.tier == TierMode::kInstrumented) o.interval = 1;
  // Exhaustive and exact sampling are not to be adapted, nor is what has no copies.
  bool samples = o.tier == TierMode::kAuto || o.tier == TierMode::kInstrumented;
  if (o.interval == 1 || o.gap == GapMode::kExact || !samples) o.adaptive = false;
  return o;
}

sampler::Schedule make_schedule(const Options& o) {
  auto interval = static_cast<uint32_t>(o.interval);
  auto burst = static_cast<uint32_t>(o.burst);
  sampler::Schedule s = sampler::Schedule::make(gap_kind(o.gap), interval, burst);
  s.flush_first = o.flush_first;
  s.flush_growth = o.flush_growth;
  s.loop_flush_first = o.loop_flush_first;
  s.sample_calls = o.tier == TierMode::kAuto || o.tier == TierMode::kInstrumented;
  // Nothing is sampled before there is a copy to run; see rate_control.h.
  if (o.adaptive) s.rate = sampler::Rate::off(burst);
  return s;
}

// The same where there is nothing to sample.
sampler::Schedule counting_only(sampler::Schedule s) {
  s.sample_calls = false;
  return s;
}

// Where rates do not adapt, optimized code is not observed.
sampler::Rate first_optimized_rate(const Options& o) {
  if (!o.adaptive) return {};
  uint32_t rung = sampler::Ladder::power_below(static_cast<double>(o.optimized_interval));
  return sampler::Rate::sampled(rung, static_cast<uint32_t>(o.burst));
}

// Words of versions with long loops; address space, of which only what is used costs memory.
constexpr uint32_t kPollBytes = 256 << 10;

jit::Hardening hardening_of(const Options& o) {
  jit::Hardening h;
  h.blind_constants = o.blind_constants;
  h.landing_pads = o.landing_pads;
  return h;
}

int interrupt_signal(const Options& o) {
  return o.interrupt_signal == 0 ? SIGRTMIN + 4 : static_cast<int>(o.interrupt_signal);
}

}  // namespace

RuntimeImpl::RuntimeImpl(const Options& options, const StressPlan& plan, TraceSink* sink,
                         Policy* policy)
    : options_(effective(options)),
      live_(options_),
      policy_mode_(options_.policy),
      probe_choice_(ProbeChoice::from(options_)),
      policy_(PolicyOptions::from(options_)),
      stress_(plan),
      schedule_(make_schedule(options_)),
      counting_(counting_only(schedule_)),
      optimized_rate_(first_optimized_rate(options_).word),
      always_instrumented_(schedule_.sample_calls && options_.interval == 1),
      fast_(std::make_unique<sampler::FastSampling>(
          this, static_cast<uint32_t>(options_.max_methods), schedule_)),
      places_(methods_),
      reclaimer_(events_),
      hosts_(state_mutex_, methods_, places_, reclaimer_),
      stops_(interrupt_signal(options_)),
      threads_(options_.log_records),
      observer_(options_, live_, schedule_.ladder, sink, policy, events_),
      saved_(options_, live_, methods_, observer_),
      requests_(options.max_queue, methods_, events_),
      rates_({options_, live_, schedule_, counting_, *fast_, methods_, threads_, observer_,
              reclaimer_, requests_}),
      machine_(options_, live_, methods_),
      bodies_(options_) {
  open_events();
}

Result<std::unique_ptr<Runtime>> RuntimeImpl::create(const Options& options, TraceSink* sink,
                                                     Policy* policy) try {
  if (Status s = options.check(); !s) return s.error();
  if (int n = interrupt_signal(options); n < SIGRTMIN || n > SIGRTMAX) {
    return Error{ErrorCode::kInvalidArgument, "option interrupt_signal: " + std::to_string(n) +
                                                  " is not 0 and no real-time signal: those are " +
                                                  std::to_string(SIGRTMIN) + " to " +
                                                  std::to_string(SIGRTMAX)};
  }
  Result<StressPlan> plan = StressPlan::parse(options.stress);
  if (!plan) return plan.error();
  jit::StandardFloats floats;
  std::unique_ptr<RuntimeImpl> r(new RuntimeImpl(options, *plan, sink, policy));
  Status s = r->start();
  if (r->lacks_worker()) {
    Log(options).say(LogLevel::kWarning,
                     "a thread for the worker is refused: code is made on the threads that run it, "
                     "as with workers=0");
    Options alone = options;
    alone.workers = 0;
    r.reset();
    r.reset(new RuntimeImpl(alone, *plan, sink, policy));
    s = r->start();
  }
  if (!s) return s.error();
  return std::unique_ptr<Runtime>(std::move(r));
} catch (const std::exception&) { return out_of_memory("a runtime"); }

// What slow paths find of a method of which nothing has been made yet (MadeLater): made here, as they
// may not be refused it.
static void make_fresh() {
  MadeLater<MethodShape>::make_fresh();
  MadeLater<ProbeSet>::make_fresh();
  MadeLater<Flushed>::make_fresh();
  MadeLater<Optimizing>::make_fresh();
  MadeLater<ValueVersions>::make_fresh();
  MadeLater<std::vector<Version*>>::make_fresh();
  MadeLater<std::string>::make_fresh();
  MadeLater<SeenPhase>::make_fresh();
  MadeLater<CodeShape>::make_fresh();
  MadeLater<LoopCopies>::make_fresh();
}

Status RuntimeImpl::start() {
  make_fresh();
  if (!sampler::watch_forks() || !jit::hold_locks_over_forks()) {
    return Error{ErrorCode::kResourceExhausted, "memory for a handler of fork() is refused"};
  }
  if (options_.loops) cycles_per_ns_ = 1 / sampler::CycleClock::calibrate().ns_per_cycle;
  uint32_t capacity = static_cast<uint32_t>(options_.max_methods);
  if (!methods_.reserve(capacity) || fast_->methods() == nullptr) {
    return Error{ErrorCode::kResourceExhausted, "memory for max_methods methods is refused"};
  }
  uint32_t stub_bytes = jit::StubTable::data_bytes(capacity);
  auto space = jit::CodeSpace::create({.code_budget = options_.code_budget,
                                       .data_bytes = stub_bytes + kPollBytes,
                                       .packed = options_.pack_code,
                                       .moves = options_.relay_code,
                                       .open_at_once = options_.jit_dump,
                                       .hardening = hardening_of(options_)});
  if (!space) return space.error();
  space_ = std::move(*space);
  poll_words_ = std::make_unique<jit::PollWords>(space_->data().subspan(stub_bytes, kPollBytes));
  auto routines = jit::Routines::create(
      *space_, uptier_enter, this, sampler::uptier_take_sample, fast_.get(),
      {uptier_frames_dropped, this, uptier_orphaned_trap}, {uptier_leave, uptier_ask_to_leave},
      uptier_trial_call, uptier_guard_told,
      {.plain = uptier_loop_plain,
       .instrumented = uptier_loop_instrumented,
       .runtime = this,
       .methods = fast_->methods(),
       .begin = sampler::uptier_begin_burst,
       .data = fast_.get()});
  if (!routines) return routines.error();
  routines_ = std::move(*routines);
  auto registration =
      jit::CodeRegistration::add(*space_, routines_.trap_exit(), uptier_orphaned_trap, this);
  if (!registration) return registration.error();
  registration_ = std::move(*registration);
  bool shared = options_.gap == GapMode::kExact;
  auto stubs = jit::StubTable::create(
      *space_, space_->data(), capacity, routines_.entry_slow(),
      shared ? jit::StubTable::Countdown::kShared : jit::StubTable::Countdown::kPerThread,
      routines_.trial());
  if (!stubs) return stubs.error();
  auto faults = jit::FaultHandlers::install();
  if (!faults) return faults.error();
  faults_.emplace(std::move(*faults));
  stubs_ = std::move(*stubs);
  helpers_.loop_slow_plain = routines_.loop_plain();
  helpers_.loop_slow_instrumented = routines_.loop_instrumented();
  helpers_.trap_exit = routines_.trap_exit();
  helpers_.leave = routines_.leave();
  helpers_.ask_to_leave = routines_.ask_to_leave();
  helpers_.scalable_count64 = routines_.scalable_count64();
  helpers_.scalable_count32 = routines_.scalable_count32();
  for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
    helpers_.probes[i] = routines_.probe(static_cast<jit::ProbeRoutine>(i));
  }
  helpers_.runtime = this;
  make_owners();
  if (Status s = in_service_->open_native_tools(routines_); !s) return s;
  observer_.directory.set_method_at([this](uint64_t address) { return method_at(address); });
  observer_.directory.set_method_of([this](MethodId m) { return known(m); });
  if (!options_.profile.empty()) saved_.open(options_.profile);
  // The worker emits nothing before it has the mutex.
  std::lock_guard lock(state_mutex_);
  if (options_.workers == 0) {
    observer_.trace.begin();
    return {};
  }
  auto run = [](void* runtime) -> void* {
    static_cast<RuntimeImpl*>(runtime)->run_worker();
    return nullptr;
  };
  if (worker_.start(run, this)) {
    observer_.trace.begin();
    return {};
  }
  saved_.close();  // there was no run to be saved
  lacks_worker_ = true;
  return Error{ErrorCode::kResourceExhausted, "a thread for the worker is refused"};
}

// Those who are given what start() has made.
void RuntimeImpl::make_owners() {
  system_.emplace(live_, requests_, *space_, machine_);
  compiler_.emplace(MethodCompiler::Parts{.options = options_,
                                          .live = live_,
                                          .policy = policy_,
                                          .probe_choice = probe_choice_,
                                          .samples_calls = schedule_.sample_calls,
                                          .always_instrumented = always_instrumented_,
                                          .stress = stress_,
                                          .state_mutex = state_mutex_,
                                          .methods = methods_,
                                          .places = places_,
                                          .observer = observer_,
                                          .saved = saved_,
                                          .bodies = bodies_,
                                          .events = events_,
                                          .space = *space_,
                                          .stubs = *stubs_,
                                          .poll_words = *poll_words_,
                                          .routines = routines_,
                                          .helpers = helpers_});
  in_service_.emplace(InService::Parts{.options = options_,
                                       .policy = policy_,
                                       .always_instrumented = always_instrumented_,
                                       .stress = stress_,
                                       .state_mutex = state_mutex_,
                                       .methods = methods_,
                                       .threads = threads_,
                                       .saved = saved_,
                                       .reclaimer = reclaimer_,
                                       .hosts = hosts_,
                                       .fast = *fast_,
                                       .stubs = *stubs_,
                                       .relay = relay_,
                                       .events = events_});
  relay_.emplace(Relay::Parts{.options = options_,
                              .live = live_,
                              .state_mutex = state_mutex_,
                              .stress = stress_,
                              .methods = methods_,
                              .observer = observer_,
                              .reclaimer = reclaimer_,
                              .space = *space_,
                              .poll_words = *poll_words_,
                              .service = *this,
                              .in_service = *in_service_,
                              .events = events_});
  eviction_.emplace(Eviction::Parts{.options = options_,
                                    .live = live_,
                                    .stress = stress_,
                                    .state_mutex = state_mutex_,
                                    .methods = methods_,
                                    .space = *space_,
                                    .compiler = *compiler_,
                                    .relay = *relay_,
                                    .requests = requests_,
                                    .in_service = *in_service_});
  trials_.emplace(Trials::Parts{.options = options_,
                                .live = live_,
                                .policy = policy_,
                                .always_instrumented = always_instrumented_,
                                .stress = stress_,
                                .observer = observer_,
                                .machine = machine_,
                                .in_service = *in_service_});
  values_.emplace(ValueGuards::Parts{.options = options_,
                                     .live = live_,
                                     .policy = policy_,
                                     .stress = stress_,
                                     .observer = observer_,
                                     .requests = requests_,
                                     .system = *system_,
                                     .trials = *trials_,
                                     .in_service = *in_service_});
  exits_.emplace(policy_, methods_, observer_, requests_, *in_service_);
  newer_.emplace(options_, policy_, *system_, observer_, requests_, frames_);
  copies_.emplace(CopyControl::Parts{.options = options_,
                                     .live = live_,
                                     .policy = policy_,
                                     .always_instrumented = always_instrumented_,
                                     .methods = methods_,
                                     .places = places_,
                                     .observer = observer_,
                                     .rates = rates_,
                                     .requests = requests_,
                                     .reclaimer = reclaimer_,
                                     .system = *system_,
                                     .frames = frames_,
                                     .newer = *newer_,
                                     .in_service = *in_service_});
}

void RuntimeImpl::operator delete(RuntimeImpl* r, std::destroying_delete_t) {
  if (r->forked()) {
#if defined(__SANITIZE_ADDRESS__)
    __lsan_ignore_object(r);
#endif
    return;
  }
  r->~RuntimeImpl();
  static_assert(alignof(RuntimeImpl) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  ::operator delete(r);
}

// Other threads would go on in code, and with counters, that are no longer there.
void RuntimeImpl::die_if_in_use() {
  std::lock_guard lock(state_mutex_);
  AttachedThread* mine = here();
  auto others = [&](const auto& t) { return t.get() != mine; };
  auto n = std::ranges::count_if(threads_, others);
  if (n == 0) return;
  log_.say(LogLevel::kError, "a runtime is destroyed that " + std::to_string(n) +
                                 " other threads are attached to: each must detach before");
  std::abort();
}

// What the calling thread holds that would ask a runtime that is no longer there.
void RuntimeImpl::say_scopes() const {
  const AttachedThread* t = here();
  if (t == nullptr) return;
  bool blocked = t->blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning;
  if (t->scopes == 0 && !blocked) return;
  log_.say(LogLevel::kError,
           t->scopes != 0 ? "a runtime is destroyed inside of a ThreadScope of the thread: the "
                            "scope has to end before"
                          : "a runtime is destroyed by a thread that says that it is blocked "
                            "(BlockedScope, begin_blocked)");
}

void RuntimeImpl::say_noticed() noexcept {
  // What has no memory to be said stands in the losses all the same.
  finishes([&] {
    notices_.say_once(Notice::kUnattached, calls_unattached_.load(std::memory_order_relaxed));
    notices_.say_once(Notice::kKeysShared, observer_.directory.keys().shared());
    if (compiler_) notices_.say_once(Notice::kUnstable, compiler_->describer().unstable_bodies());
    if (in_service_) notices_.say_once(Notice::kNamesLost, in_service_->code_names_lost());
    notices_.say_once(Notice::kFlushesLost, flushes_lost_.load(std::memory_order_relaxed));
  });
}

// Tells the trace in which order methods were called first, those too that no data has come for.
void RuntimeImpl::tell_first_calls_locked() {
  if (!observer_.trace.on()) return;
  CallProfile calls;
  for (const auto& m : methods_.all()) {
    known_.tell_first_call(*m, calls);
    auto first = calls.first.find(m->info.key);
    if (first == calls.first.end()) continue;
    observer_.trace.tell_first_call(*m, first->second.positions);
    calls.first.erase(first);
  }
}

RuntimeImpl::~RuntimeImpl() {
  jit::StandardFloats floats;
  die_if_in_use();
  finishes([&] { say_scopes(); });
  worker_.stop();
  say_noticed();
  if (AttachedThread* t = here()) sampler::exchange_context(t->outer);
  hosts_.leave_all();
  {
    std::lock_guard lock(state_mutex_);
    for (auto& t : threads_) flush_thread_locked(*t, sampler::NoteKind::kFlushFinal);
    if (!saved_.was_saved()) save_at_end_locked();
    if (!finishes([&] { tell_first_calls_locked(); })) observer_.trace.note_lost_event();
    observer_.trace.finish();
    events_.emit({.kind = EventKind::kEnded});
  }
  events_.deliver_all();
  {
    std::lock_guard lock(state_mutex_);
    threads_.clear();
    if (space_ != nullptr) space_->release_all();  // null: start() was refused it
    for (auto& m : methods_.all()) {
      for (auto& v : m->versions) v->free();
    }
    methods_.clear();
  }
}

// Whose entry a code address is: what an indirect call has for a target.
std::optional<MethodKey> RuntimeImpl::method_at(uint64_t address) const {
  auto* pc = reinterpret_cast<const void*>(static_cast<uintptr_t>(address));
  if (!space_->contains(pc)) return std::nullopt;
  MethodId m = stubs_->method_of(pc);
  if (!m.valid() || m.index() >= methods_.size()) return std::nullopt;
  return method(m.index()).info.key;
}

}  // namespace tiering
}  // namespace uptier
