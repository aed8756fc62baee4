// From a Plan to a Version: describe, verify, compile. What fails here never fails a running
// method.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "jit/ir/deopt_points.h"
#include "jit/ir/select_probes.h"
#include "tiering/code/call_paths.h"
#include "tiering/code/inlinees.h"
#include "tiering/observe/known_counts.h"
#include "tiering/observe/select_turns.h"
#include "tiering/runtime_impl.h"
#include "tiering/saved/profile_store.h"

namespace uptier::tiering {

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

uint64_t thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Makes what `plan` asks for, by the host's compiler or ours.
Result<std::unique_ptr<Version>> RuntimeImpl::make(Method& m, const Plan& plan) {
  if (stress_.active(StressKind::kDelay) && stress_.point(StressKind::kDelay)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kStressDelayMs));
  }
  if (stress_.active(StressKind::kCompile) && stress_.point(StressKind::kCompile)) {
    return Error{ErrorCode::kUnsupported, "compilation failed by the stress plan"};
  }
  uint64_t start = now_ns(), cpu = thread_cpu_ns();
  auto v = std::make_unique<Version>();
  v->tier = plan.tier;
  v->copy = plan.copy;
  v->osr_loop = plan.osr_loop;
  v->from_host = plan.from_host;
  v->method = m.id;
  v->serial = serials_.fetch_add(1, std::memory_order_relaxed) + 1;
  Status s = m.info.own_code ? make_own(m, plan, *v) : make_ours(m, plan, *v);
  if (!s) return s.error();
  v->compile_ns = now_ns() - start;
  v->compile_cpu_ns = thread_cpu_ns() - cpu;
  return v;
}

Status RuntimeImpl::make_own(Method& m, const Plan& plan, Version& v) {
  MethodProfile seen;
  {
    std::lock_guard lock(state_mutex_);
    if (!m.shape_known) learn_own_locked(m);
    seen = observer_.profile_of(m);
  }
  if (Status s = m.probes->schema().check(); !s) return s;
  Result<HostCode> code = m.host.compile(plan, seen);
  if (!code) return code.error();
  if (code->entry == nullptr) {
    return Error{ErrorCode::kInvalidInput, m.info.name + ": the host's code has no entry"};
  }
  v.host = &m.host;
  v.host_code = *code;
  v.entry = code->entry;
  v.code_bytes = code->bytes;
  return {};
}

namespace {

// What finished code means: its calls, and bodies that it has in it, by their ids or by the addresses
// of their stubs.
void learn_references(Version& v, std::span<const MethodId> called) {
  for (MethodId m : called) v.refers_to.push_back(m.index());
  if (v.code != nullptr) {
    for (const jit::InlineRow& r : v.code->tables().inlined) v.bodies.push_back(r.method.index());
  }
  v.refers_to.insert(v.refers_to.end(), v.bodies.begin(), v.bodies.end());
  for (std::vector<uint32_t>* to : {&v.refers_to, &v.bodies}) {
    std::ranges::sort(*to);
    to->erase(std::ranges::unique(*to).begin(), to->end());
  }
}

Status take_code(Method& m, Version& v, Result<std::unique_ptr<jit::Code>> code) {
  if (!code) return code.error();
  v.code = std::move(*code);
  v.code->set_method(m.id);
  v.code->set_serial(v.serial);
  v.entry = v.code->entry();
  v.code_bytes = v.code->size();
  v.inlined = static_cast<uint32_t>(v.code->tables().inlined.size());
  return {};
}

}  // namespace

Status RuntimeImpl::make_ours(Method& m, const Plan& plan, Version& v) {
  if (stress_.active(StressKind::kCode) && stress_.point(StressKind::kCode)) {
    space_->fail_allocation(1);
  }
  return plan.tier == Tier::kBaseline ? make_baseline(m, plan, v) : make_optimized(m, plan, v);
}

