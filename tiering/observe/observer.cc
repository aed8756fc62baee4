#include "tiering/observe/observer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "profile/trace/data.h"
#include "profile/trace/events.h"
#include "tiering/base/log.h"
#include "tiering/model/event_of.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {
namespace {

constexpr const char* kGapNames[] = {"random", "fixed", "prime", "exact"};

FlushReason reason_of(sampler::NoteKind k) {
  switch (k) {
    case sampler::NoteKind::kFlushCalls:
    case sampler::NoteKind::kOptimized: return FlushReason::kCalls;
    case sampler::NoteKind::kFlushIterations: return FlushReason::kLoops;
    case sampler::NoteKind::kFlushFinal: return FlushReason::kFinal;
    default: return FlushReason::kDemand;
  }
}

bool is_flush(sampler::NoteKind k) {
  using sampler::NoteKind;
  return k != NoteKind::kWantCopy && k != NoteKind::kWantOsr && k != NoteKind::kWantNewer &&
         k != NoteKind::kFrame && k != NoteKind::kTrap && k != NoteKind::kTrial &&
         k != NoteKind::kGuard;
}

// Ids and handles are numbers of the trace: a method's handle is its ordinal, which no other method
// gets, and the id of what a thread saw of it carries both.
uint64_t handle_of(const Method& m) { return m.ordinal; }
uint64_t stream_id(const Method& m, uint32_t thread) { return handle_of(m) << 32 | thread; }

}  // namespace

Observer::Observer(const Options& options, const Options& live, const sampler::Ladder& ladder,
                   TraceSink* sink, Policy* policy, Events& events)
    : options_(options),
      live_(live),
      ladder_(ladder),
      policy_(PolicyOptions::from(options)),
      hosts_policy_(policy),
      opt_range_(*OptRange::parse(options.opt_range)),
      sink_(sink),
      events_(events),
      decisions_(options.decisions_kept) {
  events_.listen(decisions_, DecisionLog::kHears);
}

void Observer::begin() {
  begun_ = true;
  Provenance p;
  p.engine = "uptier 0.1.0";
  p.interval = options_.interval;
  p.gap = kGapNames[static_cast<size_t>(options_.gap)];
  p.options = options_.changes();
  emit(p);
}

bool Observer::emit(const TraceEvent& e) {
  if (sink_ == nullptr || sink_->on_event(e)) return true;
  ++trace_events_lost_;
  return false;
}

void Observer::finish() {
  TraceSink* sink = std::exchange(sink_, nullptr);
  // What was never begun, as when no runtime came of it, has no end either.
  if (sink == nullptr || !begun_) return;
  const Status end = sink->finish(trace_events_lost_);
  if (end.ok()) return;
  ++trace_events_lost_;
  Log(options_).say(LogLevel::kWarning, "the trace is incomplete, " +
                                            std::to_string(trace_events_lost_) +
                                            " events are lost: " + end.error().message);
}

// Returns the handle of a method that the trace has been told of.
uint64_t Observer::announce(Method& m) {
  if (!m.announced) {
    m.announced = emit(
        MethodDetails{handle_of(m), m.info.key.module_key, m.info.key.function_index, m.info.name});
  }
  return handle_of(m);
}

