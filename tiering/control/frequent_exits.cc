#include "tiering/control/frequent_exits.h"

#include <algorithm>
#include <cassert>
#include <memory>

namespace uptier::tiering {

void FrequentExits::consider(Method& m, uint32_t exit) {
  ExitSnapshot e = m.shape->exits.snapshot(exit);
  ExitDecision d = decide_exit(e, policy_);
  bool banned = d.action == Action::kBan;
  assert(d.met || d.action == Action::kKeep);
  m.shape.made()->exits.answer(exit, d.met, banned, policy_);
  if (!d.met || m.removed) return;
  observer_.decisions.log(m, e, policy_,
                          "exit at " + m.shape->exits.name(exit, m.shape->positions) + ": ",
                          m.shape->exits.unnamed(exit, m.shape->positions));
  if (m.shape->exits.is_guard(exit)) {
    if (!banned) return;
    withdraw_optimized(m);
    return make_callers_anew(m);
  }
  optimize_anew(m);
  make_callers_anew(m);  // callers that have inlined this body lack the block, too
}

// Requests another version now, and other on-stack replacement versions when loops are next
// entered.
void FrequentExits::optimize_anew(Method& m) {
  in_service_.drop_osr_versions(m);
  bool has_entry = usable(m.optimized.load(std::memory_order_relaxed));
  bool spent = m.optimizing->versions >= policy_.max_recompiles;
  if (!has_entry || m.optimized_requested || spent) return;
  requests_.add(m, {.method = m.id, .tier = Tier::kOptimized, .use_profile = true}, 1e18);
}

// A guard declared by the host is in every version. So the method goes back to baseline code for
// good; the baseline code is made again at the next call.
void FrequentExits::withdraw_optimized(Method& m) {
  assert(!m.removed);
  m.guard_banned = true;
  withdraw_code(m);
}

void FrequentExits::withdraw_code(Method& m) {
  requests_.remove(m.id);
  m.optimized_requested = false;
  if (MethodShape* s = m.shape.made()) s->osr_requested.assign(s->loop_count, false);
  in_service_.withdraw_locked(m);
  m.wants_optimized = false;
  for (auto& v : m.versions) {
    if (v->tier == Tier::kOptimized && !v->freed) in_service_.give_up(*v, OsrOut::kAnywhere);
  }
}

// Inlined bodies contain the guard, too, so their callers lose their code as well: a banned method
// is not inlined.
void FrequentExits::make_callers_anew(const Method& m) {
  auto has_it = [&](const std::unique_ptr<Version>& v) {
    if (v->tier != Tier::kOptimized || v->retired || v->code == nullptr) return false;
    const auto& inlined = v->code->tables().inlined;
    return std::any_of(inlined.begin(), inlined.end(),
                       [&](const jit::InlineRow& r) { return r.method == m.id; });
  };
  for (const auto& caller : methods_.all()) {
    bool affected =
        caller.get() != &m && std::any_of(caller->versions.begin(), caller->versions.end(), has_it);
    if (!affected) continue;
    in_service_.drop_osr_versions(*caller);
    if (!usable(caller->optimized.load(std::memory_order_relaxed))) continue;
    requests_.add(*caller, {.method = caller->id, .tier = Tier::kOptimized, .use_profile = true},
                  1e18);
  }
}

}  // namespace uptier::tiering
