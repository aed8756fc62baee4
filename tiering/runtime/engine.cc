#include "tiering/runtime/engine.h"

#include <signal.h>

#include <cassert>
#include <mutex>
#include <string>

#include "jit/code/code_space.h"
#include "jit/code/global_locks.h"
#include "jit/code/poll_words.h"
#include "jit/code/stubs.h"
#include "profile/data/loop_nest.h"
#include "sampler/fast_sample.h"
#include "sampler/fork.h"
#include "tiering/base/address_space.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/eviction.h"
#include "tiering/control/finding.h"
#include "tiering/control/frequent_exits.h"
#include "tiering/control/newer_code.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/control/trials.h"
#include "tiering/control/value_guards.h"
#include "tiering/image/image_code.h"
#include "tiering/model/tally_words.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/code_entries.h"
#include "tiering/runtime/looks.h"
#include "tiering/runtime/worker_thread.h"
#include "tiering/runtime/worker_wake.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/reclaimer.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {
namespace {

sampler::GapKind gap_kind(GapMode m) {
  switch (m) {
    case GapMode::kRandom: return sampler::GapKind::kRandom;
    case GapMode::kPrime: return sampler::GapKind::kPrime;
    default: return sampler::GapKind::kFixed;
  }
}

// Tier mode `instrumented` means interval 1. Exhaustive and exact sampling must not adapt, and
// without copies there is nothing to adapt.
Options effective(Options o) {
  if (o.tier == TierMode::kInstrumented) o.interval = 1;
  bool samples = o.tier == TierMode::kAuto || o.tier == TierMode::kInstrumented;
  if (o.interval == 1 || o.gap == GapMode::kExact || !samples) o.adaptive = false;
  fit_address_space(o, address_space_left());
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
  // Nothing is sampled until there is a copy to run; see rate_control.h.
  if (o.adaptive) s.rate = sampler::Rate::off(burst);
  return s;
}

// Returns the same schedule, without sampled calls.
sampler::Schedule counting_only(sampler::Schedule s) {
  s.sample_calls = false;
  return s;
}

// Poll words of versions with long loops: address space, which costs memory only where it is used.
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

uint32_t stub_bytes(const Options& o) {
  return jit::StubTable::data_bytes(static_cast<uint32_t>(o.max_methods));
}

// Makes the default values of parts that do not exist yet (MadeLater). Slow paths read them, and
// must not run out of memory there.
void make_fresh() {
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

// Tells the host that its limit of address space leaves less than its options ask for.
void say_reduced(const Options& wanted, const Options& got, const Log& log) {
  auto say = [&](const char* name, uint64_t want, uint64_t has) {
    if (want == has) return;
    log.say(LogLevel::kWarning, std::string(name) + " is " + std::to_string(has) + " bytes, not " +
                                    std::to_string(want) +
                                    ": the process has little address space (ulimit -v)");
  };
  say("code_budget", wanted.code_budget, got.code_budget);
  say("slab_budget", wanted.slab_budget, got.slab_budget);
}

Error memory_refused(const char* what) {
  return {ErrorCode::kResourceExhausted, std::string("memory for ") + what + " is refused"};
}

}  // namespace

// ---- Construction -------------------------------------------------------------------------------

Engine::Engine(Runtime& runtime, const Options& o, const StressPlan& plan, TraceSink* sink,
               Policy* hosts_policy)
    : facade(runtime),
      options(effective(o)),
      log(options),
      notices(log),
      live(options),
      policy_mode(options.policy),
      probe_choice(ProbeChoice::from(options)),
      policy(PolicyOptions::from(options)),
      stress(plan),
      schedule(make_schedule(options)),
      counting(counting_only(schedule)),
      always_instrumented(schedule.sample_calls && options.interval == 1),
      fast(std::make_unique<sampler::FastSampling>(this, static_cast<uint32_t>(options.max_methods),
                                                   schedule)),
      state_mutex_owned(std::make_unique<WaitedMutex>()),
      state_mutex(*state_mutex_owned),
      places(methods),
      reclaimer(std::make_unique<Reclaimer>(events)),
      hosts(std::make_unique<GoneHosts>(state_mutex, methods, places, *reclaimer)),
      stops(interrupt_signal(options)),
      stack_sampling(std::make_unique<StackSampling>(
          StackSampling::Parts{options, live, log, threads, methods, space, stubs, routines})),
      threads(options.log_records),
      tally_words(std::make_unique<TallyWords>(threads)),
      observer(std::make_unique<Observer>(options, live, schedule.ladder, sink, hosts_policy,
                                          events, *tally_words)),
      saved(std::make_unique<SavedProfile>(options, live, methods, *observer)),
      known_methods(std::make_unique<KnownMethods>()),
      requests(std::make_unique<Requests>(options.max_queue, methods, events)),
      rates(std::make_unique<RateControl>(RateControl::Parts{options, live, schedule, counting,
                                                             *fast, methods, threads, *observer,
                                                             *reclaimer, *requests})),
      finding(std::make_unique<Finding>(live, methods, *rates, *observer)),
      born_ns(now_ns()),
      born_at_fork(sampler::forks()),
      machine(std::make_unique<MachineRates>(options, live, methods)),
      bodies(std::make_unique<KeptBodies>(options)),
      worker_thread(std::make_unique<WorkerThread>()),
      worker_wake(
          std::make_unique<WorkerWake>(options.workers != 0 ? worker_thread.get() : nullptr)),
      looks(std::make_unique<Looks>(*this)) {
  say_reduced(o, options, log);
  open_events();
}

Engine::~Engine() = default;

// Call it before the first record.
void Engine::open_events() {
  events.listen(losses, LossCounts::kHears);
  if (!options.profile.empty()) events.listen(versions, VersionLog::kHears);
  if (options.workers == 0) return;
  events.set_wake([](void* worker) noexcept { static_cast<WorkerThread*>(worker)->wake(); },
                  worker_thread.get());
}

Status Engine::start(const CodeEntries& entries) {
  assert(space == nullptr && "an engine is started once");
  make_fresh();
  if (!sampler::watch_forks() || !jit::hold_locks_over_forks())
    return memory_refused("a handler of fork()");
  if (options.loops) cycles_per_ns = 1 / sampler::CycleClock::calibrate().ns_per_cycle;
  if (!methods.reserve(static_cast<uint32_t>(options.max_methods)) || fast->methods() == nullptr) {
    return memory_refused("max_methods methods");
  }
  if (Status s = make_code_space(); !s) return s;
  if (Status s = make_routines(entries); !s) return s;
  if (Status s = make_stubs(); !s) return s;
  make_helpers();
  make_owners();
  if (Status s = in_service->open_native_tools(routines); !s) return s;
  reclaimer->set_before_free(
      [](void* sampling, std::span<Version* const> versions) noexcept {
        state_lock.known_held();
        static_cast<StackSampling*>(sampling)->before_free(versions);
      },
      stack_sampling.get());
  if (options.sample_hz != 0) {
    HeldState lock(state_mutex);
    if (Status s = stack_sampling->change_rate(); !s) return s;
  }
  observer->directory.set_method_at([this](uint64_t address) { return method_at(address); });
  observer->directory.set_method_of([this](MethodId m) { return known(m); });
  if (!options.profile.empty()) saved->open(options.profile);
  return {};
}

Status Engine::make_code_space() {
  assert(space == nullptr);
  // The pages that bodies share are mapped twice, and a debugger cannot write a breakpoint to such a page:
  // the kernel lets it change private memory only.
  const bool packed = options.pack_code && !options.gdb;
  auto made = jit::CodeSpace::create({.code_budget = options.code_budget,
                                      .data_bytes = stub_bytes(options) + kPollBytes,
                                      .packed = packed,
                                      .moves = options.relay_code,
                                      .open_at_once = options.jit_dump,
                                      .hardening = hardening_of(options)});
  if (!made) return made.error();
  space = std::move(*made);
  poll_words =
      std::make_unique<jit::PollWords>(space->data().subspan(stub_bytes(options), kPollBytes));
  return {};
}

Status Engine::make_routines(const CodeEntries& entries) {
  assert(entries.enter != nullptr && entries.leave != nullptr && guest != nullptr);
  auto made = jit::Routines::create(
      *space, entries.enter, this, sampler::uptier_take_sample, fast.get(),
      {entries.frames_dropped, this, entries.orphaned_trap}, {entries.leave, entries.ask_to_leave},
      entries.trial_call, entries.guard_told,
      {.plain = entries.loop_plain,
       .instrumented = entries.loop_instrumented,
       .runtime = this,
       .methods = fast->methods(),
       .begin = sampler::uptier_begin_burst,
       .data = fast.get()});
  if (!made) return made.error();
  routines = std::move(*made);
  auto registered =
      jit::CodeRegistration::add(*space, routines.trap_exit(), entries.orphaned_trap, this);
  if (!registered) return registered.error();
  registration = std::move(*registered);
  return {};
}

Status Engine::make_stubs() {
  assert(space != nullptr && routines.entry_slow() != nullptr);
  bool shared = options.gap == GapMode::kExact;
  auto made = jit::StubTable::create(
      *space, space->data(), static_cast<uint32_t>(options.max_methods), routines.entry_slow(),
      shared ? jit::StubTable::Countdown::kShared : jit::StubTable::Countdown::kPerThread,
      routines.trial());
  if (!made) return made.error();
  auto handlers = jit::FaultHandlers::install();
  if (!handlers) return handlers.error();
  faults.emplace(std::move(*handlers));
  stubs = std::move(*made);
  return {};
}

void Engine::make_helpers() {
  helpers.loop_slow_plain = routines.loop_plain();
  helpers.loop_slow_instrumented = routines.loop_instrumented();
  helpers.trap_exit = routines.trap_exit();
  helpers.leave = routines.leave();
  helpers.ask_to_leave = routines.ask_to_leave();
  helpers.scalable_count64 = routines.scalable_count64();
  helpers.scalable_count32 = routines.scalable_count32();
  for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
    helpers.probes[i] = routines.probe(static_cast<jit::ProbeRoutine>(i));
  }
  helpers.runtime = this;
}

