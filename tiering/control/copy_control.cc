// Observing optimized code: how changes of phase are seen after the last tier.
//
//   optimized --2^16 calls later--> its instrumented copy is made -->
//     one call in optimized_interval runs it, counts to its end
//       --64 samples--> window --> like those before?
//
// The copy counts in a slab of its own, in windows of its own; what baseline copies have counted,
// and how often they were entered, stays as it was. Both go into the estimates of the method: a
// thread's windows are a stream beside its other one. A block that the optimizer removed is not
// observed: nothing is added to it, and it takes no part in comparisons.
//
// Bodies that are inlined are counted too, each where it is. A window is one distribution over the
// method's own blocks and theirs: the code is laid out for all of them together. Their counts go
// into no method's profile (docs/notes/0028): what is decided by them is decided about this code,
// and readers get them apart (observe_inlined.cc).
//
// Targets of indirect calls are counted by table, whether the call was guessed or not, and are a part
// of the distribution too: those of the method's own (observe_targets.h), and those of inlined bodies,
// each where it is (observe_inlined_slots.cc).
//
// Probes, the host's and those of telling parameters, observe as they do in baseline copies, at the
// same sites, but are no part of the distribution. What those of an inlined body see is told with its
// blocks.
//
// What windows say is in copy_windows.cc; copies of code that frames stay in, which count rounds of
// a loop in the same slab, in observe_loops.cc.
//
// What is not bounded: there are no checks in optimized code, so a sampled call counts to its end,
// loops and recursion (which goes from the copy to itself) included. The interval bounds the share
// of the time, not the length of one sample. A callee that optimized code reaches past its stub is
// not sampled; its callers are.
//
// Why an interval of 16384: a slow path is some dozens of times as long as a call of a tiny
// function (`./dev bench micro` times both), so even a program of nothing but such calls pays a few parts in
// a thousand; and a method that is called a million times a second shows a window each second.
//
//   Thread: slow paths the thread's own; the rest the worker, with the state mutex.
#include <algorithm>
#include <cmath>

#include "tiering/control/copy_control.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/inlined_bodies.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

// Calls of optimized code after which it is worth a second body.
constexpr uint64_t kStillHot = 1 << 16;
// Samples that a thread hands over at once.
constexpr uint32_t kWindowSamples = 64;

}  // namespace

// ---- Slow paths -------------------------------------------------------------------------------

// Whether a copy is in service, or only away while its successor is made.
bool RuntimeImpl::awaits_optimized(const Method& m) const noexcept {
  return observes_optimized(m) || m.optimizing->copy_expected.load(std::memory_order_relaxed);
}

// Returns the rate that a method should have now.
sampler::Rate RuntimeImpl::rate_of(const Method& m) const noexcept {
  bool off = rates_.sampling() == Sampling::kOff;
  return awaits_optimized(m) && !off ? optimized_rate() : fast_->rate(m.id.index()).load();
}

// A call that is due to be observed while optimized code is in service: returns the copy that it
// runs, or null when it runs plain. Samples at the rate of baseline code are none.
const void* RuntimeImpl::optimized_sample(Method& m, AttachedThread& t) noexcept {
  const Version* copy = m.optimizing->copy.load(std::memory_order_acquire);
  sampler::MethodState& s = t.state(m.id);
  if (!usable(copy) || s.rate != optimized_rate().word) return nullptr;
  if (!ready_slab(m, t, *copy)) return nullptr;
  count_optimized(m, t);
  return copy->entry;
}

// Another sample begins.
void RuntimeImpl::count_optimized(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  bool whole = s.optimized_samples != 0 && s.optimized_samples % kWindowSamples == 0;
  if (whole) post_optimized(m, t);
  ++s.optimized_samples;
}

