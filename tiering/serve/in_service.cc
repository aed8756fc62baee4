// Installs versions and withdraws them.
//
// Install publishes in this order: code bytes and tables (done by the compiler), version, cell. So
// a thread that reaches the code through the cell or a pointer below finds everything that the code
// refers to.
#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/base/log.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/event_of.h"
#include "tiering/model/places.h"
#include "tiering/model/positions.h"
#include "tiering/observe/tallied.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

// A failing tool must not stop the runtime.
void give_up_tool(const Options& options, const char* option, const Error& why) {
  Log(options).say(LogLevel::kWarning,
                   std::string("option ") + option + " is given up: " + why.message);
}

// Describes code that makes no frame and belongs to no body to native tools.
jit::NamedCode frameless(const jit::CodeSpan& span, std::string name) {
  jit::NamedCode code;
  code.base = span.data();
  code.size = span.size();
  code.frames = {{0, {jit::FrameState::Kind::kNone}}};
  code.name = std::move(name);
  return code;
}

}  // namespace

InService::InService(const Parts& p)
    : options_(p.options),
      policy_(p.policy),
      always_instrumented_(p.always_instrumented),
      stress_(p.stress),
      state_mutex_(p.state_mutex),
      methods_(p.methods),
      threads_(p.threads),
      saved_(p.saved),
      reclaimer_(p.reclaimer),
      hosts_(p.hosts),
      fast_(p.fast),
      stubs_(p.stubs),
      tallied_(p.tallied),
      relay_(p.relay),
      events_(p.events) {}

Status InService::open_native_tools(const jit::Routines& routines) {
  if (options_.perf_map) {
    auto map = jit::PerfMap::create();
    if (map) native_tools_.perf_map = std::move(*map);
    if (!map) give_up_tool(options_, "perf_map", map.error());
  }
  if (options_.jit_dump) {
    auto dump = jit::JitDump::create();
    if (dump) native_tools_.jit_dump = std::move(*dump);
    if (!dump) give_up_tool(options_, "jit_dump", dump.error());
  }
  if (options_.gdb) native_tools_.gdb_names = std::make_unique<jit::GdbNames>();
  native_tools_.add(routines.invoke_code());
  native_tools_.name(routines.other_code());
  return {};
}

void InService::name_stubs() {
  for (std::span<const jit::CodeSpan> chunks = stubs_.chunks(); stubs_named_ < chunks.size();) {
    const jit::CodeSpan& chunk = chunks[stubs_named_++];
    native_tools_.name(frameless(chunk, "uptier stubs"));
  }
}

void InService::take_moved_locked(Method& m, Version& v) {
  assert(v.method == m.id && !v.retired);
  note_version(m, v);
  watch_callees(v);
}

void InService::note_version(Method& m, const Version& v) {
  assert(!m.versions.empty() && m.versions.back().get() == &v);
  hosts_.hold_locked(v);
  forget_versions_locked(m);
  const bool told = finishes([&] {
    state_lock.known_held();
    tell_native_tools(m, v);
  });
  if (!told) native_tools_.note_lost();
}

// Drops freed versions, the oldest first, if there are too many.
void InService::forget_versions_locked(Method& m) {
  if (m.versions.size() < kVersionsKept + kVersionsKept / 4) return;
  const Trial* trial = m.optimizing->trial.load(std::memory_order_relaxed);
  auto needed = [&](const Version* v) {
    // Slow paths read these pointers and check whether the versions are usable.
    bool named = v == m.plain.load() || v == m.instrumented.load() || v == m.optimized.load() ||
                 v == m.optimizing->copy.load() || v == m.enterable.load();
    return named || !v->freed || (trial != nullptr && (v == &trial->before || v == &trial->now));
  };
  if (Optimizing* o = m.optimizing.made()) {
    for (auto& t : o->trials) {
      bool keep = t.get() == trial || needed(&t->before) || needed(&t->now);
      if (!keep) reclaimer_.drop(std::move(t));
    }
    std::erase(o->trials, nullptr);
  }
  auto on_trial = [&](const Version* v) {
    return std::ranges::any_of(m.optimizing->trials,
                               [&](const auto& t) { return v == &t->before || v == &t->now; });
  };
  size_t more = m.versions.size() - kVersionsKept;
  for (auto& v : m.versions) {
    if (more == 0) break;
    if (needed(v.get()) || on_trial(v.get())) continue;
    assert(v->freed);
    forget_caller_locked(*v);
    events_.emit(event_of(EventKind::kForgotten, *v));
    reclaimer_.drop(std::move(v));
    --more;
  }
  std::erase(m.versions, nullptr);
}

