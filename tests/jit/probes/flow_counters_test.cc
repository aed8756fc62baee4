// Block and edge counts of instrumented copies, compared with the reference interpreter.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/baseline_module.h"
#include "tests/support/flow_module.h"
#include "tests/support/random_ir.h"

namespace uptier::test::flow_counters_test {
namespace {

using Use = FlowModule::Use;

constexpr uint64_t kExact = jit::ProbePlan::kScalableExact;

struct Totals {
  int edges = 0, traps = 0;
};

// Describes the first wrong count of a method; "" if all are the interpreter's.
std::string wrong_counts(const FlowModule& compiled, const jit::Interpreter& interpreter,
                         uint32_t m, Totals& totals) {
  auto sites = interpreter.site_counts(MethodId(m));
  if (sites.empty()) return "";  // never entered
  bool approximate = compiled.plan(m).counters == CounterMode::kScalable &&
                     *std::max_element(sites.begin(), sites.end()) > kExact;
  if (approximate) return "";
  profile::FlowCounts got = compiled.counts(m);
  for (size_t b = 0; b < got.blocks.size(); ++b) {
    if (got.blocks[b] == sites[b]) continue;
    return "block " + std::to_string(b + 1) + ": " + std::to_string(got.blocks[b]) + " for " +
           std::to_string(sites[b]);
  }
  if (compiled.layout(m).mode() == FlowMode::kBlocks) return "";
  auto edges = interpreter.edge_counts(MethodId(m));
  if (edges.size() != compiled.layout(m).real_edges()) return "another number of edges";
  for (size_t e = 0; e < edges.size(); ++e, ++totals.edges) {
    if (got.edges[e] == edges[e]) continue;
    return "edge " + std::to_string(e + 1) + ": " + std::to_string(got.edges[e]) + " for " +
           std::to_string(edges[e]);
  }
  if (got.clamped) return "clamped";
  if (!imbalanced_blocks(compiled.layout(m).shape().graph, got).empty()) return "imbalanced";
  return "";
}

// ---- The corpus -------------------------------------------------------------------------------

void compare_file(const CorpusFile& file, const jit::ProbeRequest& request, Totals& totals) {
  Scratch scratch;
  CodeMachine machine;
  FlowModule module(machine, file.module, request);
  jit::Interpreter interpreter(file.module, interpret_options(scratch));
  auto address = [&](MethodId m) { return module.address_of(m); };
  for (const CorpusRun& run : file.runs) {
    // The number of frames that fit on the stack differs between the two.
    if (run.expected.trap == TrapCode::kStackExhausted) continue;
    scratch.fill();
    auto ran = module.run(run.method, run.arguments(scratch, address));
    EXPECT_EQ("", run.complaint({ran.bits, ran.trap}, scratch));
    scratch.fill();
    interpret(interpreter, run.method, run.arguments(scratch, jit::Interpreter::address_of));
    totals.traps += ran.trap != TrapCode::kNone;
  }
  for (uint32_t m = 0; m < file.module.functions.size(); ++m) {
    ASSERT_EQ("", wrong_counts(module, interpreter, m, totals))
        << file.name << " @" << file.module.functions[m].name;
  }
}

void compare_corpus(FlowMode flow) {
  corpus_raise = raise_in_context;
  Totals totals;
  for (const CorpusFile& file : load_corpus()) {
    for (const jit::ProbeRequest& request : counter_requests(flow)) {
      compare_file(file, request, totals);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(totals.traps, 1000);
  EXPECT_TRUE(flow == FlowMode::kBlocks || totals.edges > 1000) << totals.edges;
}

TEST(FlowCounters, of_edges_give_the_interpreters_blocks_and_edges_in_every_counter_mode) {
  compare_corpus(FlowMode::kEdges);
}

TEST(FlowCounters, of_blocks_give_the_interpreters_blocks_in_every_counter_mode) {
  compare_corpus(FlowMode::kBlocks);
}

// ---- Random programs --------------------------------------------------------------------------

void compare_random(uint64_t seed, const RandomOptions& options, const jit::ProbeRequest& request,
                    Totals& totals) {
  jit::Module module = random_module(seed, options);
  auto last = static_cast<uint32_t>(module.functions.size() - 1);
  Scratch scratch;
  CodeMachine machine;
  FlowModule compiled(machine, module, request);
  jit::Interpreter interpreter(module, interpret_options(scratch));
  for (uint64_t round = 0; round < 3; ++round) {
    Random r(seed * 1000 + round);
    auto args = random_arguments(module.functions[last].signature(), scratch, r);
    scratch.fill();
    Answer expected = interpret(interpreter, MethodId(last), args);
    scratch.fill();
    auto ran = compiled.run(MethodId(last), args);
    ASSERT_EQ(ran.trap, expected.trap) << "seed " << seed;
    totals.traps += ran.trap != TrapCode::kNone;
  }
  for (uint32_t m = 0; m <= last; ++m) {
    ASSERT_EQ("", wrong_counts(compiled, interpreter, m, totals))
        << "seed " << seed << " method " << m;
  }
}

TEST(FlowCounters, of_random_programs_are_the_interpreters_also_when_they_trap) {
  corpus_raise = raise_in_context;
  Totals totals;
  auto requests = counter_requests(FlowMode::kEdges);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    compare_random(seed, {.guards = true}, requests[seed % requests.size()], totals);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (uint64_t seed = 0; seed < 8; ++seed) {
    RandomOptions large{.functions = 2, .statements = 400, .variables = 80, .depth = 5};
    compare_random(seed, large, {}, totals);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(totals.traps, 50);
  EXPECT_GT(totals.edges, 5000);
}

// Compares both ways of counting in one run that changes copies at every loop header.
void compare_to_and_fro(const jit::Module& module, uint64_t seed, uint64_t& transfers) {
  auto last = static_cast<uint32_t>(module.functions.size() - 1);
  Scratch scratch;
  std::vector<std::vector<uint64_t>> blocks[2];
  for (FlowMode mode : {FlowMode::kBlocks, FlowMode::kEdges}) {
    CodeMachine machine;
    FlowModule compiled(machine, module, {.flow = mode}, Use::kToAndFro);
    for (uint64_t round = 0; round < 3; ++round) {
      Random r(seed * 1000 + round);
      scratch.fill();
      compiled.run(MethodId(last),
                   random_arguments(module.functions[last].signature(), scratch, r));
    }
    transfers += compiled.transfers();
    for (uint32_t m = 0; m <= last; ++m) {
      profile::FlowCounts c = compiled.counts(m);
      blocks[mode == FlowMode::kEdges].push_back(c.blocks);
      EXPECT_FALSE(c.clamped) << "seed " << seed;
      if (mode == FlowMode::kBlocks) continue;
      EXPECT_TRUE(imbalanced_blocks(compiled.layout(m).shape().graph, c).empty());
    }
  }
  ASSERT_EQ(blocks[0], blocks[1]) << "seed " << seed;
}

TEST(FlowCounters, stay_balanced_when_every_loop_header_changes_copies) {
  corpus_raise = raise_in_context;
  uint64_t transfers = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    compare_to_and_fro(random_module(seed, {.guards = true}), seed, transfers);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(transfers, 2000u);
}

// ---- Traps ------------------------------------------------------------------------------------

jit::Module parse(const std::string& text) {
  auto m = jit::parse_module(text, {"test", corpus_hosts()});
  if (!m.ok()) throw std::runtime_error(m.error().message);
  return std::move(*m);
}

const char* kDescend = R"(
func @descend(i64) -> i64 {
b0(v0: i64):
  v1 = eqz.i64 v0
  branch v1, b1, b2
b1:
  return v0
b2:
  v2 = const.i64 1
  v3 = sub.i64 v0, v2
  v4 = call @descend(v3)
  v5 = add.i64 v4, v2
  return v5
}
)";

// A trap unwinds a million frames at once; the innermost is in its prologue and counts for nothing.
TEST(FlowTraps, a_stack_that_ends_leaves_the_counts_that_blocks_have) {
  jit::Module module = parse(kDescend);
  std::vector<uint64_t> blocks[2];
  for (FlowMode mode : {FlowMode::kBlocks, FlowMode::kEdges}) {
    CodeMachine machine;
    FlowModule compiled(machine, module, {.flow = mode});
    EXPECT_EQ(compiled.run(MethodId(0), {10}).bits, 10u);
    EXPECT_EQ(compiled.run(MethodId(0), {UINT64_MAX}).trap, TrapCode::kStackExhausted);
    EXPECT_EQ(compiled.run(MethodId(0), {7}).bits, 7u);
    profile::FlowCounts c = compiled.counts(0);
    EXPECT_FALSE(c.clamped);
    blocks[mode == FlowMode::kEdges] = c.blocks;
    EXPECT_EQ(compiled.reports(), mode == FlowMode::kEdges ? 1u : 0u);
    if (mode == FlowMode::kEdges) {
      EXPECT_TRUE(imbalanced_blocks(compiled.layout(0).shape().graph, c).empty());
      EXPECT_GT(c.edges[compiled.layout(0).shape().first_trap() + 2], 10'000u);
    }
  }
  EXPECT_EQ(blocks[0], blocks[1]);
}

// Three blocks have the same trap code and location. The instrumented copy must tell them apart,
// though plain copies share the trapping instruction.
TEST(FlowTraps, blocks_that_trap_alike_are_told_apart) {
  jit::Module module = parse(R"(
func @f(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  branch v0, b1, b2
b1:
  trap_if v1, unreachable
  return v0
b2:
  trap_if v1, unreachable
  return v1
}
)");
  CodeMachine machine;
  FlowModule compiled(machine, module, {});
  auto traps = [&] {
    uint64_t n = 0;
    for (const auto& t : compiled.code(0, Copy::kInstrumented).tables().traps) {
      n += t.code == TrapCode::kUnreachable;
    }
    return n;
  };
  EXPECT_EQ(traps(), 2u);
  EXPECT_EQ(compiled.code(0, Copy::kPlain).tables().traps.size(), 1u);
  for (uint64_t where : {1, 1, 1, 0}) {
    EXPECT_EQ(compiled.run(MethodId(0), {where, 1}).trap, TrapCode::kUnreachable);
  }
  compiled.run(MethodId(0), {0, 0});
  profile::FlowCounts c = compiled.counts(0);
  EXPECT_EQ(c.blocks, (std::vector<uint64_t>{5, 3, 2}));
  uint32_t first = compiled.layout(0).shape().first_trap();
  EXPECT_EQ(c.edges[first + 1], 3u);
  EXPECT_EQ(c.edges[first + 2], 1u);
}

// There is no code between the first call and the next block, so its return address is in that
// block.
TEST(FlowTraps, a_call_at_the_end_of_a_block_belongs_to_its_own_block) {
  jit::Module module = parse(R"(
func @inner(i32) {
b0(v0: i32):
  trap_if v0, unreachable
  return
}
func @outer(i32) {
b0(v0: i32):
  call @inner(v0)
  jump b1
b1:
  return
}
)");
  CodeMachine machine;
  FlowModule compiled(machine, module, {});
  EXPECT_EQ(compiled.run(MethodId(1), {1}).trap, TrapCode::kUnreachable);
  EXPECT_EQ(compiled.run(MethodId(1), {0}).trap, TrapCode::kNone);
  EXPECT_EQ(compiled.reports(), 2u);
  profile::FlowCounts c = compiled.counts(1);
  EXPECT_EQ(c.blocks, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(c.edges[compiled.layout(1).shape().first_trap()], 1u);
}

struct Stubs : jit::CallResolver {
  CodeMachine& m;
  explicit Stubs(CodeMachine& machine) : m(machine) {}
  jit::CallTarget target(MethodId callee) override {
    return {jit::CallTarget::Kind::kStub, m.stubs->stub(callee)};
  }
};

// Optimized code keeps the chain of frame pointers, so the frames above it are found through it.
TEST(FlowTraps, frames_are_found_through_optimized_ones) {
  jit::Module module = parse(R"(
func @inner(i32) -> i32 {
b0(v0: i32):
  v1 = call_host @raise_if.(i32, i32)->i32 (v0, v0) may_trap
  return v1
}
func @middle(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = call @inner(v1)
  v3 = mul.i32 v2, v0
  v4 = call @inner(v3)
  v5 = add.i32 v4, v0
  return v5
}
func @outer(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  v1 = call @middle(v0, v0)
  return v1
b2:
  return v0
}
)");
  corpus_raise = raise_in_context;
  CodeMachine machine;
  FlowModule compiled(machine, module, {});
  Stubs stubs(machine);
  jit::Helpers helpers;
  helpers.trap_exit = machine.routines->trap_exit();
  auto code = CodeMachine::take(jit::compile_optimized(
      {module.functions[1], MethodId(1), helpers, stubs, *machine.space}, {}));
  machine.stubs->set_target(MethodId(1), code->entry());
  auto raised = static_cast<uint64_t>(TrapCode::kHost);
  EXPECT_EQ(compiled.run(MethodId(2), {raised}).trap, TrapCode::kHost);
  EXPECT_EQ(compiled.reports(), 2u);
  profile::FlowCounts outer = compiled.counts(2);
  EXPECT_EQ(outer.blocks, (std::vector<uint64_t>{1, 1, 0}));
  EXPECT_EQ(outer.edges[compiled.layout(2).shape().first_trap() + 1], 1u);
  profile::FlowCounts inner = compiled.counts(0);
  EXPECT_EQ(inner.edges[compiled.layout(0).shape().first_trap()], 1u);
}

// A leaf has no frame; its caller's frame is found from the state that the fault handler sets up.
TEST(FlowTraps, frames_are_found_above_a_leaf_that_has_none) {
  jit::Module module = parse(R"(
func @leaf(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = div_s.i64 v0, v1
  return v2
}
func @outer(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = call @leaf(v0, v0)
  branch v1, b1, b2
b1:
  v3 = call @outer(v2, v0)
  return v3
b2:
  v4 = call @leaf(v2, v1)
  return v4
}
)");
  CodeMachine machine;
  FlowModule compiled(machine, module, {});
  Stubs stubs(machine);
  jit::Helpers helpers;
  auto code = CodeMachine::take(jit::compile_optimized(
      {module.functions[0], MethodId(0), helpers, stubs, *machine.space}, {}));
  ASSERT_EQ(code->frame_at(code->entry()), jit::FrameState());
  ASSERT_EQ(code->tables().frames.size(), 1u);
  machine.stubs->set_target(MethodId(0), code->entry());
  EXPECT_EQ(compiled.run(MethodId(1), {7, 0}).trap, TrapCode::kDivideByZero);
  EXPECT_EQ(compiled.run(MethodId(1), {0, 1}).trap, TrapCode::kDivideByZero);
  EXPECT_EQ(compiled.reports(), 2u);
  uint32_t first = compiled.layout(1).shape().first_trap();
  profile::FlowCounts outer = compiled.counts(1);
  EXPECT_EQ(outer.blocks, (std::vector<uint64_t>{2, 0, 1}));
  EXPECT_EQ(outer.edges[first], 1u);
  EXPECT_EQ(outer.edges[first + 2], 1u);
}

TEST(FlowTraps, nothing_is_reported_where_blocks_are_counted) {
  jit::Module module = parse(kDescend);
  CodeMachine machine;
  BaselineModule compiled(machine, module, BaselineModule::Use::kInstrumented);
  machine.trapped = [](uint32_t, SiteId, uint64_t) { FAIL(); };
  EXPECT_EQ(compiled.run(MethodId(0), {UINT64_MAX}).trap, TrapCode::kStackExhausted);
}

}  // namespace
}  // namespace uptier::test::flow_counters_test
