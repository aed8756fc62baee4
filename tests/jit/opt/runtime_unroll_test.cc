// Loops that run many rounds, where one test decides several rounds at the limits of the numbers:
// compares the loop before and after the pass, both in the interpreter.
#include "jit/opt/passes.h"
#include "tests/support/compare.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::unroll_long_test {
namespace {

// Returns block counts of a function whose loops run `rounds` rounds each.
std::vector<uint64_t> long_loops(const jit::Function& f, uint64_t rounds) {
  jit::LoopNest loops = jit::find_loops(f, jit::analyze_control_flow(f));
  std::vector<uint64_t> counts(f.block_sites, 1000);
  for (Block b : f.layout) {
    const jit::Inst* probe = jit::first_block_probe(f, b);
    if (probe != nullptr && loops.depth(b) != 0) counts[probe->aux - 1] *= rounds;
  }
  return counts;
}

bool is_unrolled(const jit::Function& f, const jit::BlockCounts& counts) {
  jit::Function g = f;
  return jit::runtime_unroll(g, counts) && g.blocks.size() > f.blocks.size();
}

// A loop from v1, at most 14 rounds, while `test` holds for the next value and v2. `step` is v3 or
// a constant. The code in `asked` may use the step as v7 and the variable as v4.
std::string walk(const std::string& step, const std::string& asked, const std::string& test) {
  std::string given = step == "v3" ? "or.i32 v3, v91" : "const.i32 " + step;
  return R"(func @walk(i32, i32, i32, i32) -> i64 {
b0(v0: i32, v1: i32, v2: i32, v3: i32):
  v90 = const.i64 7
  v91 = const.i32 0
  v92 = const.i32 14
  v7 = )" +
         given + R"(
  jump b1(v1, v90, v92)
b1(v4: i32, v5: i64, v6: i32):
)" + asked +
         R"(  v8 = extend_u.i64 v4
  v9 = const.i64 31
  v10 = mul.i64 v5, v9
  v11 = add.i64 v10, v8
  v12 = const.i32 1
  v13 = sub.i32 v6, v12
  v14 = add.i32 v4, v7
  branch v13, b2, b3
b2:
  v15 = )" +
         test + R"(.i32 v14, v2
  branch v15, b1(v14, v11, v13), b3
b3:
  v16 = extend_u.i64 v14
  v17 = xor.i64 v11, v16
  return v17
}
)";
}

constexpr const char* kBelow = R"(  v50 = ge_u.i32 v4, v0
  trap_if v50, unreachable
)";
constexpr const char* kBelowSigned = R"(  v50 = ge_s.i32 v4, v0
  trap_if v50, unreachable
)";
constexpr const char* kNeighbour = R"(  v51 = const.i32 9
  v52 = add.i32 v4, v51
  v50 = lt_u.i32 v52, v0
  v53 = eqz.i32 v50
  trap_if v53, unreachable
)";
constexpr const char* kNeighbourSigned = R"(  v51 = const.i32 9
  v52 = add.i32 v4, v51
  v50 = lt_s.i32 v52, v0
  v53 = eqz.i32 v50
  trap_if v53, unreachable
)";
constexpr const char* kAbove = R"(  v50 = lt_u.i32 v4, v0
  trap_if v50, unreachable
)";
constexpr const char* kMustOverflow = R"(  v50 = add_overflows.i32 v4, v7
  v53 = eqz.i32 v50
  trap_if v53, integer_overflow
)";
constexpr const char* kOverflow = R"(  v50 = add_overflows.i32 v4, v7
  trap_if v50, integer_overflow
)";

