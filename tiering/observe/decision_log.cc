#include "tiering/observe/decision_log.h"

#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {

void DecisionLog::add(LoggedDecision d) {
  d.at_ns = now_ns();
  const uint64_t sequence = ++made_;
  if (events_.wanted(EventKind::kDecided)) {
    const DecisionRecord r = record_of(d, sequence);
    events_.emit(
        {.kind = EventKind::kDecided, .method = d.method, .at_ns = d.at_ns, .decision = &r});
  } else {
    events_.count_unwanted();
  }
  if (finishes([&] { kept_records_.append(d, sequence); })) keep(kept_);
}

void DecisionLog::keep(uint64_t kept) {
  kept_ = kept;
  kept_records_.keep(kept);
}

LoggedDecision DecisionLog::about(const Method& m) const {
  const Totals t = totals(m);
  LoggedDecision d;
  d.method = m.id;
  d.method_name = m.info.name;
  d.calls = t.calls;
  d.samples = t.sampled_calls + t.bursts;
  d.iterations = t.iterations;
  return d;
}

void DecisionLog::log(const Method& m, const DecisionInputs& inputs, const PolicyOptions& options,
                      std::string_view before, uint32_t location) {
  LoggedDecision d = about(m);
  d.location = location;
  d.inputs = inputs;
  d.options = &options;
  d.reason = before;
  add(d);
}

void DecisionLog::log(const Method& m, std::string_view action, std::string_view reason) {
  LoggedDecision d = about(m);
  d.action = action;
  d.reason = reason;
  add(d);
}

void DecisionLog::log_event(std::string_view action, std::string_view what) {
  LoggedDecision d;
  d.action = action;
  d.reason = what;
  add(d);
}

}  // namespace uptier::tiering
