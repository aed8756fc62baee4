#include "tiering/observer.h"

#include <algorithm>
#include <utility>

#include "profile/data.h"
#include "profile/events.h"
#include "tiering/replay.h"

namespace uptier::tiering {
namespace {

constexpr const char* kGapNames[] = {"random", "fixed", "prime", "exact"};

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

// A body of one block has no copy that samples could run: each of its calls tells all there is.
uint64_t samples_in(const Totals& t, const Method& m) {
  return (m.probes.counts_by_calls() ? t.calls : t.sampled_calls) + t.bursts;
}

FlushReason reason_of(sampler::NoteKind k) {
  switch (k) {
    case sampler::NoteKind::kFlushCalls:
    case sampler::NoteKind::kOptimized: return FlushReason::kCalls;
    case sampler::NoteKind::kFlushIterations: return FlushReason::kLoops;
    case sampler::NoteKind::kFlushFinal: return FlushReason::kFinal;
    default: return FlushReason::kDemand;
  }
}

// With windows of optimized code beside them, those of a stream do not stand for all calls.
bool has_optimized_stream(const Method& m) {
  return !m.streams.empty() && (m.streams.rbegin()->first & kOptimizedStream) != 0;
}

bool is_flush(sampler::NoteKind k) {
  using sampler::NoteKind;
  return k != NoteKind::kWantCopy && k != NoteKind::kWantOsr && k != NoteKind::kTrap &&
         k != NoteKind::kExit;
}

// Ids and handles are numbers of the trace: a method's handle is its index + 1, and the id of what
// a thread saw of it carries both.
uint64_t handle_of(const Method& m) { return uint64_t{m.id.index()} + 1; }
uint64_t stream_id(const Method& m, uint32_t thread) { return handle_of(m) << 32 | thread; }

}  // namespace

Observer::Observer(const Options& options, const sampler::Ladder& ladder, TraceSink* sink)
    : options_(options),
      ladder_(ladder),
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
              " adaptive=" + (options.adaptive ? "on" : "off") +
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

// Returns the handle of a method that the trace has been told of.
uint64_t Observer::announce(Method& m) {
  if (!m.announced) {
    m.announced = true;
    emit(
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
    double iterations = static_cast<double>(t.iterations) / static_cast<double>(options_.burst);
    return counted.coverage.weigh(samples, static_cast<double>(t.calls) + iterations);
  }
  bool shared_countdown = options_.gap == GapMode::kExact;
  uint64_t weight = shared_countdown ? options_.interval : sampler::weight_of({note.rate}, ladder_);
  if (m.probes.counts_by_calls()) weight = 1;
  weight = std::max<uint64_t>(weight, 1);
  counted.coverage.end_window(samples, weight);
  return weight;
}

void Observer::take_trap(Method& m, uint32_t thread, SiteId block, uint64_t frames) {
  Stream& s = m.streams[m.probes.shared() ? 0 : thread];
  if (block == 0) return;
  if (s.traps.size() < block) s.traps.resize(block);
  s.traps[block - 1] += frames;
}

sampler::Verdict Observer::take(Method& m, uint32_t thread, const sampler::Note& note,
                                std::span<const uint64_t> counts) {
  Stream& s = m.streams[thread];
  uint64_t others = 0;
  if (options_.gap == GapMode::kExact) {
    // One countdown for all threads: what the others are not known to have called is this one's.
    for (const auto& [t, other] : m.streams) others += t == thread ? 0 : other.calls;
  }
  // Notes of two threads may arrive in another order than they were taken.
  s.calls = std::max(s.calls, note.calls > others ? note.calls - others : 0);
  bool every_call = note.sampled_calls == note.calls;
  s.sampled_calls = every_call ? s.calls : std::max(s.sampled_calls, note.sampled_calls);
  s.iterations = std::max(s.iterations, note.iterations);
  // A change of rate may take a burst back; what was published stays.
  s.bursts = std::max(s.bursts, note.bursts);

  bool all = m.probes.shared();
  Stream& counted = all ? m.streams[0] : s;
  Totals t = totals(m);
  if (!all) t = {s.calls, s.sampled_calls, s.iterations, s.bursts};
  // What counts by being called is known of every call.
  if (m.probes.counts_by_calls()) t.sampled_calls = t.calls;
  uint64_t samples = t.sampled_calls + t.bursts;
  uint64_t before = counted.coverage.samples;
  uint64_t weight = weight_of(m, note, t, counted);
  counted.mixed |= counted.interval != 0 && counted.interval != weight;
  counted.interval = weight;
  if (counted.words.size() < counts.size()) counted.words.resize(counts.size());
  bool in_order = !m.probes.shared() || options_.narrow_counters;
  for (size_t i = 0; i < counts.size(); ++i) {
    counted.words[i] = in_order ? counts[i] : std::max(counted.words[i], counts[i]);
  }
  auto verdict = end_window(m, counted, t.sampled_calls, samples - std::min(before, samples),
                            weight, sampler::weight_of({note.rate}, ladder_));
  if (!is_flush(note.kind)) return verdict;
  s.flushes++;
  if (sink_ != nullptr && !m.probes.schema().slots.empty()) emit_flush(m, thread, note, weight);
  return verdict;
}

// Brings what was seen up to date with the words.
sampler::Verdict Observer::end_window(Method& m, Stream& counted, uint64_t entries,
                                      uint64_t new_samples, uint64_t weight, uint64_t nominal) {
  const ProbeSet& set = m.probes;
  if (set.schema().slots.empty()) return sampler::Verdict::kMore;
  profile::Observed now = set.read(counted.words, counted.traps, entries, method_at_);
  counted.dual_error = set.dual_error(counted.words);
  set.keep_flow_rising(counted.seen, now);
  size_t blocks = std::min(m.block_weights.size(), now.counts.size());
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
  return m.convergence.add(w);
}

void Observer::emit_flush(Method& m, uint32_t thread, const sampler::Note& note, uint64_t weight) {
  const ProbeSet& set = m.probes;
  announce(m);
  uint32_t number = set.shared() ? 0 : thread;
  Stream& counted = m.streams[number];
  Totals t = totals(m);
  const Stream& s = m.streams[thread];
  if (!set.shared()) t = {s.calls, s.sampled_calls, s.iterations, s.bursts};
  if (set.counts_by_calls()) t.sampled_calls = t.calls;
  if (set.shared()) counted.flushes++;
  uint64_t id = stream_id(m, number);
  bool stretches = options_.adaptive && !has_optimized_stream(m);
  if (!counted.described) emit(profile::make_desc(id, handle_of(m), set.schema()));
  counted.described = true;
  // Callees are announced before the data that names them.
  std::vector<uint64_t> words = profile::data_words(
      set.schema(), counted.seen.counts, counted.seen.tables, [&](const MethodKey& key) {
        auto at = by_key_.find(key);
        return at == by_key_.end() ? 0 : announce(*at->second);
      });
  emit(FlushEvent{id, t.calls, t.sampled_calls, number, counted.flushes, reason_of(note.kind),
                  weight, t.iterations, t.bursts, stretches ? options_.burst : 0});
  emit(profile::make_data(id, words));
}

// By how much the estimates of a stream fall short of all that ran, because sampling paused.
double Observer::stretch_of(const Method& m, const Stream& s) const {
  if (!options_.adaptive || m.probes.counts_by_calls() || has_optimized_stream(m)) return 1;
  bool all = m.probes.shared();
  Totals t = all ? totals(m) : Totals{s.calls, s.sampled_calls, s.iterations, s.bursts};
  return s.coverage.stretch(t.calls, t.iterations, options_.burst);
}

MethodProfile Observer::profile_of(const Method& m) const {
  Profile sum;
  bool mixed = false;
  uint64_t interval = 0;
  for (const auto& [thread, s] : m.streams) {
    MethodProfile p;
    p.key = m.info.key;
    p.name = m.info.name;
    p.schema = m.probes.schema();
    profile::Observed seen = s.seen;
    profile::stretch(p.schema, seen, stretch_of(m, s));
    p.counts = std::move(seen.counts);
    p.estimates = std::move(seen.estimates);
    p.tables = std::move(seen.tables);
    p.counts.resize(p.schema.words());
    p.estimates.resize(p.schema.words());
    p.calls = s.calls;
    p.sampled_calls = s.sampled_calls;
    p.iterations = s.iterations;
    p.bursts = s.bursts;
    mixed |= s.mixed || (interval != 0 && s.interval != 0 && s.interval != interval);
    if (s.interval != 0) interval = s.interval;
    Profile one;
    one.methods.emplace(p.key, std::move(p));
    merge(sum, one);
  }
  if (sum.methods.empty()) {
    MethodProfile none;
    none.key = m.info.key;
    none.name = m.info.name;
    none.schema = m.probes.schema();
    none.counts.resize(none.schema.words());
    none.estimates.resize(none.schema.words());
    return none;
  }
  MethodProfile p = std::move(sum.methods.begin()->second);
  p.interval = mixed ? 0 : interval;
  return p;
}

std::vector<uint64_t> Observer::block_estimates(const Method& m) const {
  Totals t = totals(m);
  if (samples_in(t, m) < options_.min_samples && m.saved == nullptr) return {};
  std::vector<uint64_t> counts(m.block_weights.size());
  bool empty = true;
  if (m.saved != nullptr) {
    std::vector<double> saved(counts.size());
    add_saved(m, saved);
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] = static_cast<uint64_t>(std::min(saved[i], 0x1p62));
      empty &= counts[i] == 0;
    }
  }
  for (const auto& [thread, s] : m.streams) {
    for (size_t i = 0; i < std::min(counts.size(), s.seen.estimates.size()); ++i) {
      counts[i] += s.seen.estimates[i];
      empty &= counts[i] == 0;
    }
  }
  return empty ? std::vector<uint64_t>{} : counts;
}

