#include "tiering/observe/decision_log.h"

#include <cassert>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {

void DecisionLog::push_back(DecisionRecord r) {
  r.sequence = ++made_;
  events_.emit(
      {.kind = EventKind::kDecided, .method = r.method, .at_ns = now_ns(), .decision = &r});
}

void DecisionLog::hear(const Event& e) noexcept {
  if (!finishes([&] { times_.push_back(e.at_ns); })) return;
  if (!finishes([&] { records_.push_back(*e.decision); })) return times_.pop_back();
  keep(kept_);
}

void DecisionLog::keep(uint64_t kept) {
  kept_ = kept;
  for (; records_.size() > kept_; times_.pop_front()) records_.pop_front();
  assert(times_.size() == records_.size());
}

void DecisionLog::log(const Method& m, std::string action, std::string reason, std::string inputs,
                      uint32_t location) {
  Totals t = totals(m);
  DecisionRecord r;
  r.method = m.id;
  r.method_name = m.info.name;
  r.action = std::move(action);
  r.reason = std::move(reason);
  r.inputs = std::move(inputs);
  r.location = location;
  r.calls = t.calls;
  r.samples = t.sampled_calls + t.bursts;
  r.loop_iterations = t.iterations;
  push_back(std::move(r));
}

void DecisionLog::log_event(std::string action, std::string what) {
  DecisionRecord r;
  r.action = std::move(action);
  r.reason = std::move(what);
  push_back(std::move(r));
}

}  // namespace uptier::tiering
