// The passes: a golden test with IR before and after each, and the law that no pass changes an
// answer.
#include <fstream>
#include <map>

#include "jit/frontend/branch_probes.h"
#include "jit/frontend/select_probes.h"
#include "jit/opt/optimize.h"
#include "jit/opt/osr_entry.h"
#include "jit/opt/passes.h"
#include "jit/opt/select_to_branch.h"
#include "jit/opt/specialize_memcpy.h"
#include "jit/opt/value_speculation.h"
#include "test_paths.h"
#include "tests/support/golden.h"
#include "tests/support/opt_harness.h"
#include "tests/support/random_profiles.h"

namespace uptier::test::opt_passes_test {
namespace {

using Pass = void (*)(jit::Function&);

void layout_by_shape(jit::Function& f) {
  jit::ControlFlow control = jit::analyze_control_flow(f);
  jit::LoopNest loops = jit::find_loops(f, control);
  jit::layout_blocks(f, loops, jit::estimate_frequencies(f, control, loops, {}));
}

// Runs a pass with counts by which half of all executions reach every block after the entry.
template <void (*kPass)(jit::Function&, const jit::BlockCounts&)>
void with_halves(jit::Function& f) {
  std::vector<uint64_t> counts(f.block_sites, 500);
  counts[0] = 1000;
  kPass(f, counts);
}

// Runs the pass with counts that rise in build order.
void split_by_rising_counts(jit::Function& f) {
  std::vector<uint64_t> counts(f.block_sites);
  for (size_t n = 0; n < counts.size(); ++n) counts[n] = 1000 * (n + 1);
  jit::split_guards(f, counts);
}

// Runs the pass with counts of a hundred rounds for every loop.
void unroll_long(jit::Function& f) {
  jit::LoopNest loops = jit::find_loops(f, jit::analyze_control_flow(f));
  std::vector<uint64_t> counts(f.block_sites);
  for (Block b : f.layout) {
    counts[jit::first_block_probe(f, b)->aux - 1] = loops.depth(b) == 0 ? 1000 : 100'000;
  }
  jit::runtime_unroll(f, counts);
}

void unroll_unknown(jit::Function& f) { jit::full_unroll(f, {}); }
void bulk_unknown(jit::Function& f) { jit::loop_idiom(f, {}, false); }
void peel_unknown(jit::Function& f) { jit::peel_loops(f, {}); }
void hoist_loads_plain(jit::Function& f) { jit::licm_loads(f, false); }
void forward_counting(jit::Function& f) { jit::store_to_load_forwarding(f, true); }
void settle_intervals(jit::Function& f) { jit::value_range_propagation(f); }

// Runs the pass with observations of every selection: in one of a hundred executions the condition
// differs from the last one.
void split_predictable(jit::Function& f) {
  jit::place_select_probes(f, jit::find_loop_forest(f));
  std::vector<jit::SelectTurns> seen;
  for (SiteId site : jit::turn_sites(f)) seen.push_back({site, {900, 5, 5, 90}});
  jit::note_turns(f, seen);
  jit::select_to_branch(f);
}

void assume_first_is_7(jit::Function& f) {
  const jit::ParamValue seven{0, 7};
  jit::specialize_params(f, {&seven, 1});
}

// Speculates that the first value probe of each function sees only 7, and the others only -10 to
// 90.
void guess_7_and_a_range(jit::Function& f) {
  std::vector<jit::SiteValues> guesses;
  for (jit::InstId id : jit::value_probes(f)) {
    bool first = guesses.empty();
    guesses.push_back({f.inst(id).aux, first ? 7 : -10, first ? 7 : 90});
  }
  jit::Liveness live = jit::compute_liveness(f);
  jit::FrameLayout frame = jit::layout_frame(f, live);
  jit::DeoptContext context{live, frame, jit::count_guards(f)};
  jit::value_speculation(f, context, guesses, LoopId::none());
}

void guess_7_bytes(jit::Function& f) {
  std::vector<jit::InstId> probes = jit::value_probes(f);
  const jit::SiteValues seven{f.inst(probes.at(0)).aux, 7, 7};
  jit::specialize_memcpy(f, {&seven, 1});
}

void enter_last_loop(jit::Function& f) {
  jit::Liveness live = jit::compute_liveness(f);
  auto entered = jit::enter_at_loop(f, LoopId(f.loop_count - 1), live, jit::layout_frame(f, live));
  ASSERT_TRUE(entered.ok());
  f = entered->function;
  jit::remove_redundant_phis(f);
}

const std::map<std::string, Pass>& passes() {
  static const std::map<std::string, Pass> all = {
      {"strip_patchpoints", jit::strip_patchpoints},
      {"sccp", jit::sccp},
      {"simplify_arithmetic", jit::simplify_arithmetic},
      {"expand_memcpy", jit::expand_memcpy},
      {"division_by_constants", jit::division_by_constants},
      {"simplify_cfg", jit::simplify_cfg},
      {"jump_threading", jit::jump_threading},
      {"full_unroll", unroll_unknown},
      {"runtime_unroll", unroll_long},
      {"retype_accesses", jit::retype_accesses},
      {"peel_loops", peel_unknown},
      {"loop_idiom", bulk_unknown},
      {"if_conversion", with_halves<jit::if_conversion>},
      {"select_to_branch", split_predictable},
      {"split_unmeasured", jit::select_to_branch},
      {"split_guards", split_by_rising_counts},
      {"switch_lowering", with_halves<jit::switch_lowering>},
      {"tail_duplication", with_halves<jit::tail_duplication>},
      {"conditional_elimination", jit::conditional_elimination},
      {"value_range_propagation", settle_intervals},
      {"remove_redundant_phis", jit::remove_redundant_phis},
      {"gvn", jit::gvn},
      {"store_to_load_forwarding", forward_counting},
      {"hoist_invariant_loads", jit::hoist_invariant_loads},
      {"licm_loads", hoist_loads_plain},
      {"licm", jit::licm},
      {"fold_offsets", jit::fold_offsets},
      {"strength_reduction", jit::strength_reduction},
      {"constant_hoisting", jit::constant_hoisting},
      {"dce", jit::dce},
      {"code_sinking", jit::code_sinking},
      {"layout_blocks", layout_by_shape},
  };
  return all;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void expect_pass_golden(const std::string& name, Pass pass) {
  auto path = std::filesystem::path(UPTIER_SOURCE_DIR) / "tests" / "opt" / (name + ".uir");
  auto module = jit::parse_module(read(path), {name, corpus_hosts()});
  ASSERT_TRUE(module.ok()) << module.error().message;
  std::string text;
  for (jit::Function& f : module->functions) {
    ASSERT_TRUE(jit::verify(f).ok()) << jit::verify(f).error().message;
    pass(f);
    Status s = jit::verify(f, jit::Stage::kTransformed);
    ASSERT_TRUE(s.ok()) << s.error().message;
  }
  expect_golden("opt_" + name, jit::to_text(*module));
}

TEST(OptPasses, each_pass_does_what_its_golden_shows) {
  for (const auto& [name, pass] : passes()) {
    SCOPED_TRACE(name);
    expect_pass_golden(name, pass);
  }
}

TEST(OptPasses, a_loop_is_entered_as_its_golden_shows) {
  expect_pass_golden("enter_at_loop", enter_last_loop);
}

TEST(OptPasses, a_parameter_becomes_the_constant_that_its_golden_shows) {
  expect_pass_golden("specialize_params", assume_first_is_7);
}

TEST(OptPasses, values_are_guessed_as_their_golden_shows) {
  expect_pass_golden("value_speculation", guess_7_and_a_range);
}

TEST(OptPasses, lengths_are_guessed_as_their_golden_shows) {
  expect_pass_golden("specialize_memcpy", guess_7_bytes);
}

// If iterations are counted up to a trap, the round that traps must be counted.
TEST(OptPasses, loads_that_may_trap_stay_where_rounds_are_counted) {
  auto path = std::filesystem::path(UPTIER_SOURCE_DIR) / "tests" / "opt" / "licm_loads.uir";
  auto module = jit::parse_module(read(path), {"licm_loads", {}});
  ASSERT_TRUE(module.ok()) << module.error().message;
  jit::Function& f = module->functions.back();
  const size_t blocks = f.blocks.size();
  jit::licm_loads(f, true);
  EXPECT_EQ(f.blocks.size(), blocks);
  jit::licm_loads(f, false);
  EXPECT_EQ(f.blocks.size(), blocks + 1);
}

// Returns the answer of the module's last function, with the memory it wrote.
std::string run_last(const jit::Module& m, uint64_t seed, Scratch& scratch) {
  scratch.fill();
  corpus_notes = 0;
  jit::Interpreter interpreter(m, interpret_options(scratch));
  const Signature& s = m.functions.back().signature();
  Random r(seed);
  MethodId last(static_cast<uint32_t>(m.functions.size() - 1));
  Answer a = interpret(interpreter, last, random_arguments(s, scratch, r));
  bool nan = a.trap == TrapCode::kNone && is_nan(s.result, a.bits);
  return answer_text(s.result, nan ? Answer{} : a) + " " + std::to_string(corpus_notes) +
         scratch.bytes();
}

// Runs with the arguments that the pass assumes.
TEST(OptPasses, what_is_assumed_and_holds_changes_no_answer) {
  Scratch scratch;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    jit::Module module = random_module(seed);
    std::string want = run_last(module, seed, scratch);
    jit::Function& f = module.functions.back();
    Random r(seed);
    std::vector<uint64_t> args = random_arguments(f.signature(), scratch, r);
    std::vector<jit::ParamValue> values;
    for (uint32_t k = 0; k < args.size(); ++k) values.push_back({k, args[k]});
    jit::specialize_params(f, values);
    jit::sccp(f);
    jit::simplify_cfg(f);
    Status s = jit::verify(module, jit::Stage::kTransformed);
    ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message;
    EXPECT_EQ(run_last(module, seed, scratch), want) << "seed " << seed;
  }
}

TEST(OptPasses, no_pass_changes_an_answer_or_breaks_a_rule) {
  Scratch scratch;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    jit::Module module = random_module(seed);
    std::string want = run_last(module, seed, scratch);
    for (const auto& [name, pass] : passes()) {
      jit::Module m = module;
      for (jit::Function& f : m.functions) pass(f);
      Status s = jit::verify(m, jit::Stage::kTransformed);
      ASSERT_TRUE(s.ok()) << name << " seed " << seed << ": " << s.error().message;
      ASSERT_EQ(want, run_last(m, seed, scratch)) << name << " seed " << seed;
    }
  }
}

// Two passes transform the same switch, so each edge needs its own list of arguments.
TEST(OptPasses, edges_of_a_switch_that_was_taken_apart_share_no_arguments) {
  jit::Module m = *jit::parse_module(R"(func @f(i32, i32, i32) -> i32 {
b0(v0: i32, v1: i32, v2: i32):
  switch v0, [b1, b2, b3, b2, b3, b2, b3, b2], b4(v0, v1, v2)
b1:
  return v1
b2:
  jump b4(v0, v2, v1)
b3:
  return v2
b4(v3: i32, v4: i32, v5: i32):
  v6 = sub.i32 v4, v5
  v7 = mul.i32 v6, v3
  return v7
}
)",
                                     {"f", {}});
  ASSERT_TRUE(jit::verify(m).ok());
  with_halves<jit::switch_lowering>(m.functions[0]);
  jit::remove_redundant_phis(m.functions[0]);
  ASSERT_TRUE(jit::verify(m, jit::Stage::kTransformed).ok());
  jit::Interpreter interpreter(m);
  const uint64_t args[] = {10, 9, 4};
  EXPECT_EQ(interpreter.run(MethodId(0), args).bits, 50u);
}

