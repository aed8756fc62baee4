#include "tiering/policy/replay.h"

#include <charconv>
#include <cstdio>
#include <set>
#include <type_traits>

namespace uptier::tiering {
namespace {

// The one list of fields, for writing and reading: f(name, field).
template <typename M, typename S, typename F>
void each_field(M& m, S& s, F f) {
  f("tier", m.tier);
  f("optimized_requested", m.optimized_requested);
  f("osr_requested", m.osr_requested);
  f("osr_ready", m.osr_ready);
  f("can_instrument", m.can_instrument);
  f("failed", m.failed);
  f("excluded", m.excluded);
  f("guard_banned", m.guard_banned);
  f("instructions", m.instructions);
  f("loops", m.loops);
  f("optimized_versions", m.optimized_versions);
  f("drift", m.drift);
  f("drift_samples", m.drift_samples);
  f("version_calls", m.version_calls);
  f("drift_versions", m.drift_versions);
  f("phase_drift", m.phase_drift);
  f("phase_drifts", m.phase_drifts);
  f("slower_calls", m.slower_calls);
  f("at_loop", m.at_loop);
  f("calls", m.calls);
  f("samples", m.samples);
  f("iterations", m.iterations);
  f("sampled_work", m.sampled_work);
  f("sampled_share", m.sampled_share);
  f("saved_work", m.saved_work);
  f("saved_samples", m.saved_samples);
  f("behind_work", m.behind_work);
  f("osr_elsewhere", m.osr_elsewhere);
  f("queue_length", s.queue_length);
  f("code_budget_spent", s.code_budget_spent);
  f("rate_ns", s.compile_ns);
  f("speedup", s.speedup);
  f("baseline_ns", s.baseline_ns);
}

template <typename E, typename F>
void each_field(E& e, F f) {
  f("exits", e.exits);
  f("retries", e.retries);
  f("in_loop", e.in_loop);
  f("declared", e.declared);
}

template <typename T, typename F>
void each_trial_field(T& t, F f) {
  f("before_samples", t.before_samples);
  f("now_samples", t.now_samples);
  f("before_cycles", t.before_cycles);
  f("now_cycles", t.now_cycles);
  f("z", t.z);
  f("tiers", t.tiers);
}

template <typename V, typename F>
void each_value_field(V& v, F f) {
  f("value_samples", v.samples);
  f("seen", v.seen);
  f("param", v.param);
  f("value", v.value);
  f("retries", v.retries);
  f("past_ns", v.past_ns);
  f("cost_ns", v.cost_ns);
  f("speedup", v.speedup);
}

template <typename S, typename F>
void each_site_field(S& s, F f) {
  f("site_samples", s.samples);
  f("seen", s.seen);
  f("value", s.value);
  f("min", s.min);
  f("max", s.max);
  f("site", s.site);
  f("wide", s.wide);
}

template <typename G, typename F>
void each_guard_field(G& g, F f) {
  f("window", g.window);
  f("misses", g.misses);
  f("retries", g.retries);
}

struct Writer {
  std::string text;

