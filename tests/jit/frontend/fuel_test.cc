// Fuel: an invoke runs a limited number of calls and iterations, the same number in every tier and
// stress mode.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "jit/frontend/add_fuel.h"
#include "jit/frontend/verify.h"
#include "jit/opt/passes.h"
#include "sampler/fuel.h"
#include "tests/support/ir_programs.h"
#include "tests/support/opt_harness.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::fuel_test {
namespace {

constexpr uint64_t kMuch = uint64_t{1} << 40;

struct Mode {
  const char* name;
  std::vector<std::pair<const char*, const char*>> settings;
};

const Mode kModes[] = {
    {"baseline", {{"tier", "baseline"}}},
    {"optimized", {{"tier", "optimized"}}},
    {"not_inlined", {{"tier", "optimized"}, {"inlining", "off"}}},
    {"instrumented", {{"tier", "instrumented"}}},
    {"sampled", {{"interval", "1"}, {"workers", "0"}, {"policy", "never"}}},
    {"always", {{"policy", "always"}, {"workers", "0"}, {"interval", "2"}, {"flush_first", "2"}}},
    {"osr", {{"stress", "osr=all"}, {"policy", "never"}}},
    {"osr_second", {{"stress", "osr=every:2"}, {"policy", "never"}}},
    {"copies", {{"stress", "copy=every:2"}, {"policy", "never"}}},
    {"guards", {{"tier", "optimized"}, {"stress", "guard=all"}}},
    {"some_guards", {{"tier", "optimized"}, {"stress", "guard=every:3"}}},
    {"osr_out", {{"policy", "never"}, {"stress", "osr=all,osr_out=every:2"}}},
    {"values",
     {{"policy", "always"}, {"flush_first", "1"}, {"workers", "0"}, {"stress", "values=all"}}},
    {"flips",
     {{"policy", "always"}, {"flush_first", "1"}, {"workers", "0"}, {"stress", "flip=every:2"}}},
};

Options options_of(const Mode& m) {
  Options o;
  o.fuel = kMuch;
  for (auto [name, value] : m.settings) {
    Status s = o.set(name, value);
    EXPECT_TRUE(s) << s.error().message;
  }
  return o;
}

// A host function that invokes another method, and measures how much fuel that takes.
struct Measured {
  Runtime* runtime = nullptr;
  MethodId method;
  std::vector<uint64_t> args;
  InvokeLimits limits;
  Outcome outcome;
  uint64_t used = 0;
};
Measured g_measured;

extern "C" void fuel_test_measure() {
  Runtime& r = *g_measured.runtime;
  uint64_t before = r.fuel_left();
  g_measured.outcome = r.invoke(g_measured.method, g_measured.args, g_measured.limits);
  g_measured.used = before - r.fuel_left();
}

const std::vector<HostFunction>& hosts() {
  static const std::vector<HostFunction> all = [] {
    std::vector<HostFunction> h(corpus_hosts().begin(), corpus_hosts().end());
    h.push_back({"measure", reinterpret_cast<const void*>(fuel_test_measure), {{}, Type::kNone}});
    return h;
  }();
  return all;
}

constexpr const char* kMeasure = R"(
func @measure_it() -> i64 {
b0:
  call_host @measure.() () may_trap
  v0 = const.i64 0
  return v0
}
)";

// Adds @measure_it to a module.
jit::Module with_measure(jit::Module m) {
  jit::Module more = parse_or_die(kMeasure, hosts());
  m.functions.push_back(more.functions[0]);
  return m;
}

Measured measure(IrRuntime& r, std::string_view method, std::vector<uint64_t> args,
                 InvokeLimits limits = {}) {
  g_measured = {r.runtime.get(), r.method(method), std::move(args), limits, {}, 0};
  EXPECT_TRUE(r.call("measure_it", {}).ok());
  return g_measured;
}