// A loop that changes the elements of v0 from index 0 on, with a bounds check against v1, while
// `test` holds for the next index and v2.
std::string counted(const std::string& test) {
  return R"(func @counted(i64, i32, i32) -> i64 {
b0(v0: i64, v1: i32, v2: i32):
  v3 = const.i32 0
  v4 = const.i64 0
  jump b1(v3, v4)
b1(v5: i32, v6: i64):
  v7 = ge_u.i32 v5, v1
  trap_if v7, unreachable
  v8 = extend_u.i64 v5
  v9 = const.i64 3
  v10 = shl.i64 v8, v9
  v11 = load.i64 v0[v10] class 1
  v12 = xor.i64 v6, v11
  v13 = add.i64 v12, v8
  store.i64 v13, v0[v10] class 1
  v14 = const.i32 1
  v15 = add.i32 v5, v14
  v16 = )" +
         test + R"(.i32 v15, v2
  branch v16, b1(v15, v13), b2
b2:
  return v13
}
)";
}

class Compared {
 public:
  explicit Compared(const std::string& text)
      : module_(*jit::parse_module(text, {"loops", {}})),
        made_(make()),
        oracle_(module_, interpret_options(scratch_)),
        groups_(made_, interpret_options(scratch_)) {}

  bool unrolled() const { return unrolled_; }

  // Returns how the transformed loop differs from the original, or "".
  std::string call(std::vector<uint64_t> args) {
    Expected want = expected_of(oracle_, MethodId(0), args, scratch_);
    return difference(want, Type::kI64, scratch_,
                      [&] { return interpret(groups_, MethodId(0), args); });
  }

 private:
  jit::Module make() {
    jit::Module m = module_;
    unrolled_ = jit::runtime_unroll(m.functions[0], long_loops(m.functions[0], 100));
    EXPECT_TRUE(jit::verify(m, jit::Stage::kTransformed).ok());
    return m;
  }

  Scratch scratch_;
  bool unrolled_ = false;
  jit::Module module_, made_;
  jit::Interpreter oracle_, groups_;
};

constexpr const char* kAsked[] = {"",     kBelow,    kBelowSigned, kNeighbour, kNeighbourSigned,
                                  kAbove, kOverflow, kMustOverflow};

const std::vector<uint64_t> kEnds = {
    0, 1, 5, 9, 0x7FFFFFFF, 0x7FFFFFF9, 0x7FFFFFE4, 0x7FFFFFE5, 0x80000000, 0x80000007, 0xFFFFFFFB};

// Calls the loop with all edge cases as ends, and with lengths that let all rounds pass, some, or
// none.
void walk_all(Compared& c, const std::string& what, uint64_t step = 0) {
  for (uint64_t first : kEnds) {
    for (uint64_t limit : kEnds) {
      for (uint64_t length : {0u, 8u, 0x7FFFFFFFu, 0x80000003u}) {
        ASSERT_EQ("", c.call({length, first, limit, step}))
            << what << " from " << first << " to " << limit << ", length " << length;
      }
    }
  }
}

TEST(UnrollLong, every_test_step_and_question_answers_as_the_interpreter_does) {
  size_t unrolled = 0;
  for (const char* test : {"lt_s", "le_s", "lt_u", "le_u", "ne", "gt_s", "ge_s", "gt_u", "ge_u"}) {
    for (int step : {1, 2, 7, 65536, -1, -5}) {
      for (const char* asked : kAsked) {
        Compared c(walk(std::to_string(step), asked, test));
        walk_all(c, std::string(test) + " step " + std::to_string(step) + "\n" + asked);
        unrolled += c.unrolled();
      }
    }
  }
  // Four steps up with five tests each, two steps down with five tests each.
  EXPECT_EQ(unrolled, (4u * 5 + 2 * 5) * 8);
}

TEST(UnrollLong, steps_that_are_not_known_may_be_anything) {
  for (const char* test : {"lt_s", "le_s"}) {
    for (const char* asked : kAsked) {
      Compared c(walk("v3", asked, test));
      for (uint64_t step : {0ull, 1ull, 3ull, 40000ull, 65536ull, 65537ull, 0x40000000ull,
                            0x7FFFFFFFull, 0x80000000ull, 0xFFFFFFFFull}) {
        walk_all(c, std::string(test) + " by v3 = " + std::to_string(step) + "\n" + asked, step);
      }
      EXPECT_TRUE(c.unrolled());
    }
  }
}

