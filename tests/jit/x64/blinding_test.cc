// Constants that a guest chooses do not appear in code, and the code has the same results.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <set>

#include "jit/x64/blinding.h"
#include "tests/support/baseline_module.h"
#include "tests/support/hardened.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::blinding_test {
namespace {

using Use = BaselineModule::Use;

bool always_the_same(void* to, size_t bytes) {
  std::memset(to, 0x5a, bytes);
  return true;
}
bool none(void*, size_t) { return false; }

jit::Hardening blind(uint32_t above = jit::Hardening{}.blind_above) {
  return {.blind_constants = true, .blind_above = above};
}

// ---- Markers ----------------------------------------------------------------------------------

constexpr uint32_t kMarker = 0x5a6b7c3d;
constexpr uint32_t kNegative = 0xc3d4e5f6;
constexpr uint64_t kLong = 0x5d4c3b2a1c0d6e7f;

std::string number(int64_t n) { return std::to_string(n); }
std::string negative() { return number(static_cast<int32_t>(kNegative)); }
std::string marker() { return number(kMarker); }
std::string floating(double d) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", d);
  return text;
}

// One function for each way in which a constant gets into code.
std::vector<std::string> bodies() {
  auto unary = [](const std::string& type, const std::string& c, const std::string& op) {
    return "func @f(" + type + ") -> " + type + " {\nb0(v0: " + type + "):\n  v1 = const." + type +
           " " + c + "\n  v2 = " + op + "." + type + " v0, v1\n  return v2\n}\n";
  };
  auto test = [](const std::string& type, const std::string& c, const std::string& op) {
    return "func @f(" + type + ") -> i32 {\nb0(v0: " + type + "):\n  v1 = const." + type + " " + c +
           "\n  v2 = " + op + "." + type + " v0, v1\n  branch v2, b1, b2\nb1:\n  v3 = const.i32 " +
           marker() + "\n  return v3\nb2:\n  v4 = const.i32 " + negative() + "\n  return v4\n}\n";
  };
  std::vector<std::string> all;
  std::string shorts[] = {marker(), negative()};
  std::string longs[] = {marker(), number(static_cast<int32_t>(kNegative)),
                         number(static_cast<int64_t>(kLong)), number(-static_cast<int64_t>(kLong))};
  for (const char* op : {"add", "sub", "mul", "and", "or", "xor", "div_u", "rem_s"}) {
    for (const std::string& c : shorts) all.push_back(unary("i32", c, op));
    for (const std::string& c : longs) all.push_back(unary("i64", c, op));
  }
  for (const char* op : {"eq", "lt_s", "lt_u", "ge_s", "gt_u"}) {
    for (const std::string& c : shorts) all.push_back(test("i32", c, op));
    for (const std::string& c : longs) all.push_back(test("i64", c, op));
  }
  std::string f32 = floating(std::bit_cast<float>(kMarker));
  std::string f64 = floating(std::bit_cast<double>(kLong));
  for (const char* op : {"fadd", "fsub", "fmul", "fdiv", "fmin", "fcopysign"}) {
    all.push_back(unary("f32", f32, op));
    all.push_back(unary("f64", f64, op));
  }
  for (const char* op : {"flt", "feq"}) {
    all.push_back(test("f32", f32, op));
    all.push_back(test("f64", f64, op));
  }
  for (std::string c : {"i32 " + marker(), "i64 " + number(static_cast<int64_t>(kLong)),
                        "f64 " + f64, "f32 " + f32}) {
    std::string type = c.substr(0, 3);
    all.push_back("func @f() -> " + type + " {\nb0:\n  v0 = const." + c + "\n  return v0\n}\n");
    all.push_back("func @f(ref, i32) {\nb0(v0: ref, v1: i32):\n  v2 = const." + c + "\n  store." +
                  type + " v2, v0+8\n  store." + type + " v2, v0+" + marker() + "\n  store." +
                  type + " v2, v0[v1]+" + marker() + "\n  return\n}\n");
    all.push_back("func @f(ref, i32) -> " + type + " {\nb0(v0: ref, v1: i32):\n  v2 = load." +
                  type + " v0[v1]+" + marker() + "\n  return v2\n}\n");
  }
  // Beyond the range of a signed displacement.
  all.push_back("func @f(ref, i32) -> i64 {\nb0(v0: ref, v1: i32):\n  v2 = load.i64 v0[v1]+" +
                number(kNegative) + "\n  v3 = load.i64 v0+" + number(kNegative) +
                "\n  v4 = add.i64 v2, v3\n  return v4\n}\n");
  // A comparison with memory, a read-modify-write of memory, and a multiplication of a loaded
  // value.
  all.push_back(
      "func @f(ref) -> i32 {\nb0(v0: ref):\n  v1 = load.i32 v0+" + marker() +
      "\n  v2 = const.i32 " + marker() + "\n  v3 = eq.i32 v1, v2\n  branch v3, b1, b2\n" +
      "b1:\n  v4 = load.i32 v0+16\n  v5 = or.i32 v4, v2\n  store.i32 v5, v0+16\n  return v5\n" +
      "b2:\n  v6 = load.i32 v0+" + marker() + "\n  v7 = mul.i32 v6, v2\n  return v7\n}\n");
  return all;
}