// Callees no longer notify the version when they are optimized.
void InService::forget_caller_locked(Version& v) {
  for (MethodId callee : v.by_stub) {
    Method* m = methods_.known(callee);
    auto* callers = m == nullptr ? nullptr : m->stub_callers.made();
    if (callers != nullptr) std::erase(*callers, &v);
  }
}

// Retires the optimized versions that the one in service has replaced. Call it only after the cell
// leads to the new one: retired code is freed once every thread has been quiescent, so nothing may
// lead to it any more. Bodies that callers have inlined stay.
void InService::retire_optimized_before(Method& m, const Version& v) {
  assert(v.method == m.id && v.tier == Tier::kOptimized && !v.osr_loop.valid());
  const Trial* trial = m.optimizing->trial.load(std::memory_order_relaxed);
  for (auto& old : m.versions) {
    bool before = old->tier == Tier::kOptimized && old.get() != &v && !old->osr_loop.valid();
    bool on_trial = trial != nullptr && &trial->before == old.get();
    if (before && !on_trial && !old->freed) give_up(*old, OsrOut::kNewer);
  }
}

namespace {

// The names and positions that native tools show.
class KnownPositions final : public jit::PositionSource {
 public:
  explicit KnownPositions(const MethodTable& methods) : methods_(methods) {}

  SourcePositions positions(MethodId m, uint32_t location) override {
    state_lock.known_held();
    const Method* known = methods_.known(m);
    return known == nullptr ? SourcePositions() : positions_of(*known, location);
  }
  std::string name(MethodId m) override {
    const Method* known = methods_.known(m);
    return known == nullptr ? "a removed method" : known->info.name;
  }

 private:
  const MethodTable& methods_;
};

}  // namespace

void InService::tell_native_tools(const Method& m, const Version& v) {
  if (v.code == nullptr) return;
  std::string name = m.info.name + " [" + tier_name(v.tier);
  bool tells_copy = v.tier == Tier::kBaseline || v.copy == Copy::kInstrumented;
  if (tells_copy) name += std::string(" ") + copy_name(v.copy);
  if (v.enterable) name += " enterable";
  if (v.general != nullptr) name += " specialized";
  if (v.osr_loop.valid()) name += " osr " + std::to_string(v.osr_loop.index());
  name += " v" + std::to_string(v.serial);  // joins it with records of events
  KnownPositions positions(methods_);
  native_tools_.add(*v.code, name, v.osr_loop.valid(), positions);
  if (v.guard.code.size() != 0) native_tools_.name(frameless(v.guard.code, name + " guard]"));
}

// Points the cell, and the quick path of samples, at the best version in service.
void InService::link_locked(Method& m) {
  tallied_.follow_calls(m);
  m.unlinked = false;
  const Version* best = m.optimized.load(std::memory_order_relaxed);
  if (usable(best)) {
    fast_.set_entry(m.id.index(), nullptr);
    bool on_trial = m.optimizing->trial.load(std::memory_order_relaxed) != nullptr;
    bool counts = best->general != nullptr && m.value_versions->in_window;
    const void* entry = counts ? best->guard.counted : best->entry;
    return stubs_.set_target(m.id, on_trial ? stubs_.trial(m.id) : entry);
  }
  const Version* plain = m.plain.load(std::memory_order_relaxed);
  const Version* copy = m.instrumented.load(std::memory_order_relaxed);
  if (usable(copy) && options_.gap != GapMode::kExact && !always_instrumented_) {
    fast_.set_entry(m.id.index(), copy->entry, loop_cells(m, plain, *copy));
  }
  // Threads without counters need the plain copy; without it, the cell stays as it is.
  if (usable(copy) && always_instrumented_) {
    if (!usable(plain)) return;
    return stubs_.set_target(m.id, copy->entry);
  }
  if (usable(plain)) stubs_.set_target(m.id, plain->entry);
}

