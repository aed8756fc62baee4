#include "tiering/observe/stream_recorder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/base/wall.h"
#include "tiering/model/event_of.h"
#include "tiering/observe/forgotten_targets.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {

bool StreamRecorder::is_flush(sampler::NoteKind k) noexcept {
  using sampler::NoteKind;
  return k != NoteKind::kWantCopy && k != NoteKind::kWantOsr && k != NoteKind::kWantNewer &&
         k != NoteKind::kFrame && k != NoteKind::kTrap && k != NoteKind::kTrial &&
         k != NoteKind::kGuard;
}

namespace {

void add_interval(Stream& to, const Stream& from) {
  bool differ = to.interval != 0 && from.interval != 0 && to.interval != from.interval;
  to.mixed |= from.mixed || differ;
  if (from.interval != 0) to.interval = from.interval;
}

void add_totals(Stream& to, const Stream& from) {
  to.calls += from.calls;
  to.sampled_calls += from.sampled_calls;
  to.iterations += from.iterations;
  to.bursts += from.bursts;
  to.coverage.covered += from.coverage.covered;
  to.flushes += from.flushes;
  add_interval(to, from);
}

void add_executions(Stream& to, const Stream& from) {
  if (to.executions.size() < from.executions.size()) to.executions.resize(from.executions.size());
  for (size_t l = 0; l < from.executions.size(); ++l) {
    to.executions[l].timed += from.executions[l].timed;
    to.executions[l].cycles += from.executions[l].cycles;
  }
}

// Returns the data of a stream as a profile that can be merged.
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

// Returns how many executions each execution counted in the window of a note stands for, and ends
// that window in the stream's coverage.
uint64_t StreamRecorder::weight_of(const Method& m, const sampler::Note& note, const Totals& t,
                                   Stream& counted) const {
  uint64_t samples = t.sampled_calls + t.bursts;
  if (options_.adaptive) {
    double iterations = static_cast<double>(t.iterations) / static_cast<double>(slot_of(m, live_));
    return counted.coverage.weigh(samples, static_cast<double>(t.calls) + iterations);
  }
  bool shared_countdown = options_.gap == GapMode::kExact;
  uint64_t weight = shared_countdown ? options_.interval : sampler::weight_of({note.rate}, ladder_);
  if (m.probes->counts_by_calls()) weight = 1;
  weight = std::max<uint64_t>(weight, 1);
  counted.coverage.end_window(samples, weight);
  return weight;
}

void StreamRecorder::take_trap(Method& m, uint32_t thread, SiteId block, uint64_t frames) {
  Stream& s = m.flushed.own().streams[m.probes->shared() ? 0 : thread];
  if (block == 0) return;
  if (s.traps.size() < block) s.traps.resize(block);
  s.traps[block - 1] += frames;
}

sampler::Verdict StreamRecorder::take(Method& m, uint32_t thread, const sampler::Note& note,
                                      std::span<const uint64_t> counts) {
  assert(thread != 0 && thread < kEndedStream);  // 0: all threads; kEndedStream: ended ones
  Stream& s = m.flushed.own().streams[thread];
  uint64_t others = 0;
  if (options_.gap == GapMode::kExact) {
    // One countdown for all threads: calls not known to be from other threads are this thread's.
    for (const auto& [t, other] : m.flushed->streams) others += t == thread ? 0 : other.calls;
  }
  // Notes of two threads may arrive in a different order than they were taken.
  s.calls = std::max(s.calls, note.calls > others ? note.calls - others : 0);
  // The counts of the call that causes a flush are still to come.
  uint64_t to_come = note.calls - std::min(note.calls, note.sampled_calls);
  bool every_call = to_come == 0 || (options_.interval == 1 && to_come == 1);
  uint64_t sampled = every_call ? s.calls - std::min(s.calls, to_come) : note.sampled_calls;
  s.sampled_calls = std::max(s.sampled_calls, sampled);
  s.iterations = std::max(s.iterations, note.iterations);
  // A change of rate may take a burst back; published counts stay.
  s.bursts = std::max(s.bursts, note.bursts);

  bool all = m.probes->shared();
  Stream& counted = all ? m.flushed.own().streams[0] : s;
  Totals t = totals(m);
  if (!all) t = {s.calls, s.sampled_calls, s.iterations, s.bursts};
  // A method that is counted by its calls has data on every call.
  if (m.probes->counts_by_calls()) t.sampled_calls = t.calls;
  uint64_t samples = t.sampled_calls + t.bursts;
  uint64_t before = counted.coverage.samples;
  uint64_t weight = weight_of(m, note, t, counted);
  counted.mixed |= counted.interval != 0 && counted.interval != weight;
  assert(weight != 0);
  counted.interval = weight;
  if (counted.words.size() < counts.size()) counted.words.resize(counts.size());
  bool in_order = !m.probes->shared() || options_.narrow_counters;
  for (size_t i = 0; i < counts.size(); ++i) {
    counted.words[i] = in_order ? counts[i] : std::max(counted.words[i], counts[i]);
  }
  if (!counts.empty()) keep_forgotten(m, all ? 0 : thread, counted.words);
  const bool settled = note.settled != 0 && !all;
  auto verdict =
      end_window(m, all ? 0 : thread, t.sampled_calls, samples - std::min(before, samples), weight,
                 sampler::weight_of({note.rate}, ladder_), settled);
  if (!is_flush(note.kind)) return verdict;
  s.flushes++;
  Event flushed =
      event_of(EventKind::kFlushed, m, flush_reason_name(reason_of(note.kind)), s.calls);
  flushed.thread = thread;
  events_.emit(flushed);
  if (trace_.on() && !m.probes->schema().slots.empty()) trace_.flush(m, thread, note, weight);
  if (note.ages != 0) age_stream(m, thread, t.sampled_calls, directory_.method_at());
  return verdict;
}

// Updates `seen` from the words.
sampler::Verdict StreamRecorder::end_window(Method& m, uint32_t stream, uint64_t entries,
                                            uint64_t new_samples, uint64_t weight, uint64_t nominal,
                                            bool settled) {
  const ProbeSet& set = *m.probes;
  if (set.schema().slots.empty()) return sampler::Verdict::kMore;
  Stream& counted = m.flushed.own().streams[stream];
  profile::Observed now = set.read(counted.words, counted.traps, entries, directory_.method_at(),
                                   forgotten_in(m, stream));
  counted.dual_error = set.dual_error(counted.words);
  counted.executions = set.all_executions(counted.words);
  if (!settled) set.keep_flow_rising(counted.seen, now);
  size_t blocks = std::min(m.shape->block_weights.size(), now.counts.size());
  sampler::Window w;
  w.counts.resize(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    uint64_t before = counted.seen.counts.empty() ? 0 : counted.seen.counts[i];
    assert(settled || now.counts[i] >= before);  // published counts fall only when they settle
    w.counts[i] = now.counts[i] - std::min(before, now.counts[i]);
  }
  w.samples = new_samples;
  // The expected distance of two windows is known for samples of equal weight. So weight added by a
  // pause does not count here, nor a nominal gap that was wider than the window itself.
  w.weight = static_cast<uint32_t>(std::clamp<uint64_t>(nominal, 1, std::max<uint64_t>(weight, 1)));
  profile::advance(counted.seen, set.schema(), std::move(now), weight);
  if (!options_.adaptive || w.samples == 0) return sampler::Verdict::kMore;
  sampler::Convergence& c = m.flushed.own().convergence;
  if (c.compared() == 0) c.set_epsilon(policy_.epsilon);  // at its first window
  return c.add(w);
}

// ---- Threads that have ended
// ----------------------------------------------------------------------

// If memory runs out, the stream stays separate: everything that may fail comes before the first
// change of the sum.
void StreamRecorder::end_one(Method& m, uint32_t thread) {
  Flushed* flushed = m.flushed.made();
  if (flushed == nullptr) return;
  auto at = flushed->streams.find(thread);
  flushed->forgotten_targets.erase(thread);
  if (at == flushed->streams.end()) return;
  assert(!at->second.ended);
  Stream gone = std::move(at->second);
  const bool whole = finishes([&] {
    state_lock.known_held();
    profile::StreamSum raked = estimates_.stream_sum(m);
    profile::Observed seen = gone.seen;
    const bool brought = (thread & kOptimizedStream) == 0 && stand_for_all(m, options_);
    if (brought) estimates_.add_to_sum(m, gone, !seen.counts.empty(), raked, seen);
    Stream& all = flushed->streams[kEndedStream | (thread & kOptimizedStream)];
    all.ended = true;
    const bool counted = !m.probes->schema().slots.empty() && !seen.counts.empty();
    if (counted) {
      Profile sum = profile_of_seen(m, all.seen);
      merge(sum, profile_of_seen(m, std::move(seen)));
      MethodProfile& p = sum.methods.begin()->second;
      seen = {std::move(p.counts), std::move(p.estimates), std::move(p.tables)};
    }
    add_executions(all, gone);
    if (counted) all.seen = std::move(seen);
    add_totals(all, gone);
    uint64_t squares = brought && !m.probes->shared() ? raked.squares() : gone.coverage.squares;
    (void)profile::add_saturating(all.coverage.squares, squares);
    all.sampled.calls += raked.sampled().calls;
    all.sampled.iterations += raked.sampled().iterations;
  });
  if (whole) {
    flushed->streams.erase(at);
  } else {
    at->second = std::move(gone);
  }
}

void StreamRecorder::end(Method& m, uint32_t thread) {
  assert(thread != 0 && thread < kEndedStream);
  end_one(m, thread);
  end_one(m, thread | kOptimizedStream);
  if (Optimizing* seen = m.optimizing.made()) seen->words.erase(thread);
}

}  // namespace uptier::tiering
