// What changes while threads run: how densely methods are sampled, and what the policy goes by.
//
// Threads are not stopped. A rate is one word a method, which each thread looks at when it is fit
// for a change (sampler/schedule.h); what was counted before goes by the rate before.
#include <algorithm>
#include <array>

#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

constexpr std::array<std::string_view, 6> kOfThePolicy = {
    "policy", "min_samples", "speedup", "compile_ns", "baseline_ns", "drift_samples"};

Error for_life(std::string_view name, const char* why) {
  return {ErrorCode::kUnsupported, std::string(name) + ": " + why};
}

}  // namespace

// Whether rates are one word a method, which may change.
bool RuntimeImpl::has_rates() const {
  return schedule_.sample_calls && !always_instrumented_ && options_.gap != GapMode::kExact;
}

Status RuntimeImpl::set(std::string_view name, std::string_view value) {
  if (forked()) return forked_error();
  std::lock_guard lock(state_mutex_);
  Options changed = live_;
  if (Status s = changed.set(name, value); !s) return s;
  if (name == "interval") {
    if (!has_rates()) return for_life(name, "this runtime samples every call, by turns, or none");
    live_ = changed;
    change_interval_locked();
  } else if (name == "overhead_budget") {
    bool positive = changed.overhead_budget > 0;
    if (!budget_ || !positive) return for_life(name, "there is a budget for life, or none");
    live_ = changed;
    budget_->set_budget(live_.overhead_budget);
  } else if (std::ranges::find(kOfThePolicy, name) != kOfThePolicy.end()) {
    live_ = changed;
    observer_.set_policy_options(PolicyOptions::from(live_));
    policy_mode_.store(live_.policy, std::memory_order_relaxed);
  } else {
    return for_life(name, "a runtime has it for life");
  }
  observer_.log_change(std::string(name) + "=" + std::string(value));
  return {};
}

// With adaptive rates: where they end.
void RuntimeImpl::change_interval_locked() {
  auto interval = static_cast<uint32_t>(live_.interval);
  uint32_t rung = schedule_.ladder.add(interval);
  counting_.ladder.add(interval);  // the same rung there
  if (options_.adaptive) {
    start_rate_ = sampler::Rate::decaying(0, rung, static_cast<uint32_t>(options_.burst));
    if (budget_) budget_->set_target(rung);
    return;
  }
  fixed_rate_ = sampler::Rate::sampled(rung, static_cast<uint32_t>(options_.burst));
  for (const auto& m : owned_methods_) put_rate(m->id.index(), fixed_rate_);
}

Status RuntimeImpl::observe(Sampling how) {
  if (forked()) return forked_error();
  std::lock_guard lock(state_mutex_);
  if (!has_rates())
    return for_life("observe", "this runtime samples every call, by turns, or none");
  sampling_.store(how, std::memory_order_relaxed);
  for (const auto& m : owned_methods_) {
    if (!m->removed) observe_again(*m);
  }
  give_allowance_locked();
  static constexpr std::array<const char*, 3> kNames = {"by options", "off", "every"};
  observer_.log_change(std::string("observe ") + kNames[static_cast<size_t>(how)]);
  return {};
}

// Gives a method the rate that it should have by now.
void RuntimeImpl::observe_again(Method& m) {
  if (!options_.adaptive) return put_rate(m.id.index(), fixed_rate_);
  bool optimized = m.optimized.load(std::memory_order_relaxed) != nullptr;
  bool copy = usable(m.instrumented.load(std::memory_order_relaxed));
  bool every = sampling_.load(std::memory_order_relaxed) == Sampling::kEvery;
  if (copy && !optimized) return begin_observing(m);
  put_rate(m.id.index(), off_rate());
  if (every) want_copy(m);
}

// Puts a rate in force, or what stands above all rates.
void RuntimeImpl::put_rate(uint32_t method, sampler::Rate planned) {
  Sampling how = sampling_.load(std::memory_order_relaxed);
  if (how == Sampling::kOff) planned = off_rate();
  if (how == Sampling::kEvery && planned.samples()) planned = sampler::Rate::every(planned.burst());
  fast_->rate(method).set(planned);
}

}  // namespace uptier::tiering
