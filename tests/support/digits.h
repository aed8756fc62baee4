// digits.h: a loop that divides by a loop-invariant value, given as a parameter or loaded from
// memory.
#pragma once

#include <cstdint>
#include <string>

namespace uptier::test {

// Returns a body that adds up i / d + i % d for all i below n. `n` and `d` are the names of the
// values that hold n and d.
inline std::string digits_body(const std::string& n, const std::string& d) {
  return R"(  v2 = const.i32 0
  jump b1(v2, v2)
b1(v3: i32, v4: i32):
  loop_header
  v5 = lt_s.i32 v3, )" +
         n + R"(
  branch v5, b2, b3
b2:
  v6 = div_u.i32 v3, )" +
         d + R"(
  v7 = rem_u.i32 v3, )" +
         d + R"(
  v8 = add.i32 v4, v6
  v9 = add.i32 v8, v7
  v10 = const.i32 1
  v11 = add.i32 v3, v10
  jump b1(v11, v9)
b3:
  return v4
}
)";
}

// digits(n, d): n and d are parameters.
inline const std::string kDigits = R"(
func @digits(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
)" + digits_body("v0", "v1");

// load_digits(p, n): the same with d loaded from p, where a host probe observes it.
inline const std::string kLoadDigits = R"(
func @load_digits(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v12 = load.i32 v0
  probe value v12
)" + digits_body("v1", "v12");

inline uint64_t digits(uint32_t n, uint32_t d) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += i / d + i % d;
  return sum;
}

}  // namespace uptier::test
