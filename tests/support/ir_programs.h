// ir_programs.h: IR text that several tests embed. Macros, so that it can be concatenated with
// other literals.
#pragma once

// fib(n): the recursive Fibonacci function.
#define UPTIER_TEST_FIB       \
  "func @fib(i64) -> i64 {\n" \
  "b0(v0: i64):\n"            \
  "  v1 = const.i64 2\n"      \
  "  v2 = lt_s.i64 v0, v1\n"  \
  "  branch v2, b1, b2\n"     \
  "b1:\n"                     \
  "  return v0\n"             \
  "b2:\n"                     \
  "  v3 = const.i64 1\n"      \
  "  v4 = sub.i64 v0, v3\n"   \
  "  v5 = call @fib(v4)\n"    \
  "  v6 = sub.i64 v0, v1\n"   \
  "  v7 = call @fib(v6)\n"    \
  "  v8 = add.i64 v5, v7\n"   \
  "  return v8\n"             \
  "}\n"
