#include "tiering/events/version_log.h"

#include <algorithm>

#include "profile/base/wall.h"

namespace uptier::tiering {

void VersionLog::hear(const Event& e) noexcept {
  if (e.kind == EventKind::kInstalled) {
    finishes([&] { rows_[e.method].push_back({e, 0}); });
    return;
  }
  auto method = rows_.find(e.method);
  if (method == rows_.end()) return;
  if (e.kind == EventKind::kForgotten && e.version == 0) {
    rows_.erase(method);
    return;
  }
  Rows& rows = method->second;
  auto row =
      std::ranges::find_if(rows, [&](const Row& r) { return r.installed.version == e.version; });
  if (row == rows.end()) return;
  if (e.kind == EventKind::kRetired) row->retired_ns = e.at_ns;
  if (e.kind == EventKind::kForgotten) rows.erase(row);
  if (e.kind == EventKind::kMoved) std::rotate(row, row + 1, rows.end());
}

std::span<const VersionLog::Row> VersionLog::of(MethodId m) const {
  auto at = rows_.find(m);
  return at == rows_.end() ? std::span<const Row>() : std::span<const Row>(at->second);
}

}  // namespace uptier::tiering
