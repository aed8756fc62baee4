// The fields of the inputs of decisions, in the order of the log: one list for their text form
// (replay.h), their packed form (packed_snapshot.h) and comparisons.
#pragma once

#include <tuple>

#include "tiering/policy/policy.h"
#include "tiering/policy/value_policy.h"

namespace uptier::tiering {

template <typename S, typename T>
struct Field {
  const char* name;
  T S::*member;
};
template <typename S, typename T>
Field(const char*, T S::*) -> Field<S, T>;

// The list of a type; at most 64 fields. Each type that has one specializes it.
template <typename S>
inline constexpr int kFields = 0;

template <>
inline constexpr auto kFields<MethodSnapshot> =
    std::tuple{Field{"tier", &MethodSnapshot::tier},
               Field{"optimized_requested", &MethodSnapshot::optimized_requested},
               Field{"osr_requested", &MethodSnapshot::osr_requested},
               Field{"osr_ready", &MethodSnapshot::osr_ready},
               Field{"can_instrument", &MethodSnapshot::can_instrument},
               Field{"failed", &MethodSnapshot::failed},
               Field{"excluded", &MethodSnapshot::excluded},
               Field{"guard_banned", &MethodSnapshot::guard_banned},
               Field{"instructions", &MethodSnapshot::instructions},
               Field{"loops", &MethodSnapshot::loops},
               Field{"optimized_versions", &MethodSnapshot::optimized_versions},
               Field{"drift", &MethodSnapshot::drift},
               Field{"drift_samples", &MethodSnapshot::drift_samples},
               Field{"version_calls", &MethodSnapshot::version_calls},
               Field{"drift_versions", &MethodSnapshot::drift_versions},
               Field{"phase_drift", &MethodSnapshot::phase_drift},
               Field{"phase_drifts", &MethodSnapshot::phase_drifts},
               Field{"slower_calls", &MethodSnapshot::slower_calls},
               Field{"at_loop", &MethodSnapshot::at_loop},
               Field{"calls", &MethodSnapshot::calls},
               Field{"samples", &MethodSnapshot::samples},
               Field{"iterations", &MethodSnapshot::iterations},
               Field{"sampled_work", &MethodSnapshot::sampled_work},
               Field{"sampled_share", &MethodSnapshot::sampled_share},
               Field{"saved_work", &MethodSnapshot::saved_work},
               Field{"saved_samples", &MethodSnapshot::saved_samples},
               Field{"behind_work", &MethodSnapshot::behind_work},
               Field{"osr_elsewhere", &MethodSnapshot::osr_elsewhere}};

template <>
inline constexpr auto kFields<SystemSnapshot> = std::tuple{
    Field{"queue_length", &SystemSnapshot::queue_length},
    Field{"code_budget_spent", &SystemSnapshot::code_budget_spent},
    Field{"rate_ns", &SystemSnapshot::compile_ns}, Field{"speedup", &SystemSnapshot::speedup},
    Field{"baseline_ns", &SystemSnapshot::baseline_ns}};

template <>
inline constexpr auto kFields<ExitSnapshot> = std::tuple{
    Field{"exits", &ExitSnapshot::exits}, Field{"retries", &ExitSnapshot::retries},
    Field{"in_loop", &ExitSnapshot::in_loop}, Field{"declared", &ExitSnapshot::declared}};

template <>
inline constexpr auto kFields<TrialSnapshot> =
    std::tuple{Field{"before_samples", &TrialSnapshot::before_samples},
               Field{"now_samples", &TrialSnapshot::now_samples},
               Field{"before_cycles", &TrialSnapshot::before_cycles},
               Field{"now_cycles", &TrialSnapshot::now_cycles},
               Field{"z", &TrialSnapshot::z},
               Field{"tiers", &TrialSnapshot::tiers}};

template <>
inline constexpr auto kFields<ValueSnapshot> = std::tuple{
    Field{"value_samples", &ValueSnapshot::samples}, Field{"seen", &ValueSnapshot::seen},
    Field{"param", &ValueSnapshot::param},           Field{"value", &ValueSnapshot::value},
    Field{"retries", &ValueSnapshot::retries},       Field{"past_ns", &ValueSnapshot::past_ns},
    Field{"cost_ns", &ValueSnapshot::cost_ns},       Field{"speedup", &ValueSnapshot::speedup}};

template <>
inline constexpr auto kFields<GuardSnapshot> =
    std::tuple{Field{"window", &GuardSnapshot::window}, Field{"misses", &GuardSnapshot::misses},
               Field{"retries", &GuardSnapshot::retries}};

template <>
inline constexpr auto kFields<SiteSnapshot> =
    std::tuple{Field{"site_samples", &SiteSnapshot::samples},
               Field{"seen", &SiteSnapshot::seen},
               Field{"value", &SiteSnapshot::value},
               Field{"min", &SiteSnapshot::min},
               Field{"max", &SiteSnapshot::max},
               Field{"site", &SiteSnapshot::site},
               Field{"wide", &SiteSnapshot::wide}};

template <>
inline constexpr auto kFields<PolicyOptions> =
    std::tuple{Field{"policy", &PolicyOptions::mode},
               Field{"min_samples", &PolicyOptions::min_samples},
               Field{"speedup", &PolicyOptions::speedup},
               Field{"compile_ns", &PolicyOptions::compile_ns},
               Field{"baseline_ns", &PolicyOptions::baseline_ns},
               Field{"max_recompiles", &PolicyOptions::max_recompiles},
               Field{"exit_limit", &PolicyOptions::exit_limit},
               Field{"exit_limit_loop", &PolicyOptions::exit_limit_loop},
               Field{"exit_retries", &PolicyOptions::exit_retries},
               Field{"drift_samples", &PolicyOptions::drift_samples},
               Field{"epsilon", &PolicyOptions::epsilon},
               Field{"trial_z", &PolicyOptions::trial_z},
               Field{"trial_margin", &PolicyOptions::trial_margin},
               Field{"value_share", &PolicyOptions::value_share},
               Field{"value_samples", &PolicyOptions::value_samples},
               Field{"miss_share", &PolicyOptions::miss_share}};

// Calls f(field) for each field of a type, in order.
template <typename S, typename F>
constexpr void each_field(F f) {
  std::apply([&](const auto&... fields) { (f(fields), ...); }, kFields<S>);
}

}  // namespace uptier::tiering