// Creates the components that need the code space.
void Engine::make_owners() {
  assert(space != nullptr && stubs != nullptr && poll_words != nullptr);
  system = std::make_unique<System>(live, *requests, *space, *machine);
  image = std::make_unique<ImageCode>(
      ImageCode::Parts{options, log, methods, *space, *stubs, helpers, has_lines()});
  if (!options.image.empty()) image->open();
  compiler = std::make_unique<MethodCompiler>(
      MethodCompiler::Parts{.options = options,
                            .live = live,
                            .policy = policy,
                            .probe_choice = probe_choice,
                            .samples_calls = schedule.sample_calls,
                            .always_instrumented = always_instrumented,
                            .lines = has_lines(),
                            .stress = stress,
                            .state_mutex = state_mutex,
                            .methods = methods,
                            .places = places,
                            .observer = *observer,
                            .saved = *saved,
                            .bodies = *bodies,
                            .events = events,
                            .space = *space,
                            .stubs = *stubs,
                            .poll_words = *poll_words,
                            .tallies = *tally_words,
                            .routines = routines,
                            .helpers = helpers,
                            .image = *image});
  in_service =
      std::make_unique<InService>(InService::Parts{.options = options,
                                                   .policy = policy,
                                                   .always_instrumented = always_instrumented,
                                                   .stress = stress,
                                                   .state_mutex = state_mutex,
                                                   .methods = methods,
                                                   .threads = threads,
                                                   .saved = *saved,
                                                   .reclaimer = *reclaimer,
                                                   .hosts = *hosts,
                                                   .fast = *fast,
                                                   .stubs = *stubs,
                                                   .tallied = observer->tallied,
                                                   .relay = relay,
                                                   .events = events});
  relay = std::make_unique<Relay>(Relay::Parts{.options = options,
                                               .live = live,
                                               .state_mutex = state_mutex,
                                               .stress = stress,
                                               .methods = methods,
                                               .observer = *observer,
                                               .reclaimer = *reclaimer,
                                               .space = *space,
                                               .poll_words = *poll_words,
                                               .service = *looks,
                                               .in_service = *in_service,
                                               .events = events});
  eviction = std::make_unique<Eviction>(Eviction::Parts{.options = options,
                                                        .live = live,
                                                        .stress = stress,
                                                        .state_mutex = state_mutex,
                                                        .methods = methods,
                                                        .space = *space,
                                                        .compiler = *compiler,
                                                        .relay = *relay,
                                                        .requests = *requests,
                                                        .in_service = *in_service});
  trials = std::make_unique<Trials>(Trials::Parts{.options = options,
                                                  .live = live,
                                                  .policy = policy,
                                                  .always_instrumented = always_instrumented,
                                                  .stress = stress,
                                                  .observer = *observer,
                                                  .machine = *machine,
                                                  .in_service = *in_service});
  values = std::make_unique<ValueGuards>(ValueGuards::Parts{.options = options,
                                                            .live = live,
                                                            .policy = policy,
                                                            .stress = stress,
                                                            .observer = *observer,
                                                            .requests = *requests,
                                                            .system = *system,
                                                            .trials = *trials,
                                                            .in_service = *in_service});
  exits = std::make_unique<FrequentExits>(policy, methods, *observer, *requests, *in_service);
  newer = std::make_unique<NewerCode>(options, policy, *system, *observer, *requests, frames);
  copies =
      std::make_unique<CopyControl>(CopyControl::Parts{.options = options,
                                                       .live = live,
                                                       .policy = policy,
                                                       .always_instrumented = always_instrumented,
                                                       .methods = methods,
                                                       .places = places,
                                                       .observer = *observer,
                                                       .rates = *rates,
                                                       .requests = *requests,
                                                       .reclaimer = *reclaimer,
                                                       .system = *system,
                                                       .frames = frames,
                                                       .newer = *newer,
                                                       .in_service = *in_service});
}

