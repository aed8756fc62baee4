// Streams of threads that have gone. They become one, so that what a runtime keeps of a method does
// not grow with every thread that ever ran it:
//
//   stream of a thread --its estimates raked to all that it ran--> kEndedStream
//
// What those ran that had no sample stays known (Stream::sampled), and is brought into the estimates
// with the streams that are left.
// What it has seen is a sum from then on: no words and no window belong to it. In a trace each
// thread's stream stays one of its own, which its final flush has ended.
#include <utility>

#include "profile/base/numbers.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {
namespace {

void add_interval(Stream& to, const Stream& from) {
  bool differ = to.interval != 0 && from.interval != 0 && to.interval != from.interval;
  to.mixed |= from.mixed || differ;
  if (from.interval != 0) to.interval = from.interval;
}

void add_executions(Stream& to, const Stream& from) {
  if (to.executions.size() < from.executions.size()) to.executions.resize(from.executions.size());
  for (size_t l = 0; l < from.executions.size(); ++l) {
    to.executions[l].timed += from.executions[l].timed;
    to.executions[l].cycles += from.executions[l].cycles;
  }
}

// Returns what a stream has seen as a profile that can be merged.
Profile profile_of_seen(const Method& m, profile::Observed seen) {
  MethodProfile p;
  p.key = m.info.key;
  p.schema = m.probes->schema();
  p.counts = std::move(seen.counts);
  p.estimates = std::move(seen.estimates);
  p.tables = std::move(seen.tables);
  p.counts.resize(p.schema.words());
  p.estimates.resize(p.schema.words());
  Profile one;
  one.methods.emplace(p.key, std::move(p));
  return one;
}

}  // namespace

void Observer::end_stream(Method& m, uint32_t thread) {
  Flushed* flushed = m.flushed.made();
  if (flushed == nullptr) return;
  auto at = flushed->streams.find(thread);
  flushed->forgotten_targets.erase(thread);
  if (at == flushed->streams.end()) return;
  Stream gone = std::move(at->second);
  profile::StreamSum raked = stream_sum(m);
  bool brought = (thread & kOptimizedStream) == 0 && stand_for_all(m, options_);
  if (brought) add_to_sum(m, gone, !gone.seen.counts.empty(), raked, gone.seen);
  flushed->streams.erase(at);
  Stream& all = flushed->streams[kEndedStream | (thread & kOptimizedStream)];
  all.ended = true;
  all.calls += gone.calls;
  all.sampled_calls += gone.sampled_calls;
  all.iterations += gone.iterations;
  all.bursts += gone.bursts;
  uint64_t squares = brought && !m.probes->shared() ? raked.squares() : gone.coverage.squares;
  (void)profile::add_saturating(all.coverage.squares, squares);
  all.coverage.covered += gone.coverage.covered;
  all.sampled.calls += raked.sampled().calls;
  all.sampled.iterations += raked.sampled().iterations;
  all.flushes += gone.flushes;
  add_interval(all, gone);
  add_executions(all, gone);
  if (m.probes->schema().slots.empty() || gone.seen.counts.empty()) return;
  Profile sum = profile_of_seen(m, std::move(all.seen));
  merge(sum, profile_of_seen(m, std::move(gone.seen)));
  MethodProfile& p = sum.methods.begin()->second;
  all.seen = {std::move(p.counts), std::move(p.estimates), std::move(p.tables)};
}

void Observer::end_streams(Method& m, uint32_t thread) {
  end_stream(m, thread);
  end_stream(m, thread | kOptimizedStream);
  if (Optimizing* seen = m.optimizing.made()) seen->words.erase(thread);
}

}  // namespace uptier::tiering
