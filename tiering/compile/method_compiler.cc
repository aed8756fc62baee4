#include "tiering/compile/method_compiler.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>

#include "jit/analysis/deopt_targets.h"
#include "jit/code/code_space.h"
#include "jit/code/poll_words.h"
#include "jit/compile/compile.h"
#include "jit/frontend/builder_access.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/body_profile.h"
#include "tiering/compile/call_paths.h"
#include "tiering/compile/event_times.h"
#include "tiering/compile/guess_values.h"
#include "tiering/compile/inlinees.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/image/image_code.h"
#include "tiering/model/event_of.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/known_counts.h"
#include "tiering/observe/observer.h"
#include "tiering/observe/phase.h"
#include "tiering/observe/select_turns.h"

namespace uptier::tiering {

Options MethodCompiler::live_options() const {
  HeldState lock(env_.state_mutex);
  return env_.live;
}

Result<std::unique_ptr<Version>> MethodCompiler::make(Method& m, const Plan& plan) {
  if (env_.stress.active(StressKind::kDelay) && env_.stress.point(StressKind::kDelay)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kStressDelayMs));
  }
  if (env_.stress.active(StressKind::kCompile) && env_.stress.point(StressKind::kCompile)) {
    return Error{ErrorCode::kUnsupported, "compilation failed by the stress plan"};
  }
  uint64_t start = now_ns(), cpu = thread_cpu_ns();
  EventTimes times(env_.events, EventKind::kCompiled, start);
  auto v = std::make_unique<Version>();
  v->tier = plan.tier;
  v->copy = plan.copy;
  v->osr_loop = plan.osr_loop;
  v->from_host = plan.from_host;
  v->method = m.id;
  v->serial = next_serial();
  Status s = m.info.own_code ? make_own(m, plan, *v, times) : make_ours(m, plan, *v, times);
  if (!s) return s.error();
  const uint64_t end = now_ns();
  const bool at_loop =
      plan.osr_loop.valid() && plan.osr_loop.index() < m.shape->loop_locations.size();
  if (at_loop) v->loop_location = m.shape->loop_locations[plan.osr_loop.index()];
  v->compile_ns = end - start;
  v->compile_cpu_ns = thread_cpu_ns() - cpu;
  emit_compiled(*v, end, times);
  return v;
}

void MethodCompiler::emit_compiled(const Version& v, uint64_t at_ns, EventTimes& times) const {
  if (v.code != nullptr) times.inlined(v.code->tables().inlined);
  Event e = event_of(EventKind::kCompiled, v, at_ns);
  e.details = times.details();
  env_.events.emit(e);
}

Status MethodCompiler::make_own(Method& m, const Plan& plan, Version& v, EventTimes& times) {
  MethodProfile seen;
  {
    HeldState lock(env_.state_mutex);
    if (!m.has_shape()) describer_.learn_own(m);
    seen = env_.observer.estimates.profile_of(m);
  }
  if (Status s = m.probes->schema().check(); !s) return s;
  times.ended("profile");
  Result<HostCode> code = m.host.compile(plan, seen);
  times.ended("host compiler");
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

// Records which methods finished code refers to: callees and inlined bodies, by their ids or by the
// addresses of their stubs.
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

Status take_code(const CompileEnv& env, Method& m, Version& v,
                 Result<std::unique_ptr<jit::Code>> code) {
  if (!code) return code.error();
  v.code = std::move(*code);
  assert(v.code->hot_size() <= v.code->size());
  v.code->set_method(m.id);
  v.code->set_serial(v.serial);
  v.entry = v.code->entry();
  v.code_bytes = v.code->size();
  v.inlined = static_cast<uint32_t>(v.code->tables().inlined.size());
  v.tallies = v.code->take_tallies();
  v.tally_source = &env.tallies;
  if (v.tallies.words.empty()) return {};
  for (uint32_t body = 0; body <= v.inlined; ++body) {
    v.tally_paths.push_back(body == 0 ? jit::InlinePath{} : jit::path_of(*v.code, body));
  }
  return {};
}

jit::CompileInput input_of(const CompileEnv& env, const jit::Function& f, MethodId m,
                           jit::CallResolver& calls) {
  return {f, m, env.helpers, calls, env.space, env.lines, env.options.probe_table};
}

}  // namespace

