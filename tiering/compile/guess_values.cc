// What a version may take for granted of values, by the profile: those inside of its body, where it
// leaves if they are others; and parameters, by a guard in front of it.
#include <algorithm>

#include "tiering/compile/method_compiler.h"
#include "tiering/policy/replay.h"

namespace uptier::tiering {
namespace {

void take_site(const MethodProfile& p, const BodySite& site, SiteSnapshot& s) {
  std::optional<ProfileAnswer> a = uptier::query(p, site.kind, site.site);
  if (!a) return;
  const auto* values = std::get_if<ValuesAnswer>(&a->what);
  const auto* only = std::get_if<RangeAnswer>(&a->what);
  const RangeAnswer* range = values != nullptr ? &values->range : only;
  if (range == nullptr || range->count < s.samples) return;
  s.samples = range->count;
  s.min = range->min;
  s.max = range->max;
  bool one = s.min == s.max;
  s.value = s.min;
  s.seen = one ? s.samples : 0;
  if (one || values == nullptr || values->values.empty()) return;
  s.value = values->values.front().value;
  s.seen = values->values.front().count;
}

// What the profile, of this run or an earlier one, answers about a value site.
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

// What the next version may take values inside of the body to be. The stress plan's guesses are
// small values that may be wrong.
std::vector<jit::SiteValues> MethodCompiler::guesses_locked(Method& m, const Plan& plan) {
  std::vector<jit::SiteValues> guesses;
  bool stressed = stress_.active(StressKind::kValues);
  MethodProfile seen = observer_.estimates.profile_of(m);
  std::vector<SiteId> kept = m.shape->exits.kept_values(plan.osr_loop.valid());
  for (const BodySite& site : m.value_versions->body_sites) {
    if (std::ranges::find(kept, site.site) != kept.end()) continue;
    if (stressed && stress_.point(StressKind::kValues)) {
      int64_t guess = site.site % 4;
      guesses.push_back({site.site, guess, site.site % 3 == 0 ? guess + 100 : guess});
      continue;
    }
    SiteSnapshot s = site_snapshot(m, seen, site, policy_);
    SiteDecision d = decide_site(s, policy_);
    if (d.action != Action::kSpecialize) continue;
    observer_.decisions.log(m, action_name(d.action), d.reason, inputs_text(s));
    guesses.push_back({site.site, d.min, d.max});
  }
  return guesses;
}

// Puts the guard in front of a version that has just been compiled. Where the general one has gone
// meanwhile there is no guard, and install() drops it.
Status MethodCompiler::make_guard(Method& m, Version& v) {
  std::lock_guard lock(state_mutex_);
  const Version* general = m.optimized.load(std::memory_order_relaxed);
  if (!usable(general) || general->general != nullptr) return {};
  Result<jit::ValueGuard> guard = jit::make_value_guard(space_, {.method = m.id,
                                                                 .signature = m.info.signature,
                                                                 .values = v.values,
                                                                 .special = v.code->entry(),
                                                                 .general = general->entry,
                                                                 .told = routines_.guard_slow(),
                                                                 .words = &v.guard_words});
  if (!guard) return guard.error();
  v.guard = std::move(*guard);
  v.general = general;
  v.entry = v.guard.quiet;
  return {};
}

}  // namespace uptier::tiering