std::vector<Observer::Targets> Observer::targets_of(const Method& m) const {
  std::map<SiteId, Targets> sites;
  std::map<SiteId, std::map<Method*, uint64_t>> counts;
  auto add = [&](SiteId site, const Table& table, double factor) {
    for (const auto& [key, entry] : table) {
      auto count = static_cast<uint64_t>(factor * static_cast<double>(entry.estimate));
      sites[site].total += count;
      auto at = by_key_.find({key.module_key, static_cast<uint32_t>(key.value)});
      if (at != by_key_.end()) counts[site][at->second] += count;
    }
  };
  for (const auto& [thread, s] : m.streams) {
    for (const Slot& slot : m.probes.schema().slots) {
      if (slot.kind != SlotKind::kCallTarget || slot.word >= s.seen.estimates.size()) continue;
      sites[slot.site].total += s.seen.estimates[slot.word + slot_word::kTargetOther];
      auto table = s.seen.tables.find({slot.kind, slot.site});
      if (table != s.seen.tables.end()) add(slot.site, table->second, 1);
    }
  }
  if (m.saved != nullptr) {
    for (const auto& [at, table] : m.saved->profile.tables) {
      if (at.first == SlotKind::kCallTarget) add(at.second, table, saved_factor(*m.saved));
    }
  }
  std::vector<Targets> out;
  for (auto& [site, t] : sites) {
    t.site = site;
    t.methods.assign(counts[site].begin(), counts[site].end());
    std::sort(t.methods.begin(), t.methods.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first->id.index() < b.first->id.index();
    });
    out.push_back(std::move(t));
  }
  return out;
}