Status MethodCompiler::make_ours(Method& m, const Plan& plan, Version& v, EventTimes& times) {
  if (env_.stress.active(StressKind::kCode) && env_.stress.point(StressKind::kCode)) {
    env_.space.fail_allocation(1);
  }
  return plan.tier == Tier::kBaseline ? make_baseline(m, plan, v, times)
                                      : make_optimized(m, plan, v, times);
}

bool MethodCompiler::checks_loops() const {
  return env_.options.tier != TierMode::kBaseline || !env_.options.stress.empty();
}

// Returns whether the plain code was in an image. A record of no use is ignored.
Result<bool> MethodCompiler::take_from_image(Method& m, const Plan& plan, Version& v) {
  const bool plain = plan.copy == Copy::kPlain && !v.enterable;
  const bool fresh = !m.has_shape();
  // Code that was evicted comes from there again, unless it was described in between.
  const bool may = plain && (fresh || m.shape->undescribed);
  if (!may || !env_.image.is_open() || !describer_.may_be_imaged(m)) return false;
  Result<ImageCode::Body> body = env_.image.place(m);
  if (!body && body.error().code == ErrorCode::kResourceExhausted) return body.error();
  if (!body) return false;
  if (fresh) {
    describer_.learn_imaged(m, std::move(body->shape));
    if (Status s = describer_.plan_if_known(m); !s) return s.error();
  }
  v.from_image = true;
  Status s = take_code(env_, m, v, std::move(body->code));
  learn_references(v, body->callees);
  return s ? Result<bool>(true) : s.error();
}

Status MethodCompiler::make_baseline(Method& m, const Plan& plan, Version& v, EventTimes& times) {
  Result<bool> taken = take_from_image(m, plan, v);
  if (!taken) return taken.error();
  if (*taken) {
    times.ended("place");
    return {};
  }
  bool observed = plan.copy == Copy::kInstrumented;
  Result<jit::Function> f =
      describer_.describe(m, observed ? Describer::Observed::kYes : Describer::Observed::kNotYet);
  if (!f) return f.error();
  times.ended("describe");
  CallPaths calls(env_, plan);
  bool to_host = m.info.host_resume != nullptr, asks = env_.stress.active(StressKind::kGuard);
  Status s = take_code(
      env_, m, v,
      jit::compile_baseline(input_of(env_, *f, m.id, calls), {.copy = plan.copy,
                                                              .loop_checks = checks_loops(),
                                                              .probes = &m.probes->plan(),
                                                              .enterable = v.enterable,
                                                              .to_host = to_host,
                                                              .ask_to_leave = to_host && asks}));
  times.ended("baseline compiler");
  learn_references(v, calls.reached());
  describer_.keep(std::move(*f));
  return s;
}

Result<MethodCompiler::Recorded> MethodCompiler::record(Method& m) {
  const auto cannot = [&](const char* why) { return Error{ErrorCode::kUnsupported, why}; };
  if (m.info.own_code) return cannot("the host compiles it");
  if (m.info.host_resume != nullptr) return cannot("its guards exit to the host's interpreter");
  Result<jit::Function> f = describer_.describe(m, Describer::Observed::kNotYet);
  if (!f) return f.error();
  if (!m.shape->positions.empty()) return cannot("it has positions in sources");
  const Plan plan{.method = m.id};
  CallPaths calls(env_, plan);
  Result<jit::RecordedCode> code =
      jit::record_baseline(input_of(env_, *f, m.id, calls),
                           {.loop_checks = checks_loops(), .probes = &m.probes->plan()});
  if (!code) return code.error();
  Recorded r{std::move(*code), jit::static_shape(*f)};
  describer_.keep(std::move(*f));
  return r;
}

void MethodCompiler::take_poll_words(Version& v, uint32_t loops) {
  assert(v.polls.words().empty());
  v.polls = env_.poll_words.take(loops);
  assert(v.polls.words().empty() || v.polls.words().size() == loops);
  if (loops == 0 || !v.polls.words().empty()) return;
  polls_refused_.fetch_add(1, std::memory_order_relaxed);
}

