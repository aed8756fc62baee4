// Host calls that copy or fill: if the length is a small constant, or was observed to be one, the
// code does the work without the call, with the same answers, traps and memory.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/ir_corpus.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::bulk_calls_test {
namespace {

constexpr uint32_t kMostCopied = 32, kMostFilled = 64;

uint64_t calls = 0;

bool in_range(uint32_t at, uint32_t n) { return uint64_t{at} + n <= Scratch::kSize; }

int32_t counted_copy(void*, uint8_t* base, uint32_t to, uint32_t from, uint32_t n) {
  ++calls;
  if (!in_range(to, n) || !in_range(from, n)) return 1;
  std::memmove(base + to, base + from, n);
  return 0;
}
int32_t counted_fill(void*, uint8_t* base, uint32_t to, uint32_t byte, uint32_t n) {
  ++calls;
  if (!in_range(to, n)) return 1;
  std::memset(base + to, static_cast<int>(byte & 0xff), n);
  return 0;
}

std::vector<HostFunction> bulk_hosts() {
  return {host_function("copy", counted_copy), host_function("fill", counted_fill)};
}

std::string body(const std::string& name, const std::string& length, const std::string& op) {
  return "func @" + name +
         "(ref, i32, i32) -> i32 {\nb0(v0: ref, v1: i32, v2: i32):\n  v3 = " + length +
         "  v4 = call_host @" + (op == "copies" ? "copy" : "fill") +
         ".(ref, ref, i32, i32, i32)->i32 (v0, v0, v1, v2, v3) " + op +
         "\n  trap_if v4, out_of_bounds_memory\n  return v3\n}\n";
}
std::string op_of(bool copies) { return copies ? "copies" : "fills"; }

// Applies a copy or fill to `bytes`; returns whether it is in range.
bool model(std::string& bytes, bool copies, uint32_t to, uint32_t what, uint32_t n) {
  if (!in_range(to, n) || (copies && !in_range(what, n))) return false;
  if (copies) {
    std::memmove(bytes.data() + to, bytes.data() + what, n);
  } else {
    std::memset(bytes.data() + to, static_cast<int>(what & 0xff), n);
  }
  return true;
}

// Returns addresses near the end of memory and ranges that touch or overlap.
std::vector<std::pair<uint32_t, uint32_t>> places(bool copies, uint32_t n) {
  constexpr auto kEnd = static_cast<uint32_t>(Scratch::kSize);
  if (!copies) {
    return {{0, 0x1a5}, {kEnd - n, 7}, {kEnd - n + 1, 9}, {kEnd, 1}, {UINT32_MAX, 2}, {100, 0}};
  }
  return {{0, 100},     {100, 101},        {101, 100},        {50, 50 + n / 2},
          {60 + n, 60}, {kEnd - n, 3},     {3, kEnd - n},     {kEnd - n + 1, 5},
          {5, kEnd},    {UINT32_MAX, 200}, {200, UINT32_MAX}, {UINT32_MAX - 7, 200},
          {kEnd, kEnd}, {300, 300},        {kEnd - 1, 1},     {400 + n - 1, 400}};
}

struct Mover {
  explicit Mover(const std::string& text, const Options& o)
      : runtime(parse_or_die(text, hosts), o), scope(*runtime.runtime) {}

  // Checks that a call does the same as the model, in memory and in its answer.
  void expect(const std::string& name, bool copies, uint32_t to, uint32_t what, uint32_t n) {
    std::string want = scratch.bytes();
    bool inside = model(want, copies, to, what, n);
    Outcome got = runtime.call(name, {scratch.base(), to, what});
    std::string where =
        name + " " + std::to_string(to) + ", " + std::to_string(what) + ", " + std::to_string(n);
    EXPECT_EQ(got.trap.code, inside ? TrapCode::kNone : TrapCode::kOutOfBoundsMemory) << where;
    EXPECT_TRUE(!inside || got.bits == n) << where;
    EXPECT_TRUE(scratch.bytes() == want) << where;
  }