// How many executions one that was counted in the window of a note stands for; ends the window of
// the stream's coverage.
uint64_t Observer::weight_of(const Method& m, const sampler::Note& note, const Totals& t,
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

void Observer::take_trap(Method& m, uint32_t thread, SiteId block, uint64_t frames) {
  Stream& s = m.flushed.own().streams[m.probes->shared() ? 0 : thread];
  if (block == 0) return;
  if (s.traps.size() < block) s.traps.resize(block);
  s.traps[block - 1] += frames;
}

sampler::Verdict Observer::take(Method& m, uint32_t thread, const sampler::Note& note,
                                std::span<const uint64_t> counts) {
  Stream& s = m.flushed.own().streams[thread];
  uint64_t others = 0;
  if (options_.gap == GapMode::kExact) {
    // One countdown for all threads: what the others are not known to have called is this one's.
    for (const auto& [t, other] : m.flushed->streams) others += t == thread ? 0 : other.calls;
  }
  // Notes of two threads may arrive in another order than they were taken.
  s.calls = std::max(s.calls, note.calls > others ? note.calls - others : 0);
  // At the call that brings a flush its own counts are still to come.
  uint64_t to_come = note.calls - std::min(note.calls, note.sampled_calls);
  bool every_call = to_come == 0 || (options_.interval == 1 && to_come == 1);
  uint64_t sampled = every_call ? s.calls - std::min(s.calls, to_come) : note.sampled_calls;
  s.sampled_calls = std::max(s.sampled_calls, sampled);
  s.iterations = std::max(s.iterations, note.iterations);
  // A change of rate may take a burst back; what was published stays.
  s.bursts = std::max(s.bursts, note.bursts);

  bool all = m.probes->shared();
  Stream& counted = all ? m.flushed.own().streams[0] : s;
  Totals t = totals(m);
  if (!all) t = {s.calls, s.sampled_calls, s.iterations, s.bursts};
  // What counts by being called is known of every call.
  if (m.probes->counts_by_calls()) t.sampled_calls = t.calls;
  uint64_t samples = t.sampled_calls + t.bursts;
  uint64_t before = counted.coverage.samples;
  uint64_t weight = weight_of(m, note, t, counted);
  counted.mixed |= counted.interval != 0 && counted.interval != weight;
  counted.interval = weight;
  if (counted.words.size() < counts.size()) counted.words.resize(counts.size());
  bool in_order = !m.probes->shared() || options_.narrow_counters;
  for (size_t i = 0; i < counts.size(); ++i) {
    counted.words[i] = in_order ? counts[i] : std::max(counted.words[i], counts[i]);
  }
  if (!counts.empty()) keep_forgotten(m, all ? 0 : thread, counted.words);
  auto verdict =
      end_window(m, all ? 0 : thread, t.sampled_calls, samples - std::min(before, samples), weight,
                 sampler::weight_of({note.rate}, ladder_));
  if (!is_flush(note.kind)) return verdict;
  s.flushes++;
  Event flushed =
      event_of(EventKind::kFlushed, m, flush_reason_name(reason_of(note.kind)), s.calls);
  flushed.thread = thread;
  events_.emit(flushed);
  if (sink_ != nullptr && !m.probes->schema().slots.empty()) emit_flush(m, thread, note, weight);
  if (note.ages != 0) age(m, thread, t.sampled_calls);
  return verdict;
}

// Brings what was seen up to date with the words.
sampler::Verdict Observer::end_window(Method& m, uint32_t stream, uint64_t entries,
                                      uint64_t new_samples, uint64_t weight, uint64_t nominal) {
  const ProbeSet& set = *m.probes;
  if (set.schema().slots.empty()) return sampler::Verdict::kMore;
  Stream& counted = m.flushed.own().streams[stream];
  profile::Observed now =
      set.read(counted.words, counted.traps, entries, method_at_, forgotten_in(m, stream));
  counted.dual_error = set.dual_error(counted.words);
  counted.executions = set.all_executions(counted.words);
  set.keep_flow_rising(counted.seen, now);
  size_t blocks = std::min(m.shape->block_weights.size(), now.counts.size());
  sampler::Window w;
  w.counts.resize(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    uint64_t before = counted.seen.counts.empty() ? 0 : counted.seen.counts[i];
    w.counts[i] = now.counts[i] - before;
  }
  w.samples = new_samples;
  // How far two windows may lie apart is known for samples of one weight: what a pause has added to
  // a window's does not count there, nor a nominal gap that was wider than the window itself.
  w.weight = static_cast<uint32_t>(std::clamp<uint64_t>(nominal, 1, std::max<uint64_t>(weight, 1)));
  profile::advance(counted.seen, set.schema(), std::move(now), weight);
  if (!options_.adaptive || w.samples == 0) return sampler::Verdict::kMore;
  sampler::Convergence& c = m.flushed.own().convergence;
  if (c.compared() == 0) c.set_epsilon(policy_.epsilon);  // at its first window
  return c.add(w);
}

void Observer::emit_flush(Method& m, uint32_t thread, const sampler::Note& note, uint64_t weight) {
  const ProbeSet& set = *m.probes;
  announce(m);
  uint32_t number = set.shared() ? 0 : thread;
  Stream& counted = m.flushed.own().streams[number];
  Totals t = totals(m);
  const Stream& s = m.flushed.own().streams[thread];
  if (!set.shared()) t = {s.calls, s.sampled_calls, s.iterations, s.bursts};
  if (set.counts_by_calls()) t.sampled_calls = t.calls;
  if (set.shared()) counted.flushes++;
  uint64_t id = stream_id(m, number);
  bool brought = is_brought_to_all(options_);
  bool stretches = brought && one_burst_ && !has_optimized_stream(m);
  std::span<const profile::Draw> draws = set.draws();
  if (!brought) draws = {};
  if (!counted.described) emit(profile::make_desc(id, handle_of(m), set.schema(), draws));
  counted.described = true;
  // Callees are announced before the data that names them.
  std::vector<uint64_t> words = profile::data_words(
      set.schema(), counted.seen.counts, counted.seen.tables, [&](const MethodKey& key) {
        auto at = by_key_.find(key);
        return at == by_key_.end() ? 0 : announce(*at->second);
      });
  emit(FlushEvent{id, t.calls, t.sampled_calls, number, counted.flushes, reason_of(note.kind),
                  weight, t.iterations, t.bursts, stretches ? slot_of(m, live_) : 0,
                  stretches && m.only_baseline});
  emit(profile::make_data(id, words));
}

}  // namespace uptier::tiering
