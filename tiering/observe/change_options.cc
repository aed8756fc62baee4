// What changes while threads run: all options that slow paths, the policy and compilations read
// where they need them. What code, stubs, counters or memory were made for is an option for life.
//
// Threads are not stopped. A rate is one word a method, which each thread looks at when it is fit
// for a change (sampler/schedule.h); what was counted before goes by the rate before. A flush that
// was planned stands until then.
#include <algorithm>
#include <array>
#include <span>

#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kOfThePolicy[] = {
    "policy",        "min_samples", "speedup",         "compile_ns",   "baseline_ns",
    "drift_samples", "exit_limit",  "exit_limit_loop", "exit_retries", "value_share",
    "value_samples", "miss_share",  "max_recompiles",  "epsilon"};
constexpr std::string_view kOfFlushes[] = {"flush_first", "flush_growth", "loop_flush_first"};
// Read where they are needed, with the state mutex, or copied with it.
constexpr std::string_view kOthers[] = {"observe_optimized", "value_versions", "trials",
                                        "deopt_cold",        "cold_samples",   "removed_kept",
                                        "decisions_kept",    "max_queue",      "profile_decay",
                                        "profile_sync",      "code_budget"};

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::find(names, name) != names.end();
}

Error for_life(std::string_view name, const char* why) {
  return {ErrorCode::kUnsupported, std::string(name) + ": " + why};
}

}  // namespace

// Whether rates are one word a method, which may change.
bool RuntimeImpl::has_rates() const {
  return schedule_.sample_calls && !always_instrumented_ && options_.gap != GapMode::kExact;
}

Options RuntimeImpl::live_options() const {
  std::lock_guard lock(state_mutex_);
  return live_;
}

// Why an option that may change in other runtimes may not in this one, or null.
const char* RuntimeImpl::obstacle_to(std::string_view name, const Options& to) const {
  bool rates = name == "interval" || name == "burst";
  if (rates && !has_rates()) return "this runtime samples every call, by turns, or none";
  bool budget = budget_ && to.overhead_budget > 0;
  if (name == "overhead_budget" && !budget) return "there is a budget for life, or none";
  bool of_optimized = name == "optimized_interval" || name == "observe_optimized";
  if (of_optimized && !options_.adaptive) return "rates do not adapt, so there are no such samples";
  if (name == "value_versions" && !options_.value_versions) return "no parameter was to be counted";
  if (to.code_budget > options_.code_budget) return "no more was reserved for code";
  return nullptr;
}

Status RuntimeImpl::set(std::string_view name, std::string_view value) {
  if (forked()) return forked_error();
  std::lock_guard lock(state_mutex_);
  Options changed = live_;
  if (Status s = changed.set(name, value); !s) return s;
  bool can = name == "interval" || name == "burst" || name == "optimized_interval" ||
             name == "overhead_budget" || is_one_of(name, kOfFlushes) ||
             is_one_of(name, kOfThePolicy) || is_one_of(name, kOthers);
  if (!can) return for_life(name, "a runtime has it for life");
  if (const char* why = obstacle_to(name, changed)) return for_life(name, why);
  live_ = changed;
  apply_locked(name);
  observer_.log_event("set", std::string(name) + "=" + std::string(value));
  return {};
}

// Brings what is derived from an option up to date.
void RuntimeImpl::apply_locked(std::string_view name) {
  if (name == "interval") return change_interval_locked();
  if (name == "burst") return change_burst_locked();
  if (name == "overhead_budget") return budget_->set_budget(live_.overhead_budget);
  if (name == "optimized_interval") {
    uint32_t rung = sampler::Ladder::power_below(static_cast<double>(live_.optimized_interval));
    auto rate = sampler::Rate::sampled(rung, static_cast<uint32_t>(options_.burst));
    optimized_rate_.store(rate.word, std::memory_order_release);  // pairs with optimized_rate()
  }
  if (is_one_of(name, kOfFlushes)) return change_flushes_locked();
  if (is_one_of(name, kOfThePolicy)) return change_policy_locked();
  if (name == "decisions_kept") observer_.keep_decisions(live_.decisions_kept);
  if (name == "observe_optimized") watch_all_frames();
  if (name == "max_queue") requests_.set_capacity(live_.max_queue);
}

void RuntimeImpl::change_policy_locked() {
  policy_ = PolicyOptions::from(live_);
  observer_.set_policy_options(policy_);
  policy_mode_.store(live_.policy, std::memory_order_relaxed);
  for (const auto& m : methods_.all()) {
    m->exits.limits_changed(policy_);
    m->convergence.set_epsilon(policy_.epsilon);
    if (OptimizedSeen* seen = m->optimized_copy.seen.made()) {
      seen->windows.convergence.set_epsilon(policy_.epsilon);
    }
    for (uint32_t l = 0; l < m->loop_count; ++l) {
      LoopCopy* copy = loop_copy(*m, LoopId(l));
      if (copy != nullptr) copy->windows.convergence.set_epsilon(policy_.epsilon);
    }
    if (options_.adaptive) learn_on(*m);
  }
}

// A thread plans anew where it looks at the rate again.
void RuntimeImpl::change_flushes_locked() {
  for (sampler::Schedule* s : {&schedule_, &counting_}) {
    sampler::change_setting(s->flush_first, live_.flush_first);
    sampler::change_setting(s->flush_growth, live_.flush_growth);
    sampler::change_setting(s->loop_flush_first, live_.loop_flush_first);
  }
  if (!has_rates()) return;
  for (const auto& m : methods_.all()) fast_->rate(m->id.index()).renew();
}

// With adaptive rates: of methods that are observed for the first time from here on. The slots of
// others are the measure of what their samples stand for.
void RuntimeImpl::change_burst_locked() {
  auto burst = static_cast<uint32_t>(live_.burst);
  if (options_.adaptive) {
    start_rate_ = sampler::Rate::decaying(start_rate_.rung(), start_rate_.target(), burst);
    if (budget_) budget_->set_burst(burst);
    return;
  }
  observer_.lengths_of_bursts_differ();
  fixed_rate_ = sampler::Rate::sampled(fixed_rate_.rung(), burst);
  for (const auto& m : methods_.all()) put_rate(m->id.index(), fixed_rate_);
}

// With adaptive rates: where they end.
void RuntimeImpl::change_interval_locked() {
  auto interval = static_cast<uint32_t>(live_.interval);
  uint32_t rung = schedule_.ladder.add(interval);
  counting_.ladder.add(interval);  // the same rung there
  if (options_.adaptive) {
    start_rate_ = sampler::Rate::decaying(0, rung, static_cast<uint32_t>(live_.burst));
    if (budget_) budget_->set_target(rung);
    return;
  }
  fixed_rate_ = sampler::Rate::sampled(rung, static_cast<uint32_t>(live_.burst));
  for (const auto& m : methods_.all()) put_rate(m->id.index(), fixed_rate_);
}

Status RuntimeImpl::observe(Sampling how) {
  if (forked()) return forked_error();
  std::lock_guard lock(state_mutex_);
  if (!has_rates())
    return for_life("observe", "this runtime samples every call, by turns, or none");
  sampling_.store(how, std::memory_order_relaxed);
  for (const auto& m : methods_.all()) {
    if (!m->removed) observe_again(*m);
  }
  give_allowance_locked();
  watch_all_frames();
  static constexpr std::array<const char*, 3> kNames = {"by options", "off", "every"};
  observer_.log_event("set", std::string("observe ") + kNames[static_cast<size_t>(how)]);
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