  std::vector<HostFunction> hosts = bulk_hosts();
  Scratch scratch;
  IrRuntime runtime;
  ThreadScope scope;
};

TEST(BulkCalls, constant_lengths_are_loads_and_stores_that_trap_before_they_store) {
  std::string text;
  for (uint32_t n = 0; n <= kMostFilled + 1; ++n) {
    for (bool copies : {true, false}) {
      std::string number = std::to_string(n);
      text += body(op_of(copies) + number, "const.i32 " + number + "\n", op_of(copies));
    }
  }
  Mover m(text, options({{"tier", "optimized"}, {"workers", "0"}}));
  for (uint32_t n = 0; n <= kMostFilled + 1; ++n) {
    for (bool copies : {true, false}) {
      uint64_t before = calls, made = 0;
      for (auto [to, what] : places(copies, n)) {
        m.scratch.fill();
        m.expect(op_of(copies) + std::to_string(n), copies, to, what, n);
        ++made;
      }
      bool is_short = n != 0 && n <= (copies ? kMostCopied : kMostFilled);
      EXPECT_EQ(calls - before, is_short ? 0 : made) << n << (copies ? " copied" : " filled");
    }
  }
}

TEST(BulkCalls, without_the_promise_a_constant_length_is_a_call) {
  std::string text = body("copies", "const.i32 8\n", "copies");
  text.replace(text.find(") copies"), 8, ")");
  Mover m(text, options({{"tier", "optimized"}, {"workers", "0"}}));
  uint64_t before = calls;
  m.expect("copies", true, 10, 20, 8);
  EXPECT_EQ(calls - before, 1u);
}

// The code loads the length from this address. No test copies to it.
constexpr uint32_t kLengthAt = 2000;

Options guessing(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Options o = options({{"policy", "always"},
                       {"workers", "0"},
                       {"interval", "2"},
                       {"adaptive", "off"},
                       {"measure_rates", "off"},
                       {"value_samples", "8"},
                       {"trials", "off"}});
  for (auto [name, value] : more) EXPECT_TRUE(o.set(name, value).ok()) << name;
  return o;
}

struct Guesser : Mover {
  explicit Guesser(const Options& o) : Mover(text(), o) {}

  static std::string text() {
    std::string length = "load.i32 v0+" + std::to_string(kLengthAt) + "\n  probe value v3\n";
    return body("copies", length, "copies") + body("fills", length, "fills");
  }
  // Returns how often the host function was called.
  uint64_t run(bool copies, uint32_t n, int times) {
    uint64_t before = calls;
    for (int i = 0; i < times; ++i) {
      scratch.fill();
      std::memcpy(scratch.data() + kLengthAt, &n, sizeof n);
      auto all = places(copies, n);
      auto [to, what] = all[static_cast<size_t>(i) % all.size()];
      expect(op_of(copies), copies, to, what, n);
    }
    return calls - before;
  }
};

TEST(BulkCalls, a_length_that_is_always_the_same_is_asked_for_and_another_is_a_call) {
  for (bool copies : {true, false}) {
    Guesser g(guessing());
    g.run(copies, 11, 200);
    ASSERT_EQ(g.runtime.report_of(op_of(copies)).tier, Tier::kOptimized);
    EXPECT_EQ(g.run(copies, 11, 16), 0u);
    for (uint32_t n = 0; n < 70; ++n) { EXPECT_EQ(g.run(copies, n, 16), n == 11 ? 0u : 16u) << n; }
    EXPECT_EQ(g.run(copies, 11, 16), 0u) << "nothing is given up";
    EXPECT_TRUE(g.runtime.report_of(op_of(copies)).exits.empty());
  }
}

TEST(BulkCalls, lengths_that_vary_or_are_large_stay_calls) {
  for (uint32_t large : {kMostCopied + 1, 0u}) {
    Guesser g(guessing());
    g.run(true, large, 200);
    ASSERT_EQ(g.runtime.report_of("copies").tier, Tier::kOptimized);
    EXPECT_EQ(g.run(true, large, 5), 5u);
  }
  Guesser g(guessing());
  for (uint32_t n = 0; n < 200; ++n) g.run(true, n % 32, 1);
  ASSERT_EQ(g.runtime.report_of("copies").tier, Tier::kOptimized);
  EXPECT_EQ(g.run(true, 8, 5), 5u);
}

TEST(BulkCalls, without_the_option_nothing_is_asked) {
  Guesser g(guessing({{"value_versions", "off"}}));
  g.run(true, 11, 200);
  ASSERT_EQ(g.runtime.report_of("copies").tier, Tier::kOptimized);
  EXPECT_EQ(g.run(true, 11, 5), 5u);
}

TEST(BulkCalls, stress_changes_no_answer) {
  for (const char* stress : {"values=all", "guard=all", "values=all,guard=all"}) {
    Guesser g(guessing({{"stress", stress}}));
    for (uint32_t n = 0; n < 200; ++n) {
      g.run(true, n % 5, 1);
      g.run(false, n % 5, 1);
    }
  }
}

}  // namespace
}  // namespace uptier::test::bulk_calls_test
