// Loops that one operation replaces, at the limits of the pass: compares the original loop in the
// interpreter with the transformed loop in machine code.
#include "jit/opt/passes.h"
#include "tests/support/compare.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::store_in_bulk_test {
namespace {

// A loop that copies elements with `load` and `store`, each `width` bytes, from index v2 to index
// v1 until v1 reaches v3.
std::string copy_loop(const std::string& load, const std::string& store, int width) {
  return R"(func @copy(ref, i32, i32, i32) -> i32 {
b0(v0: ref, v1: i32, v2: i32, v3: i32):
  jump b1(v1, v2)
b1(v4: i32, v5: i32):
  v6 = )" +
         load + R"( v0[v5] traps
  )" + store +
         R"( v6, v0[v4] traps
  v7 = const.i32 )" +
         std::to_string(width) + R"(
  v8 = add.i32 v4, v7
  v9 = add.i32 v5, v7
  v10 = ne.i32 v8, v3
  branch v10, b1(v8, v9), b2
b2:
  v11 = xor.i32 v6, v9
  return v11
}
)";
}

constexpr const char* kFill = R"(func @fill(i64, i32, i32, i32) -> i32 {
b0(v0: i64, v1: i32, v2: i32, v3: i32):
  jump b1(v1, v2)
b1(v4: i32, v5: i32):
  store16.i32 v3, v0[v4] traps
  store16.i32 v3, v0[v4]+2 traps
  v6 = const.i32 4
  v7 = add.i32 v4, v6
  v8 = const.i32 1
  v9 = sub.i32 v5, v8
  branch v9, b1(v7, v9), b2
b2:
  return v7
}
)";

class Compared {
 public:
  explicit Compared(const std::string& text)
      : module_(*jit::parse_module(text, {"loops", {}})),
        oracle_(module_, interpret_options(scratch_)),
        code_(machine_, module_) {}

  // Tests whether the pass recognized the loop.
  bool is_bulk() const {
    jit::Function f = module_.functions[0];
    jit::loop_idiom(f, {}, false);
    return jit::to_text(f).find(" by ") != std::string::npos;
  }

  // Returns how the machine code differs from the interpreter, or "".
  std::string call(std::vector<uint64_t> args) {
    const Signature& s = module_.functions[0].signature();
    Expected want = expected_of(oracle_, MethodId(0), args, scratch_);
    last_ = want.answer;
    return difference(want, s.result, scratch_,
                      [&] { return machine_.run(code_.entry(MethodId(0)), s, args); });
  }

  uint64_t base() const { return scratch_.base(); }
  const Answer& last() const { return last_; }

 private:
  Scratch scratch_;
  CodeMachine machine_;
  jit::Module module_;
  jit::Interpreter oracle_;
  OptimizedModule code_;
  Answer last_;
};

TEST(StoreInBulk, copies_that_overlap_at_any_distance_replicate_as_the_loop_does) {
  const std::pair<std::string, int> widths[] = {{copy_loop("load8_u.i32", "store8.i32", 1), 1},
                                                {copy_loop("load16_s.i32", "store16.i32", 2), 2},
                                                {copy_loop("load.i32", "store.i32", 4), 4}};
  for (const auto& [text, width] : widths) {
    Compared c(text);
    ASSERT_TRUE(c.is_bulk());
    for (int distance = -130; distance <= 130; ++distance) {
      for (int rounds : {1, 2, 31, 32, 33, 34, 200}) {
        uint64_t to = 1000, from = static_cast<uint64_t>(1000 + distance);
        uint64_t end = to + static_cast<uint64_t>(rounds * width);
        ASSERT_EQ("", c.call({c.base(), to, from, end}))
            << width << " bytes, distance " << distance << ", " << rounds << " rounds";
      }
    }
  }
}

TEST(StoreInBulk, what_faults_half_way_has_stored_what_lies_before_it) {
  auto faults = [](const std::string& text, auto arguments) {
    Compared c(text);
    ASSERT_TRUE(c.is_bulk());
    for (uint64_t at = 3700; at <= Scratch::kSize; at += 13) {
      ASSERT_EQ("", c.call(arguments(c.base(), at))) << at;
      EXPECT_EQ(c.last().trap, TrapCode::kOutOfBoundsMemory) << at;
    }
  };
  using Words = std::vector<uint64_t>;
  std::string copy = copy_loop("load16_s.i32", "store16.i32", 2);
  faults(copy, [](uint64_t base, uint64_t at) { return Words{base, at, 100, at + 600}; });
  faults(copy, [](uint64_t base, uint64_t at) { return Words{base, 100, at, 700}; });
  faults(kFill, [](uint64_t base, uint64_t at) { return Words{base, at, 150, 0x1234}; });
}

