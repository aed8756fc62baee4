#include "tiering/policy/trial.h"

#include <algorithm>

#include "jit/code/call_layout.h"
#include "sampler/gap.h"
#include "tiering/policy/rank_sum.h"
#include "tiering/policy/replay.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

// What a trial may take of the slower version's time, in cycles: 10 ms and 50 us at 3 GHz.
constexpr uint64_t kRollBackBudget = 30'000'000;
constexpr uint64_t kSpeedupBudget = 150'000;
constexpr uint32_t kSpeedupPairs = 16;
// Whether all the time of a call is the method's own. The time of callees is the same in both
// versions, and would say that compiling is worth less than it is.
bool calls_nothing(const jit::Function* f) {
  if (f == nullptr) return false;
  return std::ranges::none_of(f->insts, [](const jit::Inst& i) {
    Shape s = info(i.op).shape;
    return s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
  });
}

uint64_t load(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

}  // namespace

jit::TrialCall Trial::begin_call() noexcept {
  jit::TrialCall plain{now.entry, nullptr};
  if (over_.load(std::memory_order_relaxed)) return plain;
  uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed);
  uint64_t draw = (uint64_t{call} + 1) * 0x9e3779b97f4a7c15u;
  if (call < kWarm || sampler::next_random(draw) % kGap != 0) return plain;
  uint32_t n = taken_.fetch_add(1, std::memory_order_relaxed);
  if (n >= 2 * pairs_ || (n % 2 == 0 && spent(n))) {
    over_.store(true, std::memory_order_relaxed);
    return plain;
  }
  return {(is_new(n) ? now : before).entry, &cycles_[n]};
}

bool Trial::spent(uint32_t taken) const noexcept {
  if (taken < 2 * kLeastPairs) return false;
  uint64_t sum = 0;
  for (uint32_t n = 0; n < taken; ++n) sum += load(cycles_[n]);
  return sum > budget_;
}

bool Trial::tell() noexcept {
  return over_.load(std::memory_order_relaxed) && !told_.exchange(true, std::memory_order_relaxed);
}

std::vector<uint64_t> Trial::times(bool of_new) const {
  std::vector<uint64_t> t;
  for (uint32_t n = 0; n < 2 * pairs_; ++n) {
    uint64_t cycles = load(cycles_[n]);
    if (cycles != 0 && is_new(n) == of_new) t.push_back(cycles);
  }
  return t;
}

TrialSnapshot Trial::snapshot() const {
  std::vector<uint64_t> was = times(false), is = times(true);
  RankSum r = rank_sum(is, was);
  return {was.size(), is.size(), r.median_b, r.median_a, r.z, tiers};
}

// ---- Runtime ----------------------------------------------------------------------------------

// What the trial routine asks: the cell of the method leads there.
jit::TrialCall RuntimeImpl::trial_call(uint32_t index) noexcept {
  Method& m = method(index);
  AttachedThread* t = here();
  // Pairs with the release of begin_trial(): what is read here stays until this thread is
  // quiescent, trial or no trial.
  Trial* trial = m.trial.load(std::memory_order_acquire);
  if (trial == nullptr) return {enter_anew(m), nullptr};
  if (t == nullptr) return {trial->now.entry, nullptr};
  jit::TrialCall call = trial->begin_call();
  if (!trial->tell()) return call;
  sampler::Note n;
  n.kind = sampler::NoteKind::kTrial;
  n.method = index;
  n.loop = UINT32_MAX;
  if (!t->ring().push(n, {})) {
    trial->tell_again();
    return call;
  }
  wake_worker();
  return call;
}

// A call that came to the trial routine when the trial was over.
const void* RuntimeImpl::enter_anew(Method& m) noexcept {
  const Version* best = m.optimized.load(std::memory_order_acquire);
  if (usable(best)) return best->entry;
  AttachedThread* t = here();
  bool plain = t != nullptr && must_run_plain(m, *t);
  const void* code = plain ? run_plain(m, *t) : code_for_call(m);
  if (code != nullptr) return code;
  raise_no_code(m.id);
  return routines_.trap_exit_at_entry();
}

// A version has just taken the place of another, which is still there: both stay for a while.
void RuntimeImpl::begin_trial(Method& m, const Version* before, const Version& now) {
  bool possible = live_.trials && options_.measure_rates && options_.tier == TierMode::kAuto &&
                  options_.gap != GapMode::kExact && !always_instrumented_ &&
                  !stress_.active(StressKind::kFlip) && usable(before) && before->code != nullptr &&
                  now.code != nullptr && jit::stack_words(m.info.signature) == 0;
  if (!possible) return;
  bool tiers = before->tier == Tier::kBaseline;
  if (tiers && (!calls_nothing(m.body.get()) || !machine_.begin_trial())) return;
  m.trials.push_back(std::make_unique<Trial>(*before, now,
                                             tiers ? kSpeedupPairs : Trial::kMostPairs,
                                             tiers ? kSpeedupBudget : kRollBackBudget, tiers));
  m.trial.store(m.trials.back().get(), std::memory_order_release);  // pairs with trial_call()
}

// Ends a trial without an answer: the new version stays.
void RuntimeImpl::abandon_trial(Method& m) {
  Trial* t = m.trial.exchange(nullptr, std::memory_order_acq_rel);
  // What a guard leads to stays with it.
  if (t != nullptr && t->now.general != &t->before) {
    give_up(const_cast<Version&>(t->before), OsrOut::kNewer);
  }
}

// What a trial of baseline code and optimized code says of all such code.
void RuntimeImpl::learn_rates(const Method& m, const TrialSnapshot& s) {
  if (s.now_cycles < kLeastTrialCycles) return;
  auto before = static_cast<double>(s.before_cycles);
  machine_.note_speedup(before / static_cast<double>(s.now_cycles));
  MethodSnapshot seen = observer_.snapshot_of(m);
  // Without samples nobody knows what a call executes.
  if (seen.samples < policy_.min_samples || seen.calls == 0) return;
  double executed = static_cast<double>(seen.sampled_work) / static_cast<double>(seen.calls);
  machine_.note_baseline(executed, before);
}

// Worker's side: all that was wanted has been timed.
void RuntimeImpl::end_trial(Method& m) {
  Trial* t = m.trial.load(std::memory_order_relaxed);
  if (t == nullptr || m.removed) return;
  TrialSnapshot s = t->snapshot();
  Decision d = decide_trial(s, policy_);
  observer_.log(m, action_name(d.action), d.reason, inputs_text(s));
  if (t->tiers) learn_rates(m, s);
  if (d.action != Action::kRollBack) {
    abandon_trial(m);
    if (t->now.general != nullptr) return begin_window(m, const_cast<Version&>(t->now));
    link_locked(m);
    return consider_values(m);
  }
  if (t->tiers) return back_to_baseline(m);
  if (t->now.general != nullptr) {
    m.trial.store(nullptr, std::memory_order_release);
    return take_back(m, false);
  }
  m.trial.store(nullptr, std::memory_order_release);
  m.optimized.store(&t->before, std::memory_order_release);
  link_locked(m);
  give_up(const_cast<Version&>(t->now), OsrOut::kNewer);
  retire_optimized_copy(m);
}

// The method's first optimized version was slower: it goes back to what it had before, which is made
// again at the next call, and the policy remembers when.
void RuntimeImpl::back_to_baseline(Method& m) {
  m.slower_calls = std::max<uint64_t>(observer_.snapshot_of(m).calls, 1);
  withdraw_code(m);
}

}  // namespace uptier::tiering
