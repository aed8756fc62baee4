// pick_program.h: a method with a two-way branch, and the options of a runtime that follows its
// behaviour.
#pragma once

#include <string>

#include "uptier/options.h"

namespace uptier::test {

// pick(x): x + 5 if x is not 0, otherwise 7 * x.
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

// Deterministic options: the thread that flushes does the worker's jobs, and nothing is measured.
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