// Fills in where frames change copies at a method's loops, for the quick path of bursts. Returns
// null if loops must take the slow path: to find better code, for stress, or for another way of
// counting.
const sampler::LoopCell* InService::loop_cells(Method& m, const Version* plain,
                                               const Version& copy) {
  assert(copy.copy == Copy::kInstrumented && copy.tier == Tier::kBaseline);
  bool stressed = stress_.active(StressKind::kOsr) || stress_.active(StressKind::kCopy);
  if (stressed || m.shape->loop_count == 0 || m.probes->shared()) return nullptr;
  if (!usable(plain) || plain->code == nullptr || copy.code == nullptr) return nullptr;
  if (m.optimized.load(std::memory_order_relaxed) != nullptr) return nullptr;
  for (uint32_t l = 0; l < m.shape->loop_count; ++l) {
    if (m.shape->osr[l].load(std::memory_order_relaxed) != nullptr) return nullptr;
  }
  const jit::ProbePlan& plan = m.probes->plan();
  MethodShape& shape = *m.shape.made();
  bool first = shape.loop_cells == nullptr;
  if (first) shape.loop_cells.reset(new (std::nothrow) sampler::LoopCell[shape.loop_count]());
  if (shape.loop_cells == nullptr) return nullptr;  // loops take the slow path
  for (uint32_t l = 0; l < shape.loop_count; ++l) {
    sampler::LoopCell& cell = shape.loop_cells[l];
    assert(l < copy.code->tables().loops.size() && l < plain->code->tables().loops.size());
    auto arrive = [l](const jit::Code& c) { return c.at(c.tables().loops[l].arrive_offset); };
    cell.instrumented.store(arrive(*copy.code), std::memory_order_release);
    cell.plain.store(arrive(*plain->code), std::memory_order_release);
    if (!first) continue;  // a thread may be reading
    if (l < plan.loop_enter.size()) cell.enter = plan.loop_enter[l];
    if (l < plan.loop_leave.size()) cell.leave = plan.loop_leave[l];
  }
  return shape.loop_cells.get();
}

void InService::give_up(Version& v, OsrOut why) {
  assert(!v.freed);
  if (!v.retired) reclaimer_.retire(v);
  v.call_back(why);
}

void InService::drop_osr_versions(Method& m) {
  for (uint32_t i = 0; i < m.shape->loop_count; ++i) {
    for (auto* entries : {&m.shape->osr, &m.shape->osr_from_host}) {
      auto* v = const_cast<Version*>((*entries)[i].exchange(nullptr, std::memory_order_acq_rel));
      if (v != nullptr) give_up(*v, OsrOut::kNewer);
    }
    m.shape->osr_asked[i].store(false, std::memory_order_relaxed);
  }
  retire_loop_copies(m);
}

// The plain version of the loop is gone or was replaced. Its copy is made again when a frame has
// stayed in the loop for long enough.
void InService::retire_loop_copy(Method& m, LoopId loop) {
  LoopCopy* c = loop_copy(m, loop);
  if (c == nullptr) return;
  c->asked = false;
  c->windows.forget(policy_.epsilon);
  auto* v = const_cast<Version*>(c->version.exchange(nullptr, std::memory_order_acq_rel));
  if (v != nullptr) give_up(*v, OsrOut::kNewer);
}