TEST(UnrollLong, only_what_a_profile_has_seen_to_be_long_is_unrolled) {
  jit::Module m = *jit::parse_module(walk("1", "", "lt_s"), {"loops", {}});
  const jit::Function& f = m.functions[0];
  EXPECT_TRUE(is_unrolled(f, long_loops(f, 100)));
  EXPECT_TRUE(is_unrolled(f, long_loops(f, 17)));
  EXPECT_FALSE(is_unrolled(f, long_loops(f, 12)));
  EXPECT_FALSE(is_unrolled(f, {}));
  std::vector<uint64_t> counts = long_loops(f, 100);
  jit::BlockCounts few(std::span<const uint64_t>(counts), 10'000);  // ten executions were observed
  EXPECT_FALSE(is_unrolled(f, few));
}

TEST(UnrollLong, compiled_loops_answer_as_the_interpreter_does) {
  for (const char* test : {"lt_s", "le_u", "ne"}) {
    jit::Module m = *jit::parse_module(counted(test), {"loops", {}});
    Scratch scratch;
    jit::Interpreter oracle(m, interpret_options(scratch));
    CodeMachine machine;
    OptimizedModule code(machine, m, [](const jit::Function& f) { return long_loops(f, 100); });
    for (uint64_t limit = 0; limit < 30; ++limit) {
      for (uint64_t length : {5u, 17u, 100u}) {
        std::vector<uint64_t> args = {scratch.base(), length, limit + 1};
        const Signature& s = m.functions[0].signature();
        Expected want = expected_of(oracle, MethodId(0), args, scratch);
        ASSERT_EQ("", difference(want, s.result, scratch,
                                 [&] { return machine.run(code.entry(MethodId(0)), s, args); }))
            << test << " " << limit << ", length " << length;
      }
    }
  }
}

// The block of the unrolled group has the loop's probe four times; the remaining loop has it once.
TEST(UnrollLong, a_group_runs_often_and_what_is_left_does_not) {
  jit::Module m = *jit::parse_module(counted("lt_s"), {"loops", {}});
  jit::Function& f = m.functions[0];
  std::vector<uint64_t> counts = long_loops(f, 100);
  ASSERT_TRUE(jit::runtime_unroll(f, counts));
  jit::simplify_cfg(f);
  jit::ControlFlow control = jit::analyze_control_flow(f);
  jit::LoopNest loops = jit::find_loops(f, control);
  jit::Frequencies q = jit::estimate_frequencies(f, control, loops, counts);
  ASSERT_EQ(loops.loops.size(), 2u);
  auto probes = [&](Block b) {
    return std::ranges::count_if(f.block(b).insts,
                                 [&](jit::InstId i) { return jit::is_block_probe(f.inst(i)); });
  };
  Block a = loops.loops[0].header, b = loops.loops[1].header;
  Block group = probes(a) == 4 ? a : b, left = group == a ? b : a;
  ASSERT_EQ(probes(group), 4);
  EXPECT_FALSE(q.cold[group.index()]);
  EXPECT_GT(q.at(group), 8 * q.at(f.entry()));
  EXPECT_LT(q.at(left), q.at(group));
}

TEST(UnrollLong, probes_of_all_rounds_sum_up) {
  jit::Module m = *jit::parse_module(counted("lt_s"), {"loops", {}});
  CodeMachine machine;
  OptimizedModule code(
      machine, m, [](const jit::Function& f) { return long_loops(f, 100); }, Copy::kInstrumented);
  const Signature& s = m.functions[0].signature();
  uint64_t rounds = 0;
  Scratch scratch;
  for (uint64_t limit = 1; limit < 40; ++limit) {
    machine.run(code.entry(MethodId(0)), s, std::vector<uint64_t>{scratch.base(), 100, limit});
    rounds += limit;
  }
  EXPECT_EQ(code.slabs()[0], (std::vector<uint64_t>{39, rounds, 39}));
}

}  // namespace
}  // namespace uptier::test::unroll_long_test