TEST(OptPasses, all_passes_in_order_keep_answers_under_any_counts) {
  Scratch scratch;
  size_t measured = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    jit::Module m = random_module(seed + 1000);
    std::string want = run_last(m, seed, scratch);
    Random r(seed);
    for (jit::Function& f : m.functions) {
      std::vector<uint64_t> counts(r.chance(30) ? 0 : f.block_sites);
      for (uint64_t& c : counts) c = r.next() >> r.below(64);
      measured += note_any_turns(f, r);
      jit::optimize(f, {.counts = counts});
    }
    Status s = jit::verify(m, jit::Stage::kTransformed);
    ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message;
    ASSERT_EQ(want, run_last(m, seed, scratch)) << "seed " << seed;
  }
  EXPECT_GT(measured, 100u);
}

// Probes of selections and branches without observations do not change optimized code.
TEST(OptPasses, optimized_code_does_not_depend_on_probes_of_conditions) {
  size_t probes = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    jit::Module without = random_module(seed, {.functions = 1, .hosts = false});
    jit::Module with = without;
    jit::LoopForest forest = jit::find_loop_forest(with.functions[0]);
    jit::place_select_probes(with.functions[0], forest);
    jit::place_branch_probes(with.functions[0], forest);
    probes += jit::turn_sites(with.functions[0]).size();
    CodeMachine a, b;
    OptimizedModule x(a, with), y(b, without);
    const jit::Code &p = *x.codes()[0], &q = *y.codes()[0];
    EXPECT_EQ(p.tables(), q.tables()) << "seed " << seed;
    EXPECT_EQ(disassemble(p.base(), p.size()).size(), disassemble(q.base(), q.size()).size());
  }
  EXPECT_GT(probes, 10u);
}

