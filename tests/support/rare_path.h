// rare_path.h: a loop with a path that only large arguments take, for tests of speculation.
#pragma once

#include <cstdint>

namespace uptier::test {

// sum(n): the sum of 0 .. n-1; if n is above 1000, each round takes a separate path, which triples
// its term.
inline constexpr const char* kRare = R"(
func @sum(i32) -> i64 {
b0(v0: i32):
  v1 = const.i32 0
  v2 = const.i64 0
  jump b1(v1, v2)
b1(v3: i32, v4: i64):
  loop_header 0 pc=1 []
  v5 = lt_s.i32 v3, v0
  branch v5, b2, b5
b2:
  v6 = extend_s.i64 v3
  v7 = const.i32 1000
  v8 = gt_s.i32 v0, v7
  branch v8, b3, b4(v6)
b3:
  v9 = const.i64 3
  v10 = mul.i64 v6, v9
  jump b4(v10)
b4(v11: i64):
  v12 = add.i64 v4, v11
  v13 = const.i32 1
  v14 = add.i32 v3, v13
  jump b1(v14, v12)
b5:
  return v4
}
)";

inline uint64_t sum_of(uint64_t n) { return (n > 1000 ? 3 : 1) * (n * (n - 1) / 2); }

}  // namespace uptier::test
