#include "embed/wasm/scan_body.h"

#include <utility>

namespace uptier::wasm {

void BodyScan::end() {
  if (open_.empty()) return;
  OpenBlock b = open_.back();
  open_.pop_back();
  if (b.kind == Kind::kLoop && b.has_target) facts_.repeating_loops.push_back(b.at);
  if (b.kind == Kind::kIf && b.has_else) facts_.ifs_with_else.push_back(b.at);
}

BodyFacts BodyScan::take() {
  open_.clear();
  BodyFacts facts = std::exchange(facts_, {});
  std::sort(facts.repeating_loops.begin(), facts.repeating_loops.end());
  std::sort(facts.ifs_with_else.begin(), facts.ifs_with_else.end());
  return facts;
}

}  // namespace uptier::wasm