// In every layout a dominator precedes the blocks it dominates; the register allocator relies on
// that.
TEST(OptPasses, layouts_put_dominators_first_under_any_counts) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random r(seed);
    for (jit::Function f : random_module(seed, {.depth = 5}).functions) {
      std::vector<uint64_t> counts(f.block_sites);
      for (uint64_t& c : counts) c = r.next() >> r.below(64);
      jit::optimize(f, {.counts = counts});
      auto position = jit::layout_positions(f);
      jit::ControlFlow control = jit::analyze_control_flow(f);
      for (Block b : f.layout) {
        Block up = control.idom(b);
        if (!up.valid()) continue;
        ASSERT_LT(position[up.index()], position[b.index()]) << "seed " << seed;
      }
    }
  }
}

TEST(OptLoops, nesting_is_found) {
  auto module = jit::parse_module(
      read(std::filesystem::path(UPTIER_SOURCE_DIR) / "tests" / "opt" / "enter_at_loop.uir"),
      {"enter_at_loop", {}});
  ASSERT_TRUE(module.ok());
  const jit::Function& f = module->functions[0];
  jit::LoopNest loops = jit::find_loops(f, jit::analyze_control_flow(f));
  ASSERT_EQ(loops.loops.size(), 2u);
  std::vector<uint32_t> depths;
  for (Block b : f.layout) depths.push_back(loops.depth(b));
  EXPECT_EQ(depths, (std::vector<uint32_t>{0, 1, 2, 1, 0}));
  EXPECT_TRUE(loops.contains(loops.loops[0].parent, loops.loops[0].header));
}