// The last index before 2^32 is in the page; after the wrap-around, the first index is not.
TEST(StoreInBulk, an_index_that_wraps_around_ends_the_run_there) {
  Compared fill(kFill);
  uint64_t base = fill.base() + 2000 - (uint64_t{1} << 32);
  for (uint32_t left : {4u, 6u, 128u, 200u, 400u}) {
    for (uint64_t rounds : {1u, 33u, 49u, 50u, 51u, 100u, 101u}) {
      bool beyond = rounds * 4 > left;
      ASSERT_EQ("", fill.call({base, uint64_t{0u - left}, rounds, 7}));
      EXPECT_EQ(fill.last().trap != TrapCode::kNone, beyond) << left << " bytes, " << rounds;
    }
  }
}

// Loops with every kind of comparison (not equal, below, above), with the operands in either order,
// up and down, from starts where the loop ends at once and from starts where it would never end.
TEST(StoreInBulk, rounds_are_counted_as_every_comparison_counts_them) {
  struct Case {
    const char* test;
    bool turns;  // whether the loop repeats while the test holds
    int step;
  };
  const Case cases[] = {
      {"ne.i32 v9, v2", true, 1},    {"eq.i32 v9, v2", false, 4},   {"ne.i32 v2, v9", true, -1},
      {"lt_s.i32 v9, v2", true, 4},  {"lt_u.i32 v9, v2", true, 1},  {"le_s.i32 v9, v2", true, 2},
      {"le_u.i32 v9, v2", true, 8},  {"gt_s.i32 v2, v9", true, 1},  {"ge_s.i32 v9, v2", false, 2},
      {"gt_s.i32 v9, v2", true, -4}, {"gt_u.i32 v9, v2", true, -1}, {"le_u.i32 v9, v2", false, -2},
      {"ge_u.i32 v9, v2", true, -8}, {"lt_s.i32 v2, v9", true, -1}, {"ge_s.i32 v9, v2", true, -1},
  };
  for (const Case& k : cases) {
    std::string text = R"(func @f(ref, i32, i32) -> i32 {
b0(v0: ref, v1: i32, v2: i32):
  v3 = const.i32 165
  v4 = const.i32 500
  jump b1(v4, v1)
b1(v5: i32, v6: i32):
  store8.i32 v3, v0[v5] traps
  v7 = const.i32 1
  v8 = add.i32 v5, v7
  v12 = const.i32 )" + std::to_string(k.step) +
                       R"(
  v9 = add.i32 v6, v12
  v10 = )" + std::string(k.test) +
                       R"(
  branch v10, )" + (k.turns ? "b1(v8, v9), b2" : "b2, b1(v8, v9)") +
                       R"(
b2:
  v11 = add.i32 v8, v9
  return v11
}
)";
    Compared c(text);
    ASSERT_TRUE(c.is_bulk()) << k.test;
    for (int64_t from : {int64_t{0}, int64_t{100}, int64_t{-100}, int64_t{INT32_MAX} - 50,
                         int64_t{INT32_MIN} + 50}) {
      for (int64_t rounds : {-40, 0, 1, 32, 33, 34, 35, 64, 300}) {
        for (int64_t off : {0, 1, -1}) {
          int64_t limit = from + rounds * k.step + off;
          ASSERT_EQ("",
                    c.call({c.base(), static_cast<uint32_t>(from), static_cast<uint32_t>(limit)}))
              << k.test << " from " << from << ", " << rounds << " rounds, and " << off;
        }
      }
    }
  }
}

TEST(StoreInBulk, loops_that_are_known_to_be_short_stay_loops) {
  jit::Module m = *jit::parse_module(kFill, {"loops", {}});
  auto becomes_bulk = [&](std::vector<uint64_t> counts) {
    jit::Function f = m.functions[0];
    jit::loop_idiom(f, counts, false);
    return jit::to_text(f).find("fill ") != std::string::npos;
  };
  EXPECT_TRUE(becomes_bulk({}));
  EXPECT_TRUE(becomes_bulk({10, 400, 10}));
  EXPECT_FALSE(becomes_bulk({100, 400, 100}));
  EXPECT_FALSE(becomes_bulk({0, 20, 0}));
  EXPECT_FALSE(becomes_bulk({0, 0, 0}));
}

TEST(StoreInBulk, a_loop_is_replaced_once) {
  jit::Module m = *jit::parse_module(kFill, {"loops", {}});
  jit::Function& f = m.functions[0];
  jit::loop_idiom(f, {}, false);
  std::string once = jit::to_text(f);
  jit::loop_idiom(f, {}, false);
  EXPECT_EQ(once, jit::to_text(f));
}

}  // namespace
}  // namespace uptier::test::store_in_bulk_test
