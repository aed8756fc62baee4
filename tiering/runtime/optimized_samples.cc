#include "tiering/runtime/optimized_samples.h"

#include <algorithm>
#include <cassert>

#include "sampler/fast_sample.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/notes.h"

namespace uptier::tiering {
namespace {

// Number of samples in one note.
constexpr uint32_t kWindowSamples = 64;

}  // namespace

bool OptimizedSamples::awaits_optimized(const Method& m) const noexcept {
  return observes_optimized(m) || m.optimizing->copy_expected.load(std::memory_order_relaxed);
}

sampler::Rate OptimizedSamples::rate_of(const Method& m) const noexcept {
  bool off = engine_.rates->sampling() == Sampling::kOff;
  return awaits_optimized(m) && !off ? optimized_rate(m) : engine_.fast->rate(m.id.index()).load();
}

const void* OptimizedSamples::optimized_sample(Method& m, AttachedThread& t) noexcept {
  const Version* copy = m.optimizing->copy.load(std::memory_order_acquire);
  sampler::MethodState& s = t.state(m.id);
  if (!usable(copy) || s.rate != optimized_rate(m).word) return nullptr;
  if (!ready_slab(m, t, *copy)) return nullptr;
  count_optimized(m, t);
  return copy->entry;
}

void OptimizedSamples::count_optimized(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  assert(s.optimized_slab != nullptr);
  bool whole = s.optimized_samples != 0 && s.optimized_samples % kWindowSamples == 0;
  if (whole) post_optimized(m, t);
  ++s.optimized_samples;
  bool widens = s.samples_left != 0 && --s.samples_left == 0;
  if (widens) m.optimizing.made()->rate.widen({s.rate}, engine_.schedule.ladder);
}

// The words of the method's own blocks continue through all copies, in the same slab if it is large
// enough. A frame of an earlier copy may still be running further out, and counts there. If it
// recurses, its words of inlined bodies are written to the words of another copy in the new slab.
// The new slab is at least as large as the old copy's, so nothing else is overwritten.
bool OptimizedSamples::ready_slab(Method& m, AttachedThread& t, const Version& copy) noexcept {
  sampler::MethodState& s = t.state(m.id);
  uint64_t* slab = s.optimized_slab;
  if (slab != nullptr && slab_copy(slab) == copy.copy_number) return true;
  uint32_t own = m.probes->optimized_plan().bytes / 8;
  assert(copy.copy_number != 0 && copy.copy_words >= own);  // CopyRules::number
  if (slab != nullptr) {
    // Counts larger than the ring are not sent, as at any flush.
    bool fits = slab_words(slab) * 8 <= engine_.options.ring_bytes / 2;
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
  assert(slab_words(s.optimized_slab) >= copy.copy_words);
  slab_copy(s.optimized_slab) = copy.copy_number;
  return true;
}

sampler::Note OptimizedSamples::optimized_note(Method& m, AttachedThread& t) noexcept {
  assert(t.state(m.id).optimized_slab != nullptr);
  sampler::Note n = notes_.make_note(m, t, sampler::NoteKind::kOptimized);
  n.sampled_calls = t.state(m.id).optimized_samples;
  n.rate = t.state(m.id).rate;
  n.copy = static_cast<uint32_t>(slab_copy(t.state(m.id).optimized_slab));
  return n;
}

bool OptimizedSamples::post_optimized(Method& m, AttachedThread& t) noexcept {
  uint64_t started = t.cost().start(sampler::CostKind::kFlush);
  const sampler::MethodState& s = t.state(m.id);
  std::span<const uint64_t> counts{s.optimized_slab, slab_words(s.optimized_slab)};
  sampler::Note n = optimized_note(m, t);
  n.ages = m.probes->optimized_plan().recent ? 1 : 0;
  bool delivered = t.ring().push(n, counts);
  if (delivered) jit::age_tables(m.probes->optimized_plan(), s.optimized_slab);
  if (!delivered) t.flushes_delayed.fetch_add(1, std::memory_order_relaxed);
  t.cost().stop(sampler::CostKind::kFlush, started);
  guest_waits_.wake_worker(m);
  return delivered;
}

sampler::Rate OptimizedSamples::optimized_rate(const Method& m) const noexcept {
  return m.optimizing->rate.load();
}

}  // namespace uptier::tiering