namespace {

// Enforces Options::max_compile_ms, in processor time of the compiling thread, and times the passes.
class CpuLimit final : public jit::CompileLimit {
 public:
  CpuLimit(uint64_t ms, EventTimes& times)
      : ms_(ms), end_(thread_cpu_ns() + ms * 1'000'000), times_(times) {}
  bool over(const char* pass) override {
    times_.ended(pass);
    if (thread_cpu_ns() > end_) pass_ = pass;
    return pass_ != nullptr;
  }
  // If the limit has stopped the compilation, returns an error that says so.
  Status verdict(const Method& m, Status s) const {
    if (s || pass_ == nullptr) return s;
    return Error{ErrorCode::kUnsupported, m.info.name + ": optimizing it takes more than " +
                                              "max_compile_ms = " + std::to_string(ms_) +
                                              " (given up after " + pass_ + ")"};
  }

 private:
  uint64_t ms_, end_;
  EventTimes& times_;
  const char* pass_ = nullptr;
};

}  // namespace

// A larger method keeps the code that it has.
Status MethodCompiler::check_size(const Method& m) const {
  if (!m.has_shape()) return {};
  assert(!m.info.own_code);
  uint64_t most = live_options().max_body, size = m.shape->instructions;
  if (size <= most) return {};
  return Error{ErrorCode::kUnsupported,
               m.info.name + ": " + std::to_string(size) +
                   " instructions are not optimized, max_body = " + std::to_string(most)};
}

Status MethodCompiler::make_optimized(Method& m, const Plan& plan, Version& v, EventTimes& times) {
  if (Status s = check_size(m); !s) return s;
  Result<jit::Function> f = describer_.describe(m, Describer::Observed::kYes);
  if (!f) return f.error();
  if (Status s = check_size(m); !s) return s;
  times.ended("describe");
  CallPaths calls(env_, plan);
  Inlinees inlinees(env_, m.id, v.serial, plan.use_profile);
  jit::BodyProfile seen = known_profile(m, plan, v);
  std::vector<uint8_t> kept;
  if (plan.use_profile) {
    HeldState lock(env_.state_mutex);
    note_turns(m, env_.observer.estimates, *f);
    note_counts(m, env_.observer.estimates, *f);
  }
  if (env_.stress.active(StressKind::kValues)) note_wild_counts(*f, v.serial);
  if (plan.for_values) {
    HeldState lock(env_.state_mutex);
    v.values = m.value_versions->wanted;
  }
  // The last version that a method may have must be complete, so nothing is pruned from it.
  Options live = live_options();
  bool last = m.optimizing->versions + 1 >= live.max_recompiles;
  bool loop_copy = plan.copy == Copy::kInstrumented && plan.osr_loop.valid();
  bool normal = plan.copy == Copy::kPlain && !plan.osr_loop.valid();
  bool slow =
      normal && env_.stress.active(StressKind::kSlow) && env_.stress.point(StressKind::kSlow);
  bool prune = live.deopt_cold && !seen.blocks.empty() && !last;
  prune &= !plan.for_values;
  std::vector<jit::SiteValues> guesses;
  bool guess = !m.value_versions->body_sites.empty() && live.value_versions &&
               (plan.use_profile || env_.stress.active(StressKind::kValues));
  if (guess && plan.copy == Copy::kPlain) {
    HeldState lock(env_.state_mutex);
    if (!last) guesses = guess_values(env_, m, plan);
    if (!prune && normal && !plan.for_values) m.shape.made()->exits.compiled();
  }
  if (prune) {
    HeldState lock(env_.state_mutex);
    prune = env_.observer.estimates.samples_of(m) >= live.cold_samples;
    bool loop = plan.osr_loop.valid();
    kept = m.shape->exits.kept_blocks(loop);
    if (!loop && plan.copy == Copy::kPlain) m.shape.made()->exits.compiled();
  }
  if (env_.options.osr_out) take_poll_words(v, f->loop_count);
  CpuLimit limit(live.max_compile_ms, times);
  bool stressed = env_.stress.active(StressKind::kOsrOut);
  if (stressed) v.call_back(OsrOut::kNewer);
  bool may_guard = env_.bodies.have_guards() || env_.stress.active(StressKind::kGuard);
  std::vector<std::vector<float>> inlined;
  times.ended("profile");
  Status s = take_code(
      env_, m, v,
      jit::compile_optimized(input_of(env_, *f, m.id, calls),
                             {.block_counts = seen.blocks,
                              .sample = seen.sample,
                              .osr_loop = plan.osr_loop,
                              .from_host = plan.from_host,
                              .copy = plan.copy,
                              .probes = &m.probes->optimized_plan(),
                              .inlined_sites = &env_.probe_choice.sites,
                              .targets = seen.targets,
                              .values = guesses,
                              .params = v.values,
                              .inlinees = env_.bodies.wanted() ? &inlinees : nullptr,
                              .inline_guards = may_guard || prune,
                              .inlined_blocks = plan.copy == Copy::kPlain ? &inlined : nullptr,
                              .tallies = {env_.options.count_optimized ? &env_.tallies : nullptr,
                                          !normal || plan.for_values},
                              .limit = &limit,
                              .to_host = m.info.host_resume != nullptr,
                              .uncommon_traps = prune,
                              .kept = kept,
                              .poll = v.polls.words().data(),
                              .poll_all = stressed,
                              .ask_to_leave = slow || env_.stress.active(StressKind::kGuard)}));
  times.ended("emit");
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
  return s && plan.for_values ? make_guard(env_, m, v) : limit.verdict(m, s);
}