// Tests whether any four consecutive bytes of a marker appear.
bool appears(const std::string& bytes, uint64_t marker, size_t size) {
  for (size_t at = 0; at + 4 <= size; ++at) {
    auto part = static_cast<uint32_t>(marker >> (8 * at));
    if (bytes.find(std::string(reinterpret_cast<const char*>(&part), 4)) != std::string::npos) {
      return true;
    }
  }
  return false;
}

bool any_appears(const jit::Code& code) {
  std::string bytes;
  for (uint32_t at = 0; at < code.size(); ++at) { bytes += *static_cast<const char*>(code.at(at)); }
  return appears(bytes, kMarker, 4) || appears(bytes, kNegative, 4) ||
         appears(bytes, 0u - kNegative, 4) || appears(bytes, 0u - kMarker, 4) ||
         appears(bytes, kLong, 8) || appears(bytes, 0 - kLong, 8);
}

// Returns in how many of the bodies a marker appears: baseline, instrumented, optimized.
std::array<size_t, 3> count_markers() {
  std::array<size_t, 3> found{};
  for (const std::string& text : bodies()) {
    auto module = jit::parse_module(text, {"markers", {}});
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message) << text;
    if (!module.ok()) continue;
    CodeMachine machine;
    BaselineModule baseline(machine, *module, Use::kPlain);
    OptimizedModule optimized(machine, *module);
    bool in[] = {any_appears(baseline.code(0, Copy::kPlain)),
                 any_appears(baseline.code(0, Copy::kInstrumented)),
                 any_appears(*optimized.codes().at(0))};
    for (size_t n = 0; n < 3; ++n) found[n] += in[n];
    if (CodeMachine::hardening.blind_constants) { EXPECT_FALSE(in[0] || in[1] || in[2]) << text; }
  }
  return found;
}

TEST(Blinding, no_constant_of_a_body_appears_in_its_code) {
  std::array<size_t, 3> plain;
  {
    Hardened off{{}};
    plain = count_markers();
  }
  for (size_t n : plain) EXPECT_GT(n, 90u) << "the markers are none: nothing is tested";
  Hardened on(blind());
  for (size_t n : count_markers()) EXPECT_EQ(n, 0u);
}

// Returns whether the four bytes of a constant are in the code of an addition of it.
bool shows(int32_t c) {
  std::string text = "func @f(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 " + number(c) +
                     "\n  v2 = add.i32 v0, v1\n  return v2\n}\n";
  jit::Module module = *jit::parse_module(text, {"constant", {}});
  CodeMachine machine;
  OptimizedModule optimized(machine, module);
  const jit::Code& code = *optimized.codes().at(0);
  std::string bytes(static_cast<const char*>(code.at(0)), code.size());
  return appears(bytes, static_cast<uint32_t>(c), 4);
}