TEST(OptFrequencies, shape_and_counts_give_finite_frequencies) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (const jit::Function& f : random_module(seed, {.depth = 5}).functions) {
      jit::ControlFlow control = jit::analyze_control_flow(f);
      jit::LoopNest loops = jit::find_loops(f, control);
      std::vector<uint64_t> none, most(f.block_sites, UINT64_MAX);
      for (const auto& counts : {none, most}) {
        jit::Frequencies q = jit::estimate_frequencies(f, control, loops, counts);
        for (Block b : f.layout) {
          ASSERT_GE(q.at(b), 0.9e-6f);
          ASSERT_LE(q.at(b), 1.1e12f);
        }
      }
    }
  }
}

// A nest deeper than in any real program: solving the flow through it would take minutes and
// overflow.
TEST(OptFrequencies, deep_nests_are_estimated_by_shape) {
  constexpr uint32_t kDepth = 400;
  std::string text = "func @deep(i32) -> i32 {\nb0(v0: i32):\n  jump b1\n";
  auto block = [](uint32_t n) { return "b" + std::to_string(n); };
  for (uint32_t n = 1; n <= kDepth; ++n) text += block(n) + ":\n  jump " + block(n + 1) + "\n";
  for (uint32_t n = 1; n <= kDepth; ++n) {  // block n is the latch of the loop whose header is
                                            // block kDepth + 1 - n
    text += block(kDepth + n) + ":\n  branch v0, " + block(kDepth + 1 - n) + ", " +
            block(kDepth + n + 1) + "\n";
  }
  text += block(2 * kDepth + 1) + ":\n  return v0\n}\n";
  jit::Module m = *jit::parse_module(text, {"deep", {}});
  const jit::Function& f = m.functions[0];
  jit::ControlFlow control = jit::analyze_control_flow(f);
  jit::LoopNest loops = jit::find_loops(f, control);
  ASSERT_EQ(loops.loops.size(), kDepth);
  std::vector<uint64_t> uneven(f.block_sites);
  for (size_t n = 0; n < uneven.size(); ++n) uneven[n] = n % 2 == 0 ? UINT64_MAX : 0;
  jit::Frequencies q = jit::estimate_frequencies(f, control, loops, uneven);
  for (Block b : f.layout) {
    ASSERT_GE(q.at(b), 0.9e-6f);
    ASSERT_LE(q.at(b), 1.1e12f);
  }
  EXPECT_EQ(q.of, jit::estimate_frequencies(f, control, loops, {}).of) << "by shape";
}

