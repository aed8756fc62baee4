// Samples of optimized code: the calls that run its instrumented copy (control/copy_control.cc), and how
// a thread hands their counts over.
//
//   Thread: slow paths the thread's own; flush_optimized_locked() with the state mutex.
#include <algorithm>

#include "tiering/model/optimized_slab.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

namespace {

// Samples that a thread hands over at once.
constexpr uint32_t kWindowSamples = 64;

}  // namespace

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

// What a thread has not handed over yet.
void RuntimeImpl::flush_optimized_locked(Method& m, AttachedThread& t) {
  const sampler::MethodState& s = t.state(m.id);
  if (s.optimized_slab == nullptr) return;
  take_optimized(m, t.number(), optimized_note(m, t),
                 {s.optimized_slab, slab_words(s.optimized_slab)});
}

}  // namespace uptier::tiering
