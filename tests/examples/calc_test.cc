// The second client, examples/calc, as a process: its programs and their errors print the same in
// every tier and under every stress plan.
#include <cstring>

#include "test_paths.h"
#include "tests/support/calc_runs.h"

#ifdef UPTIER_CALC

namespace uptier::test::calc_test {
namespace {

class CalcMatrix : public testing::TestWithParam<CalcRun> {};

TEST_P(CalcMatrix, prints_what_is_expected) { expect_prints(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Programs, CalcMatrix,
                         testing::Combine(testing::ValuesIn(kPrograms), testing::ValuesIn(kModes)),
                         name_of);

// A stress run must force something, or it has tested nothing.
TEST(CalcStress, forces_guards_in_every_program) {
  for (const CalcMode& mode : kModes) {
    if (*mode.forces == 0) continue;
    for (const CalcProgram& program : kPrograms) {
      RunResult r = run_calc(std::string("--report ") + mode.flags + " " + path_of(program.name));
      EXPECT_EQ(r.out, program.prints) << mode.name;
      size_t at = r.err.find(std::string(mode.forces) + " ", r.err.find("stress: "));
      ASSERT_NE(at, std::string::npos) << program.name << " " << mode.name;
      EXPECT_GT(std::atoi(r.err.c_str() + at + std::strlen(mode.forces)), 0)
          << program.name << " " << mode.name;
    }
  }
}

TEST_F(Calc, values_and_operators) {
  expect_everywhere(R"(
print(1, 2.5, "text", nil, true, [1, 2], {a: 1}, fn() { })
print(7 / 2, 7 // 2, -7 // 2, 7 % 3, -7 % 3, 7.5 % 2, 1 / 3)
print(1 < 2, 2 <= 1, "a" < "b", 1 == 1.0, "ab" == "a" + "b", nil == false, not nil)
print(nil and 1, false or 2, 1 and 2, 1 or 2)
print(2147483647 + 1, -2147483648 - 1, 65536 * 65536, -(-2147483648), 1 / -(0))
let r = {x: 1}
r.y = 2  r.z = 3  r.a = 4  r.b = 5  r.c = 6  r.d = 7  r.e = 8
print(r.x + r.y + r.z + r.a + r.b + r.c + r.d + r.e)
let a = [1, 2, 3]
push(a, 4)
a[0] = a[3] * 10
print(a[0], len(a), pop(a), len(a), len("four"), sub("abcdef", 2, 4), byte("a", 0))
)",
                    "1 2.5 text nil true array of 2 record function function\n"
                    "3.5 3 -4 1 -1 1.5 0.33333333333333\n"
                    "true false true true true false true\n"
                    "nil 2 2 1\n"
                    "2147483648 -2147483649 4294967296 2147483648 -inf\n"
                    "36\n"
                    "40 4 4 3 4 cd 97\n");
}

TEST_F(Calc, int_loops_become_doubles_where_they_overflow) {
  expect_everywhere(R"(
fn power(n) {
  let x = 1
  for i in 0..n { x = x * 3 }
  return x
}
fn sum(n, step) {
  let s = 0
  for i in 0..n { s = s + step }
  return s
}
for i in 0..60 { power(10) sum(50, 1) }
print(power(19), power(20), power(25), sum(3000, 1000000), sum(3000, 0.5), sum(10, -1))
)",
                    "1162261467 3486784401 847288609443 3000000000 1500 -10\n");
}

// Recursion is inlined to some levels; a guard may fail in each of them.
TEST_F(Calc, recursions_become_doubles_at_whatever_level_they_overflow) {
  expect_everywhere(R"(
fn factorial(n) {
  if n < 2 { return 1 }
  return n * factorial(n - 1)
}
fn grows(n, step) {
  if n == 0 { return step }
  return grows(n - 1, step + step) + grows(n - 1, step) - step
}
for i in 0..30000 { factorial(i % 12) grows(i % 5, 1) }
for i in 0..4 { print(factorial(11 + i), factorial(12 + i), grows(9, 10000000 + i)) }
print(factorial(18), grows(3, 0.5))
)",
                    "39916800 479001600 98420000000\n"
                    "479001600 6227020800 98420009842\n"
                    "6227020800 87178291200 98420019684\n"
                    "87178291200 1307674368000 98420029526\n"
                    "6.402373705728e+15 7\n");
}

TEST_F(Calc, numbers_and_strings_compare_alike_in_all_forms) {
  expect_everywhere(R"(
fn less(a, b) {
  let n = 0
  if a < b { n = n + 1 }
  if a <= b { n = n + 10 }
  if a > b { n = n + 100 }
  if a >= b { n = n + 1000 }
  if a == b { n = n + 10000 }
  if a != b { n = n + 100000 }
  if not (a < b) { n = n + 1000000 }
  return n
}
fn to_two(a) {
  let n = 0
  if a < 2 { n = n + 1 }
  if a <= 2 { n = n + 10 }
  if a > 2 { n = n + 100 }
  if a >= 2 { n = n + 1000 }
  if a == 2 { n = n + 10000 }
  if a != 2 { n = n + 100000 }
  if not (a > 2) { n = n + 1000000 }
  return n
}
fn pick(i, a, b) {
  if i % 3 == 0 { return a }
  return b
}
for k in 0..60 { less(k, 30) to_two(k) }
print(less(1, 2), less(2, 2), less(3, 2), to_two(1), to_two(2), to_two(3))
for k in 0..60 { less(k + 0.5, 30) to_two(k + 0.5) }
print(less(1.5, 2), less(2.5, 2), less(1, 2.5), to_two(1.5), to_two(2.5))
let nan = 0 / 0
print(less(nan, 1), less(1, nan), to_two(nan), nan == nan)
for k in 0..60 { less("a", "b") }
print(less("a", "b"), less("b", "b"), less("b", "a"), "a" == 1)
let sum = 0
for k in 0..300 { sum = sum + less(pick(k, 1, 0.5), pick(k + 1, 2, 1.5)) }
print(sum)
)",
                    "100011 1011010 1101100 1100011 1011010 101100\n"
                    "100011 1101100 100011 1100011 101100\n"
                    "1100000 1100000 1100000 false\n"
                    "100011 1011010 1101100 false\n"
                    "30003300\n");
}