Status RuntimeImpl::make_baseline(Method& m, const Plan& plan, Version& v) {
  bool observed = plan.copy == Copy::kInstrumented;
  Result<jit::Function> f = describe(m, observed ? Observed::kYes : Observed::kNotYet);
  if (!f) return f.error();
  CallPaths calls(*this, plan);
  bool checks = options_.tier != TierMode::kBaseline || !options_.stress.empty();
  bool to_host = m.info.host_resume != nullptr, asks = stress_.active(StressKind::kGuard);
  Status s = take_code(m, v,
                       jit::compile_baseline({*f, m.id, helpers_, calls, *space_},
                                             {.copy = plan.copy,
                                              .loop_checks = checks,
                                              .probes = &m.probes->plan(),
                                              .enterable = v.enterable,
                                              .to_host = to_host,
                                              .ask_to_leave = to_host && asks}));
  learn_references(v, calls.reached());
  spare_build_.keep(std::move(*f));
  return s;
}

void RuntimeImpl::take_poll_words(Version& v, uint32_t loops) {
  v.polls = poll_words_->take(loops);
  if (loops == 0 || !v.polls.words().empty()) return;
  std::lock_guard lock(state_mutex_);
  ++losses_.polls_refused;
}

Status RuntimeImpl::make_optimized(Method& m, const Plan& plan, Version& v) {
  Result<jit::Function> f = describe(m, Observed::kYes);
  if (!f) return f.error();
  CallPaths calls(*this, plan);
  Inlinees inlinees(*this, m.id, plan.use_profile);
  jit::BodyProfile seen = known_profile(m, plan, v);
  std::vector<uint8_t> kept;
  if (plan.use_profile) {
    std::lock_guard lock(state_mutex_);
    note_turns(m, observer_, *f);
    note_counts(m, observer_, *f);
  }
  if (stress_.active(StressKind::kValues)) note_wild_counts(*f, v.serial);
  if (plan.for_values) {
    std::lock_guard lock(state_mutex_);
    v.values = m.value_versions->wanted;
  }
  // The last version that a method may have leaves nothing out.
  Options live = live_options();
  bool last = m.optimized_versions + 1 >= live.max_recompiles;
  bool loop_copy = plan.copy == Copy::kInstrumented && plan.osr_loop.valid();
  bool normal = plan.copy == Copy::kPlain && !plan.osr_loop.valid();
  bool slow = normal && stress_.active(StressKind::kSlow) && stress_.point(StressKind::kSlow);
  bool prune = live.deopt_cold && !seen.blocks.empty() && !last;
  prune &= !plan.for_values;
  std::vector<jit::SiteValues> guesses;
  bool guess = !m.value_versions->body_sites.empty() && live.value_versions &&
               (plan.use_profile || stress_.active(StressKind::kValues));
  if (guess && plan.copy == Copy::kPlain) {
    std::lock_guard lock(state_mutex_);
    if (!last) guesses = guesses_locked(m, plan);
    if (!prune && normal && !plan.for_values) m.exits.compiled();
  }
  if (prune) {
    std::lock_guard lock(state_mutex_);
    prune = observer_.samples_of(m) >= live.cold_samples;
    bool loop = plan.osr_loop.valid();
    kept = m.exits.kept_blocks(loop);
    if (!loop && plan.copy == Copy::kPlain) m.exits.compiled();
  }
  if (options_.osr_out) take_poll_words(v, f->loop_count);
  bool stressed = stress_.active(StressKind::kOsrOut);
  if (stressed) v.call_back(OsrOut::kNewer);
  std::vector<std::vector<float>> inlined;
  Status s = take_code(
      m, v,
      jit::compile_optimized({*f, m.id, helpers_, calls, *space_},
                             {.block_counts = seen.blocks,
                              .sample = seen.sample,
                              .osr_loop = plan.osr_loop,
                              .from_host = plan.from_host,
                              .copy = plan.copy,
                              .probes = &m.probes->optimized_plan(),
                              .inlined_sites = &probe_choice_.sites,
                              .targets = seen.targets,
                              .values = guesses,
                              .params = v.values,
                              .inlinees = inlines() ? &inlinees : nullptr,
                              .inline_guards = guards_may_be_inlined() || prune,
                              .inlined_blocks = plan.copy == Copy::kPlain ? &inlined : nullptr,
                              .to_host = m.info.host_resume != nullptr,
                              .prune_cold = prune,
                              .kept = kept,
                              .poll = v.polls.words().data(),
                              .poll_all = stressed,
                              .ask_to_leave = slow || stress_.active(StressKind::kGuard)}));
  if (s) v.code->set_polls(v.polls.words());
  if (s && loop_copy) {
    v.code->set_observed_loop(plan.osr_loop);
    v.scope = jit::scope_of(*f, plan.osr_loop);
  }
  if (plan.from_host) v.slot_laws = jit::slot_laws(*f, plan.osr_loop);
  if (s && plan.copy == Copy::kPlain)
    v.made_inlined = inlinees.origins(*v.code, std::move(inlined));
  v.by_stub = calls.by_stub();
  learn_references(v, calls.reached());
  return s && plan.for_values ? make_guard(m, v) : s;
}

