#include "tiering/control/copy_control.h"

#include <time.h>

#include <algorithm>
#include <cassert>
#include <span>

#include "tiering/base/clock.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/inlined_bodies.h"
#include "tiering/observe/phase.h"

namespace uptier::tiering {
namespace {

// A method is sampled kSamplesPerSecond times a second at first, with gaps of at least kDensest
// calls. The gap doubles every 64 samples until it has grown by kWidens, because a copy that counts
// targets may take several times as long as the plain code.
constexpr double kSamplesPerSecond = 500;
constexpr double kDensest = 16;
constexpr double kWidens = 8;

// Compiling copies for calls of a method takes kCheapNs, and beyond that at most 1 part in kCopyPart
// of the time since a copy was first wanted. A copy probably takes as long as its plain version did.
// All times are processor time, the latter of the whole process: a loaded machine does not stretch
// it.
constexpr uint64_t kCopyPart = 100;
constexpr uint64_t kCheapNs = 5'000'000;

uint64_t process_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

// ---- The copy ---------------------------------------------------------------------------------

CopyControl::CopyControl(const Parts& p)
    : policy_(p.policy),
      observer_(p.observer),
      rates_(p.rates),
      requests_(p.requests),
      reclaimer_(p.reclaimer),
      in_service_(p.in_service),
      rules_(p.options, p.live, p.always_instrumented, p.places),
      drift_(p.policy, p.methods, p.observer.decisions),
      loops_({.rules = rules_,
              .methods = p.methods,
              .observer = p.observer,
              .drift = drift_,
              .rates = p.rates,
              .requests = p.requests,
              .reclaimer = p.reclaimer,
              .system = p.system,
              .frames = p.frames,
              .newer = p.newer,
              .in_service = p.in_service}) {}

void CopyControl::want_optimized_copy(Method& m) {
  const Optimizing& o = *m.optimizing;
  if (o.asked || !m.found.load(std::memory_order_relaxed) || !can_observe_optimized(m)) return;
  if (rates_.progress_of(m).calls >= o.calls_before + rules_.copy_after() && pays(m))
    request_optimized_copy(m);
}

// Without measured rates, decisions depend on no clock.
bool CopyControl::pays(Method& m) {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  assert(v != nullptr);
  if (!rules_.measures()) return true;
  Optimizing& o = m.optimizing.own();
  const uint64_t price = o.copies_ns + v->compile_cpu_ns;
  if (price <= kCheapNs) return true;
  const uint64_t now = process_cpu_ns();
  if (o.since_ns == 0) o.since_ns = now;
  return now >= o.since_ns + kCopyPart * (price - kCheapNs);
}

bool CopyControl::can_observe_optimized(const Method& m) const {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  if (!usable(v)) return false;
  // Calls give the counts of a single block, but not those of inlined bodies, nor what probes see.
  bool varies =
      m.shape->block_weights.size() > 1 || v->inlined != 0 || m.probes->has_probes_in_optimized();
  return varies && rules_.may_observe(m);
}

void CopyControl::request_optimized_copy(Method& m) {
  assert(rules_.may_observe(m));
  m.optimizing.own().asked = true;
  // The profile of the plain version has grown since, so the two may differ in layout.
  requests_.add(
      m,
      {.method = m.id, .tier = Tier::kOptimized, .copy = Copy::kInstrumented, .use_profile = true},
      0);
}

void CopyControl::begin_observing_optimized(Method& m, Version& v) {
  assert(v.copy == Copy::kInstrumented && v.tier == Tier::kOptimized && !v.osr_loop.valid());
  Optimizing& o = m.optimizing.own();
  o.copies_ns += v.compile_cpu_ns;
  CopyWindows& w = o.windows;
  w.observed.assign(m.shape->block_weights.size(), false);
  for (SiteId site : jit::observed_sites(*v.code)) {
    if (site <= w.observed.size()) w.observed[site - 1] = true;
  }
  v.sections = sections_of(*v.code);
  v.slots = slots_of(*v.code);
  observe_targets(m, *v.code, w.observed);
  observe_inlined(m, v, w.observed);
  w.forget(policy_.epsilon);
  bool in_service = usable(m.optimized.load(std::memory_order_relaxed));
  // Evicted meanwhile: the copy is retired with the other versions when the method is.
  if (!in_service) return;
  rules_.number(m, v);
  o.rate.set(rate_for(m));
  o.copy.store(&v, std::memory_order_release);  // pairs with optimized_sample()
  o.copy_expected.store(false, std::memory_order_relaxed);
}

// The call rate since the method was optimized is the forecast for the rate to come.
sampler::Rate CopyControl::rate_for(const Method& m) const {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  auto calls = static_cast<double>(rates_.progress_of(m).calls - m.optimizing->calls_before);
  double seconds = static_cast<double>(now_ns() - v->installed_ns) * 1e-9;
  auto widest = static_cast<double>(rules_.optimized_interval());
  double gap = seconds > 0 ? calls / seconds / kSamplesPerSecond : widest;
  gap = std::clamp(gap, std::min(kDensest, widest), widest);
  uint32_t first = sampler::Ladder::power_below(gap);
  uint32_t last = sampler::Ladder::power_below(std::min(gap * kWidens, widest));
  return sampler::Rate::decaying(first, std::max(first, last), rules_.burst());
}

void CopyControl::change_rates(const MethodTable& methods) {
  for (const auto& m : methods.all()) {
    if (observes_optimized(*m)) m->optimizing.own().rate.set(rate_for(*m));
  }
}

// A new optimized version was installed, so the copy of the previous one no longer matches. A
// method that had such a copy has proved to be hot.
void CopyControl::retire_optimized_copy(Method& m) {
  Optimizing& o = m.optimizing.own();
  bool observed = observes_optimized(m) && can_observe_optimized(m);
  o.copy.store(nullptr, std::memory_order_release);
  o.asked = false;
  o.calls_before = rates_.progress_of(m).calls;
  o.windows.forget(policy_.epsilon);
  for (auto& v : m.versions) {
    bool copy = v->tier == Tier::kOptimized && v->copy == Copy::kInstrumented &&
                !v->osr_loop.valid() && !v->retired;
    if (copy) reclaimer_.retire(*v);
  }
  observed = observed && pays(m);
  o.copy_expected.store(observed, std::memory_order_relaxed);
  if (observed) request_optimized_copy(m);
}

// ---- Windows ----------------------------------------------------------------------------------

bool CopyControl::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                 std::span<const uint64_t> counts) {
  const Version* copy = copy_numbered(m, note.copy);
  bool rounds = copy != nullptr && copy->osr_loop.valid();
  sampler::Window w = observer_.optimized.take(m, thread, note, counts, rounds ? copy : nullptr);
  if (w.samples == 0 || copy == nullptr) return false;
  std::vector<uint64_t> inlined = inlined_since(m, thread, *copy, counts);
  auto root = std::span(w.counts).first(std::min(w.counts.size(), m.shape->block_weights.size()));
  observer_.inlined.take(m, thread, *copy, counts, root, inlined, w.samples);
  w.counts.insert(w.counts.end(), inlined.begin(), inlined.end());
  if (rounds) {
    loops_.take_rounds(m, *copy, std::move(w));
    return false;
  }
  // A late window belongs to a version that is no longer in service.
  if (!observes_optimized(m) || copy != m.optimizing->copy.load(std::memory_order_relaxed))
    return false;
  in_service_.touch(m);
  assert(!rounds && copy->copy_number == note.copy);
  CopyWindows& o = m.optimizing.own().windows;
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  if (!drift_.learn_window(m, o, *copy, w) || !usable(v)) return false;
  return drift_.compare_with_profile(m, o, *v, *copy);
}

void CopyControl::follow_drift(Method& m) {
  begin_copy_phase(m, observer_.estimates);
  in_service_.drop_osr_versions(m);
}

}  // namespace uptier::tiering
