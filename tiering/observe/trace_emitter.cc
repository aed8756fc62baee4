#include "tiering/observe/trace_emitter.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "profile/base/wall.h"
#include "profile/trace/data.h"
#include "profile/trace/events.h"
#include "tiering/base/log.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {

namespace {

constexpr const char* kGapNames[] = {"random", "fixed", "prime", "exact"};

// Ids and handles are numbers of the trace. A method's handle is its ordinal, which is never
// reused; the id of one thread's data about the method has both numbers.
uint64_t handle_of(const Method& m) { return m.ordinal; }
uint64_t stream_id(const Method& m, uint32_t thread) { return handle_of(m) << 32 | thread; }

}  // namespace

FlushReason reason_of(sampler::NoteKind k) {
  switch (k) {
    case sampler::NoteKind::kFlushCalls:
    case sampler::NoteKind::kOptimized: return FlushReason::kCalls;
    case sampler::NoteKind::kFlushIterations: return FlushReason::kLoops;
    case sampler::NoteKind::kFlushFinal: return FlushReason::kFinal;
    default: return FlushReason::kDemand;
  }
}

void TraceEmitter::begin() {
  assert(!begun_);
  begun_ = true;
  Provenance p;
  p.engine = "uptier 0.1.0";
  p.interval = options_.interval;
  p.gap = kGapNames[static_cast<size_t>(options_.gap)];
  p.options = options_.changes();
  emit(p);
}

bool TraceEmitter::emit(const TraceEvent& e) {
  if (sink_ == nullptr || sink_->on_event(e)) return true;
  ++events_lost_;
  return false;
}

void TraceEmitter::finish() noexcept {
  TraceSink* sink = std::exchange(sink_, nullptr);
  // A trace that never began, because the runtime could not be made, has no end either.
  if (sink == nullptr || !begun_) return;
  const Status end = walled("trace", [&] { return sink->finish(events_lost_); });
  if (end.ok()) return;
  ++events_lost_;
  const Log log(options_);
  const bool said = finishes([&] {
    log.say(LogLevel::kWarning, "the trace is incomplete, " + std::to_string(events_lost_) +
                                    " events are lost: " + end.error().message);
  });
  if (!said) log.say(LogLevel::kWarning, "the trace is incomplete");
}

uint64_t TraceEmitter::announce(Method& m) {
  assert(m.ordinal != 0 && m.ordinal <= UINT32_MAX);  // it is a half of stream ids
  if (!m.announced) {
    m.announced = emit(
        MethodDetails{handle_of(m), m.info.key.module_key, m.info.key.function_index, m.info.name});
  }
  return handle_of(m);
}

void TraceEmitter::flush(Method& m, uint32_t thread, const sampler::Note& note, uint64_t weight) {
  const ProbeSet& set = *m.probes;
  announce(m);
  uint32_t number = set.shared() ? 0 : thread;
  Stream& counted = m.flushed.own().streams[number];
  Totals t = totals(m);
  const Stream& s = m.flushed.own().streams[thread];
  if (!set.shared()) t = {s.calls, s.sampled_calls, s.iterations, s.bursts};
  if (set.counts_by_calls()) t.sampled_calls = t.calls;
  if (set.shared()) counted.flushes++;
  assert(counted.seen.counts.empty() || counted.seen.counts.size() == set.schema().words());
  uint64_t id = stream_id(m, number);
  bool brought = is_brought_to_all(options_);
  bool stretches = brought && estimates_.one_burst() && !has_optimized_stream(m);
  std::span<const profile::Draw> draws = set.draws();
  if (!brought) draws = {};
  if (!counted.described) emit(profile::make_desc(id, handle_of(m), set.schema(), draws));
  counted.described = true;
  // Callees are announced before the data that names them.
  std::vector<uint64_t> words = profile::data_words(
      set.schema(), counted.seen.counts, counted.seen.tables, [&](const MethodKey& key) {
        state_lock.known_held();
        Method* callee = directory_.method_of(key);
        return callee == nullptr ? 0 : announce(*callee);
      });
  emit(FlushEvent{id, t.calls, t.sampled_calls, number, counted.flushes, reason_of(note.kind),
                  weight, t.iterations, t.bursts, stretches ? slot_of(m, live_) : 0,
                  stretches && m.only_baseline});
  emit(profile::make_data(id, words));
}

}  // namespace uptier::tiering