jit::BodyProfile RuntimeImpl::known_profile(Method& m, const Plan& plan, Version& v) {
  if (!plan.use_profile) return {};
  std::lock_guard lock(state_mutex_);
  jit::BodyProfile p = body_profile_locked(m);
  if (plan.copy == Copy::kPlain) note_origin_locked(m, p, v);
  return p;
}

// A call of a method without code in service, on any thread: returns whether it has some now. The
// thread counts as blocked meanwhile, so that what it does not run can make room.
bool RuntimeImpl::first_call(Method& m) {
  __builtin_unwind_init();  // the method's address, which callers keep in registers, is on the stack
  StillHere still(*this);
  return make_first(m);
}

bool RuntimeImpl::make_first(Method& m) {
  LookingAround looking(*this);
  if (store_ != nullptr) {
    if (known_wanted_.exchange(false, std::memory_order_relaxed)) wake_for_known();
    prepare(m, 0);
  }
  std::lock_guard compile(m.compile_mutex);
  if (!is_method(m.id)) return false;  // removed since it was called
  if (current_entry(m) != nullptr) return true;
  if (relink(m)) return true;
  if (m.failed.load(std::memory_order_relaxed)) return false;
  if (!compiles_first(m)) return interpret(m);
  Status s = compile_first(m);
  if (s) return note_first_call(m);
  bool refused = s.error().code == ErrorCode::kResourceExhausted;
  {
    std::lock_guard lock(state_mutex_);
    m.last_error = s.error().message;
    (refused ? losses_.code_refused : losses_.compiles_failed)++;
    // What was refused for want of room may be had at another call.
    m.failed.store(!refused, std::memory_order_relaxed);
  }
  return m.info.host_entry != nullptr && interpret(m);
}

// Returns true.
bool RuntimeImpl::note_first_call(Method& m) {
  std::lock_guard lock(state_mutex_);
  if (m.first_call == 0) m.first_call = ++first_calls_;
  return true;
}

// Whether a method without code is compiled when it is called: with an interpreter of the host's
// only where that is not to run, or where a saved profile is enough. The caller holds its
// compile_mutex.
bool RuntimeImpl::compiles_first(Method& m) {
  if (m.info.host_entry == nullptr || options_.tier != TierMode::kAuto) return true;
  {
    std::lock_guard lock(state_mutex_);
    if (interprets_first_locked(m)) return false;
  }
  return warm(m);
}

// Sends calls to the host's interpreter. Returns false where there is no room for its thunk.
bool RuntimeImpl::interpret(Method& m) {
  std::lock_guard lock(state_mutex_);
  if (m.host_code == nullptr) {
    if (Status s = make_host_thunk(m); !s) {
      m.last_error = s.error().message;
      losses_.code_refused++;
      return false;
    }
  }
  stubs_->set_target(m.id, m.host_code);
  return true;
}

std::vector<Plan> RuntimeImpl::first_plans(const Method& m) const {
  Plan plain{.method = m.id}, copy{.method = m.id, .copy = Copy::kInstrumented};
  bool excluded = !OptRange::parse(options_.opt_range)->contains(method_hash(m.info));
  if (options_.tier == TierMode::kOptimized && !excluded && !m.guard_banned) {
    return {{.method = m.id, .tier = Tier::kOptimized}, plain};
  }
  return copies_first(m) ? std::vector<Plan>{plain, copy} : std::vector<Plan>{plain};
}

// The instrumented copy waits for the first sample, unless no sample may be missed.
bool RuntimeImpl::copies_first(const Method& m) const {
  if (m.info.own_code && m.info.own_schema.slots.empty()) return false;
  return schedule_.sample_calls && (always_instrumented_ || options_.gap == GapMode::kExact ||
                                    options_.workers == 0 || stress_.active(StressKind::kCopy));
}

