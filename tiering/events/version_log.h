// VersionLog: the times at which versions of methods were in service. These are the rows of the
// timeline of a profile file (profile/upf/timeline.h) that are made from records.
//
// The timeline's decisions come from DecisionLog. Its figures are sums and levels that are read
// when it is written, and its loops are part of the methods' shapes: neither are events.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/events/events.h"

namespace uptier::tiering {

class VersionLog final : public EventListener {
 public:
  static constexpr EventKinds kHears = kinds_of(EventKind::kInstalled, EventKind::kRetired,
                                                EventKind::kMoved, EventKind::kForgotten);
  struct Row {
    Event installed;          // at_ns: when it was installed
    uint64_t retired_ns = 0;  // 0: it is in service
  };

  // If memory runs out, a version is left out.
  void hear(const Event& e) noexcept UPTIER_REQUIRES(state_lock) override;
  // Returns the versions of a method in the order in which they were installed or moved.
  std::span<const Row> of(MethodId m) const UPTIER_REQUIRES(state_lock);

 private:
  using Rows = std::vector<Row>;
  std::map<MethodId, Rows> rows_;
};

}  // namespace uptier::tiering
