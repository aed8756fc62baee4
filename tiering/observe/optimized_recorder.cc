#include "tiering/observe/optimized_recorder.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "profile/data/estimate.h"
#include "tiering/observe/forgotten_targets.h"
#include "tiering/observe/indirect_targets.h"

namespace uptier::tiering {

// Returns how many calls a sample stands for; drift detection uses the rate of the note instead.
// Windows of optimized code and of baseline code divide the thread's calls between them.
uint64_t OptimizedRecorder::weight_of(Method& m, uint32_t thread, const sampler::Note& note,
                                      uint64_t samples) {
  assert(samples != 0);
  double opportunities =
      static_cast<double>(note.calls) +
      static_cast<double>(note.iterations) / static_cast<double>(slot_of(m, live_));
  profile::Coverage& coverage = m.flushed.own().streams[thread].coverage;
  double since = (opportunities - coverage.opportunities) / static_cast<double>(samples);
  coverage.opportunities = opportunities;
  return static_cast<uint64_t>(std::clamp(std::round(since), 1.0, 0x1p62));
}

// Returns how many iterations of optimized code a sampled one stands for. Bursts are spread over
// time, and a phase with short iterations has more of them in the same time. Returns 1 if optimized
// code does not count the loop.
uint64_t OptimizedRecorder::weight_of_iterations(Method& m, const Version& copy, uint64_t samples) {
  LoopCopy* loop = loop_copy(m, copy.osr_loop);
  if (loop == nullptr) return 1;
  TalliedSum sum = tallied_.sum_of(m);
  const TalliedSum::Block* header = sum.find({{}, copy.scope.header});
  if (header == nullptr) return 1;
  double since = header->executions - std::exchange(loop->iterations, header->executions);
  return static_cast<uint64_t>(
      std::clamp(std::round(since / static_cast<double>(samples)), 1.0, 0x1p62));
}

sampler::Window OptimizedRecorder::take(Method& m, uint32_t thread, const sampler::Note& note,
                                        std::span<const uint64_t> counts, const Version* loop) {
  assert(thread != 0 && thread < kEndedStream);
  Stream& s = m.flushed.own().streams[thread | kOptimizedStream];
  const Schema& schema = m.probes->schema();
  sampler::Window w;
  w.samples = note.sampled_calls - std::min(s.sampled_calls, note.sampled_calls);
  if (w.samples == 0) return w;
  s.sampled_calls = note.sampled_calls;
  uint64_t weight = loop != nullptr ? weight_of_iterations(m, *loop, w.samples)
                                    : weight_of(m, thread, note, w.samples);
  w.weight = loop != nullptr ? 1 : sampler::weight_of({note.rate}, ladder_);
  s.interval = weight;
  if (m.probes->counts_by_calls()) {
    // Every call is counted already; only inlined bodies add information.
    w.counts = {w.samples};
    return w;
  }
  keep_forgotten(m, thread | kOptimizedStream, counts);
  profile::Observed now = m.probes->read_optimized(counts, directory_.method_at(),
                                                   forgotten_in(m, thread | kOptimizedStream));
  w.counts.assign(now.counts.begin(),
                  now.counts.begin() + static_cast<ptrdiff_t>(m.shape->block_weights.size()));
  for (size_t i = 0; i < w.counts.size() && !s.seen.counts.empty(); ++i) {
    w.counts[i] -= std::min(w.counts[i], s.seen.counts[i]);
  }
  assert(w.counts.size() == m.shape->block_weights.size());
  add_target_counts(m, s.seen, now, w.counts);
  profile::advance(s.seen, schema, std::move(now), weight);
  s.coverage.end_window(note.sampled_calls, weight);
  s.flushes++;
  if (trace_.on()) trace_.flush(m, thread | kOptimizedStream, note, weight);
  if (note.ages != 0)
    age_optimized_stream(m, thread | kOptimizedStream, counts, directory_.method_at());
  return w;
}

}  // namespace uptier::tiering
