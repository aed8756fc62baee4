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
// Targets of the method's own indirect calls are counted by table, whether the call was guessed or
// not, and are a part of the distribution too (observe_targets.h). Those of calls in inlined bodies
// are not.
//
// Probes of the method's own body, the host's and those of telling parameters, observe as they do in
// baseline copies, at the same sites, but are no part of the distribution. Those in inlined bodies are
// silent.
//
// Two questions are asked of a window, and either answer is logged as re_instrument:
//
//   drift    is it like the windows before it? As of baseline code, see sampler/convergence.h
//   misled   are all windows together like the profile that the code was made from? That is what
//            baseline copies have counted. With p, q the true shares of the two times,
//              d(seen, made from) <= d(seen, q) + d(q, p) + d(p, made from)
//            and the first and last are bounded by each side's own (2) of convergence.h; what lies
//            beyond their sum is d(q, p)
//
// What follows is the policy's to say, by (2) of policy.h. Its drift is d(seen, made from) less the
// bound of what was seen: the code is laid out for the profile it was made from, whether that was
// the truth of its time or not.
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
#include <cstdio>

#include "tiering/observe/observe_inlined.h"
#include "tiering/observe/observe_targets.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

// Calls of optimized code after which it is worth a second body.
constexpr uint64_t kStillHot = 1 << 16;
// Samples that a thread hands over at once.
constexpr uint32_t kWindowSamples = 64;
// Samples are rare: windows of a known profile hold fewer than baseline code's.
constexpr sampler::ConvergenceOptions kOptions{.probe_samples = 4 * kWindowSamples};

double sum_of(const std::vector<double>& counts) {
  double sum = 0;
  for (double c : counts) sum += c;
  return sum;
}

// The distance of two profiles over the words that `observed` says, and the word whose share moved
// most.
struct Difference {
  double distance = 0;
  double share = 0;  // of a, in these words
  size_t word = SIZE_MAX;
  double before = 0, now = 0;
};

Difference difference(std::vector<double> a, std::vector<double> b,
                      const std::vector<bool>& observed) {
  Difference d;
  a.resize(observed.size());
  b.resize(observed.size());
  double all = sum_of(a);
  for (size_t i = 0; i < observed.size(); ++i) {
    if (!observed[i]) a[i] = b[i] = 0;
  }
  double total_a = sum_of(a), total_b = sum_of(b);
  if (total_a <= 0 || total_b <= 0) return d;
  d.share = total_a / all;
  double shared = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double before = a[i] / total_a, now = b[i] / total_b;
    shared += std::min(before, now);
    if (d.word != SIZE_MAX && std::abs(now - before) <= std::abs(d.now - d.before)) continue;
    d.word = i;
    d.before = before;
    d.now = now;
  }
  d.distance = std::max(0.0, 1 - shared);
  return d;
}

std::string reason(const char* what, const Difference& d, double allowed,
                   const std::string& block) {
  char text[128];
  std::snprintf(text, sizeof text,
                ": optimized code lies %.2f %% from it, noise explains %.2f %%; ", 100 * d.distance,
                100 * allowed);
  char shares[64];
  std::snprintf(shares, sizeof shares, " was %.1f %%, is %.1f %%", 100 * d.before, 100 * d.now);
  return what + std::string(text) + block + shares;
}

// A slab of optimized code has a head of two words in front of what the code counts in: how many
// words those are, and the number of the copy that they are for.
constexpr uint32_t kHeadWords = 2;
uint64_t& slab_words(uint64_t* slab) { return slab[-2]; }
uint64_t& slab_copy(uint64_t* slab) { return slab[-1]; }

void add_to(std::vector<double>& sum, std::span<const double> counts) {
  if (sum.size() < counts.size()) sum.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

}  // namespace

// ---- Slow paths -------------------------------------------------------------------------------

bool RuntimeImpl::observes_optimized(const Method& m) const noexcept {
  return usable(m.optimized_copy.version.load(std::memory_order_acquire));
}

// The same where the copy is only away while its successor is made.
bool RuntimeImpl::awaits_optimized(const Method& m) const noexcept {
  return observes_optimized(m) || m.optimized_copy.expected.load(std::memory_order_relaxed);
}

// Returns the rate that a method should have now.
sampler::Rate RuntimeImpl::rate_of(const Method& m) const noexcept {
  bool off = sampling_.load(std::memory_order_relaxed) == Sampling::kOff;
  return awaits_optimized(m) && !off ? optimized_rate() : fast_->rate(m.id.index()).load();
}

