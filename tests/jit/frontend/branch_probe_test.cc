// Probes of the conditions of short branches: which conditions are observed, that the counts are
// right, that the observations reach the compiler, and that code without instrumentation pays
// nothing.
#include "jit/frontend/branch_probes.h"

#include <array>

#include "jit/frontend/select_probes.h"
#include "jit/ir/print.h"
#include "tests/support/turn_probes.h"
#include "tiering/model/probe_set.h"

namespace uptier::test::branch_probe_test {
namespace {

// @count: in a loop, a triangle and a branch to a block that multiplies; the loop's exit is not a
// short branch. @both: a selection and a branch on the same condition, next to each other.
constexpr const char* kText = R"(
func @count(i32, i32, i32) -> i32 {
b0(v0: i32, v1: i32, v2: i32):
  v3 = const.i32 1
  v4 = const.i32 0
  jump b1(v0, v4)
b1(v5: i32, v6: i32):
  loop_header
  v7 = shr_u.i32 v5, v2
  v8 = and.i32 v7, v1
  v9 = ne.i32 v8, v4
  branch v9, b2, b3(v6)
b2:
  v10 = add.i32 v6, v3
  jump b3(v10)
b3(v11: i32):
  v12 = sub.i32 v5, v3
  branch v12, b1(v12, v11), b4
b4:
  branch v11, b5, b6(v11)
b5:
  v13 = mul.i32 v11, v11
  jump b6(v13)
b6(v14: i32):
  return v11
}
func @both(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.i32 0
  v3 = const.i32 4
  v4 = const.i32 1
  jump b1(v1, v2)
b1(v5: i32, v6: i32):
  loop_header
  v7 = and.i32 v5, v4
  v8 = select.i32 v7, v2, v3
  branch v7, b2, b3(v6)
b2:
  v9 = xor.i32 v6, v5
  jump b3(v9)
b3(v10: i32):
  store.i32 v10, v0[v8]
  v11 = sub.i32 v5, v4
  branch v11, b1(v11, v10), b4
b4:
  return v10
}
)";

void place(jit::Function& f, const jit::LoopForest& forest) {
  jit::place_select_probes(f, forest);
  jit::place_branch_probes(f, forest);
}

jit::Module probed(std::string text = kText) {
  jit::Module m = parse(text);
  for (jit::Function& f : m.functions) place(f, jit::find_loop_forest(f));
  return m;
}

TEST(BranchProbes, short_branches_are_observed) {
  jit::Module m = parse(kText);
  const jit::Function& f = m.functions[0];
  jit::LoopForest forest = jit::find_loop_forest(f);
  EXPECT_EQ(jit::observed_branches(f, forest), std::vector<Block>{f.layout[1]});
  EXPECT_TRUE(jit::observed_branches(f, forest, 0).empty());
}

TEST(BranchProbes, sites_come_behind_all_others_and_the_hash_stays) {
  jit::Module before = parse(kText), after = probed();
  for (size_t n = 0; n < before.functions.size(); ++n) {
    const jit::Function &a = before.functions[n], &b = after.functions[n];
    EXPECT_EQ(b.site_count, a.site_count + 1);
    EXPECT_EQ(b.block_sites, a.block_sites);
    EXPECT_EQ(b.cfg_hash, a.cfg_hash);
    EXPECT_EQ(jit::turn_sites(b), std::vector<SiteId>{b.site_count});
    EXPECT_TRUE(jit::verify(b).ok()) << jit::verify(b).error().message;
    jit::Function twice = b;
    jit::place_branch_probes(twice, jit::find_loop_forest(twice));
    EXPECT_EQ(jit::to_text(twice), jit::to_text(b));
  }
}

// Two nested loops, each with a short branch.
TEST(BranchProbes, inner_loops_come_first) {
  jit::Module m = parse(R"(
func @nest(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = const.i32 1
  jump b1(v0, v1)
b1(v3: i32, v4: i32):
  loop_header
  v5 = and.i32 v3, v2
  branch v5, b2, b3(v4)
b2:
  v6 = add.i32 v4, v2
  jump b3(v6)
b3(v7: i32):
  jump b4(v3, v7)
b4(v8: i32, v9: i32):
  loop_header
  v10 = and.i32 v8, v2
  branch v10, b5, b6(v9)
b5:
  v11 = add.i32 v9, v8
  jump b6(v11)
b6(v12: i32):
  v13 = sub.i32 v8, v2
  branch v13, b4(v13, v12), b7
b7:
  v14 = sub.i32 v3, v2
  branch v14, b1(v14, v12), b8
b8:
  return v12
}
)");
  const jit::Function& f = m.functions[0];
  jit::LoopForest forest = jit::find_loop_forest(f);
  EXPECT_EQ(jit::observed_branches(f, forest), (std::vector<Block>{f.layout[1], f.layout[4]}));
  EXPECT_EQ(jit::observed_branches(f, forest, 1), std::vector<Block>{f.layout[4]});
}

// A selection and a branch on the same condition share one probe, and both get its counts.
TEST(BranchProbes, what_was_seen_is_in_the_branch_and_in_the_text) {
  jit::Module m = probed();
  for (jit::Function& f : m.functions) {
    const jit::SelectTurns few{f.site_count, {200, 5, 5, 45}},
        enough{f.site_count, {200, 5, 5, 46}};
    jit::note_turns(f, {&few, 1});
    EXPECT_EQ(jit::to_text(f).find(" turns 200"), std::string::npos);
    jit::note_turns(f, {&enough, 1});
    EXPECT_EQ(jit::turns_of(f.terminator(f.layout[1])), enough.counts);
    EXPECT_EQ(f.terminator(f.layout[3]).imm, 0u);
  }
  std::string text = jit::to_text(m);
  EXPECT_NE(text.find("branch v9, b2, b3(v6) turns 200 5 5 46"), std::string::npos) << text;
  EXPECT_NE(text.find("select.i32 v7, v2, v3 turns 200 5 5 46"), std::string::npos) << text;
  auto again = jit::parse_module(text, {"again", {}});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(jit::to_text(*again), text);
}

TEST(BranchProbes, misses_are_of_who_knows_the_last_time) {
  EXPECT_EQ(jit::misses_of({900, 5, 5, 90}), 10u);
  EXPECT_EQ(jit::misses_of({90, 5, 5, 900}), 10u);
  EXPECT_EQ(jit::misses_of({0, 500, 500, 0}), 0u);
  EXPECT_EQ(jit::misses_of({1, 2, 4, 3}), 4u);
}

TEST(BranchProbes, pairs_are_counted_as_the_interpreter_sees_them) {
  jit::Module m = probed();
  Probed p(m);
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    std::vector<uint64_t> args{64, uint64_t{1} + random.below(3), random.below(6)};
    jit::InterpretOptions o;
    o.observer = &p.oracle;
    jit::Interpreter interpreter(m, o);
    auto want = interpreter.run(MethodId(0), args);
    ASSERT_EQ(want.kind, jit::InterpretOutcome::Kind::kReturned) << want.why;
    p.oracle.add_blocks(interpreter, m);
    ASSERT_EQ(p.compiled.run(MethodId(0), args).bits, want.bits);
  }
  EXPECT_EQ(p.check(), 100u * 64);
}

