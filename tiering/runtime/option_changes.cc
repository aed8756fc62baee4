#include "tiering/runtime/option_changes.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/requests.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/finding.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/worker_wake.h"

namespace uptier::tiering {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kOfThePolicy[] = {
    "policy",        "min_samples", "speedup",         "compile_ns",   "baseline_ns",
    "drift_samples", "exit_limit",  "exit_limit_loop", "exit_retries", "value_share",
    "value_samples", "miss_share",  "max_recompiles",  "epsilon"};
constexpr std::string_view kOfFlushes[] = {"flush_first", "flush_growth", "loop_flush_first"};
// Read where they are needed, under the state mutex, or copied under it.
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

Status OptionChanges::set(std::string_view name, std::string_view value) try {
  if (engine_.forked()) return engine_.forked_error();
  HeldState lock(engine_.state_mutex);
  Options changed = engine_.live;
  if (Status s = changed.set(name, value); !s) return s;
  bool can = name == "interval" || name == "burst" || name == "optimized_interval" ||
             name == "overhead_budget" || name == "sample_hz" || name == "find" ||
             is_one_of(name, kOfFlushes) || is_one_of(name, kOfThePolicy) ||
             is_one_of(name, kOthers);
  if (!can) return for_life(name, "it is fixed for the life of a runtime");
  if (const char* why = obstacle_to(name, changed)) return for_life(name, why);
  Options before = std::exchange(engine_.live, changed);
  if (name == "sample_hz") {
    Status s = engine_.stack_sampling->change_rate();
    if (!s) {
      engine_.live = before;
      return s;
    }
    engine_.worker_wake->wake();
  }
  apply_locked(name);
  engine_.observer->decisions.log_event("set", std::string(name) + "=" + std::string(value));
  return {};
} catch (const std::exception&) { return out_of_memory("set"); }

Status OptionChanges::observe(Sampling how) try {
  if (engine_.forked()) return engine_.forked_error();
  HeldState lock(engine_.state_mutex);
  if (!engine_.rates->has_rates())
    return for_life(
        "observe",
        "this runtime was created to sample every call, to sample by turns, or not to sample");
  engine_.rates->observe(how);
  engine_.copies->loops().watch_all_frames();
  static constexpr std::array<const char*, 3> kNames = {"by options", "off", "every"};
  engine_.observer->decisions.log_event("set",
                                        std::string("observe ") + kNames[static_cast<size_t>(how)]);
  return {};
} catch (const std::exception&) { return out_of_memory("observe"); }

const char* OptionChanges::obstacle_to(std::string_view name, const Options& to) const {
  bool rates = name == "interval" || name == "burst";
  if (rates && !engine_.rates->has_rates())
    return "this runtime was created to sample every call, to sample by turns, or not to sample";
  bool budget = engine_.rates->has_budget() && to.overhead_budget > 0;
  if (name == "overhead_budget" && !budget)
    return "a runtime that was created with a budget keeps one, and one without a budget gets none";
  bool of_optimized = name == "optimized_interval" || name == "observe_optimized";
  if (of_optimized && !engine_.options.adaptive) return "it needs adaptive rates";
  if (name == "value_versions" && !engine_.options.value_versions)
    return "value_versions was off when the runtime was created";
  if (name == "sample_hz" && to.sample_hz == 0 && to.find != FindMode::kCounts)
    return "samples find the methods; set find=counts first";
  if (name == "find" && to.find != FindMode::kCounts && to.sample_hz == 0)
    return "samples find no method while sample_hz is 0; set it first";
  bool fixed = engine_.options.tier != TierMode::kAuto || engine_.always_instrumented;
  if (name == "find" && to.find == FindMode::kSamples && fixed)
    return "this runtime was created with a fixed tier or to sample every call";
  if (to.code_budget > engine_.options.code_budget)
    return "it cannot exceed the value that the runtime was created with";
  return nullptr;
}

void OptionChanges::apply_locked(std::string_view name) {
  if (name == "interval") return engine_.rates->change_interval();
  if (name == "burst") return engine_.rates->change_burst();
  if (name == "overhead_budget") return engine_.rates->change_budget();
  if (name == "optimized_interval") return engine_.copies->change_rates(engine_.methods);
  if (is_one_of(name, kOfFlushes)) return engine_.rates->change_flushes();
  if (is_one_of(name, kOfThePolicy)) return change_policy_locked();
  if (name == "decisions_kept") engine_.observer->decisions.keep(engine_.live.decisions_kept);
  if (name == "find") engine_.finding->change();
  if (name == "observe_optimized") engine_.copies->loops().watch_all_frames();
  if (name == "max_queue") engine_.requests->set_capacity(engine_.live.max_queue);
}

void OptionChanges::change_policy_locked() {
  engine_.policy = PolicyOptions::from(engine_.live);
  engine_.observer->set_policy_options(engine_.policy);
  engine_.policy_mode.store(engine_.live.policy, std::memory_order_relaxed);
  for (const auto& m : engine_.methods.all()) {
    if (MethodShape* shape = m->shape.made()) shape->exits.limits_changed(engine_.policy);
    if (Flushed* seen = m->flushed.made()) seen->convergence.set_epsilon(engine_.policy.epsilon);
    if (Optimizing* seen = m->optimizing.made()) {
      seen->windows.convergence.set_epsilon(engine_.policy.epsilon);
    }
    for (uint32_t l = 0; l < m->shape->loop_count; ++l) {
      LoopCopy* copy = loop_copy(*m, LoopId(l));
      if (copy != nullptr) copy->windows.convergence.set_epsilon(engine_.policy.epsilon);
    }
    if (engine_.options.adaptive) engine_.rates->learn_on(*m);
  }
}

}  // namespace uptier::tiering