void InService::retire_loop_copies(Method& m) {
  if (m.optimizing->loop_copies.made() == nullptr) return;
  for (uint32_t l = 0; l < m.shape->loop_count; ++l) retire_loop_copy(m, LoopId(l));
}

// Calls no longer reach the baseline copies. Frames that still run there keep them alive, and leave
// by on-stack replacement or by returning.
void InService::retire_baseline(Method& m) {
  if (stress_.active(StressKind::kFlip)) return;  // flips go back to them
  const Trial* trial = m.optimizing->trial.load(std::memory_order_relaxed);
  for (auto& v : m.versions) {
    bool ours = v->tier == Tier::kBaseline && !v->enterable;
    bool on_trial = trial != nullptr && &trial->before == v.get();
    if (ours && !on_trial && !v->retired) reclaimer_.retire(*v);
  }
}

// If memory runs out, it is done another time.
void InService::reclaim_locked() noexcept {
  do {
    if (!reclaimer_.has_limbo()) continue;
    Reclaimer::Freed freed;
    finishes([&] {
      state_lock.known_held();
      freed = reclaimer_.reclaim(threads_.all());
    });
    for (Version* v : freed.versions) {
      assert(v->freed && v->retired);
      finishes([&] {
        state_lock.known_held();
        tallied_.keep(methods_.known(v->method), *v);
      });
      hosts_.let_go_locked(*v);
      v->moved ? relay_->forget_locked(*v) : relay_->note_changes(1);
    }
    for (Method* m : freed.methods) {
      assert(m->looked_at && m->removed);
      m->looked_at = false;
      hosts_.let_go_locked(*m);
    }
  } while (hosts_.leave_locked());
}

void InService::evict_locked(Method& m) {
  withdraw_locked(m);
  events_.emit(event_of(EventKind::kEvicted, m));
}

// Takes all code of a method out of service that can be made again; or, after removal, all code
// that is left.
void InService::withdraw_locked(Method& m) {
  fast_.set_entry(m.id.index(), nullptr);
  stubs_.set_target(m.id, first_target_locked(m));
  if (interprets_first_locked(m)) m.plain.store(nullptr, std::memory_order_release);
  // `plain` and `instrumented` stay as they are: slow paths check whether they are usable.
  m.wants_optimized = m.optimized.load(std::memory_order_relaxed) != nullptr;
  m.optimized.store(nullptr, std::memory_order_release);
  tallied_.follow_calls(m);
  if (Optimizing* o = m.optimizing.made()) {
    o->trial.store(nullptr, std::memory_order_release);  // the versions of the trial are retired
                                                         // with the others
    o->copy.store(nullptr, std::memory_order_release);
    o->copy_expected.store(false, std::memory_order_relaxed);
  }
  m.enterable.store(nullptr, std::memory_order_release);
  retire_loop_copies(m);
  for (uint32_t i = 0; i < m.shape->loop_count; ++i) {
    m.shape->osr[i].store(nullptr, std::memory_order_release);
    m.shape->osr_from_host[i].store(nullptr, std::memory_order_release);
    m.shape->osr_asked[i].store(false, std::memory_order_relaxed);
  }
  m.copy_asked.store(false, std::memory_order_relaxed);
  m.unlinked = false;
  for (auto& v : m.versions) {
    if (!v->retired && v->tier != Tier::kHost) reclaimer_.retire(*v);
  }
}

void InService::unlink_locked(Method& m) {
  assert(!m.removed);
  bool calls_ask = current_entry(m) == nullptr || m.info.host_entry != nullptr;
  if (m.unlinked || calls_ask) return;
  m.unlinked = true;
  fast_.set_entry(m.id.index(), nullptr);
  stubs_.set_target(m.id, stubs_.tail(m.id));
}

// Puts the code of an unlinked method back in service: its second chance.
bool InService::relink(Method& m) {
  HeldState lock(state_mutex_);
  if (!m.unlinked) return false;
  m.unlinked = false;
  assert(!m.removed);
  touch(m);
  link_locked(m);
  return true;
}