uint64_t Observer::samples_of(const Method& m) const { return samples_in(totals(m), m); }

// The saved profile is a stream that ended before this process began: of one run of it,
// profile_decay counts, so that what this one sees soon outweighs it.
double Observer::saved_factor(const SavedMethod& saved) const {
  return std::max(options_.profile_decay, 1e-6) / saved.runs;
}

void Observer::add_saved(const Method& m, std::vector<double>& blocks) const {
  if (m.saved == nullptr) return;
  double factor = saved_factor(*m.saved);
  const MethodProfile& p = m.saved->profile;
  for (const Slot& slot : p.schema.slots) {
    if (slot.kind != SlotKind::kBlock || slot.site > blocks.size()) continue;
    blocks[slot.site - 1] += factor * static_cast<double>(p.estimates[slot.word]);
  }
}

double Observer::mass_of(const Method& m) const {
  double sum = 0;
  for (const auto& [thread, s] : m.streams) {
    for (size_t i = 0; i < std::min(m.block_weights.size(), s.seen.estimates.size()); ++i) {
      sum += static_cast<double>(s.seen.estimates[i]);
    }
  }
  return sum;
}

double Observer::target_mass_of(const Method& m) const {
  double sum = 0;
  for (const auto& [thread, s] : m.streams) {
    for (const auto& [at, table] : s.seen.tables) {
      if (at.first != SlotKind::kCallTarget) continue;
      for (const auto& [key, entry] : table) sum += static_cast<double>(entry.estimate);
    }
  }
  return sum;
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
  s.guard_banned = m.guard_banned;
  s.excluded = !opt_range_.contains(method_hash(m.info));
  s.instructions = m.instructions;
  s.loops = m.loop_count;
  s.optimized_versions = m.optimized_versions;
  const OptimizedCopy& o = m.optimized_copy;
  s.drift = o.drift;
  s.drift_samples = o.samples;
  s.drift_versions = m.drift_versions;
  if (note.loop < m.loop_count) {
    s.at_loop = LoopId(note.loop);
    s.osr_requested = m.osr_requested[note.loop];
    const auto& entries = in_host ? m.osr_from_host : m.osr;
    s.osr_ready = entries[note.loop].load(std::memory_order_relaxed) != nullptr;
  }
  Totals t = totals(m);
  s.calls = t.calls;
  s.version_calls = s.calls - std::min(s.calls, o.calls_before);
  s.samples = samples_in(t, m);
  s.iterations = t.iterations;
  // Estimates stand for all that ran, so nothing is left to scale.
  s.sampled_share = 1;
  for (const auto& [thread, stream] : m.streams) {
    size_t blocks = std::min(m.block_weights.size(), stream.seen.estimates.size());
    double work = 0;
    for (size_t i = 0; i < blocks; ++i) {
      work += static_cast<double>(stream.seen.estimates[i]) * m.block_weights[i];
    }
    s.sampled_work += static_cast<uint64_t>(std::min(work * stretch_of(m, stream), 0x1p62));
  }
  if (m.saved != nullptr) {
    const MethodProfile& p = m.saved->profile;
    double work = 0;
    for (const Slot& slot : p.schema.slots) {
      if (slot.kind != SlotKind::kBlock || slot.site > m.block_weights.size()) continue;
      work += static_cast<double>(p.estimates[slot.word]) * m.block_weights[slot.site - 1];
    }
    s.saved_work = static_cast<uint64_t>(std::min(work / m.saved->runs, 0x1p62));
    s.saved_samples = p.sampled_calls + std::min(p.bursts, UINT64_MAX - p.sampled_calls);
  }
  return s;
}

