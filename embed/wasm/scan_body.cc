#include "embed/wasm/scan_body.h"

#include <utility>

namespace uptier::wasm {

void BodyScan::end() {
  if (open_.empty()) return;
  OpenBlock b = open_.back();
  open_.pop_back();
  if (b.kind == Kind::kLoop && b.has_target) blocks_.repeating_loops.push_back(b.at);
  if (b.kind == Kind::kIf && b.has_else) blocks_.ifs_with_else.push_back(b.at);
}

BodyFacts BodyScan::take() {
  open_.clear();
  BodyFacts facts;
  facts.accesses_memory = std::exchange(accesses_memory_, false);
  if (blocks_.repeating_loops.empty() && blocks_.ifs_with_else.empty()) return facts;
  std::ranges::sort(blocks_.repeating_loops);
  std::ranges::sort(blocks_.ifs_with_else);
  facts.blocks = std::make_unique<const BodyFacts::Blocks>(std::exchange(blocks_, {}));
  return facts;
}

}  // namespace uptier::wasm
