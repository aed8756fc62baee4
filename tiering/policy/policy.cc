#include "tiering/policy/policy.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "tiering/policy/duration_text.h"

namespace uptier::tiering {
namespace {

double estimated_work(const MethodSnapshot& m) {
  double instructions = m.instructions;
  double unsampled = static_cast<double>(m.calls) * instructions +
                     static_cast<double>(m.iterations) * instructions / (1.0 + m.loops);
  // Without samples, a call is assumed to run every instruction once.
  if (m.samples == 0) return unsampled;
  assert(m.sampled_share > 0);
  return static_cast<double>(m.sampled_work) / m.sampled_share;
}

template <typename... Args>
std::string text(const char* format, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

Decision keep(std::string reason) { return {Action::kKeep, LoopId::none(), 0, std::move(reason)}; }

// Optimized code that was slower is tried again after this many times as many calls.
constexpr uint64_t kSlowerBackOff = 16;

constexpr const char* kOnItsWay = "a baseline version is on its way";

// Returns the reason against any new version, or null.
const char* any_obstacle(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o) {
  if (o.mode == PolicyMode::kNever) return "policy never";
  if (m.excluded) return "outside of opt_range";
  if (m.guard_banned) return "a guard of the host's fails too often";
  if (m.failed) return "an optimizing compilation failed before";
  if (s.code_budget_spent) return "code budget spent";
  return nullptr;
}

// Return the reason against a version for the entry, or for the loop; null if there is none.
const char* entry_obstacle(const MethodSnapshot& m, const PolicyOptions& o) {
  if (m.tier == Tier::kOptimized && m.drift < o.epsilon) return "already optimized";
  if (m.optimized_requested) return "an optimized version is on its way";
  if (m.optimized_versions >= o.max_recompiles) return "recompiled too often";
  if (m.calls / kSlowerBackOff < m.slower_calls) return "optimized code was slower";
  return nullptr;
}

const char* loop_obstacle(const MethodSnapshot& m) {
  if (m.osr_ready) return "the loop can be entered by OSR already";
  if (m.osr_requested) return "an OSR version is on its way";
  return nullptr;
}

// Host code has no cost estimate: it is compiled at its first flush, by loop or by call.
Decision decide_host(const MethodSnapshot& m, const PolicyOptions& o) {
  if (m.at_loop.valid()) {
    if (const char* why = loop_obstacle(m)) return keep(why);
    return {Action::kRecompile, m.at_loop, static_cast<double>(m.iterations) * o.baseline_ns,
            text("host code, %llu iterations", static_cast<unsigned long long>(m.iterations))};
  }
  if (m.optimized_requested) return keep(kOnItsWay);
  return {Action::kRecompile, LoopId::none(), static_cast<double>(m.calls) * o.baseline_ns,
          text("host code, %llu calls", static_cast<unsigned long long>(m.calls))};
}

}  // namespace

double past_ns(const MethodSnapshot& m, const PolicyOptions& o) {
  return std::max(estimated_work(m), static_cast<double>(m.saved_work)) * o.baseline_ns;
}

uint64_t drift_limit(const MethodSnapshot& m, const PolicyOptions& o) {
  return o.drift_samples << std::min(m.drift_versions, 32u);
}

uint64_t exit_limit(const ExitSnapshot& e, const PolicyOptions& o) {
  return (e.in_loop ? o.exit_limit_loop : o.exit_limit) << std::min(e.retries, 32u);
}

ExitDecision decide_exit(const ExitSnapshot& e, const PolicyOptions& o) {
  uint64_t limit = exit_limit(e, o);
  ExitDecision d;
  d.met = e.exits >= limit;
  d.reason = text("%llu exits%s, the limit is %llu after %u retries",
                  static_cast<unsigned long long>(e.exits), e.in_loop ? " in a loop" : "",
                  static_cast<unsigned long long>(limit), e.retries);
  if (!d.met) return d;
  if (e.retries >= o.exit_retries) {
    d.action = Action::kBan;
  } else if (!e.declared) {
    d.action = Action::kRecompile;
  }
  return d;
}

namespace {

// Decides about a method in optimized code whose profile has changed; see (2).
Decision decide_drift(const MethodSnapshot& m, double past, double cost, const PolicyOptions& o) {
  assert(m.tier == Tier::kOptimized && m.drift >= 0 && cost >= 0);
  uint64_t limit = drift_limit(m, o);
  double percent = 100 * m.drift;
  if (m.drift_samples < limit) {
    return keep(text("drift of %.1f %%: %llu samples of the version, %llu needed", percent,
                     static_cast<unsigned long long>(m.drift_samples),
                     static_cast<unsigned long long>(limit)));
  }
  double calls = static_cast<double>(std::max<uint64_t>(m.calls, 1));
  double share = std::min(1.0, static_cast<double>(m.version_calls) / calls);
  double since = past * share / o.speedup;
  double gain = since * m.drift * (1 - 1 / o.speedup);
  bool always = o.mode == PolicyMode::kAlways;
  if (!always && gain <= cost) {
    return keep(text("drift of %.1f %% of %s costs %s, a compilation %s", percent,
                     duration_text(since).c_str(), duration_text(gain).c_str(),
                     duration_text(cost).c_str()));
  }
  Decision d;
  d.action = Action::kSpecialize;
  d.priority = gain - cost;
  d.reason = text("%sdrift of %.1f %% of %s, compile %s, %llu samples, %u times before",
                  always ? "policy always; " : "", percent, duration_text(since).c_str(),
                  duration_text(cost).c_str(), static_cast<unsigned long long>(m.drift_samples),
                  m.drift_versions);
  return d;
}

}  // namespace

Decision decide_trial(const TrialSnapshot& t, const PolicyOptions& o) {
  auto was = static_cast<double>(t.before_cycles), is = static_cast<double>(t.now_cycles);
  bool slower = t.z >= o.trial_z && is > (1 + o.trial_margin) * was;
  if (t.tiers) slower &= t.before_cycles >= kLeastTrialCycles;
  Decision d;
  d.action = slower ? Action::kRollBack : Action::kKeep;
  d.reason =
      text("%s took %llu cycles, %s %llu: z %.2f, %llu and %llu calls",
           t.tiers ? "baseline code" : "the version before",
           static_cast<unsigned long long>(t.before_cycles),
           t.tiers ? "optimized code" : "this one", static_cast<unsigned long long>(t.now_cycles),
           t.z, static_cast<unsigned long long>(t.before_samples),
           static_cast<unsigned long long>(t.now_samples));
  return d;
}

}  // namespace uptier::tiering

namespace uptier {

using namespace tiering;  // the rules above

const char* action_name(Action a) {
  switch (a) {
    case Action::kKeep: return "keep";
    case Action::kRecompile: return "recompile";
    case Action::kSpecialize: return "specialize";
    case Action::kRollBack: return "roll_back";
    case Action::kReInstrument: return "re_instrument";
    case Action::kBan: return "ban";
  }
  return "unknown";
}

PolicyOptions PolicyOptions::from(const Options& o) {
  return {.mode = o.policy,
          .min_samples = o.min_samples,
          .speedup = o.speedup,
          .compile_ns = o.compile_ns,
          .baseline_ns = o.baseline_ns,
          .max_recompiles = o.max_recompiles,
          .exit_limit = o.exit_limit,
          .exit_limit_loop = o.exit_limit_loop,
          .exit_retries = o.exit_retries,
          .drift_samples = o.drift_samples,
          .epsilon = o.epsilon,
          .value_share = o.value_share,
          .value_samples = o.value_samples,
          .miss_share = o.miss_share};
}

const char* obstacle(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o,
                     LoopId loop) {
  if (const char* why = any_obstacle(m, s, o)) return why;
  if (loop.valid()) return loop_obstacle(m);
  if (m.tier == Tier::kHost) return m.optimized_requested ? kOnItsWay : nullptr;
  return entry_obstacle(m, o);
}

Decision decide(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& options) {
  PolicyOptions o = options;
  if (s.speedup > 0) o.speedup = s.speedup;
  if (s.baseline_ns > 0) o.baseline_ns = s.baseline_ns;
  if (const char* why = any_obstacle(m, s, o)) return keep(why);
  if (m.tier == Tier::kHost) return decide_host(m, o);

  double executed = estimated_work(m);
  double saved = static_cast<double>(m.saved_work);
  double past = tiering::past_ns(m, o);
  double rate = s.compile_ns > 0 ? s.compile_ns : o.compile_ns;
  double cost = m.instructions * rate * (1.0 + s.queue_length / 64.0);
  double gain_share = 1.0 - 1.0 / o.speedup;
  double threshold = gain_share > 0 ? cost / gain_share : 1e300;
  bool always = o.mode == PolicyMode::kAlways;

  // In a loop: is the current call alone worth a compilation, or what frames like this one have run
  // since there is better code?
  double per_call = executed * o.baseline_ns / static_cast<double>(std::max<uint64_t>(m.calls, 1));
  double behind = static_cast<double>(m.behind_work) * o.baseline_ns;
  bool served = m.osr_elsewhere && !always;
  double in_frames = served ? behind : std::max(per_call, behind);
  bool in_loop = m.at_loop.valid();
  bool osr = in_loop && (always || in_frames > threshold);
  const char* why = osr ? loop_obstacle(m) : entry_obstacle(m, o);
  if (why != nullptr) return keep(why);
  if (in_loop && served && !osr && per_call > threshold) return keep("OSR at another loop");
  if (m.tier == Tier::kOptimized && !osr) return decide_drift(m, past, cost, o);

  double worth = osr ? in_frames : past;
  if (!always && worth <= threshold) {
    return keep(text("%s so far, worth it from %s", duration_text(worth).c_str(),
                     duration_text(threshold).c_str()));
  }
  uint64_t samples = m.samples + std::min(m.saved_samples, UINT64_MAX - m.samples);
  bool has_profile = samples >= o.min_samples;
  // Baseline code of an optimized method takes no samples any more.
  bool waits = m.can_instrument && m.tier != Tier::kOptimized;
  if (!always && !has_profile && waits) {
    return keep(text("%llu samples, %llu needed", static_cast<unsigned long long>(m.samples),
                     static_cast<unsigned long long>(o.min_samples)));
  }
  Decision d;
  d.action = has_profile ? Action::kSpecialize : Action::kRecompile;
  d.osr_loop = osr ? m.at_loop : LoopId::none();
  d.priority = worth * gain_share - cost;
  bool from_saved = !osr && saved > executed;
  bool left_behind = osr && (served || behind > per_call);
  d.reason = text("%s%s %s, compile %s, %llu samples",
                  left_behind ? "left in baseline code: "
                  : osr       ? "one call: "
                              : "",
                  duration_text(worth).c_str(), from_saved ? "in the saved profile" : "so far",
                  duration_text(cost).c_str(),
                  static_cast<unsigned long long>(from_saved ? samples : m.samples));
  if (always) d.reason = "policy always; " + d.reason;
  return d;
}

}  // namespace uptier