TEST(Blinding, powers_of_two_and_numbers_next_below_them_are_not_hidden) {
  Hardened on(blind());
  for (int bit = 18; bit < 31; ++bit) {
    int32_t power = 1 << bit;
    for (int32_t c : {power, power - 1, -power, -power - 1}) EXPECT_TRUE(shows(c)) << c;
    for (int32_t c : {power + 1, power - 2, 3 * (power / 4), -power - 2, -power + 1}) {
      EXPECT_FALSE(shows(c)) << c;
    }
  }
  EXPECT_TRUE(shows(INT32_MIN));
  EXPECT_TRUE(shows(INT32_MAX));
}

// ---- The same answers -------------------------------------------------------------------------

void run_corpus() {
  corpus_raise = raise_in_context;
  Scratch scratch;
  for (const CorpusFile& file : load_corpus()) {
    for (Use use : {Use::kPlain, Use::kInstrumented, Use::kToAndFro}) {
      CodeMachine machine;
      BaselineModule module(machine, file.module, use);
      auto address = [&](MethodId m) { return module.address_of(m); };
      for (const CorpusRun& run : file.runs) {
        scratch.fill();
        auto ran = module.run(run.method, run.arguments(scratch, address));
        ASSERT_EQ("", run.complaint({ran.bits, ran.trap}, scratch));
      }
    }
    CodeMachine machine;
    OptimizedModule code(machine, file.module);
    auto address = [&](MethodId m) { return reinterpret_cast<uint64_t>(code.entry(m)); };
    for (const CorpusRun& run : file.runs) {
      scratch.fill();
      const Signature& s = file.module.functions[run.method.index()].signature();
      auto r = machine.run(code.entry(run.method), s, run.arguments(scratch, address));
      ASSERT_EQ("", run.complaint({r.bits, r.trap}, scratch));
    }
  }
}

TEST(Blinding, the_corpus_answers_as_it_must) {
  Hardened on(blind());
  run_corpus();
}

// Blinds every constant that takes four bytes in an instruction, the library's own constants too.
TEST(Blinding, the_corpus_answers_as_it_must_with_all_that_is_no_byte_blinded) {
  jit::Hardening h = blind(127);
  h.landing_pads = true;
  Hardened on(h);
  run_corpus();
}

// ---- The keys ---------------------------------------------------------------------------------

constexpr const char* kAdd =
    "func @f(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 1515093053\n"
    "  v2 = add.i32 v0, v1\n  return v2\n}\n";

std::string code_of(const jit::Hardening& h) {
  Hardened on(h);
  jit::Module module = *jit::parse_module(kAdd, {"add", {}});
  CodeMachine machine;
  BaselineModule baseline(machine, module, Use::kPlain);
  const jit::Code& c = baseline.code(0, Copy::kPlain);
  return std::string(static_cast<const char*>(c.at(0)), c.size());
}

TEST(Blinding, each_compilation_draws_anew_and_equal_draws_give_equal_code) {
  std::set<std::string> codes;
  for (int n = 0; n < 8; ++n) codes.insert(code_of(blind()));
  EXPECT_EQ(codes.size(), 8u);
  jit::Hardening h = blind();
  h.random = always_the_same;
  EXPECT_EQ(code_of(h), code_of(h));
}

TEST(Blinding, switched_off_nothing_is_drawn) {
  jit::Hardening h;
  h.random = none;
  EXPECT_EQ(code_of(h), code_of({}));
}

// The method stays uncompiled: the constants must not be exposed.
TEST(Blinding, without_random_numbers_nothing_is_compiled_and_the_error_says_so) {
  jit::Hardening h = blind();
  h.random = none;
  try {
    code_of(h);
    FAIL() << "it was compiled";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("blind_constants"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace uptier::test::blinding_test
