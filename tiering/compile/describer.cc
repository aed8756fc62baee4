#include "tiering/compile/describer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "jit/analysis/deopt_targets.h"
#include "jit/analysis/param_uses.h"
#include "jit/frontend/add_fuel.h"
#include "jit/frontend/branch_probes.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/select_probes.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/event_times.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/model/event_of.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/observe/timed_loops.h"
#include "tiering/saved/saved_profile.h"

namespace uptier::tiering {
namespace {

bool is_real(Opcode op) { return op != Opcode::kProbe && op != Opcode::kLoopHeader; }

// Allocates the memory of a slab that threads share, with room to align it to a cache line.
void make_slab(MethodShape& shape, const ProbeSet& probes) {
  bool shares = probes.shared() && probes.slab_words() != 0;
  assert(shape.shared_slab.empty() && shape.shared == nullptr);  // a shared slab never moves
  if (shares) shape.shared_slab.resize(probes.slab_words() + 8);
}

// Call it after the slab has been made.
void learn_slab(Method& m, MethodShape& shape) {
  uint32_t words = m.probes->slab_words();
  if (m.probes->shared() && words != 0) {
    auto start = reinterpret_cast<uintptr_t>(shape.shared_slab.data());
    shape.shared = reinterpret_cast<uint64_t*>((start + 63) & ~uintptr_t{63});
    assert(shape.shared + words <= shape.shared_slab.data() + shape.shared_slab.size());
  }
  m.slab_words.store(words, std::memory_order_release);
}

// Makes the parts that never change.
std::unique_ptr<MethodShape> shape_of(const jit::Function& f, const void* alias_scope) {
  auto shape = std::make_unique<MethodShape>(f.loop_count);
  shape->block_weights.reserve(f.layout.size());
  shape->loop_locations.resize(f.loop_count);
  for (Block b : f.layout) {
    uint32_t weight = 0;
    for (jit::InstId i : f.block(b).insts) {
      const jit::Inst& inst = f.inst(i);
      weight += is_real(inst.op);
      if (inst.op == Opcode::kLoopHeader) shape->loop_locations[inst.aux] = inst.loc;
    }
    shape->block_weights.push_back(weight);
    shape->instructions += weight;
  }
  assert(shape->block_weights.size() == f.layout.size());
  shape->cfg_hash = f.cfg_hash;
  shape->alias_scope = alias_scope;
  return shape;
}

// The observation plan; making it takes time, and needs no lock.
struct Observation {
  ProbeSet probes;
  std::vector<TimedLoop> timed_loops;
  MethodExits exits;
  ValueVersions values;  // only the sites
};

Observation observation_of(const Method& m, const jit::Function& f, const jit::LoopForest& forest,
                           ProbeChoice choice, const PolicyOptions& policy) {
  if (!choice.timed.all) choice.sites.loops.timed = choice.timed.of(m.info.key.function_index);
  Observation o{ProbeSet(f, choice), {}, MethodExits(f, forest, policy), {}};
  o.timed_loops = timed_loops(f, o.probes.plan());
  o.values.sites = jit::param_sites(f);
  for (jit::InstId id : jit::value_probes(f)) {
    const jit::Inst& i = f.inst(id);
    bool range = jit::probe_kind(i) == ProbeKind::kRange;
    o.values.body_sites.push_back(
        {i.aux, range ? SlotKind::kRange : SlotKind::kValue, is_wide(f.type_of(f.args(i)[0]))});
  }
  return o;
}

// The caller holds the state mutex.
void learn_observation(Method& m, Observation o) {
  assert(m.has_shape() && m.probes.made() == nullptr);  // planned once
  MethodShape& shape = *m.shape.made();
  make_slab(shape, o.probes);
  shape.exits = std::move(o.exits);
  bool guesses = !o.values.sites.empty() || !o.values.body_sites.empty();
  if (guesses) m.value_versions.put(std::move(o.values));
  shape.timed_loops = std::move(o.timed_loops);
  m.probes.put(std::move(o.probes));
  learn_slab(m, shape);
}

uint32_t first_location(const jit::Function& f) {
  for (jit::InstId i : f.block(f.layout[0]).insts) {
    if (f.inst(i).loc != 0) return f.inst(i).loc;
  }
  return 0;
}

bool branches(const jit::Function& f) {
  return std::ranges::any_of(f.layout, [&](Block b) { return f.terminator(b).edge_count > 1; });
}

}  // namespace

bool Describer::copies_first(const Method& m) const {
  if (m.info.own_code && m.info.own_schema.slots.empty()) return false;
  return env_.samples_calls && (env_.always_instrumented || env_.options.gap == GapMode::kExact ||
                                env_.options.workers == 0 || env_.stress.active(StressKind::kCopy));
}

Result<jit::Function> Describer::describe(Method& m, Observed observed) {
  if (m.shape->described == nullptr) return describe_anew(m, observed);
  std::unique_ptr<jit::Function> f = std::move(m.shape.made()->described);
  return std::move(*f);
}

Status Describer::describe_ahead(Method& m) {
  if (m.has_shape()) return describe_imaged(m);
  Result<jit::Function> f = describe_anew(m, Observed::kYes);
  if (!f) return f.error();
  assert(m.has_shape());
  m.shape.made()->described = std::make_unique<jit::Function>(std::move(*f));
  return {};
}

Status Describer::describe_imaged(Method& m) {
  if (!m.has_shape() || !m.shape->undescribed) return {};
  Result<jit::Function> f = describe_anew(m, Observed::kYes);
  if (!f) return f.error();
  m.shape.made()->described = std::make_unique<jit::Function>(std::move(*f));
  return {};
}

bool Describer::may_be_imaged(const Method& m) const {
  if (!can_plan_later(m)) return false;
  HeldState lock(env_.state_mutex);
  return !env_.observer.trace.on();
}

Status Describer::plan_if_known(Method& m) {
  {
    HeldState lock(env_.state_mutex);
    if (!env_.saved.knows(m)) return {};
  }
  Result<jit::Function> f = describe_anew(m, Observed::kYes);
  if (!f) return f.error();
  keep(std::move(*f));
  return {};
}

void Describer::learn_imaged(Method& m, std::unique_ptr<MethodShape> shape) {
  HeldState lock(env_.state_mutex);
  assert(!m.has_shape());
  m.slab_words.store(Method::kNotPlanned, std::memory_order_release);
  m.shape.put(std::move(shape));
  env_.observer.directory.keys().learn(m);
}

// If the SSA form would take too much, the host is asked once more, and the body is described in
// plain form from then on.
Result<jit::Function> Describer::ask_host(Method& m, EventTimes& times) {
  if (!m.plainly) {
    FunctionBuilder b = spare_build_.begin(m.info.signature, m.info.name);
    Status s = m.host.build(m.id, b);
    times.ended("build");
    Result<jit::Function> built = s ? BuilderAccess::finish_verified(b) : s.error();
    times.ended("verify");
    m.plainly = BuilderAccess::too_much(b);
    spare_build_.keep(b);
    if (!m.plainly) return built;
  }
  FunctionBuilder b = BuilderAccess::begin_plain(m.info.signature, m.info.name);
  if (Status s = m.host.build(m.id, b); !s) return s.error();
  times.ended("build");
  Result<jit::Function> built = BuilderAccess::finish_verified(b);
  times.ended("verify");
  return built;
}

Result<jit::Function> Describer::describe_anew(Method& m, Observed observed) {
  m.prepared.store(true, std::memory_order_relaxed);
  const uint64_t start = env_.events.wanted(EventKind::kDescribed) ? now_ns() : 0;
  EventTimes times(env_.events, EventKind::kDescribed, start);
  Result<jit::Function> built = ask_host(m, times);
  if (!built) return built.error();
  jit::Function f = std::move(*built);
  if (Status s = check_callees(m, f); !s) return s.error();
  if (m.has_shape() && m.shape->cfg_hash != f.cfg_hash) return refuse_unlike(m);
  const bool fresh = !m.has_shape();
  // Also for one that came from an image.
  const bool first = fresh || std::exchange(m.shape.made()->undescribed, false);
  if (fresh) {
    std::unique_ptr<MethodShape> shape = shape_of(f, m.host.alias_scope());
    shape->positions = std::move(f.positions);
    if (env_.saved.is_open()) shape->static_shape = jit::static_shape(f);
    HeldState lock(env_.state_mutex);
    m.slab_words.store(Method::kNotPlanned, std::memory_order_release);
    assert(!m.has_shape());  // a shape is never removed
    m.shape.put(std::move(shape));
    env_.observer.directory.keys().learn(m);
  }
  f.positions = {};
  if (env_.options.fuel != 0) jit::add_fuel(f);
  place_probes(m, f, observed);
  keep_body(m, f, first);
  times.ended("plan probes");
  Event described = event_of(EventKind::kDescribed, m);
  described.location = first_location(f);
  if (start != 0) {
    described.at_ns = now_ns();
    described.duration_ns = described.at_ns - start;
  }
  described.details = times.details();
  env_.events.emit(described);
  return f;
}

// Keeps the first body for callers that inline it, and each smaller one: a later description may lack
// what its host needs only once, such as stores that note that a block has run.
void Describer::keep_body(Method& m, const jit::Function& f, bool first) {
  HeldState lock(env_.state_mutex);
  const bool smaller = m.body != nullptr && f.insts.size() < m.body->insts.size();
  if (smaller) env_.bodies.forget_locked(m);
  if (first || smaller) env_.bodies.keep_locked(m, f);
}

// Counts, and frames that change between versions, rely on the body that was described first.
Error Describer::refuse_unlike(Method& m) {
  uint32_t times = m.unlike.fetch_add(1, std::memory_order_relaxed) + 1;
  if (times == Method::kMostUnlike) unstable_bodies_.fetch_add(1, std::memory_order_relaxed);
  std::string text = m.info.name + ": the host described the method differently this time";
  if (m.is_unstable())
    text += ", as " + std::to_string(times - 1) + " times before: the runtime stops compiling it";
  return {ErrorCode::kInvalidInput, text};
}

// Places the library's own probes and plans them, unless that can wait until code is made that
// counts, or that uses counts. From then on each description has the same probes. Copies made
// before and after still have equal frames: a parameter probe precedes each use of the parameter, a
// branch probe precedes the branch, and select probes are there from the beginning.
void Describer::place_probes(Method& m, jit::Function& f, Observed observed) {
  bool planned = m.probes.made() != nullptr;
  bool plans = !planned && (observed == Observed::kYes || plans_at_once(m, f));
  bool selects = jit::selects_in_loops(f);
  if (!planned && !plans && !selects) return;
  // Depends on the blocks only, so probes placed in them do not change it.
  jit::LoopForest forest = jit::find_loop_forest(f);
  if ((planned || plans) && env_.options.value_versions) jit::place_param_probes(f, forest);
  if (selects) jit::place_select_probes(f, forest);
  if (planned || plans) jit::place_branch_probes(f, forest);
  if (plans) plan_probes(m, f, forest);
}

Status Describer::check_callees(const Method& m, const jit::Function& f) const {
  for (const jit::Callee& c : f.callees) {
    if (!env_.methods.has_had(c.method)) {
      return Error{ErrorCode::kInvalidInput,
                   m.info.name + ": calls a method that is not registered"};
    }
    if (!env_.methods.serves(c.method)) continue;  // the call must not be made any more
    const MethodInfo& callee = env_.methods.at(c.method.index()).info;
    if (f.signatures[c.signature.index()] != callee.signature) {
      return Error{ErrorCode::kInvalidInput,
                   m.info.name + ": calls " + callee.name + " by another signature than it has"};
    }
  }
  return {};
}

// Says whether the observation plan cannot wait for code that counts. Reasons: such code is made
// together with the plain copy; guards in plain code count; there is nothing but calls to count;
// traces report all calls; threads share one slab; earlier processes have saved a profile.
bool Describer::plans_at_once(Method& m, const jit::Function& f) {
  if (!can_plan_later(m) || !branches(f)) return true;
  HeldState lock(env_.state_mutex);
  return env_.observer.trace.on() || env_.saved.knows(m);
}

bool Describer::can_plan_later(const Method& m) const {
  return !copies_first(m) && m.info.host_resume == nullptr && !m.info.own_code &&
         env_.probe_choice.flow.counters == CounterMode::kPerThread &&
         !env_.probe_choice.sites.loops.loops;
}

void Describer::plan_probes(Method& m, const jit::Function& f, const jit::LoopForest& forest) {
  PolicyOptions policy;
  {
    HeldState lock(env_.state_mutex);
    policy = env_.policy;
  }
  Observation o = observation_of(m, f, forest, env_.probe_choice, policy);
  HeldState lock(env_.state_mutex);
  learn_observation(m, std::move(o));
  m.shape.made()->exits.limits_changed(env_.policy);  // the policy may have changed since it was
                                                      // copied
  env_.saved.learn_calls(m, f);
  env_.saved.adopt(m);
  if (m.body == nullptr) return;
  // Callers that inline the body need the sites of these probes.
  env_.bodies.forget_locked(m);
  env_.bodies.keep_locked(m, f);
}

// The same for a method that the host compiles itself: its blocks are assumed to be alike.
void Describer::learn_own(Method& m) {
  assert(m.info.own_code && !m.has_shape());
  m.probes.put(ProbeSet(m.info.own_schema));
  auto shape = std::make_unique<MethodShape>();
  shape->cfg_hash = m.info.own_schema.cfg_hash;
  shape->instructions = std::max(m.info.own_size, 1u);
  uint32_t words = m.probes->schema().words();
  shape->block_weights.assign(words, std::max(shape->instructions / std::max(words, 1u), 1u));
  make_slab(*shape, *m.probes);
  learn_slab(m, *shape);
  m.shape.put(std::move(shape));
  env_.observer.directory.keys().learn(m);
  env_.saved.adopt(m);
}

}  // namespace uptier::tiering
