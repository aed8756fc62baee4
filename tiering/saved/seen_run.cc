#include "tiering/saved/seen_run.h"

namespace uptier::tiering {

double block_mass(const MethodProfile& p) {
  double sum = 0;
  for (const Slot& slot : p.schema.slots) {
    if (slot.kind == SlotKind::kBlock) sum += static_cast<double>(p.estimates[slot.word]);
  }
  return sum;
}

}  // namespace uptier::tiering
