// ir_programs.h: text of IR that several tests have in theirs. Literals, so that they join others.
#pragma once

// fib(n): calls itself as often as it takes.
#define UPTIER_TEST_FIB \
  R"(func @fib(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 2
  v2 = lt_s.i64 v0, v1
  branch v2, b1, b2
b1:
  return v0
b2:
  v3 = const.i64 1
  v4 = sub.i64 v0, v3
  v5 = call @fib(v4)
  v6 = sub.i64 v0, v1
  v7 = call @fib(v6)
  v8 = add.i64 v5, v7
  return v8
}
)"