// ---- Queries ------------------------------------------------------------------------------------

double Engine::loops_off() const {
  return loop_meter.begin != nullptr ? 0 : profile::kCyclesPerExecution;
}

bool Engine::is_removed(const Method& m) const {
  HeldState lock(state_mutex);
  return m.removed;
}

bool Engine::is_in_build(const char* call) const {
  if (!turns.any_here()) return false;
  log.say(LogLevel::kError, std::string(call) + ": `build` must not call it: nothing is done");
  return true;
}

bool Engine::is_in_subscriber(const char* call) const {
  Status s = events.check_change(call);
  if (!s) log.say(LogLevel::kError, s.error().message);
  return !s;
}

bool Engine::forked() const noexcept { return born_at_fork != sampler::forks(); }

Error Engine::forked_error() {
  return {ErrorCode::kForked,
          "the runtime belongs to the parent process: a child of fork() may exit, exec, and create "
          "its own runtimes"};
}

// Includes words that no version uses; the next owner of such a word polls once in vain.
void Engine::have_all_loops_ask() noexcept {
  assert(space != nullptr);  // a thread is attached, so start() has been called
  std::span<uint8_t> data = space->data().subspan(stub_bytes(options));
  std::span words(reinterpret_cast<jit::PollWord*>(data.data()),
                  data.size() / sizeof(jit::PollWord));
  for (jit::PollWord& word : words) {
    bool says_so = (word.load(std::memory_order_relaxed) & kStops) != 0;
    if (!says_so) word.fetch_or(kStops, std::memory_order_relaxed);
  }
}

// Returns the method whose entry stub is at `address`, the target of an indirect call.
std::optional<MethodKey> Engine::method_at(uint64_t address) const {
  auto* pc = reinterpret_cast<const void*>(static_cast<uintptr_t>(address));
  if (!space->contains(pc)) return std::nullopt;
  MethodId m = stubs->method_of(pc);
  if (!m.valid() || m.index() >= methods.size()) return std::nullopt;
  return method(m.index()).info.key;
}

}  // namespace uptier::tiering