// All versions are made before any is in service, and the plain copy comes last: where no sample
// may be missed, another thread's call must not find it alone.
Status RuntimeImpl::compile_first(Method& m) {
  std::vector<std::unique_ptr<Version>> made;
  std::vector<Plan> plans = first_plans(m);
  bool hot = warm(m);
  if (hot)
    plans.insert(plans.begin(), {.method = m.id, .tier = Tier::kOptimized, .use_profile = true});
  for (const Plan& plan : plans) {
    bool counts = !m.shape_known || m.slab_words.load(std::memory_order_relaxed) != 0;
    if (plan.copy == Copy::kInstrumented && !counts) continue;
    Result<std::unique_ptr<Version>> v = make_with_room(m, plan, true);
    if (v) {
      made.push_back(std::move(*v));
      // With an optimized version the baseline is only for what the compiler could not do.
      if (plan.tier == Tier::kOptimized) {
        if (hot) trust_saved(m);
        break;
      }
      continue;
    }
    std::lock_guard lock(state_mutex_);
    m.last_error = v.error().message;
    // The plain copy is what everything else falls back to.
    if (plan.tier == Tier::kBaseline && plan.copy == Copy::kPlain) return v.error();
    losses_.compiles_failed++;
  }
  std::lock_guard lock(state_mutex_);
  m.code_made = true;
  for (; !made.empty(); made.pop_back()) install(m, std::move(made.back()));
  ask_again_after_eviction(m);
  return {};
}

// Worker's side: one plan from the queue.
void RuntimeImpl::compile_and_install(const Plan& plan) {
  LookingAround looking(*this);
  if (!is_method(plan.method)) return;
  Method& m = method(plan.method.index());
  std::lock_guard compile(m.compile_mutex);
  {
    std::lock_guard lock(state_mutex_);
    if (m.removed) return;
  }
  Result<std::unique_ptr<Version>> v = make_with_room(m, plan, false);
  std::lock_guard lock(state_mutex_);
  forget_request(m, plan);
  bool banned = m.guard_banned && plan.tier == Tier::kOptimized;
  if (m.removed || banned) return;
  if (v) return install(m, std::move(*v));
  m.last_error = v.error().message;
  bool refused = v.error().code == ErrorCode::kResourceExhausted;
  (refused ? losses_.code_refused : losses_.compiles_failed)++;
  // Failing to optimize is never failing to run. Asking for the same again would fail the same,
  // unless it was room that was wanting.
  bool best = plan.tier == Tier::kOptimized && plan.copy == Copy::kPlain;
  if (refused) return;
  if (plan.for_values) {
    m.value_versions.own().banned = true;
  } else if (best) {
    m.optimize_failed = true;
  }
}

// A callee that is at its best needs no counting: reach its code through the cell, past the stub,
// or directly where it is the code that is being made.
jit::CallTarget CallPaths::target(MethodId callee) {
  using Kind = jit::CallTarget::Kind;
  const jit::StubTable& stubs = *runtime_.stubs_;
  bool gone = !runtime_.is_method(callee);
  // A guess that was made before the removal compares the stub's address all the same.
  bool means = !gone || runtime_.removed_meanwhile(callee);
  if (means && std::ranges::find(reached_, callee) == reached_.end()) reached_.push_back(callee);
  if (gone) return {Kind::kStub, runtime_.routines_.gone()};
  Method& m = runtime_.method(callee.index());
  // Where the cell may lead to code that counts, the stub sees to it that the thread has counters.
  bool counts_all = runtime_.options_.gap == GapMode::kExact || runtime_.always_instrumented_;
  if (counts_all || plan_.tier == Tier::kBaseline) return {Kind::kStub, stubs.stub(callee)};
  // What is made for some values must not be called with others.
  bool self = callee == plan_.method && !plan_.osr_loop.valid() && !plan_.for_values;
  if (self) return {Kind::kSelf, nullptr};
  bool best = m.optimized.load(std::memory_order_acquire) != nullptr;
  if (best) return {Kind::kCell, stubs.cell(callee)};
  if (std::ranges::find(by_stub_, callee) == by_stub_.end()) by_stub_.push_back(callee);
  return {Kind::kStub, stubs.stub(callee)};
}

}  // namespace uptier::tiering