// Makes the thread's slab one of this copy. The words of the method's own blocks go on through all
// copies, in the same slab wherever that is large enough: a frame of an earlier copy may be under
// way further out, and count there. If it calls itself, its words of inlined bodies are another's in
// the new slab; there are never fewer than its copy had, so nothing else is hit.
bool RuntimeImpl::ready_slab(Method& m, AttachedThread& t, const Version& copy) noexcept {
  sampler::MethodState& s = t.state(m.id);
  uint64_t* slab = s.optimized_slab;
  if (slab != nullptr && slab_copy(slab) == copy.copy_number) return true;
  uint32_t own = m.probes->optimized_plan().bytes / 8;
  if (slab != nullptr) {
    // What is larger than the ring stays behind, as at any flush.
    bool fits = slab_words(slab) * 8 <= options_.ring_bytes / 2;
    if (!post_optimized(m, t) && fits) return false;
  }
  if (slab == nullptr || slab_words(slab) < copy.copy_words) {
    uint64_t* taken = take_optimized_slab(t.slabs(), copy.copy_words);
    if (taken == nullptr) {
      t.slabs_refused.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    s.optimized_slab = taken;
    if (slab != nullptr) std::copy_n(slab, own, s.optimized_slab);
  } else {
    std::fill(slab + own, slab + slab_words(slab), 0);
  }
  slab_copy(s.optimized_slab) = copy.copy_number;
  return true;
}

sampler::Note RuntimeImpl::optimized_note(Method& m, AttachedThread& t) noexcept {
  sampler::Note n = make_note(m, t, sampler::NoteKind::kOptimized);
  n.sampled_calls = t.state(m.id).optimized_samples;
  n.rate = optimized_rate().word;
  n.copy = static_cast<uint32_t>(slab_copy(t.state(m.id).optimized_slab));
  return n;
}

// Cumulative like all snapshots: one that the ring refuses is contained in the next. Returns whether
// it took it.
bool RuntimeImpl::post_optimized(Method& m, AttachedThread& t) noexcept {
  uint64_t started = t.cost().start(sampler::CostKind::kFlush);
  const sampler::MethodState& s = t.state(m.id);
  std::span<const uint64_t> counts{s.optimized_slab, slab_words(s.optimized_slab)};
  sampler::Note n = optimized_note(m, t);
  n.ages = m.probes->optimized_plan().recent ? 1 : 0;
  bool delivered = t.ring().push(n, counts);
  if (delivered) jit::age_tables(m.probes->optimized_plan(), s.optimized_slab);
  if (!delivered) t.flushes_delayed.fetch_add(1, std::memory_order_relaxed);
  t.cost().stop(sampler::CostKind::kFlush, started);
  wake_worker();
  return delivered;
}

// ---- The copy ---------------------------------------------------------------------------------

CopyControl::CopyControl(const Parts& p)
    : options_(p.options),
      live_(p.live),
      policy_(p.policy),
      always_instrumented_(p.always_instrumented),
      methods_(p.methods),
      places_(p.places),
      observer_(p.observer),
      rates_(p.rates),
      requests_(p.requests),
      reclaimer_(p.reclaimer),
      system_(p.system),
      frames_(p.frames),
      newer_(p.newer),
      in_service_(p.in_service) {}

void CopyControl::want_optimized_copy(Method& m) {
  const Optimizing& o = *m.optimizing;
  if (o.asked || !can_observe_optimized(m)) return;
  if (rates_.progress_of(m).calls >= o.calls_before + kStillHot) request_optimized_copy(m);
}

bool CopyControl::can_observe_optimized(const Method& m) const {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  if (!usable(v)) return false;
  // Calls say all of one block, but nothing of what is inlined into it or what its probes see.
  bool varies =
      m.shape->block_weights.size() > 1 || v->inlined != 0 || m.probes->has_probes_in_optimized();
  return varies && observes_copies(m);
}

bool CopyControl::observes_copies(const Method& m) const {
  return options_.adaptive && live_.observe_optimized && options_.tier == TierMode::kAuto &&
         options_.gap != GapMode::kExact && !always_instrumented_ && !m.info.own_code &&
         !m.shape->block_weights.empty();
}

void CopyControl::request_optimized_copy(Method& m) {
  m.optimizing.own().asked = true;
  // The profile of the plain version has grown since, so the two may differ in their layout.
  requests_.add(
      m,
      {.method = m.id, .tier = Tier::kOptimized, .copy = Copy::kInstrumented, .use_profile = true},
      0);
}

void CopyControl::begin_observing_optimized(Method& m, Version& v) {
  Optimizing& o = m.optimizing.own();
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
  // Evicted meanwhile: it is retired with the others when the method is.
  if (!in_service) return;
  number_copy(m, v);
  o.copy.store(&v, std::memory_order_release);  // pairs with optimized_sample()
  o.copy_expected.store(false, std::memory_order_relaxed);
}

// Copies that are entered at loops count in the same slab.
void CopyControl::number_copy(Method& m, Version& v) {
  Optimizing& o = m.optimizing.own();
  v.copy_number = ++o.copies;
  v.newest_method = places_.methods_seen();
  v.copy_words = o.most_words = std::max(o.most_words, words_in(m, v));
}

// A new optimized version comes into service: the copy of the one before is not of it. Where there
// was one, the method has shown that it is hot.
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
  o.copy_expected.store(observed, std::memory_order_relaxed);
  if (observed) request_optimized_copy(m);
}