// A call that is due to be observed while optimized code is in service: returns the copy that it
// runs, or null when it runs plain. Samples at the rate of baseline code are none.
const void* RuntimeImpl::optimized_sample(Method& m, AttachedThread& t) noexcept {
  const Version* copy = m.optimized_copy.version.load(std::memory_order_acquire);
  sampler::MethodState& s = t.state(m.id);
  if (!usable(copy) || s.rate != optimized_rate().word) return nullptr;
  if (!ready_slab(m, t, *copy)) return nullptr;
  bool whole = s.optimized_samples != 0 && s.optimized_samples % kWindowSamples == 0;
  if (whole) post_optimized(m, t);
  ++s.optimized_samples;
  return copy->entry;
}

uint64_t RuntimeImpl::optimized_words(const uint64_t* optimized_slab) noexcept {
  return optimized_slab == nullptr ? 0 : slab_words(const_cast<uint64_t*>(optimized_slab));
}

// Of a method that is gone for good.
void RuntimeImpl::give_optimized_slab(AttachedThread& t, const sampler::MethodState& s) {
  if (s.optimized_slab == nullptr) return;
  auto words = static_cast<uint32_t>(slab_words(s.optimized_slab)) + kHeadWords;
  t.slabs().give(s.optimized_slab - kHeadWords, words);
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
    uint64_t* taken = t.slabs().take(copy.copy_words + kHeadWords);
    if (taken == nullptr) {
      t.slabs_refused.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    s.optimized_slab = taken + kHeadWords;
    slab_words(s.optimized_slab) = copy.copy_words;
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

// Asks for the copy of a method that is still called after it was optimized.
void RuntimeImpl::want_optimized_copy(Method& m) {
  const OptimizedSeen& o = *m.optimized_copy.seen;
  if (o.asked || !can_observe_optimized(m)) return;
  if (progress_locked(m).calls >= o.calls_before + kStillHot) request_optimized_copy(m);
}

bool RuntimeImpl::can_observe_optimized(const Method& m) const {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  if (!usable(v)) return false;
  // Calls say all of one block, but nothing of what is inlined into it or what its probes see.
  bool varies =
      m.block_weights.size() > 1 || v->inlined != 0 || m.probes->has_probes_in_optimized();
  return varies && options_.adaptive && live_.observe_optimized &&
         options_.tier == TierMode::kAuto && options_.gap != GapMode::kExact &&
         !always_instrumented_ && !m.info.own_code && !m.block_weights.empty();
}

void RuntimeImpl::request_optimized_copy(Method& m) {
  m.optimized_copy.seen.own().asked = true;
  // The profile of the plain version has grown since, so the two may differ in their layout.
  request(
      m,
      {.method = m.id, .tier = Tier::kOptimized, .copy = Copy::kInstrumented, .use_profile = true},
      0);
}

namespace {

void forget_windows(OptimizedSeen& o, double epsilon) {
  o.convergence = sampler::Convergence(kOptions);
  o.convergence.set_epsilon(epsilon);
  o.known.clear();
  o.recent.clear();
  o.misled = o.told = false;
  o.samples = 0;
  o.drift = 0;
}

}  // namespace

void RuntimeImpl::begin_observing_optimized(Method& m, Version& v) {
  OptimizedSeen& o = m.optimized_copy.seen.own();
  o.observed.assign(m.block_weights.size(), false);
  for (SiteId site : jit::observed_sites(*v.code)) {
    if (site <= o.observed.size()) o.observed[site - 1] = true;
  }
  v.sections = sections_of(*v.code);
  observe_targets(m, *v.code, o.observed);
  o.observed.resize(words_in(m, v), true);
  forget_windows(o, policy_.epsilon);
  bool in_service = usable(m.optimized.load(std::memory_order_relaxed));
  // Evicted meanwhile: it is retired with the others when the method is.
  if (!in_service) return;
  v.copy_number = ++o.copies;
  v.copy_words = o.most_words = std::max(o.most_words, words_in(m, v));
  m.optimized_copy.version.store(&v, std::memory_order_release);  // pairs with optimized_sample()
  m.optimized_copy.expected.store(false, std::memory_order_relaxed);
}

// A new optimized version comes into service: the copy of the one before is not of it. Where there
// was one, the method has shown that it is hot.
void RuntimeImpl::retire_optimized_copy(Method& m) {
  OptimizedSeen& o = m.optimized_copy.seen.own();
  bool observed = observes_optimized(m) && can_observe_optimized(m);
  m.optimized_copy.version.store(nullptr, std::memory_order_release);
  o.asked = false;
  o.calls_before = progress_locked(m).calls;
  forget_windows(o, policy_.epsilon);
  for (auto& v : m.versions) {
    bool copy = v->tier == Tier::kOptimized && v->copy == Copy::kInstrumented && !v->retired;
    if (copy) reclaimer_.retire(*v);
  }
  m.optimized_copy.expected.store(observed, std::memory_order_relaxed);
  if (observed) request_optimized_copy(m);
}

// ---- Windows ----------------------------------------------------------------------------------

sampler::Window Observer::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                         std::span<const uint64_t> counts) {
  Stream& s = m.streams[thread | kOptimizedStream];
  const Schema& schema = m.probes->schema();
  sampler::Window w;
  w.samples = note.sampled_calls - std::min(s.sampled_calls, note.sampled_calls);
  if (w.samples == 0) return w;
  s.sampled_calls = note.sampled_calls;
  // Its windows and those of baseline code divide the thread's calls between them; what drift is
  // told by knows one rate.
  double opportunities =
      static_cast<double>(note.calls) +
      static_cast<double>(note.iterations) / static_cast<double>(slot_of(m, live_));
  profile::Coverage& coverage = m.streams[thread].coverage;
  double since = (opportunities - coverage.opportunities) / static_cast<double>(w.samples);
  auto weight = static_cast<uint64_t>(std::clamp(std::round(since), 1.0, 0x1p62));
  coverage.opportunities = opportunities;
  w.weight = sampler::weight_of({note.rate}, ladder_);
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
                  now.counts.begin() + static_cast<ptrdiff_t>(m.block_weights.size()));
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

void RuntimeImpl::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                 std::span<const uint64_t> counts) {
  OptimizedSeen& o = m.optimized_copy.seen.own();
  sampler::Window w = observer_.take_optimized(m, thread, note, counts);
  const Version* copy = copy_numbered(m, note.copy);
  if (w.samples == 0 || copy == nullptr) return;
  std::vector<uint64_t> inlined = inlined_since(m, thread, *copy, counts);
  observer_.take_inlined(m, thread, *copy, inlined, w.samples);
  // What comes late is of a version that has gone.
  if (!observes_optimized(m) || copy != m.optimized_copy.version.load(std::memory_order_relaxed))
    return;
  w.counts.insert(w.counts.end(), inlined.begin(), inlined.end());
  o.samples += w.samples;
  m.last_active = ++activity_;
  std::vector<double> came(w.counts.begin(), w.counts.end());
  add_to(o.recent, came);
  double before = o.convergence.last_distance();
  uint32_t windows = o.convergence.windows();
  sampler::Verdict v = o.convergence.add(w);
  if (v == sampler::Verdict::kDrifted) {
    Difference d = difference(o.known, o.recent, o.observed);
    observer_.log(m, "re_instrument",
                  reason("drift from earlier windows", d, o.convergence.last_allowed(),
                         block_name(m, *copy, d.word)));
    // Learnt anew without the window, which may hold something of both.
    o.known.clear();
    o.recent.clear();
    if (m.saved != nullptr) m.saved->drifted = true;
    o.drift = 0;
    o.misled = true;  // it has been said that the profile is out of date
    return;
  }
  bool over = o.known.empty() || o.convergence.windows() != windows ||
              o.convergence.last_distance() != before;
  if (!over) return;
  add_to(o.known, o.recent);
  o.recent.clear();
  compare_with_profile(m, note);
}

