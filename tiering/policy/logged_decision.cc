#include "tiering/policy/logged_decision.h"

#include <type_traits>

#include "tiering/policy/replay.h"

namespace uptier::tiering {
namespace {

ExitDecision decide_again(const ExitSnapshot& s, const PolicyOptions& o) {
  return decide_exit(s, o);
}
Decision decide_again(const TrialSnapshot& s, const PolicyOptions& o) { return decide_trial(s, o); }
Decision decide_again(const ValueSnapshot& s, const PolicyOptions& o) { return decide_value(s, o); }
Decision decide_again(const GuardSnapshot& s, const PolicyOptions& o) { return decide_guard(s, o); }
SiteDecision decide_again(const SiteSnapshot& s, const PolicyOptions& o) {
  return decide_site(s, o);
}

void set_words(const MethodInputs& m, const PolicyOptions* o, DecisionRecord& r) {
  r.calls = m.method.calls;
  r.samples = m.method.samples;
  r.loop_iterations = m.method.iterations;
  if (o == nullptr) return;
  Decision d = decide(m.method, m.system, *o);
  r.action = logged_action(d);
  r.reason += d.reason;
  r.priority = d.priority;
}

template <typename Snapshot>
void set_words(const Snapshot& s, const PolicyOptions* o, DecisionRecord& r) {
  if (o == nullptr) return;
  auto d = decide_again(s, *o);
  r.action = action_name(d.action);
  r.reason += d.reason;
}

std::string text_of(const MethodInputs& m) { return inputs_text(m.method, m.system); }
template <typename Snapshot>
std::string text_of(const Snapshot& s) {
  return inputs_text(s);
}

}  // namespace

DecisionRecord record_of(const LoggedDecision& d, uint64_t sequence, bool with_inputs) {
  DecisionRecord r;
  r.sequence = sequence;
  r.method = d.method;
  r.method_name = d.method_name;
  r.action = d.action;
  r.reason = d.reason;
  r.calls = d.calls;
  r.samples = d.samples;
  r.loop_iterations = d.iterations;
  r.priority = d.priority;
  r.location = d.location;
  std::visit(
      [&](const auto& inputs) {
        if constexpr (!std::is_same_v<decltype(inputs), const std::monostate&>) {
          set_words(inputs, d.options, r);
          if (with_inputs) r.inputs = text_of(inputs);
        }
      },
      d.inputs);
  return r;
}

}  // namespace uptier::tiering