Decision Observer::ask_saved(Method& m, const SystemSnapshot& system) {
  sampler::Note none;
  none.loop = UINT32_MAX;
  none.kind = sampler::NoteKind::kFlushFinal;  // that nothing follows is not worth a record
  return ask(m, none, system);
}

Decision Observer::ask(Method& m, const sampler::Note& note, const SystemSnapshot& system) {
  MethodSnapshot s = snapshot(m, note);
  Decision d = decide(s, system, policy_);
  // Threads may come and go for ever: that nothing follows from it is not worth a record.
  bool goes = note.kind == sampler::NoteKind::kFlushFinal;
  if (goes && d.action == Action::kKeep) return d;
  // Nor is it at every window.
  OptimizedCopy& o = m.optimized_copy;
  bool window = note.kind == sampler::NoteKind::kOptimized && d.action == Action::kKeep;
  if (window && std::exchange(o.told, true)) return d;
  DecisionRecord r;
  r.sequence = decisions_.size() + 1;
  r.method = m.id;
  r.method_name = m.info.name;
  r.action = logged_action(d);
  r.inputs = inputs_text(s, system);
  r.reason = d.reason;
  r.calls = s.calls;
  r.samples = s.samples;
  r.loop_iterations = s.iterations;
  r.priority = d.priority;
  decisions_.push_back(std::move(r));
  return d;
}

void Observer::log(const Method& m, std::string action, std::string reason, std::string inputs) {
  Totals t = totals(m);
  DecisionRecord r;
  r.sequence = decisions_.size() + 1;
  r.method = m.id;
  r.method_name = m.info.name;
  r.action = std::move(action);
  r.reason = std::move(reason);
  r.inputs = std::move(inputs);
  r.calls = t.calls;
  r.samples = t.sampled_calls + t.bursts;
  r.loop_iterations = t.iterations;
  decisions_.push_back(std::move(r));
}

}  // namespace uptier::tiering