TEST(BranchProbes, random_programs_count_pairs_too) {
  EXPECT_GT(pairs_of_random_programs(place), 500u);
}

// ---- Plain code pays nothing
// ---------------------------------------------------------------------

TEST(BranchProbes, plain_code_is_what_it_is_without) {
  EXPECT_GT(probes_that_plain_code_leaves_out(jit::place_branch_probes, 200), 15u);
}

// In a copy without the probe, the comparison is still adjacent to its branch.
TEST(BranchProbes, a_comparison_and_its_branch_stay_one) {
  jit::Module m = probed();
  CodeMachine machine;
  BaselineModule compiled(machine, m, Use::kPlain, planner(everything()));
  const jit::Code& code = compiled.code(0, Copy::kPlain);
  EXPECT_EQ(disassemble(code.base(), code.size()).find("set"), std::string::npos)
      << disassemble(code.base(), code.size());
}

TEST(BranchProbes, a_schema_says_which_sites_count_turns) {
  jit::Module m = probed();
  const jit::Function& f = m.functions[0];
  tiering::ProbeSet probes(f, tiering::ProbeChoice::from(Options{}));
  EXPECT_TRUE(probes.counts_turns(f.site_count));
  for (SiteId site = 1; site < f.site_count; ++site) EXPECT_FALSE(probes.counts_turns(site));
  EXPECT_FALSE(probes.counts_turns(f.site_count + 1));
}

// ---- From the probe to the code -----------------------------------------------------------------

struct Branching : IrRuntime {
  explicit Branching(const Options& o) : IrRuntime(parse_or_die(kText), o), scope(*runtime) {}

  void count(uint32_t shift) {
    uint32_t set = 0;
    for (uint32_t n = 64; n != 0; --n) set += n >> shift & 1;
    ASSERT_EQ(call("count", {64, 1, shift}).bits, set);
  }

  std::map<int64_t, uint64_t> pairs() const { return pairs_seen(*runtime, "count"); }

  ThreadScope scope;
};

TEST(BranchProbes, a_profile_at_interval_1_has_every_pair) {
  Options o = options({{"policy", "never"}, {"workers", "0"}, {"interval", "1"}});
  ASSERT_TRUE(o.set("adaptive", "off").ok());
  Branching r(o);
  for (int i = 0; i < 10; ++i) r.count(0);
  r.runtime->flush();
  // The rounds count from 64 down to 1, so the condition goes off, on, ..., on. The first value of
  // each later call pairs with the last value of the call before.
  EXPECT_EQ(r.pairs(), (std::map<int64_t, uint64_t>{{0, 1}, {1, 320}, {2, 319}}));
}

}  // namespace
}  // namespace uptier::test::branch_probe_test
