// VersionLog: which version of which method was in service from when to when: the rows of the timeline
// of a profile file (profile/upf/timeline.h) that records tell of.
//
// The timeline's decisions are those of DecisionLog. Its figures are sums and levels that are read when
// it is written, and its loops belong to the methods' shapes: neither is something that happens.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tiering/events/events.h"

namespace uptier::tiering {

class VersionLog final : public EventListener {
 public:
  static constexpr EventKinds kHears = kinds_of(EventKind::kInstalled, EventKind::kRetired,
                                                EventKind::kMoved, EventKind::kForgotten);
  struct Row {
    Event installed;          // at_ns: when it came into service
    uint64_t retired_ns = 0;  // 0: it is in service
  };

  // A version that memory is refused to is left out.
  void hear(const Event& e) noexcept override;
  // Returns the versions of a method in the order in which they came into service, or moved.
  std::span<const Row> of(MethodId m) const;

 private:
  using Rows = std::vector<Row>;
  std::map<MethodId, Rows> rows_;
};

}  // namespace uptier::tiering
