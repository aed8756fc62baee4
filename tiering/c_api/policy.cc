// Decisions in the C API: policies of the host, the log, replay.
#include "uptier/policy.h"

#include "tiering/c_api/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

struct uptier_decisions {
  std::vector<DecisionRecord> records;
};

namespace {

uptier_question to_c_question(const MethodSnapshot& m, const SystemSnapshot& s) {
  uptier_question q = {};
  q.size = sizeof q;
  q.tier = static_cast<uptier_tier>(m.tier);
  q.optimized_requested = m.optimized_requested;
  q.osr_requested = m.osr_requested;
  q.osr_ready = m.osr_ready;
  q.can_instrument = m.can_instrument;
  q.failed = m.failed;
  q.excluded = m.excluded;
  q.guard_banned = m.guard_banned;
  q.instructions = m.instructions;
  q.loops = m.loops;
  q.optimized_versions = m.optimized_versions;
  q.drift_versions = m.drift_versions;
  q.phase_drifts = m.phase_drifts;
  q.at_loop = to_c<uptier_loop>(m.at_loop);
  q.calls = m.calls;
  q.samples = m.samples;
  q.iterations = m.iterations;
  q.sampled_work = m.sampled_work;
  q.saved_work = m.saved_work;
  q.saved_samples = m.saved_samples;
  q.drift_samples = m.drift_samples;
  q.version_calls = m.version_calls;
  q.slower_calls = m.slower_calls;
  q.sampled_share = m.sampled_share;
  q.drift = m.drift;
  q.phase_drift = m.phase_drift;
  q.queue_length = s.queue_length;
  q.code_budget_spent = s.code_budget_spent;
  q.compile_ns = s.compile_ns;
  q.speedup = s.speedup;
  q.baseline_ns = s.baseline_ns;
  q.behind_work = m.behind_work;
  q.osr_elsewhere = m.osr_elsewhere;
  return q;
}

template <size_t N>
void put_text(char (&to)[N], std::string_view text) {
  size_t n = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// The text that a policy has written may lack its terminating zero.
template <size_t N>
std::string text_of(const char (&from)[N]) {
  return {from, strnlen(from, N)};
}

// Maps an invalid number to an action that no policy may return, so it counts as keep.
Action from_c_action(uptier_action a) {
  return a <= UPTIER_ACTION_BAN ? static_cast<Action>(a) : Action::kBan;
}

std::string string_of(const char* s) { return s == nullptr ? "" : s; }

}  // namespace

namespace uptier::tiering {

Decision CPolicy::decide(const MethodSnapshot& m, const SystemSnapshot& s,
                         const PolicyOptions& o) noexcept try {
  const uptier_question question = to_c_question(m, s);
  Decision d = uptier::decide(m, s, o);
  uptier_decision answer = {};
  answer.size = sizeof answer;
  answer.action = static_cast<uptier_action>(d.action);
  answer.osr_loop = to_c<uptier_loop>(d.osr_loop);
  answer.priority = d.priority;
  put_text(answer.reason, d.reason);
  [&]() noexcept { policy_.decide(policy_.user, &question, &answer); }();  // it must not throw
  return {from_c_action(answer.action), from_c<LoopId>(answer.osr_loop), answer.priority,
          text_of(answer.reason)};
} catch (const std::exception&) { return {}; }

uptier_status read_policy(const uptier_policy* from, uptier_policy& to, uptier_error* error) {
  if (from == nullptr) return bad_argument(error, "the policy is NULL");
  constexpr size_t kFirst = UPTIER_C_END(uptier_policy, decide);
  if (const char* why = read_struct(from, kFirst, to)) {
    return wrong_struct("uptier_policy", why, error);
  }
  return to.decide != nullptr ? UPTIER_OK : bad_argument(error, "the policy has no decide");
}

}  // namespace uptier::tiering

extern "C" {

const char* uptier_action_name(uptier_action action) noexcept {
  return action <= UPTIER_ACTION_BAN ? action_name(static_cast<Action>(action)) : "?";
}

uptier_status uptier_runtime_decisions(const uptier_runtime* runtime, uptier_decisions** out,
                                       uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (forked(*runtime)) return fail_forked(error);
  *out = new uptier_decisions{report_of(*runtime).decisions};
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

size_t uptier_decisions_count(const uptier_decisions* log) noexcept {
  return log == nullptr ? 0 : log->records.size();
}

uptier_status uptier_decisions_get(const uptier_decisions* log, size_t index,
                                   uptier_decision_record* out, uptier_error* error) noexcept try {
  if (log == nullptr) return bad_argument(error, "the log is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (index >= log->records.size()) return bad_argument(error, "there is no such decision");
  const DecisionRecord& d = log->records[index];
  uptier_decision_record r = {};
  r.sequence = d.sequence;
  r.method = to_c<uptier_method>(d.method);
  r.method_name = d.method_name.c_str();
  r.action = d.action.c_str();
  r.reason = d.reason.c_str();
  r.inputs = d.inputs.c_str();
  r.priority = d.priority;
  r.location = d.location;
  constexpr size_t kFirst = UPTIER_C_END(uptier_decision_record, priority);
  const char* why = write_struct(r, kFirst, out);
  return why == nullptr ? UPTIER_OK : wrong_struct("uptier_decision_record", why, error);
} catch (const std::exception&) { return ran_out(error); }

void uptier_decisions_destroy(uptier_decisions* log) noexcept { delete log; }

uptier_status uptier_replay(const uptier_decision_record* record, const uptier_options* options,
                            const uptier_policy* policy, uptier_replayed* out,
                            uptier_error* error) noexcept try {
  if (record == nullptr) return bad_argument(error, "the record is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  uptier_decision_record r;
  constexpr size_t kFirstRecord = UPTIER_C_END(uptier_decision_record, priority);
  if (const char* why = read_struct(record, kFirstRecord, r)) {
    return wrong_struct("uptier_decision_record", why, error);
  }
  uptier_policy p{};
  if (policy != nullptr) {
    if (uptier_status bad = read_policy(policy, p, error); bad != UPTIER_OK) return bad;
  }
  CPolicy host(p);
  DecisionRecord given;
  given.reason = string_of(r.reason);
  given.inputs = string_of(r.inputs);
  const Options o = options != nullptr ? options->options : Options();
  Result<DecisionRecord> again =
      replay(given, PolicyOptions::from(o), policy != nullptr ? &host : nullptr);
  if (!again) return fail(error, again.error());
  uptier_replayed said = {};
  said.priority = again->priority;
  put_text(said.action, again->action);
  put_text(said.reason, again->reason);
  constexpr size_t kFirst = UPTIER_C_END(uptier_replayed, reason);
  const char* why = write_struct(said, kFirst, out);
  return why == nullptr ? UPTIER_OK : wrong_struct("uptier_replayed", why, error);
} catch (const std::exception&) { return ran_out(error); }

}  // extern "C"
