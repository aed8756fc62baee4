// Flow counters: the graphs of bodies, the plans that place the counters, and the code that
// implements them.
#include <gtest/gtest.h>

#include "jit/analysis/flow_graph.h"
#include "tests/support/flow_module.h"
#include "tests/support/golden.h"
#include "tests/support/random_ir.h"

namespace uptier::test::flow_plan_test {
namespace {

using jit::Code;
using jit::Function;
using jit::ProbePlan;
using profile::FlowEdge;

class Compiler : jit::CallResolver {
 public:
  explicit Compiler(CodeMachine& m) : machine_(m) {
    helpers_.loop_slow_plain = helpers_.loop_slow_instrumented =
        reinterpret_cast<const void*>(uint64_t{0x123456789a});
    helpers_.scalable_count64 = m.routines->scalable_count64();
    helpers_.scalable_count32 = m.routines->scalable_count32();
    helpers_.trap_exit = m.routines->trap_exit();
  }
  std::unique_ptr<Code> must(const Function& f, jit::BaselineRequest r = {}) {
    return CodeMachine::take(
        jit::compile_baseline({f, MethodId(5), helpers_, *this, *machine_.space}, r));
  }

 private:
  jit::CallTarget target(MethodId) override {
    return {jit::CallTarget::Kind::kStub, machine_.routines->trap_exit()};
  }
  CodeMachine& machine_;
  jit::Helpers helpers_;
};

std::string bytes(const Code& c) {
  return std::string(reinterpret_cast<const char*>(c.base()), c.size());
}

Function parse(const std::string& text) {
  auto m = jit::parse_module(text, {"test", corpus_hosts()});
  if (!m.ok()) throw std::runtime_error(m.error().message);
  return m->functions[0];
}

const char* kDiamondInLoop = R"(
func @f(i64) -> i64 {
b0(v0: i64):
  jump b1(v0)
b1(v1: i64):
  loop_header 0 pc=0 []
  v2 = const.i64 1
  v3 = and.i64 v1, v2
  v4 = eqz.i64 v3
  branch v4, b2, b3
b2:
  v5 = shr_u.i64 v1, v2
  jump b4(v5)
b3:
  v6 = sub.i64 v1, v2
  jump b4(v6)
b4(v7: i64):
  v8 = eqz.i64 v7
  branch v8, b5, b1(v7)
b5:
  return v7
}
)";

const char* kStraight = R"(
func @f(i64) -> i64 {
b0(v0: i64):
  v1 = mul.i64 v0, v0
  return v1
}
)";

TEST(FlowGraph, numbers_edges_in_layout_order_and_puts_pseudo_edges_behind) {
  jit::FlowShape s = jit::flow_graph(parse(kDiamondInLoop));
  std::vector<std::pair<uint32_t, uint32_t>> ends;
  for (const FlowEdge& e : s.graph.edges) ends.push_back({e.from, e.to});
  using Ends = std::vector<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ(ends, (Ends{{1, 2},
                        {2, 3},
                        {2, 4},
                        {3, 5},
                        {4, 5},
                        {5, 6},
                        {5, 2},  // real
                        {0, 1},
                        {6, 0},  // call, return
                        {0, 2},
                        {2, 0},  // loop 0
                        {1, 0},
                        {2, 0},
                        {3, 0},
                        {4, 0},
                        {5, 0},
                        {6, 0}}));  // traps
  EXPECT_EQ(s.real, 7u);
  EXPECT_EQ(s.entry(), 7u);
  EXPECT_EQ(s.first_return(), 8u);
  EXPECT_EQ(s.first_arrival(), 9u);
  EXPECT_EQ(s.first_leaving(), 10u);
  EXPECT_EQ(s.first_trap(), 11u);
  EXPECT_FALSE(s.entry_is_known());
  for (size_t e = 0; e < s.graph.edges.size(); ++e) {
    EXPECT_EQ(s.graph.edges[e].external, e >= s.first_arrival()) << e;
  }
  EXPECT_GT(s.graph.edges[6].weight, s.graph.edges[0].weight);
}

TEST(FlowGraph, is_the_same_for_every_build_of_a_body) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(jit::flow_graph(random_module(seed).functions.back()),
              jit::flow_graph(random_module(seed).functions.back()));
  }
}

// A diamond in a loop makes two cycles inside the loop: two counters there, on its cheaper edges,
// and none on the way in or out.
TEST(ProbePlan, counts_a_diamond_in_a_loop_with_three_counters) {
  ProbePlan p = jit::plan_probes(parse(kDiamondInLoop), {});
  EXPECT_EQ(p.flow_counters(), 3u);
  EXPECT_TRUE(p.blocks.empty());
  EXPECT_EQ(p.loop_enter, (std::vector<uint32_t>{24}));
  EXPECT_EQ(p.loop_leave, (std::vector<uint32_t>{32}));
  EXPECT_EQ(p.bytes, 40u);
}

TEST(ProbePlan, counts_nothing_in_a_body_of_one_block) {
  Function f = parse(kStraight);
  ProbePlan p = jit::plan_probes(f, {});
  EXPECT_EQ(p.flow_counters(), 0u);
  EXPECT_EQ(p.bytes, 0u);
  jit::FlowLayout layout(f, p);
  EXPECT_TRUE(layout.needs_entries());
  std::vector<uint64_t> traps{3};
  EXPECT_EQ(layout.counts_of({}, traps, 10).blocks, (std::vector<uint64_t>{10}));
  EXPECT_EQ(layout.counts_of({}, traps, 10).edges, (std::vector<uint64_t>{10, 7, 3}));
  CodeMachine m;
  auto code = Compiler(m).must(f, {.copy = Copy::kInstrumented, .probes = &p});
  EXPECT_EQ(disassemble(code->base(), code->size()).find("inc "), std::string::npos);
}

