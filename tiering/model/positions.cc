#include "tiering/model/positions.h"

#include "tiering/model/method_shape.h"

namespace uptier::tiering {

SourcePositions positions_of(const Method& m, uint32_t location) {
  if (m.has_shape() && !m.shape->positions.empty()) {
    SourcePositions found = m.shape->positions.find(location);
    if (!found.empty()) return found;
  }
  if (m.removed) return {};  // its host may be gone
  return m.host.positions(m.id, location);
}

}  // namespace uptier::tiering