double RuntimeImpl::optimized_error(const Method& m) const {
  return m.optimized_copy.seen->convergence.error_bound(kDriftAlpha);
}

// Asks whether the code was made from a profile that is not the one it runs with, and if so the
// policy what is to become of it.
void RuntimeImpl::compare_with_profile(Method& m, const sampler::Note& note) {
  OptimizedSeen& o = m.optimized_copy.seen.own();
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  const Version* copy = m.optimized_copy.version.load(std::memory_order_relaxed);
  bool enough = copy != nullptr && usable(v) && !v->made_from.empty() &&
                o.convergence.windows() >= sampler::Convergence::kLeastWindows;
  if (!enough) return;
  Origin from = origin_of(m, *v, *copy);
  Difference d = difference(from.counts, o.known, from.known);
  if (d.share <= 0) return;
  double error = optimized_error(m);
  double allowed = std::max(policy_.epsilon, from.error / d.share + error);
  if (d.distance > allowed && !o.misled) {
    o.misled = true;
    if (m.saved != nullptr) m.saved->drifted = true;
    observer_.log(m, "re_instrument",
                  reason("drift from the profile it was made from", d, allowed,
                         block_name(m, *copy, d.word)));
  }
  // Whatever it was that the profile differed from when it was new: it is what the code is laid
  // out for, and only what runs now is uncertain.
  o.drift = std::max(0.0, d.distance - error);
  if (o.drift >= policy_.epsilon) return consider(m, note);
  o.misled = o.told = false;
}

// What a thread has not handed over yet.
void RuntimeImpl::flush_optimized_locked(Method& m, AttachedThread& t) {
  const sampler::MethodState& s = t.state(m.id);
  if (s.optimized_slab == nullptr) return;
  take_optimized(m, t.number(), optimized_note(m, t),
                 {s.optimized_slab, slab_words(s.optimized_slab)});
}

}  // namespace uptier::tiering