// A loop nest whose samples hit the inner loop but not the outer one.
constexpr const char* kNest = R"(
func @nest(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  branch v0, b1(v0), b4
b1(v2: i32):
  jump b2(v2)
b2(v3: i32):
  v4 = sub.i32 v3, v1
  branch v4, b2(v4), b3
b3:
  v5 = sub.i32 v2, v1
  branch v5, b1(v5), b4
b4:
  return v0
}
)";

// Returns the frequencies, indexed by the block's number in the text.
jit::Frequencies nest_frequencies(std::vector<uint64_t> counts, double sample) {
  jit::Module m = *jit::parse_module(kNest, {"nest", {}});
  const jit::Function& f = m.functions[0];
  jit::ControlFlow control = jit::analyze_control_flow(f);
  jit::LoopNest loops = jit::find_loops(f, control);
  jit::Frequencies q = jit::estimate_frequencies(f, control, loops,
                                                 jit::BlockCounts(counts, sample)),
                   named = q;
  for (size_t n = 0; n < f.layout.size(); ++n) {
    named.of[n] = q.at(f.layout[n]);
    named.cold[n] = q.cold[f.layout[n].index()];
  }
  return named;
}

TEST(OptFrequencies, what_no_sample_met_is_not_cold_where_few_were_taken) {
  // Sites are b0 to b4. One burst saw 32 rounds of b2; each observed execution stands for 1000.
  jit::Frequencies q = nest_frequencies({1, 0, 32'000, 0, 1}, 1000);
  for (uint32_t b = 0; b < 5; ++b) EXPECT_FALSE(q.cold[b]) << b;
  EXPECT_GT(q.of[2], 8 * q.of[1]);
  EXPECT_FLOAT_EQ(q.of[3], q.of[1]);  // every execution of the inner loop leaves it once
}

TEST(OptFrequencies, what_many_samples_missed_is_cold) {
  jit::Frequencies q = nest_frequencies({100'000, 0, 0, 0, 100'000}, 1);
  EXPECT_TRUE(q.cold[1]);
  EXPECT_TRUE(q.cold[2]);
  EXPECT_LT(q.of[1], 1e-4f);
  EXPECT_FALSE(q.cold[4]);
}

// Returns whether each block is cold, by its number in the text, of a loop whose body is a switch:
// b0 is the entry, b1 the header with the switch, b2 leaves, b3 only traps, and the other kCases
// return to the header.
constexpr uint32_t kCases = 100;
std::vector<bool> cold_in_switch(const std::vector<uint64_t>& counts) {
  auto block = [](uint32_t n) { return "b" + std::to_string(n); };
  std::string cases = block(3), bodies;
  for (uint32_t n = 4; n < 4 + kCases; ++n) {
    cases += ", " + block(n);
    bodies += block(n) + ":\n  v" + std::to_string(n) + " = add.i32 v1, v1\n  jump b1(v" +
              std::to_string(n) + ")\n";
  }
  std::string text =
      "func @interpreter(i32) -> i32 {\nb0(v0: i32):\n  jump b1(v0)\nb1(v1: i32):\n  switch v1, [" +
      cases + "], b2\nb2:\n  return v1\nb3:\n  trap unreachable\n" + bodies + "}\n";
  auto m = jit::parse_module(text, {"interpreter", {}});
  EXPECT_TRUE(m.ok()) << text;
  if (!m) return std::vector<bool>(4 + kCases);
  const jit::Function& f = m->functions[0];
  jit::ControlFlow control = jit::analyze_control_flow(f);
  jit::LoopNest loops = jit::find_loops(f, control);
  jit::Frequencies q = jit::estimate_frequencies(f, control, loops, counts);
  std::vector<bool> cold;
  for (Block b : f.layout) cold.push_back(q.cold[b.index()]);
  return cold;
}

TEST(OptFrequencies, cases_of_a_large_switch_are_not_cold_before_it_was_observed) {
  std::vector<bool> cold = cold_in_switch({});
  ASSERT_EQ(cold.size(), 4 + kCases);
  EXPECT_TRUE(cold[3]) << "a trap";
  EXPECT_EQ(std::count(cold.begin() + 4, cold.end(), true), 0);
}

TEST(OptFrequencies, cases_are_cold_once_many_executions_of_the_switch_missed_them) {
  std::vector<uint64_t> counts(4 + kCases);
  counts[0] = 1;
  counts[1] = counts[4] = 100;  // executions, all of one case
  std::vector<bool> few = cold_in_switch(counts);
  EXPECT_EQ(std::count(few.begin() + 4, few.end(), true), 0);
  counts[1] = counts[4] = 150;
  std::vector<bool> many = cold_in_switch(counts);
  EXPECT_EQ(std::count(many.begin() + 4, many.end(), true), kCases - 1);
  EXPECT_FALSE(many[4]);
}

TEST(OptFrequencies, rounds_are_those_of_the_counts) {
  jit::Frequencies q =
      nest_frequencies({1'000'000, 5'000'000, 15'000'000, 5'000'000, 1'000'000}, 1);
  EXPECT_NEAR(q.of[1], 5, 0.1f);
  EXPECT_NEAR(q.of[2], 15, 0.3f);
  EXPECT_NEAR(q.of[3], 5, 0.1f);
  EXPECT_NEAR(q.of[4], 1, 0.01f);
}

}  // namespace
}  // namespace uptier::test::opt_passes_test
