// The collector of examples/calc: every reachable object is kept, in every tier and under every
// stress plan, wherever its last reference is; and memory is reused.
//
// Dead objects are overwritten (--collect=every:N), so a missed reference is noticed.
#include "test_paths.h"
#include "tests/support/calc_runs.h"

#ifdef UPTIER_CALC

namespace uptier::test::calc_collect_test {
namespace {

class CalcCollected : public testing::TestWithParam<CalcRun> {};

TEST_P(CalcCollected, prints_what_is_expected) { expect_prints(GetParam(), "--collect=every:7 "); }

INSTANTIATE_TEST_SUITE_P(Programs, CalcCollected,
                         testing::Combine(testing::ValuesIn(kPrograms), testing::ValuesIn(kModes)),
                         name_of);

// A last reference in each kind of place.
TEST_F(Calc, last_references_lie_in_registers_and_frames) {
  expect_everywhere(R"(
fn pair(a, b) { return {a: a, b: b} }
fn deep(n, kept) {
  if n == 0 { return [kept.a, "bottom" + str(n)] }
  let under = deep(n - 1, pair(kept.a + "x", n))
  return [under[0], under[1] + str(kept.b)]
}
let sum = 0
let last = ""
for i in 0..120 {
  let d = deep(8, pair("k" + str(i), i))
  sum = sum + len(d[0]) + len(d[1])
  last = d[0] + d[1]
}
print(sum, last)
)",
                    "3260 k119xxxxxxxxbottom02345678119\n");
}

TEST_F(Calc, last_references_lie_in_arguments_and_results) {
  expect_everywhere(R"(
fn add(n) { return fn(x) { return x + n } }
fn twice(f) { return fn(x) { return f(f(x)) } }
fn words(a, b, c) { return a + b + c }
fn counter() {
  let n = 0
  let log = []
  return {next: fn() { n = n + 1 push(log, "n" + str(n)) return log[n - 1] }, log: log}
}
let sum = 0
let text = ""
for i in 0..150 {
  sum = sum + twice(twice(add(i)))(1) + add(0.5)(i)
  text = words("<" + str(i), words(str(i + 1), "", "," + str(i)), ">" + "")
  let c = counter()
  c.next()
  sum = sum + len(c.next()) + len(c.log)
}
print(sum, text)
)",
                    "56700 <149150,149>\n");
}

TEST_F(Calc, last_references_lie_in_loops_over_elements) {
  expect_everywhere(R"(
fn make(n) {
  let a = []
  for i in 0..n { push(a, {v: i + 0.5, name: "e" + str(i)}) }
  return a
}
fn sum_of(a) {
  let s = 0
  for i in 1..len(a) {
    let made = {v: a[i - 1].v, name: a[i].name + "."}
    s = s + made.v + len(made.name)
  }
  return s
}
fn sum_to(n) { return sum_of(make(n)) }
let s = 0
for k in 0..60 { s = s + sum_to(k % 12 + 1) + sum_of(array(3, {v: k, name: "x"})) }
print(s)
)",
                    "6050\n");
}

// sub() makes its result from an address far inside a text that nothing else may refer to.
TEST_F(Calc, last_references_point_far_into_objects) {
  expect_everywhere(R"(
fn repeated(k) {
  let s = "0123456789" + str(k)
  for i in 0..13 { s = s + s }
  return s
}
fn part(k) { return sub(repeated(k), 60000, 60010) }
let right = 0
for k in 10..70 { if part(k) == "0123456789" { right = right + 1 } }
print(right)
)",
                    "60\n");
}

// Code compares a call's function with the one it has always met. If that function were collected,
// the next function could have its address and be taken for it.
TEST_F(Calc, functions_that_code_compares_with_stay) {
  expect_everywhere(R"(
let f = fn(x) { return x + 1 }
fn go(x) { return f(x) }
fn sum_to(n) {
  let s = 0
  for i in 0..n { s = s + go(i) }
  return s
}
let s = sum_to(300)
f = nil
array(40, 0)
f = fn(x) { return x * 2 }
print(s, sum_to(300))
)",
                    "45150 89700\n");
}

