// What changes while threads run: all options that slow paths, the policy and compilations read
// where they need them. What code, stubs, counters or memory were made for is an option for life.
//
// Threads are not stopped. A rate is one word a method, which each thread looks at when it is fit
// for a change (sampler/schedule.h); what was counted before goes by the rate before. A flush that
// was planned stands until then.
#include <algorithm>
#include <array>
#include <span>

#include "profile/base/wall.h"
#include "tiering/runtime/runtime_impl.h"

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

// Why an option that may change in other runtimes may not in this one, or null.
const char* RuntimeImpl::obstacle_to(std::string_view name, const Options& to) const {
  bool rates = name == "interval" || name == "burst";
  if (rates && !rates_.has_rates()) return "this runtime samples every call, by turns, or none";
  bool budget = rates_.has_budget() && to.overhead_budget > 0;
  if (name == "overhead_budget" && !budget) return "there is a budget for life, or none";
  bool of_optimized = name == "optimized_interval" || name == "observe_optimized";
  if (of_optimized && !options_.adaptive) return "rates do not adapt, so there are no such samples";
  if (name == "value_versions" && !options_.value_versions) return "no parameter was to be counted";
  if (to.code_budget > options_.code_budget) return "no more was reserved for code";
  return nullptr;
}

Status RuntimeImpl::set(std::string_view name, std::string_view value) try {
  if (forked()) return forked_error();
  if (Status s = events_.check_change("set"); !s) return s;
  const Delivery delivery(*this);
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
  observer_.decisions.log_event("set", std::string(name) + "=" + std::string(value));
  return {};
} catch (const std::exception&) { return out_of_memory("set"); }

// Brings what is derived from an option up to date.
void RuntimeImpl::apply_locked(std::string_view name) {
  if (name == "interval") return rates_.change_interval();
  if (name == "burst") return rates_.change_burst();
  if (name == "overhead_budget") return rates_.change_budget();
  if (name == "optimized_interval") {
    uint32_t rung = sampler::Ladder::power_below(static_cast<double>(live_.optimized_interval));
    auto rate = sampler::Rate::sampled(rung, static_cast<uint32_t>(options_.burst));
    optimized_rate_.store(rate.word, std::memory_order_release);  // pairs with optimized_rate()
  }
  if (is_one_of(name, kOfFlushes)) return rates_.change_flushes();
  if (is_one_of(name, kOfThePolicy)) return change_policy_locked();
  if (name == "decisions_kept") observer_.decisions.keep(live_.decisions_kept);
  if (name == "observe_optimized") copies_->loops().watch_all_frames();
  if (name == "max_queue") requests_.set_capacity(live_.max_queue);
}

void RuntimeImpl::change_policy_locked() {
  policy_ = PolicyOptions::from(live_);
  observer_.set_policy_options(policy_);
  policy_mode_.store(live_.policy, std::memory_order_relaxed);
  for (const auto& m : methods_.all()) {
    if (MethodShape* shape = m->shape.made()) shape->exits.limits_changed(policy_);
    if (Flushed* seen = m->flushed.made()) seen->convergence.set_epsilon(policy_.epsilon);
    if (Optimizing* seen = m->optimizing.made()) {
      seen->windows.convergence.set_epsilon(policy_.epsilon);
    }
    for (uint32_t l = 0; l < m->shape->loop_count; ++l) {
      LoopCopy* copy = loop_copy(*m, LoopId(l));
      if (copy != nullptr) copy->windows.convergence.set_epsilon(policy_.epsilon);
    }
    if (options_.adaptive) rates_.learn_on(*m);
  }
}

Status RuntimeImpl::observe(Sampling how) try {
  if (forked()) return forked_error();
  if (Status s = events_.check_change("observe"); !s) return s;
  const Delivery delivery(*this);
  std::lock_guard lock(state_mutex_);
  if (!rates_.has_rates())
    return for_life("observe", "this runtime samples every call, by turns, or none");
  rates_.observe(how);
  copies_->loops().watch_all_frames();
  static constexpr std::array<const char*, 3> kNames = {"by options", "off", "every"};
  observer_.decisions.log_event("set", std::string("observe ") + kNames[static_cast<size_t>(how)]);
  return {};
} catch (const std::exception&) { return out_of_memory("observe"); }

}  // namespace uptier::tiering