TEST_F(Calc, loop_s_bounds_are_whatever_counts) {
  expect_everywhere(R"(
fn count(from, to) {
  let n = 0
  for i in from..to { n = n + 1 }
  return n
}
for k in 0..100 { count(0, k) }
print(count(0, 10), count(0, 9.5), count(-3.0, 3), count(5, 5), count(5, 1), count(0.0, 1))
let fs = []
for i in 0..3 { push(fs, fn() { return i * 10 }) }
print(fs[0]() + fs[1]() + fs[2]())
let i = 0
while true {
  i = i + 1
  if i % 2 == 0 { continue }
  if i > 7 { break }
}
print(i)
)",
                    "10 10 6 0 0 1\n30\n9\n");
}

// Code that the plan has not seen is left to the interpreter, which re-enters the loop with
// registers that no described path has changed: constants, and variables that had the same value.
TEST_F(Calc, loops_are_entered_with_what_the_interpreter_has_made_of_registers) {
  expect_everywhere(R"(
fn flagged(n, a) {
  let flag = 0
  let s = 0
  for i in 0..n {
    if i == n // 4 { flag = a[0] }
    s = s + flag
  }
  return s
}
fn doubled(n, a, x) {
  let b = x
  let s = 0
  for i in 0..n {
    if i == n // 4 { b = b + a[0] }
    s = s + b - x
  }
  return s
}
print(flagged(20000, [1]), doubled(20000, [1], 3), doubled(20000, [0.5], 2.5))
)",
                    "15000 15000 7500\n");
}

// The worker directs calls to instrumented code while the thread is in a long call.
TEST_F(Calc, interpreted_methods_get_counters_before_code_that_counts) {
  std::string path = file(R"(
let filler = array(4000, 12345)
fn make(n) {
  let a = []
  for i in 0..n { join(filler) push(a, {v: i + 0.5, name: "e" + str(i)}) }
  return a
}
fn sum_of(a) {
  let s = 0
  for i in 1..len(a) {
    join(filler)
    let made = {v: a[i - 1].v, name: a[i].name + "."}
    s = s + made.v + len(made.name)
  }
  return s
}
fn sum_to(n) { return sum_of(make(n)) }
let s = 0
for k in 0..60 { s = s + sum_to(k % 12 + 1) + sum_of(array(3, {v: k, name: "x"})) }
print(s)
)");
  for (int n = 0; n < 3; ++n) {
    RunResult r = run_calc("-O interval=1 -O adaptive=off " + path);
    EXPECT_EQ(r.signal, 0);
    EXPECT_EQ(r.out, "6050\n") << r.err;
  }
}

TEST_F(Calc, minus_zero_is_a_double) {
  expect_everywhere(R"(
fn times(a, b) { return a * b }
fn minus(a) { return -a }
for i in 1..200 { times(i, i) minus(i) }
print(1 / times(0, -5), 1 / times(5, 0), 1 / minus(0))
)",
                    "-inf inf -inf\n");
}

TEST_F(Calc, errors_name_the_line_in_every_tier) {
  const std::string warm = R"(
fn f(a, b) {
  return a + b
}
for i in 0..500 { f(i, 1) }
print("warm")
)";
  expect_everywhere(warm + "f(1, \"x\")\n", "warm\n",
                    "line 3, in f: cannot compute with a number and a string", 1);
  expect_everywhere(warm + "let r = {a: 1}\nprint(r.b)\n", "warm\n",
                    "line 8, in main: the record has no field 'b'", 1);
  expect_everywhere(R"(
fn get(a, i) { return a[i] }
let a = [1, 2, 3]
for i in 0..300 { get(a, i % 3) }
get(a, 3)
)",
                    "", "line 2, in get: 3 is no index of an array of 3", 1);
  expect_everywhere(R"(
fn go(f) { return f(1) }
for i in 0..300 { go(fn(x) { return x }) }
go(7)
)",
                    "", "line 2, in go: cannot call a number", 1);
  expect_everywhere(R"(
fn go(f) { return f(1) }
for i in 0..300 { go(fn(x) { return x }) }
go(fn(x, y) { return x })
)",
                    "", "line 2, in go: function takes 2 arguments, not 1", 1);
}