  template <typename T>
  void operator()(const char* name, const T& v) {
    if (!text.empty()) text += ' ';
    text += name;
    text += '=';
    if constexpr (std::is_same_v<T, double>) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.17g", v);
      text += digits;
    } else if constexpr (std::is_same_v<T, LoopId>) {
      text += v.valid() ? std::to_string(v.index()) : "-";
    } else if constexpr (std::is_same_v<T, int64_t>) {
      text += std::to_string(v);
    } else {
      text += std::to_string(static_cast<uint64_t>(v));
    }
  }
};

template <typename T>
bool parse(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_value(std::string_view text, double& out) { return parse(text, out); }
bool read_value(std::string_view text, LoopId& out) {
  uint32_t index = 0;
  out = LoopId::none();
  if (text == "-") return true;
  if (!parse(text, index) || index == UINT32_MAX) return false;
  out = LoopId(index);
  return true;
}
bool read_value(std::string_view text, bool& out) {
  out = text == "1";
  return out || text == "0";
}
bool read_value(std::string_view text, Tier& out) {
  uint8_t tier = 0;
  if (!parse(text, tier) || tier > static_cast<uint8_t>(Tier::kOptimized)) return false;
  out = static_cast<Tier>(tier);
  return true;
}
bool read_value(std::string_view text, uint32_t& out) { return parse(text, out); }
bool read_value(std::string_view text, int64_t& out) { return parse(text, out); }
bool read_value(std::string_view text, uint64_t& out) { return parse(text, out); }

// Says whether a field may be missing, because older logs do not have it.
bool came_later(std::string_view name) {
  return name == "phase_drift" || name == "phase_drifts" || name == "behind_work" ||
         name == "osr_elsewhere";
}

// Called for each field; sets the one called `name`.
struct Setter {
  std::string_view name, value;
  bool known = false, good = false;

  template <typename T>
  void operator()(const char* field, T& v) {
    if (name != field) return;
    known = true;
    good = read_value(value, v);
  }
};

// `fields(f)` calls f for each field.
template <typename Fields>
Status read_fields(std::string_view text, Fields fields) {
  auto bad = [](std::string_view name, const char* what) {
    return Error{ErrorCode::kInvalidInput, "inputs: " + std::string(name) + ": " + what};
  };
  std::set<std::string_view> seen;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    size_t equals = word.find('=');
    if (equals == word.npos) return bad(word, "has no value");
    Setter setter{word.substr(0, equals), word.substr(equals + 1)};
    fields(setter);
    if (!setter.known) return bad(setter.name, "there is no such field");
    if (!setter.good) return bad(setter.name, "no value of this field");
    if (!seen.insert(setter.name).second) return bad(setter.name, "given twice");
  }
  std::string missing;
  auto look = [&](const char* name, auto&) {
    if (missing.empty() && !seen.contains(name) && !came_later(name)) missing = name;
  };
  fields(look);
  if (!missing.empty()) return bad(missing, "missing");
  return {};
}

}  // namespace

std::string inputs_text(const MethodSnapshot& m, const SystemSnapshot& s) {
  Writer w;
  each_field(m, s, [&](const char* name, const auto& v) { w(name, v); });
  return w.text;
}

std::string inputs_text(const ExitSnapshot& e) {
  Writer w;
  each_field(e, [&](const char* name, const auto& v) { w(name, v); });
  return w.text;
}

std::string inputs_text(const TrialSnapshot& t) {
  Writer w;
  each_trial_field(t, [&](const char* name, const auto& v) { w(name, v); });
  return w.text;
}

std::string inputs_text(const ValueSnapshot& v) {
  Writer w;
  each_value_field(v, [&](const char* name, const auto& x) { w(name, x); });
  return w.text;
}

std::string inputs_text(const GuardSnapshot& g) {
  Writer w;
  each_guard_field(g, [&](const char* name, const auto& x) { w(name, x); });
  return w.text;
}

std::string inputs_text(const SiteSnapshot& s) {
  Writer w;
  each_site_field(s, [&](const char* name, const auto& x) { w(name, x); });
  return w.text;
}

Status read_inputs(std::string_view text, SiteSnapshot& s) {
  return read_fields(
      text, [&](auto& f) { each_site_field(s, [&](const char* name, auto& v) { f(name, v); }); });
}

Status read_inputs(std::string_view text, ValueSnapshot& s) {
  return read_fields(
      text, [&](auto& f) { each_value_field(s, [&](const char* name, auto& v) { f(name, v); }); });
}

Status read_inputs(std::string_view text, GuardSnapshot& s) {
  return read_fields(
      text, [&](auto& f) { each_guard_field(s, [&](const char* name, auto& v) { f(name, v); }); });
}

