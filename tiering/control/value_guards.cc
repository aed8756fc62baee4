#include "tiering/control/value_guards.h"

#include <algorithm>
#include <cassert>

#include "tiering/policy/value_policy.h"

namespace uptier::tiering {
namespace {

// The largest number of parameters that one guard compares.
constexpr size_t kMostGuarded = 2;

uint64_t bits_of(Type t, int64_t value) {
  return is_wide(t) ? static_cast<uint64_t>(value) : static_cast<uint32_t>(value);
}

std::string values_text(const Version& v) {
  std::string text;
  for (const jit::ParamValue& p : v.values) {
    if (!text.empty()) text += ", ";
    text += std::to_string(p.param + 1);
  }
  return text;
}

bool may_have_value_version(const Method& m) UPTIER_REQUIRES(state_lock) {
  const Version* v = m.optimized.load(std::memory_order_relaxed);
  bool general = usable(v) && v->code != nullptr && v->general == nullptr;
  return general && m.optimizing->trial.load(std::memory_order_relaxed) == nullptr &&
         !m.optimized_requested && !m.removed && !m.guard_banned && !m.info.own_code;
}

// Returns the profile of a parameter, from this run or an earlier one.
ValueSnapshot value_snapshot(const Method& m, const MethodProfile& seen, const jit::ParamSite& site,
                             const PolicyOptions& policy) {
  ValueSnapshot s;
  s.param = site.param;
  s.retries = m.value_versions->retries;
  auto take = [&](const MethodProfile& p) {
    std::optional<ProfileAnswer> a = uptier::query(p, SlotKind::kValue, site.site);
    const auto* values = a ? std::get_if<ValuesAnswer>(&a->what) : nullptr;
    if (values == nullptr || values->values.empty() || values->range.count < s.samples) return;
    s.samples = values->range.count;
    s.value = values->values.front().value;
    s.seen = std::min(values->values.front().count, s.samples);  // a saved file may contain
                                                                 // anything
  };
  take(seen);
  if (m.saved != nullptr && s.samples < policy.value_samples) take(m.saved->profile);
  return s;
}

}  // namespace

ValueGuards::ValueGuards(const Parts& p)
    : options_(p.options),
      live_(p.live),
      policy_(p.policy),
      stress_(p.stress),
      observer_(p.observer),
      requests_(p.requests),
      system_(p.system),
      trials_(p.trials),
      in_service_(p.in_service) {}

// ---- Choosing values --------------------------------------------------------------------------

void ValueGuards::consider_values(Method& m) {
  if (stress_.active(StressKind::kValues)) return force_values(m);
  const ValueVersions& known = *m.value_versions;
  bool asks = live_.value_versions && options_.tier == TierMode::kAuto &&
              policy_.mode != PolicyMode::kNever && !known.sites.empty() && !known.banned;
  if (!asks || !may_have_value_version(m)) return;
  ValueVersions& sp = m.value_versions.own();
  if (system_.budget_spent()) return;
  MethodProfile seen = observer_.estimates.profile_of(m);
  std::vector<jit::ParamValue> wanted;
  double priority = 0;
  for (const jit::ParamSite& site : sp.sites) {
    if (wanted.size() == kMostGuarded || !jit::can_guard(m.info.signature, site.param)) continue;
    ValueSnapshot s = value_snapshot(m, seen, site, policy_);
    jit::ParamValue value{site.param, bits_of(m.info.signature.params[site.param], s.value)};
    if (std::ranges::find(sp.refused, value) != sp.refused.end()) continue;
    SystemSnapshot system = system_.snapshot(m);
    PolicyOptions o = policy_;
    if (system.baseline_ns > 0) o.baseline_ns = system.baseline_ns;
    s.past_ns = past_ns(observer_.advisor.snapshot_of(m), o);
    double rate = system.compile_ns > 0 ? system.compile_ns : policy_.compile_ns;
    s.cost_ns = m.shape->instructions * rate * (1.0 + system.queue_length / 64.0);
    s.speedup = system.speedup;
    Decision d = decide_value(s, policy_);
    // A decision to do nothing is not worth a record.
    if (d.action == Action::kKeep) continue;
    observer_.decisions.log(m, s, policy_);
    if (d.action == Action::kBan) {
      sp.banned = true;
      return;
    }
    wanted.push_back(value);
    priority += d.priority;
  }
  if (wanted.empty()) return;
  assert(wanted.size() <= kMostGuarded);
  sp.wanted = std::move(wanted);
  requests_.add(m,
                {.method = m.id, .tier = Tier::kOptimized, .use_profile = true, .for_values = true},
                priority);
}

// With stress, makes a version for values that may be wrong: small ones, so that some are right.
void ValueGuards::force_values(Method& m) {
  if (m.value_versions->forced || !may_have_value_version(m)) return;
  m.value_versions.own().forced = true;
  if (!stress_.point(StressKind::kValues)) return;
  constexpr int64_t kGuesses[] = {0, 1, 2, -1, 3, 10, 7};
  uint64_t guess = stress_.points(StressKind::kValues) + m.id.index();
  std::vector<jit::ParamValue>& wanted = m.value_versions.own().wanted;
  wanted.clear();
  const std::vector<Type>& params = m.info.signature.params;
  for (uint32_t k = 0; k < params.size() && wanted.size() < 1 + guess % kMostGuarded; ++k) {
    bool integer = params[k] == Type::kI32 || params[k] == Type::kI64;
    if (!integer || !jit::can_guard(m.info.signature, k)) continue;
    wanted.push_back({k, bits_of(params[k], kGuesses[guess++ % std::size(kGuesses)])});
  }
  if (wanted.empty()) return;
  m.wake_after_call.store(true, std::memory_order_relaxed);
  requests_.add(
      m, {.method = m.id, .tier = Tier::kOptimized, .use_profile = true, .for_values = true}, 1e18);
}

// ---- In service -------------------------------------------------------------------------------

void ValueGuards::install(Method& m, Version& v) {
  bool beside = v.general != nullptr && m.optimized.load(std::memory_order_relaxed) == v.general;
  if (!beside) return in_service_.give_up(v, OsrOut::kNewer);
  trials_.abandon(m);
  assert(!v.values.empty() && !v.general->freed);
  m.value_versions.own().limit = ValueVersions::kFirstLimit;
  m.optimized.store(&v, std::memory_order_release);
  trials_.begin(m, v.general, v);
  bool on_trial = m.optimizing->trial.load(std::memory_order_relaxed) != nullptr;
  if (on_trial) {
    m.value_versions.own().in_window = false;
    v.guard_words.misses = INT32_MAX;
    in_service_.link_locked(m);
  } else {
    begin_window(m);
  }
  in_service_.reclaim_locked();
}

void ValueGuards::begin_window(Method& m) {
  auto& v = *const_cast<Version*>(m.optimized.load(std::memory_order_relaxed));
  m.value_versions.own().in_window = true;
  assert(v.general != nullptr && !v.retired);
  exchange_word(v.guard_words.misses, INT32_MAX);
  exchange_word(v.guard_words.calls, ValueVersions::kWindow);
  in_service_.link_locked(m);
}

void ValueGuards::watch_quietly(Method& m, Version& v) {
  m.value_versions.own().in_window = false;
  assert(m.value_versions->limit >= ValueVersions::kFirstLimit &&
         m.value_versions->limit <= ValueVersions::kMostLimit);
  exchange_word(v.guard_words.misses, m.value_versions->limit);
  m.value_versions.own().limit = std::min(2 * m.value_versions->limit, ValueVersions::kMostLimit);
  in_service_.link_locked(m);
}

void ValueGuards::consider_guard(Method& m) {
  auto* v = const_cast<Version*>(m.optimized.load(std::memory_order_relaxed));
  bool serves = usable(v) && v->general != nullptr && !m.removed &&
                m.optimizing->trial.load(std::memory_order_relaxed) == nullptr;
  if (!serves) return;
  ValueVersions& sp = m.value_versions.own();
  if (!sp.in_window) {
    sp.missed += static_cast<uint64_t>(std::max(sp.limit / 2, 1));
    return begin_window(m);
  }
  GuardSnapshot g{ValueVersions::kWindow, 0, sp.retries};
  int32_t left = load_word(v->guard_words.misses);
  g.misses = std::min<uint64_t>(g.window, static_cast<uint64_t>(INT32_MAX - std::max(left, 0)));
  sp.missed += g.misses;
  Decision d = decide_guard(g, policy_);
  if (d.action == Action::kKeep) return watch_quietly(m, *v);
  observer_.decisions.log(m, g, policy_, "guard of parameter " + values_text(*v) + " (value): ");
  // With stress, versions stay, right or wrong, so that their guards are exercised.
  if (stress_.active(StressKind::kValues)) return watch_quietly(m, *v);
  take_back(m, d.action == Action::kBan);
}

void ValueGuards::take_back(Method& m, bool banned) {
  auto* v = const_cast<Version*>(m.optimized.load(std::memory_order_relaxed));
  ValueVersions& sp = m.value_versions.own();
  assert(v->general != nullptr && !v->general->freed);
  sp.refused.insert(sp.refused.end(), v->values.begin(), v->values.end());
  sp.banned |= banned;
  ++sp.retries;
  sp.in_window = false;
  m.optimized.store(v->general, std::memory_order_release);
  in_service_.link_locked(m);
  in_service_.give_up(*v, OsrOut::kNewer);
  in_service_.reclaim_locked();
}

}  // namespace uptier::tiering