constexpr const char* kPrograms = R"(
func @leaf(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 3
  v2 = mul.i64 v0, v1
  return v2
}
func @nest(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 0
  v2 = const.i64 1
  jump b1(v0, v1)
b1(v3: i64, v4: i64):
  loop_header 0 pc=0 []
  jump b2(v0, v4)
b2(v5: i64, v6: i64):
  loop_header 1 pc=0 []
  v7 = call @leaf(v6)
  v8 = add.i64 v7, v5
  v9 = sub.i64 v5, v2
  branch v11, b2(v9, v8), b3
b3:
  v12 = sub.i64 v3, v2
  branch v13, b1(v12, v8), b4
b4:
  return v8
}
)" UPTIER_TEST_FIB;

uint64_t fib_calls(uint64_t n) { return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2); }

struct Case {
  const char* method;
  uint64_t arg;
  uint64_t units;
};

const Case kCases[] = {
    {"leaf", 5, 1}, {"nest", 7, 1 + 7 + 2 * 7 * 7}, {"nest", 100, 1 + 100 + 2 * 100 * 100},
    {"sum", 1, 2},  {"sum", 10000, 10001},          {"fib", 15, fib_calls(15)},
};

jit::Module programs() {
  std::string text = kPrograms;
  // Defines the conditions of @nest.
  auto define = [&](const char* after, const char* line) {
    size_t at = text.find(after);
    text.insert(at + std::string(after).size(), line);
  };
  define("v9 = sub.i64 v5, v2\n", "  v11 = ne.i64 v9, v1\n");
  define("v12 = sub.i64 v3, v2\n", "  v13 = ne.i64 v12, v1\n");
  return with_measure(parse_or_die(text + kSumText, hosts()));
}

TEST(Fuel, a_call_takes_the_same_in_every_mode) {
  for (const Mode& mode : kModes) {
    IrRuntime r(programs(), options_of(mode));
    ThreadScope scope(*r.runtime);
    for (int round = 0; round < 4; ++round) {
      for (const Case& c : kCases) {
        SCOPED_TRACE(std::string(mode.name) + ", " + c.method + " " + std::to_string(c.arg));
        Measured m = measure(r, c.method, {c.arg});
        EXPECT_TRUE(m.outcome.ok());
        EXPECT_EQ(m.used, c.units);
      }
    }
  }
}

TEST(Fuel, what_it_takes_is_enough_and_one_less_is_not) {
  for (const Mode& mode : kModes) {
    IrRuntime r(programs(), options_of(mode));
    ThreadScope scope(*r.runtime);
    for (int round = 0; round < 4; ++round) {
      for (const Case& c : kCases) {
        SCOPED_TRACE(std::string(mode.name) + ", " + c.method + " " + std::to_string(c.arg));
        EXPECT_TRUE(measure(r, c.method, {c.arg}, {.fuel = c.units}).outcome.ok());
        if (c.units == 1) continue;  // 0 would mean the option's limit
        Measured less = measure(r, c.method, {c.arg}, {.fuel = c.units - 1});
        EXPECT_EQ(less.outcome.trap.code, TrapCode::kOutOfFuel);
        EXPECT_EQ(less.used, c.units - 1);
      }
    }
  }
}

TEST(Fuel, random_programs_take_the_same_in_every_mode) {
  Scratch scratch;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<uint64_t> expected;
    for (const Mode& mode : kModes) {
      IrRuntime r(with_measure(random_module(seed)), options_of(mode));
      ThreadScope scope(*r.runtime);
      for (int round = 0; round < 3; ++round) {
        std::vector<uint64_t> used;
        for (const jit::Function& f : r.module.functions) {
          if (f.name == "measure_it") continue;
          scratch.fill();
          std::vector<uint64_t> args(f.signature().params.size(), 3);
          args[0] = reinterpret_cast<uintptr_t>(scratch.data());
          used.push_back(measure(r, f.name, args).used);
        }
        if (expected.empty()) expected = used;
        EXPECT_EQ(used, expected) << mode.name << ", seed " << seed << ", round " << round;
      }
    }
  }
}

