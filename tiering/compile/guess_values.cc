#include "tiering/compile/guess_values.h"

#include <algorithm>
#include <cassert>

#include "jit/code/routines.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/value_policy.h"
#include "uptier/profile_query.h"

namespace uptier::tiering {
namespace {

void take_site(const MethodProfile& p, const BodySite& site, SiteSnapshot& s) {
  std::optional<ProfileAnswer> a = uptier::query(p, site.kind, site.site);
  if (!a) return;
  const auto* values = std::get_if<ValuesAnswer>(&a->what);
  const auto* only = std::get_if<RangeAnswer>(&a->what);
  const RangeAnswer* range = values != nullptr ? &values->range : only;
  if (range == nullptr || range->count < s.samples) return;
  if (range->min > range->max) return;  // a saved file may contain anything
  s.samples = range->count;
  s.min = range->min;
  s.max = range->max;
  bool one = s.min == s.max;
  s.value = s.min;
  s.seen = one ? s.samples : 0;
  if (one || values == nullptr || values->values.empty()) return;
  s.value = values->values.front().value;
  s.seen = std::min(values->values.front().count, s.samples);
}

// Returns the profile of a value site, from this run or an earlier one.
SiteSnapshot site_snapshot(const Method& m, const MethodProfile& seen, const BodySite& site,
                           const PolicyOptions& o) {
  SiteSnapshot s;
  s.site = site.site;
  s.wide = site.wide;
  take_site(seen, site, s);
  if (m.saved != nullptr && s.samples < o.value_samples) take_site(m.saved->profile, site, s);
  return s;
}

}  // namespace

// With stress, guesses are small values that may be wrong.
std::vector<jit::SiteValues> guess_values(const CompileEnv& env, Method& m, const Plan& plan) {
  std::vector<jit::SiteValues> guesses;
  bool stressed = env.stress.active(StressKind::kValues);
  MethodProfile seen = env.observer.estimates.profile_of(m);
  std::vector<SiteId> kept = m.shape->exits.kept_values(plan.osr_loop.valid());
  for (const BodySite& site : m.value_versions->body_sites) {
    if (std::ranges::find(kept, site.site) != kept.end()) continue;
    if (stressed && env.stress.point(StressKind::kValues)) {
      int64_t guess = site.site % 4;
      guesses.push_back({site.site, guess, site.site % 3 == 0 ? guess + 100 : guess});
      continue;
    }
    SiteSnapshot s = site_snapshot(m, seen, site, env.policy);
    SiteDecision d = decide_site(s, env.policy);
    if (d.action != Action::kSpecialize) continue;
    env.observer.decisions.log(m, s, env.policy);
    assert(d.min <= d.max);
    guesses.push_back({site.site, d.min, d.max});
  }
  return guesses;
}

Status make_guard(const CompileEnv& env, Method& m, Version& v) {
  HeldState lock(env.state_mutex);
  assert(v.general == nullptr && v.code != nullptr);
  const Version* general = m.optimized.load(std::memory_order_relaxed);
  if (!usable(general) || general->general != nullptr) return {};
  Result<jit::ValueGuard> guard =
      jit::make_value_guard(env.space, {.method = m.id,
                                        .signature = m.info.signature,
                                        .values = v.values,
                                        .special = v.code->entry(),
                                        .general = general->entry,
                                        .told = env.routines.guard_slow(),
                                        .words = &v.guard_words});
  if (!guard) return guard.error();
  v.guard = std::move(*guard);
  v.general = general;
  v.entry = v.guard.quiet;
  return {};
}

}  // namespace uptier::tiering
