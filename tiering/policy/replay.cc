#include "tiering/policy/replay.h"

#include <charconv>
#include <cstdio>
#include <set>
#include <type_traits>
#include <utility>

#include "tiering/policy/snapshot_fields.h"

namespace uptier::tiering {
namespace {

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

// Calls f(name, value) for each field of some structures.
template <typename F, typename... S>
void each_value(F f, S&... of) {
  (each_field<std::remove_const_t<S>>([&](const auto& x) { f(x.name, of.*x.member); }), ...);
}

template <typename... S>
std::string text_of_fields(const S&... of) {
  Writer w;
  each_value([&](const char* name, const auto& v) { w(name, v); }, of...);
  return std::move(w.text);
}

template <typename... S>
Status read_fields(std::string_view text, S&... to) {
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
    each_value([&](const char* name, auto& v) { setter(name, v); }, to...);
    if (!setter.known) return bad(setter.name, "there is no such field");
    if (!setter.good) return bad(setter.name, "no value of this field");
    if (!seen.insert(setter.name).second) return bad(setter.name, "given twice");
  }
  std::string missing;
  auto look = [&](const char* name, auto&) {
    if (missing.empty() && !seen.contains(name) && !came_later(name)) missing = name;
  };
  each_value(look, to...);
  if (!missing.empty()) return bad(missing, "missing");
  return {};
}

}  // namespace

std::string inputs_text(const MethodSnapshot& m, const SystemSnapshot& s) {
  return text_of_fields(m, s);
}
std::string inputs_text(const ExitSnapshot& e) { return text_of_fields(e); }
std::string inputs_text(const TrialSnapshot& t) { return text_of_fields(t); }
std::string inputs_text(const ValueSnapshot& v) { return text_of_fields(v); }
std::string inputs_text(const GuardSnapshot& g) { return text_of_fields(g); }
std::string inputs_text(const SiteSnapshot& s) { return text_of_fields(s); }

Status read_inputs(std::string_view text, MethodSnapshot& m, SystemSnapshot& s) {
  return read_fields(text, m, s);
}
Status read_inputs(std::string_view text, ExitSnapshot& e) { return read_fields(text, e); }
Status read_inputs(std::string_view text, TrialSnapshot& t) { return read_fields(text, t); }
Status read_inputs(std::string_view text, ValueSnapshot& v) { return read_fields(text, v); }
Status read_inputs(std::string_view text, GuardSnapshot& g) { return read_fields(text, g); }
Status read_inputs(std::string_view text, SiteSnapshot& s) { return read_fields(text, s); }

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