TEST(Fuel, limits_of_an_outer_invoke_hold_inside) {
  IrRuntime r(programs(), options_of(kModes[0]));
  ThreadScope scope(*r.runtime);
  g_measured = {r.runtime.get(), r.method("sum"), {1000}, {.fuel = 1'000'000}, {}, 0};
  uint64_t none = 0;
  Outcome o = r.runtime->invoke(r.method("measure_it"), std::span(&none, 0), {.fuel = 100});
  EXPECT_EQ(g_measured.outcome.trap.code, TrapCode::kOutOfFuel);
  EXPECT_EQ(g_measured.used, 99u);
  EXPECT_TRUE(o.ok());  // after the inner invoke it executes no further call or loop
  EXPECT_EQ(r.runtime->fuel_left(), UINT64_MAX);
}

TEST(Fuel, a_limit_without_the_option_is_refused) {
  IrRuntime r(parse_or_die(kSumText), {});
  uint64_t n = 10;
  EXPECT_EQ(r.runtime->invoke(r.method("sum"), {&n, 1}, {.fuel = 100}).trap.code,
            TrapCode::kBadCall);
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Fuel, optimized_code_counts_and_asks_by_one_instruction) {
  jit::Module m = programs();
  jit::add_fuel(m.functions[0]);
  CodeMachine machine;
  OptimizedModule code(machine, m);
  const jit::Code& leaf = *code.codes()[0];
  std::string text = disassemble(leaf.base(), leaf.size());
  EXPECT_EQ(count_of(text, "fs:"), 1u) << text;
  EXPECT_EQ(count_of(text, "test"), 0u) << text;
}

TEST(Fuel, counts_that_nothing_lies_between_become_one) {
  jit::Module m = programs();
  jit::Function& leaf = m.functions[0];
  for (int n = 0; n < 3; ++n) jit::add_fuel(leaf);
  jit::gvn(leaf);
  jit::store_to_load_forwarding(leaf, false);
  jit::merge_fuel(leaf);
  jit::dce(leaf);
  std::string text = jit::to_text(leaf);
  EXPECT_TRUE(jit::verify(leaf, jit::Stage::kTransformed)) << text;
  EXPECT_EQ(count_of(text, "store.i64"), 1u) << text;
  EXPECT_EQ(count_of(text, "trap_if"), 1u) << text;
  EXPECT_EQ(count_of(text, "const.i64 -3"), 1u) << text;
  // With a store between them that others can see, both stay.
  jit::Module seen = parse_or_die(R"(
func @f(ref) -> i64 {
b0(v0: ref):
  v1 = const.i64 3
  store.i64 v1, v0
  return v1
}
)");
  jit::Function& f = seen.functions[0];
  jit::add_fuel(f);
  std::vector<jit::InstId> counts(f.block(f.entry()).insts);
  const size_t own = 3;  // constant, store, return
  counts.resize(counts.size() - own);
  std::vector<jit::InstId> body(f.block(f.entry()).insts);
  body.erase(body.begin(), body.begin() + static_cast<ptrdiff_t>(counts.size()));
  jit::add_fuel(f);
  std::vector<jit::InstId> second(f.block(f.entry()).insts);
  second.resize(counts.size());
  std::vector<jit::InstId> all(counts);
  all.insert(all.end(), body.begin(), body.end() - 1);
  all.insert(all.end(), second.begin(), second.end());
  all.push_back(body.back());
  f.block(f.entry()).insts.assign(all.begin(), all.end());
  jit::gvn(f);
  jit::store_to_load_forwarding(f, false);
  jit::merge_fuel(f);
  EXPECT_EQ(count_of(jit::to_text(f), "trap_if"), 2u) << jit::to_text(f);
}

TEST(Fuel, what_is_placed_passes_the_verifier_and_reads_back) {
  jit::Module m = programs();
  for (jit::Function& f : m.functions) {
    jit::add_fuel(f);
    EXPECT_TRUE(jit::verify(f)) << jit::to_text(f);
  }
  std::string text = jit::to_text(m.functions[2]);
  EXPECT_NE(text.find(" fuel class 15"), std::string::npos);
}

}  // namespace
}  // namespace uptier::test::fuel_test