// A new closure for each call has the address of the last one, so the address looks like a value
// that never changes, and the callee gets a version specialized on it.
TEST_F(Calc, last_reference_is_a_parameter_that_is_taken_to_be_known) {
  std::string path = file(R"(
fn each(f, n) {
  let s = 0
  for i in 0..n { s = s + f(i) + len(str(i)) }
  return s
}
fn go(k) { return each(fn(x) { return x + k }, 20) }
let sum = 0
for k in 0..20000 { sum = sum + go(k) }
print(sum)
)");
  RunResult r = run_calc(
      "--report --collect=every:1 -O workers=0 -O measure_rates=off -O value_samples=16 " + path);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "4004200000\n");
  EXPECT_NE(r.err.find("specialize         parameter 2 is -"), std::string::npos) << r.err;
}

TEST_F(Calc, memory_is_used_again_in_every_tier) {
  std::string path = file(R"(
fn churn(n) {
  let kept = []
  for i in 0..50 { push(kept, {text: "kept" + str(i), all: array(100, i)}) }
  let length = 0
  for i in 0..n {
    let big = array(i % 7 * 1000, i)
    let text = "some text " + str(i)
    let f = fn(x) { return x + len(text) + len(big) }
    length = length + f(1)
    push(big, f)
  }
  for i in 0..50 { length = length + len(kept[i].text) + kept[i].all[99] }
  return length
}
print(churn(20000))
)");
  for (const CalcMode& mode : kModes) {
    RunResult r = run_calc(std::string("--memory=12 ") + mode.flags + " " + path);
    EXPECT_EQ(r.signal, 0) << mode.name;
    EXPECT_EQ(r.code, 0) << mode.name << ": " << r.err;
    EXPECT_EQ(r.out, "60307405\n") << mode.name;
  }
}

// Memory is full before as much was allocated as is kept in the end.
TEST_F(Calc, memory_is_used_again_where_most_of_it_stays) {
  std::string path = file(R"(
let kept = []
for i in 0..900 { push(kept, array(1000, i)) }
let sum = 0
for i in 0..3000 { sum = sum + array(1000, i)[999] }
print(sum, len(kept))
)");
  for (const CalcMode& mode : kModes) {
    RunResult r = run_calc(std::string("--memory=12 ") + mode.flags + " " + path);
    EXPECT_EQ(r.code, 0) << mode.name << ": " << r.err;
    EXPECT_EQ(r.out, "4498500 900\n") << mode.name;
  }
}

// Small arrays that are kept reuse the memory of arrays full of references. If the collector still
// looked at those references, every later node would be kept, and memory would run out. (That does
// happen if a suspended frame holds an old node: a loop that is entered in the middle leaves stale
// registers in the interpreter.)
TEST_F(Calc, what_memory_was_before_holds_nothing) {
  std::string path = file(R"(
fn node() { return {next: nil, all: array(100, 0)} }
let kept = []
let last = node()
for i in 0..20000 {
  let before = [[last, last, last, last], [last, last, last, last, last], array(124, last)]
  if i % 100 == 0 { push(kept, [[0], [0, 0, 0, 0], array(65, 0)]) }
  last.next = node()
  last = last.next
}
print(len(kept))
)");
  RunResult r = run_calc("--memory=12 --interpret " + path);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "200\n");
}

// Every third object is kept, so free memory is fragmented when it runs out. No memory in use is
// handed out, and the program ends with a message.
TEST_F(Calc, memory_in_pieces_runs_out_with_a_message) {
  std::string path = file(R"(
fn fill(kept, n, every) {
  for i in 0..n {
    let r = {a: i, b: i, c: i, d: i}
    if i % every == 0 { push(kept, r) }
  }
}
let kept = []
fill(kept, 300000, 3)
fill(kept, 3000000, 1)
)");
  for (int mib = 4; mib <= 16; ++mib) {
    RunResult r = run_calc("--memory=" + std::to_string(mib) + " " + path);
    EXPECT_EQ(r.signal, 0) << mib;
    EXPECT_EQ(r.code, 1) << mib;
    EXPECT_NE(r.err.find("out of memory"), std::string::npos) << mib << ": " << r.err;
  }
}

TEST_F(Calc, collections_are_in_the_report) {
  std::string path = file("let s = \"\"\nfor i in 0..400 { s = \"a\" + str(i) }\nprint(s)\n");
  for (const char* mode : {"--interpret ", ""}) {
    RunResult r = run_calc(std::string("--report --collect=every:2 ") + mode + path);
    EXPECT_EQ(r.out, "a399\n");
    EXPECT_NE(r.err.find("collector: 4"), std::string::npos) << r.err;  // 400 and a few
    EXPECT_NE(r.err.find(" found dead, "), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace uptier::test::calc_collect_test

#endif