TEST_F(Calc, endless_recursion_is_an_error_in_every_tier) {
  std::string path = file("fn f(n) { return f(n + 1) + 1 }\nf(0)\n");
  for (const CalcMode& mode : kModes) {
    RunResult r = run_calc(std::string(mode.flags) + " " + path);
    EXPECT_EQ(r.signal, 0) << mode.name;
    EXPECT_EQ(r.code, 1) << mode.name;
    bool said = r.err.find("the stack is full") != std::string::npos ||
                r.err.find("call stack exhausted") != std::string::npos;
    EXPECT_TRUE(said) << mode.name << ": " << r.err;
  }
}

TEST_F(Calc, arena_that_is_full_is_an_error_in_every_tier) {
  std::string path = file(
      "fn f(n) {\n  let a = []\n  for i in 0..n { push(a, {x: i}) }\n  return len(a)\n}\n"
      "for i in 0..100 { f(10) }\nprint(\"warm\")\nprint(f(100000000))\n");
  for (const CalcMode& mode : kModes) {
    RunResult r = run_calc(std::string(mode.flags) + " --memory=64 " + path);
    EXPECT_EQ(r.signal, 0) << mode.name;
    EXPECT_EQ(r.code, 1) << mode.name;
    EXPECT_EQ(r.out, "warm\n") << mode.name;
    std::string said = ": line 3, in f: out of memory: the arena holds 64 MiB (--memory=MIB)\n";
    EXPECT_NE(r.err.find(said), std::string::npos) << mode.name << ": " << r.err;
  }
}

TEST_F(Calc, programs_that_are_none_are_refused_with_the_line) {
  const char* const kCases[][2] = {
      {"let = 3\n", "line 1: expected a name, found '='"},
      {"print(x)\n", "line 1: no variable is called 'x'"},
      {"\nfor i in 0..3 { i = 1 }\n", "line 2: a loop's variable is constant"},
      {"1 = 2\n", "line 1: this cannot be assigned to"},
      {"print(\"a)\n", "line 1: the string has no end"},
      {"len(1, 2)\n", "line 2: len takes 1 arguments"},
      {"fn f(a, b, c, d, e, f, g) { }\n", "line 1: a function has 6 parameters at most"},
      {"if true {\n", "line 2: '' begins no expression"},
  };
  for (const auto& [source, error] : kCases) {
    std::string path = file(source);
    RunResult r = run_calc(path);
    EXPECT_EQ(r.code, 2) << source;
    EXPECT_EQ(r.err, "calc: " + path + ": " + error + "\n") << source;
  }
}

TEST_F(Calc, options_that_are_none_are_refused) {
  EXPECT_EQ(run_calc("--tier=fast x.calc").code, 2);
  EXPECT_EQ(run_calc("--no-such-thing x.calc").code, 2);
  EXPECT_EQ(run_calc("-O interval x.calc").code, 2);
  EXPECT_EQ(run_calc("/no/such/file.calc").code, 2);
  EXPECT_EQ(run_calc("").code, 2);
  RunResult help = run_calc("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(help.out.starts_with("usage: calc ")) << help.out;
}

// A type that changes all the time becomes generic in the end: the number of exits is bounded,
// however long the program runs.
TEST_F(Calc, storm_of_types_calms_down) {
  auto exits_of = [](const std::string& size) {
    RunResult r =
        run_calc("--report -O workers=0 -O measure_rates=off " + path_of("storm") + " " + size);
    EXPECT_EQ(r.code, 0) << r.err;
    uint64_t sum = 0;
    for (size_t at = 0; (at = r.err.find(", exits ", at)) != std::string::npos; ++at) {
      sum += std::strtoull(r.err.c_str() + at + 8, nullptr, 10);
    }
    return sum;
  };
  uint64_t some = exits_of("1000"), more = exits_of("4000");
  EXPECT_GT(some, 20u) << "the storm did not storm";
  EXPECT_EQ(more, some);
}

TEST_F(Calc, guards_of_compiled_code_do_fail_and_are_counted) {
  RunResult r = run_calc("--report -O workers=0 " + path_of("storm") + " 1000");
  EXPECT_NE(r.err.find("speculation: plus: plans "), std::string::npos) << r.err;
  RunResult calm = run_calc("--report -O workers=0 " + path_of("nbody"));
  EXPECT_EQ(calm.err.find("speculation: advance: plans"), std::string::npos) << calm.err;
}

TEST_F(Calc, automatic_runs_do_leave_the_interpreter) {
  RunResult r = run_calc("--report -O workers=0 " + path_of("records"));
  EXPECT_NE(r.err.find("optimized"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("\ndeposit "), std::string::npos) << r.err;
}

}  // namespace
}  // namespace uptier::test::calc_test

#endif
