// pick_program.h: a method that goes one of two ways, and a runtime that follows what it does.
#pragma once

#include <string>

#include "uptier/options.h"

namespace uptier::test {

// pick(x): x + 5 where x is not 0, else 7 x.
inline const std::string kPick = R"(
func @pick(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  v1 = const.i32 5
  v2 = add.i32 v0, v1
  jump b3(v2)
b2:
  v3 = const.i32 7
  v4 = mul.i32 v0, v3
  jump b3(v4)
b3(v5: i32):
  return v5
}
)";

inline constexpr uint64_t kPickInterval = 16;

// Deterministic: whoever flushes does the worker's work, and nothing is measured.
inline Options following() {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kAlways;
  o.optimized_interval = kPickInterval;
  o.copy_after = 1 << 16;
  o.overhead_budget = 0;
  o.measure_rates = false;
  return o;
}

}  // namespace uptier::test
