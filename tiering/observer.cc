#include "tiering/observer.h"

#include <algorithm>

#include "profile/events.h"
#include "sampler/gap.h"

namespace uptier::tiering {
namespace {

constexpr const char* kGapNames[] = {"random", "fixed", "prime", "exact"};

struct Totals {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
};

Totals totals(const Method& m) {
  Totals t;
  for (const auto& [thread, s] : m.streams) {
    t.calls += s.calls;
    t.sampled_calls += s.sampled_calls;
    t.iterations += s.iterations;
    t.bursts += s.bursts;
  }
  return t;
}

FlushReason reason_of(sampler::NoteKind k) {
  switch (k) {
    case sampler::NoteKind::kFlushCalls: return FlushReason::kCalls;
    case sampler::NoteKind::kFlushIterations: return FlushReason::kLoops;
    case sampler::NoteKind::kFlushFinal: return FlushReason::kFinal;
    default: return FlushReason::kDemand;
  }
}

bool is_flush(sampler::NoteKind k) {
  using sampler::NoteKind;
  return k != NoteKind::kWantCopy && k != NoteKind::kWantOsr;
}

// Ids and handles are numbers of the trace: a method's handle is its index + 1, and the id of what
// a thread saw of it carries both.
uint64_t handle_of(const Method& m) { return uint64_t{m.id.index()} + 1; }
uint64_t stream_id(const Method& m, uint32_t thread) { return handle_of(m) << 32 | thread; }

}  // namespace

Observer::Observer(const Options& options, TraceSink* sink)
    : options_(options),
      policy_(PolicyOptions::from(options)),
      opt_range_(*OptRange::parse(options.opt_range)),
      sink_(sink) {
  Provenance p;
  p.engine = "uptier 0.1.0";
  p.interval = options.interval;
  p.gap = kGapNames[static_cast<size_t>(options.gap)];
  p.options = "burst=" + std::to_string(options.burst) +
              " flush_first=" + std::to_string(options.flush_first) +
              " loop_flush_first=" + std::to_string(options.loop_flush_first) +
              " seed=" + std::to_string(options.seed);
  emit(p);
}

void Observer::emit(const TraceEvent& e) {
  if (sink_ != nullptr && !sink_->on_event(e)) ++sink_errors_;
}

void Observer::finish() {
  if (sink_ != nullptr && !sink_->finish(sink_errors_)) ++sink_errors_;
  sink_ = nullptr;
}

void Observer::announce(Method& m) {
  if (m.announced) return;
  m.announced = true;
  emit(MethodDetails{handle_of(m), m.info.key.module_key, m.info.key.function_index, m.info.name});
}

void Observer::take(Method& m, uint32_t thread, const sampler::Note& note,
                    std::span<const uint64_t> counts) {
  Stream& s = m.streams[thread];
  uint64_t others = 0;
  if (options_.gap == GapMode::kExact) {
    // One countdown for all threads: what the others are not known to have called is this one's.
    for (const auto& [t, other] : m.streams) others += t == thread ? 0 : other.calls;
  }
  // Notes of two threads may arrive in another order than they were taken.
  s.calls = std::max(s.calls, note.calls > others ? note.calls - others : 0);
  s.sampled_calls = note.sampled_calls;
  s.iterations = note.iterations;
  s.bursts = note.bursts;
  if (!counts.empty()) s.counts.assign(counts.begin(), counts.end());
  if (!is_flush(note.kind)) return;
  s.flushes++;
  if (sink_ == nullptr || m.schema.slots.empty()) return;
  announce(m);
  uint64_t id = stream_id(m, thread);
  if (!s.described) emit(profile::make_desc(id, handle_of(m), m.schema));
  s.described = true;
  emit(FlushEvent{id, s.calls, s.sampled_calls, thread, s.flushes, reason_of(note.kind),
                  options_.interval, s.iterations, s.bursts});
  std::vector<uint64_t> words = s.counts;
  words.resize(m.schema.words());
  emit(profile::make_data(id, words));
}

MethodProfile Observer::profile_of(const Method& m) const {
  MethodProfile p;
  p.key = m.info.key;
  p.name = m.info.name;
  p.schema = m.schema;
  p.counts.resize(m.schema.words());
  p.interval = options_.interval;
  for (const auto& [thread, s] : m.streams) {
    p.calls += s.calls;
    p.sampled_calls += s.sampled_calls;
    p.iterations += s.iterations;
    p.bursts += s.bursts;
    for (size_t i = 0; i < s.counts.size(); ++i) p.counts[i] += s.counts[i];
  }
  p.weigh(options_.interval);
  return p;
}

std::vector<uint64_t> Observer::block_estimates(const Method& m) const {
  Totals t = totals(m);
  if (t.sampled_calls + t.bursts < options_.min_samples) return {};
  std::vector<uint64_t> counts = profile_of(m).counts;
  for (uint64_t& c : counts) c *= options_.interval;
  bool empty = std::all_of(counts.begin(), counts.end(), [](uint64_t c) { return c == 0; });
  return empty ? std::vector<uint64_t>{} : counts;
}

MethodSnapshot Observer::snapshot(const Method& m, const sampler::Note& note) const {
  MethodSnapshot s;
  const Version* best = m.optimized.load(std::memory_order_relaxed);
  const Version* plain = m.plain.load(std::memory_order_relaxed);
  bool in_host = plain == nullptr && m.info.host_entry != nullptr;
  s.tier = best != nullptr ? Tier::kOptimized : in_host ? Tier::kHost : Tier::kBaseline;
  s.optimized_requested = m.optimized_requested;
  s.can_instrument = options_.tier == TierMode::kAuto;
  s.failed = m.optimize_failed;
  s.excluded = !opt_range_.contains(method_hash(m.info));
  s.instructions = m.instructions;
  s.loops = m.loop_count;
  s.optimized_versions = m.optimized_versions;
  if (note.loop < m.loop_count) {
    s.at_loop = LoopId(note.loop);
    s.osr_requested = m.osr_requested[note.loop];
    const auto& entries = in_host ? m.osr_from_host : m.osr;
    s.osr_ready = entries[note.loop].load(std::memory_order_relaxed) != nullptr;
  }
  Totals t = totals(m);
  s.calls = t.calls;
  s.samples = t.sampled_calls + t.bursts;
  s.iterations = t.iterations;
  MethodProfile p = profile_of(m);
  for (size_t i = 0; i < p.counts.size(); ++i) s.sampled_work += p.counts[i] * m.block_weights[i];
  bool prime = options_.gap == GapMode::kPrime;
  auto interval = static_cast<uint32_t>(options_.interval);
  s.sampled_share = 1.0 / (prime ? sampler::nearest_prime(interval) : interval);
  return s;
}

Decision Observer::ask(Method& m, const sampler::Note& note, const SystemSnapshot& system) {
  MethodSnapshot s = snapshot(m, note);
  Decision d = decide(s, system, policy_);
  // Threads may come and go for ever: that nothing follows from it is not worth a record.
  bool goes = note.kind == sampler::NoteKind::kFlushFinal;
  if (goes && d.action == Action::kKeep) return d;
  DecisionRecord r;
  r.sequence = decisions_.size() + 1;
  r.method = m.id;
  r.method_name = m.info.name;
  r.action = action_name(d.action);
  if (d.osr_loop.valid()) r.action += " osr:" + std::to_string(d.osr_loop.index());
  r.reason = d.reason;
  r.calls = s.calls;
  r.samples = s.samples;
  r.loop_iterations = s.iterations;
  r.priority = d.priority;
  decisions_.push_back(std::move(r));
  return d;
}

}  // namespace uptier::tiering