jit::BodyProfile MethodCompiler::known_profile(Method& m, const Plan& plan, Version& v) {
  if (!plan.use_profile) return {};
  HeldState lock(env_.state_mutex);
  jit::BodyProfile p = body_profile(m, env_.observer.estimates, env_.stubs);
  if (plan.copy == Copy::kPlain) note_origin_locked(m, p, v);
  return p;
}

// Records the profile that a version was made from.
void MethodCompiler::note_origin_locked(const Method& m, const jit::BodyProfile& p,
                                        Version& v) const {
  assert(p.blocks.empty() || p.blocks.size() == m.shape->block_weights.size());
  v.made_from.assign(p.blocks.begin(), p.blocks.end());
  v.made_error = profile_error(m, p.blocks);
  for (const jit::SiteTargets& site : p.targets) {
    v.made_targets[site.site] = target_counts(site, env_.methods);
  }
}

Result<std::unique_ptr<Version>> MethodCompiler::make_enterable(Method& m) {
  uint64_t start = now_ns();
  EventTimes times(env_.events, EventKind::kCompiled, start);
  auto v = std::make_unique<Version>();
  v->method = m.id;
  assert(!m.info.own_code);
  v->enterable = true;
  v->serial = next_serial();
  if (Status s = make_baseline(m, {.method = m.id}, *v, times); !s) return s.error();
  const uint64_t end = now_ns();
  v->compile_ns = end - start;
  emit_compiled(*v, end, times);
  return v;
}

Result<std::unique_ptr<Version>> MethodCompiler::make_host_thunk_locked(const Method& m) {
  FunctionBuilder b(m.info.signature, m.info.name);
  std::vector<Value> args;
  for (unsigned i = 0; i < m.info.signature.params.size(); ++i) args.push_back(b.param(i));
  HostFunction callee{m.info.name.c_str(), m.info.host_entry, m.info.signature};
  Value result = b.call_host(callee, args, kCallMayTrap);
  m.info.signature.result == Type::kNone ? b.ret() : b.ret(result);
  jit::Function f = BuilderAccess::finish(b);
  Plan plan{.method = m.id};
  CallPaths calls(env_, plan);
  auto code =
      jit::compile_baseline({f, m.id, env_.helpers, calls, env_.space}, {.loop_checks = false});
  if (!code) return code.error();
  auto v = std::make_unique<Version>();
  v->tier = Tier::kHost;
  v->serial = next_serial();
  v->method = m.id;
  v->code = std::move(*code);
  v->code->set_method(m.id);
  v->code->set_serial(v->serial);
  v->code->hide_calls();
  v->entry = v->code->entry();
  v->code_bytes = v->code->size();
  return v;
}

}  // namespace uptier::tiering