// Withdrawn code is made again at the next call.
void InService::withdraw_what_refers_to_locked(const Places::Set& places) {
  for (const auto& m : methods_.all()) {
    auto means = [&](const auto& v) {
      state_lock.known_held();
      return means_one_of(*v, places);
    };
    bool in_service =
        std::ranges::any_of(m->versions, [&](const auto& v) { return !v->retired && means(v); });
    if (in_service) withdraw_locked(*m);
    for (const auto& v : m->versions) {
      if (v->tier == Tier::kOptimized && means(v)) v->call_back(OsrOut::kAnywhere);
    }
  }
}

// ---- Calls ------------------------------------------------------------------------------------

// Says whether calls go to the host's interpreter before there is code, or after the code was
// withdrawn. The fixed tiers use no interpreter, and hot methods of a saved profile can be compiled
// at once.
bool InService::interprets_first_locked(const Method& m) const {
  bool interprets = m.info.host_entry != nullptr && options_.tier == TierMode::kAuto;
  if (m.removed || !interprets) return false;
  return !m.info.describes_at_once || m.code_made || !saved_.is_hot(m);
}

// Returns the target of calls that find no code: the host's interpreter, possibly the thunk of one
// that may trap, or the routine that makes code.
const void* InService::first_target_locked(const Method& m) const {
  bool there = interprets_first_locked(m) && m.host_code != nullptr;
  return there ? m.host_code.load() : stubs_.tail(m.id);
}

// ---- Frames of old code --------------------------------------------------------------------------

void InService::call_back(Version& v) {
  assert(!v.freed);
  v.outdated = true;
  v.call_back(OsrOut::kNewer);
}

void InService::watch_callees(Version& v) {
  bool late = false;
  for (MethodId id : v.by_stub) {
    Method& callee = methods_.at(id.index());
    if (usable(callee.optimized.load(std::memory_order_relaxed))) {
      late = true;  // it was optimized meanwhile
    } else {
      assert(!v.freed);
      callee.stub_callers.own().push_back(&v);
    }
  }
  if (late) call_back(v);
}

void InService::tell_callers(Method& callee) {
  for (Version* v : *callee.stub_callers) {
    if (!v->freed) call_back(*v);
  }
  callee.stub_callers.reset();
}

namespace {

// There is code for the loop now, so frames that entered its header in the copy of another loop can
// go back.
void let_observed_back(const Method& m, LoopId loop) UPTIER_REQUIRES(state_lock) {
  for (const auto& v : m.versions) {
    bool copy = !v->freed && v->code != nullptr && v->code->observed_loop().valid();
    bool may = copy && loop.index() < v->polls.words().size() && !v->scope.inner[loop.index()];
    if (may) raise_word(v->polls.words()[loop.index()], OsrOut::kObserve);
  }
}

}  // namespace

void InService::replace_osr(Method& m, const Version& v) {
  assert(v.osr_loop.valid() && v.osr_loop.index() < m.shape->loop_count && !v.retired);
  bool from_host = v.from_host;
  auto& entries = from_host ? m.shape->osr_from_host : m.shape->osr;
  // Release pairs with the acquire in osr_target(), OsrEntry::enter() and poll().
  auto* before =
      const_cast<Version*>(entries[v.osr_loop.index()].exchange(&v, std::memory_order_acq_rel));
  if (before != nullptr && !before->retired) reclaimer_.retire(*before);
  if (from_host) return;
  retire_loop_copy(m, v.osr_loop);
  fast_.set_loops(m.id.index(), nullptr);  // its loops take the slow path, which leads them there
  m.shape.made()->osr_versions[v.osr_loop.index()]++;
  for (auto& old : m.versions) {
    bool waits = old->tier == Tier::kOptimized && !old->freed && old->serial < v.serial &&
                 (old->retired || old->outdated);
    if (waits) old->call_back(OsrOut::kNewer);
  }
  let_observed_back(m, v.osr_loop);
}

}  // namespace uptier::tiering
