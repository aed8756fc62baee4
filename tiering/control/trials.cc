#include "tiering/control/trials.h"

#include <algorithm>
#include <cassert>
#include <memory>

#include "jit/ir/function.h"
#include "jit/x64/call_layout.h"

namespace uptier::tiering {
namespace {

// The most time, in cycles of the slower version, that a trial may take: 10 ms and 50 us at 3 GHz.
constexpr uint64_t kRollBackBudget = 30'000'000;
constexpr uint64_t kSpeedupBudget = 150'000;
constexpr uint32_t kSpeedupPairs = 16;
// Says whether all the time of a call is spent in the method itself. Time in callees is the same in
// both versions, so it would understate the speedup.
bool calls_nothing(const jit::Function* f) {
  if (f == nullptr) return false;
  return std::ranges::none_of(f->insts, [](const jit::Inst& i) {
    Shape s = info(i.op).shape;
    return s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
  });
}

}  // namespace

Trials::Trials(const Parts& p)
    : options_(p.options),
      live_(p.live),
      policy_(p.policy),
      always_instrumented_(p.always_instrumented),
      stress_(p.stress),
      observer_(p.observer),
      machine_(p.machine),
      in_service_(p.in_service) {}

void Trials::begin(Method& m, const Version* before, const Version& now) {
  bool possible = live_.trials && options_.measure_rates && options_.tier == TierMode::kAuto &&
                  options_.gap != GapMode::kExact && !always_instrumented_ &&
                  !stress_.active(StressKind::kFlip) && usable(before) && before->code != nullptr &&
                  now.code != nullptr && jit::stack_words(m.info.signature) == 0;
  if (!possible) return;
  assert(before != &now && now.tier == Tier::kOptimized && !now.retired);
  assert(m.optimizing->trial.load(std::memory_order_relaxed) == nullptr);  // one at a time
  bool tiers = before->tier == Tier::kBaseline;
  if (tiers && (!calls_nothing(m.body.get()) || !machine_.begin_trial())) return;
  Optimizing& o = m.optimizing.own();
  o.trials.push_back(std::make_unique<Trial>(*before, now,
                                             tiers ? kSpeedupPairs : Trial::kMostPairs,
                                             tiers ? kSpeedupBudget : kRollBackBudget, tiers));
  o.trial.store(o.trials.back().get(), std::memory_order_release);  // pairs with trial_call()
}

void Trials::abandon(Method& m) {
  Optimizing* o = m.optimizing.made();
  if (o == nullptr) return;
  Trial* t = o->trial.exchange(nullptr, std::memory_order_acq_rel);
  // The version that a guard falls back to stays, because the guard needs it.
  if (t != nullptr && t->now.general != &t->before) {
    in_service_.give_up(const_cast<Version&>(t->before), OsrOut::kNewer);
  }
}

// Updates the machine's rates from a trial of baseline code against optimized code.
void Trials::learn_rates(const Method& m, const TrialSnapshot& s) {
  if (s.now_cycles < kLeastTrialCycles) return;
  assert(s.tiers);
  auto before = static_cast<double>(s.before_cycles);
  machine_.note_speedup(before / static_cast<double>(s.now_cycles));
  MethodSnapshot seen = observer_.advisor.snapshot_of(m);
  // Without samples, the work of a call is unknown.
  if (seen.samples < policy_.min_samples || seen.calls == 0) return;
  double executed = static_cast<double>(seen.sampled_work) / static_cast<double>(seen.calls);
  machine_.note_baseline(executed, before);
}

Trials::Stays Trials::end(Method& m) {
  const Trial* t = m.optimizing->trial.load(std::memory_order_relaxed);
  if (t == nullptr) return Stays::kUnknown;
  TrialSnapshot s = t->snapshot();
  Decision d = decide_trial(s, policy_);
  observer_.decisions.log(m, s, policy_);
  if (t->tiers) learn_rates(m, s);
  if (d.action != Action::kRollBack) {
    abandon(m);
    return t->now.general != nullptr ? Stays::kGuarded : Stays::kNew;
  }
  if (t->tiers) return Stays::kBaseline;
  m.optimizing.own().trial.store(nullptr, std::memory_order_release);
  if (t->now.general != nullptr) return Stays::kGeneral;
  assert(!t->before.freed && t->before.tier == Tier::kOptimized);
  m.optimized.store(&t->before, std::memory_order_release);
  in_service_.link_locked(m);
  in_service_.give_up(const_cast<Version&>(t->now), OsrOut::kNewer);
  return Stays::kOld;
}

}  // namespace uptier::tiering