Status read_inputs(std::string_view text, TrialSnapshot& t) {
  return read_fields(
      text, [&](auto& f) { each_trial_field(t, [&](const char* name, auto& v) { f(name, v); }); });
}

Status read_inputs(std::string_view text, MethodSnapshot& m, SystemSnapshot& s) {
  return read_fields(
      text, [&](auto& f) { each_field(m, s, [&](const char* name, auto& v) { f(name, v); }); });
}

Status read_inputs(std::string_view text, ExitSnapshot& e) {
  return read_fields(
      text, [&](auto& f) { each_field(e, [&](const char* name, auto& v) { f(name, v); }); });
}

Decision follow(Policy& policy, const MethodSnapshot& m, const SystemSnapshot& s,
                const PolicyOptions& o) {
  Decision d = policy.decide(m, s, o);
  bool compiles = d.action == Action::kRecompile || d.action == Action::kSpecialize;
  if (!compiles && d.action != Action::kKeep) d.reason = "not for a policy: " + d.reason;
  if (compiles) {
    bool elsewhere = d.osr_loop.valid() && d.osr_loop != m.at_loop;
    const char* why = elsewhere ? "the thread is not at that loop" : obstacle(m, s, o, d.osr_loop);
    if (why == nullptr) return d;
    d.reason = std::string(why) + ": " + d.reason;
  }
  d.action = Action::kKeep;
  d.osr_loop = LoopId::none();
  d.priority = 0;
  return d;
}

std::string logged_action(const Decision& d) {
  std::string action = action_name(d.action);
  if (d.osr_loop.valid()) action += " osr:" + std::to_string(d.osr_loop.index());
  return action;
}

namespace {

// `decide` is a decision function of one snapshot. If the recorded reason begins with the exit or
// guard, that prefix is kept.
template <typename Snapshot, typename Decide>
Result<DecisionRecord> decide_again(const DecisionRecord& r, Decide decide) {
  Snapshot snapshot;
  if (Status s = read_inputs(r.inputs, snapshot); !s) return s.error();
  auto d = decide(snapshot);
  DecisionRecord again = r;
  again.action = action_name(d.action);
  size_t prefix = r.reason.find(": ");
  bool named = r.reason.starts_with("exit at ") || r.reason.starts_with("guard of ");
  again.reason =
      (named && prefix != r.reason.npos ? r.reason.substr(0, prefix + 2) : "") + d.reason;
  return again;
}

}  // namespace

}  // namespace uptier::tiering

namespace uptier {

Result<DecisionRecord> replay(const DecisionRecord& r, const PolicyOptions& o, Policy* policy) {
  using namespace tiering;
  if (r.inputs.starts_with("exits=")) {
    return decide_again<ExitSnapshot>(r, [&](auto& e) { return decide_exit(e, o); });
  }
  if (r.inputs.starts_with("before_samples=")) {
    return decide_again<TrialSnapshot>(r, [&](auto& t) { return decide_trial(t, o); });
  }
  if (r.inputs.starts_with("value_samples=")) {
    return decide_again<ValueSnapshot>(r, [&](auto& v) { return decide_value(v, o); });
  }
  if (r.inputs.starts_with("site_samples=")) {
    return decide_again<SiteSnapshot>(r, [&](auto& s) { return decide_site(s, o); });
  }
  if (r.inputs.starts_with("window=")) {
    return decide_again<GuardSnapshot>(r, [&](auto& g) { return decide_guard(g, o); });
  }
  DecisionRecord again = r;
  MethodSnapshot m;
  SystemSnapshot s;
  if (Status status = read_inputs(r.inputs, m, s); !status) return status.error();
  Decision d = policy == nullptr ? decide(m, s, o) : follow(*policy, m, s, o);
  again.action = logged_action(d);
  again.reason = d.reason;
  again.priority = d.priority;
  return again;
}

}  // namespace uptier