TEST(ProbePlan, counts_block_k_at_k_minus_1_in_block_mode) {
  Function f = parse(kDiamondInLoop);
  for (const jit::ProbeRequest& r : counter_requests(FlowMode::kBlocks)) {
    ProbePlan p = jit::plan_probes(f, r);
    ASSERT_EQ(p.blocks.size(), 6u);
    for (uint32_t k = 0; k < 6; ++k) EXPECT_EQ(p.blocks[k], k * p.stride());
    EXPECT_EQ(p.bytes, 6 * p.stride());
    EXPECT_TRUE(p.edges.empty());
  }
}

TEST(ProbePlan, of_blocks_gives_the_code_that_none_gives) {
  CodeMachine m;
  Compiler c(m);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Function f = random_module(seed, {.functions = 1, .hosts = false}).functions[0];
    ProbePlan p = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
    auto with = c.must(f, {.copy = Copy::kInstrumented, .probes = &p});
    auto without = c.must(f, {.copy = Copy::kInstrumented});
    ASSERT_TRUE(bytes(*with) == bytes(*without)) << "seed " << seed;
    EXPECT_EQ(with->tables(), without->tables());
  }
}

TEST(ProbePlan, adds_not_one_byte_to_plain_copies) {
  CodeMachine m;
  Compiler c(m);
  int compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Function f = random_module(seed, {.functions = 1, .hosts = false}).functions[0];
    auto without = c.must(f);
    for (const jit::ProbeRequest& r : counter_requests(FlowMode::kEdges)) {
      ProbePlan p = jit::plan_probes(f, r);
      auto with = c.must(f, {.probes = &p});
      ASSERT_TRUE(bytes(*with) == bytes(*without)) << "seed " << seed;
      EXPECT_EQ(with->tables(), without->tables());
      auto instrumented = c.must(f, {.copy = Copy::kInstrumented, .probes = &p});
      EXPECT_EQ(instrumented->tables().frame_size, without->tables().frame_size);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 400);
}

TEST(ProbePlan, of_scalable_counters_needs_their_routine) {
  CodeMachine m;
  struct Nowhere : jit::CallResolver {
    jit::CallTarget target(MethodId) override { return {}; }
  } calls;
  Function f = parse(kDiamondInLoop);
  jit::Helpers none;
  ProbePlan p = jit::plan_probes(f, {FlowMode::kEdges, CounterMode::kScalable});
  auto r = jit::compile_baseline({f, MethodId(0), none, calls, *m.space},
                                 {.copy = Copy::kInstrumented, .probes = &p});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kInvalidInput);
}

// ---- Instruction budgets ----------------------------------------------------------------------

// Returns the instructions of `with` that `without` lacks, in order.
std::string added(const std::string& without, const std::string& with) {
  std::vector<std::string> a = lines_of(without), b = lines_of(with);
  std::string out;
  size_t at = 0;
  for (const std::string& line : b) {
    if (at < a.size() && a[at] == line) {
      ++at;
    } else {
      out += "  " + line + "\n";
    }
  }
  return out + (at == a.size() ? "" : "  (and others)\n");
}

std::string listing(const Code& c) { return disassemble(c.base(), c.size()); }

// A branch over a block: edge mode counts either the skipped block or the edge into it.
const char* kSkip = R"(
func @f(i64) -> i64 {
b0(v0: i64):
  v1 = eqz.i64 v0
  branch v1, b1, b2
b1:
  jump b2
b2:
  return v0
}
)";

TEST(FastPaths, of_checks_and_counters_keep_their_budgets) {
  CodeMachine m;
  Compiler c(m);
  Function loop = parse(R"(
func @f(i64) -> i64 {
b0(v0: i64):
  jump b1
b1:
  loop_header 0 pc=0 []
  return v0
}
)");
  std::string text = "loop check, plain copy (its slow side included)\n";
  text += added(listing(*c.must(loop, {.loop_checks = false})), listing(*c.must(loop)));
  Function held = parse(R"(
func @f(i64) -> i64 {
b0(v0: i64):
  jump b1
b1:
  loop_header 0 pc=0 []
  v1 = eqz.i64 v0
  branch v1, b1, b2
b2:
  return v0
}
)");
  text += "loop check, countdown held in a register (edges and slow side included)\n";
  text += added(listing(*c.must(held, {.loop_checks = false})), listing(*c.must(held)));
  Function straight = parse(kStraight), skip = parse(kSkip);
  ProbePlan none = jit::plan_probes(straight, {});
  auto base = listing(*c.must(straight, {.copy = Copy::kInstrumented, .probes = &none}));
  for (const jit::ProbeRequest& r : counter_requests(FlowMode::kBlocks)) {
    ProbePlan p = jit::plan_probes(straight, r);
    constexpr const char* kNames[] = {"per thread", "interlocked", "scalable", "racing", "dual"};
    text += std::string("block probe, ") + kNames[static_cast<int>(r.counters)] +
            (r.narrow ? ", narrow\n" : "\n");
    text += added(base, listing(*c.must(straight, {.copy = Copy::kInstrumented, .probes = &p})));
  }
  ProbePlan edges = jit::plan_probes(skip, {});
  text += "edge probes of a branch over a block: " + std::to_string(edges.flow_counters()) + "\n";
  text += listing(*c.must(skip, {.copy = Copy::kInstrumented, .probes = &edges}));
  expect_golden("fast_paths", text);
}

}  // namespace
}  // namespace uptier::test::flow_plan_test