// ---- Windows ----------------------------------------------------------------------------------

// What a sample stands for, of calls; what drift is told by knows one rate, that of the note. Windows
// of optimized code and those of baseline code divide the thread's calls between them.
uint64_t Observer::weight_of_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                       uint64_t samples) {
  double opportunities =
      static_cast<double>(note.calls) +
      static_cast<double>(note.iterations) / static_cast<double>(slot_of(m, live_));
  profile::Coverage& coverage = m.flushed.own().streams[thread].coverage;
  double since = (opportunities - coverage.opportunities) / static_cast<double>(samples);
  coverage.opportunities = opportunities;
  return static_cast<uint64_t>(std::clamp(std::round(since), 1.0, 0x1p62));
}

sampler::Window Observer::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                         std::span<const uint64_t> counts, bool rounds) {
  Stream& s = m.flushed.own().streams[thread | kOptimizedStream];
  const Schema& schema = m.probes->schema();
  sampler::Window w;
  w.samples = note.sampled_calls - std::min(s.sampled_calls, note.sampled_calls);
  if (w.samples == 0) return w;
  s.sampled_calls = note.sampled_calls;
  // Nobody counts the rounds of plain code: one that was seen stands for itself.
  uint64_t weight = rounds ? 1 : weight_of_optimized(m, thread, note, w.samples);
  w.weight = rounds ? 1 : sampler::weight_of({note.rate}, ladder_);
  s.interval = weight;
  if (m.probes->counts_by_calls()) {
    // Each call is known already, and counted: only what is inlined is news.
    w.counts = {w.samples};
    return w;
  }
  keep_forgotten(m, thread | kOptimizedStream, counts);
  profile::Observed now =
      m.probes->read_optimized(counts, method_at_, forgotten_in(m, thread | kOptimizedStream));
  w.counts.assign(now.counts.begin(),
                  now.counts.begin() + static_cast<ptrdiff_t>(m.shape->block_weights.size()));
  for (size_t i = 0; i < w.counts.size() && !s.seen.counts.empty(); ++i) {
    w.counts[i] -= std::min(w.counts[i], s.seen.counts[i]);
  }
  add_target_counts(m, s.seen, now, w.counts);
  profile::advance(s.seen, schema, std::move(now), weight);
  s.coverage.end_window(note.sampled_calls, weight);
  s.flushes++;
  if (sink_ != nullptr) emit_flush(m, thread | kOptimizedStream, note, weight);
  if (note.ages != 0) age_optimized(m, thread | kOptimizedStream, counts);
  return w;
}

bool CopyControl::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                 std::span<const uint64_t> counts) {
  const Version* copy = copy_numbered(m, note.copy);
  bool rounds = copy != nullptr && copy->osr_loop.valid();
  sampler::Window w = observer_.take_optimized(m, thread, note, counts, rounds);
  if (w.samples == 0 || copy == nullptr) return false;
  std::vector<uint64_t> inlined = inlined_since(m, thread, *copy, counts);
  observer_.take_inlined(m, thread, *copy, counts, inlined, w.samples);
  w.counts.insert(w.counts.end(), inlined.begin(), inlined.end());
  if (rounds) {
    take_rounds(m, copy->osr_loop, *copy, std::move(w));
    return false;
  }
  // What comes late is of a version that has gone.
  if (!observes_optimized(m) || copy != m.optimizing->copy.load(std::memory_order_relaxed))
    return false;
  in_service_.touch(m);
  CopyWindows& o = m.optimizing.own().windows;
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  if (!learn_window(m, o, *copy, w) || !usable(v)) return false;
  return compare_with_profile(m, o, *v, *copy);
}

// What a thread has not handed over yet.
void RuntimeImpl::flush_optimized_locked(Method& m, AttachedThread& t) {
  const sampler::MethodState& s = t.state(m.id);
  if (s.optimized_slab == nullptr) return;
  take_optimized(m, t.number(), optimized_note(m, t),
                 {s.optimized_slab, slab_words(s.optimized_slab)});
}

}  // namespace uptier::tiering
