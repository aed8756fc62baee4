#include "tiering/events/decision_log.h"

#include "profile/base/wall.h"

namespace uptier::tiering {

void DecisionLog::hear(const Event& e) noexcept {
  made_ = e.decision->sequence;
  if (!finishes([&] { times_.push_back(e.at_ns); })) return;
  if (!finishes([&] { records_.push_back(*e.decision); })) return times_.pop_back();
  keep(kept_);
}

void DecisionLog::keep(uint64_t kept) {
  kept_ = kept;
  for (; records_.size() > kept_; times_.pop_front()) records_.pop_front();
}

}  // namespace uptier::tiering
