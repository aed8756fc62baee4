// The plain form, for bodies that are too large for SSA form: it is linear in size, and it is the
// same body. baseline_random_test.cc also compares its results.
#include "jit/frontend/plain_form.h"

#include <gtest/gtest.h>

#include <functional>

#include "jit/analysis/liveness.h"
#include "jit/frontend/builder_access.h"
#include "tests/support/baseline_module.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::plain_form_test {
namespace {

using Describe = std::function<void(FunctionBuilder&, int)>;
const Signature kSignature{{Type::kI64}, Type::kI64};

std::vector<Variable> declare(FunctionBuilder& b, int count) {
  std::vector<Variable> xs;
  for (int i = 0; i < count; ++i) {
    xs.push_back(b.declare(Type::kI64));
    b.def(xs.back(), b.binary(Opcode::kAdd, b.param(0), b.i64(i)));
  }
  return xs;
}

void return_sum(FunctionBuilder& b, const std::vector<Variable>& xs) {
  Value sum = b.i64(0);
  for (Variable x : xs) sum = b.binary(Opcode::kAdd, sum, b.use(x));
  b.ret(sum);
}

Block begin_loop(FunctionBuilder& b) {
  Block header = b.create_block();
  b.jump(header);
  b.switch_to(header);
  b.loop_header();
  return header;
}

// Repeats the loop once more when the Variable becomes 3.
void end_loop(FunctionBuilder& b, Block header, Variable x) {
  b.def(x, b.binary(Opcode::kAdd, b.use(x), b.i64(1)));
  Block on = b.create_block();
  b.branch(b.binary(Opcode::kEq, b.use(x), b.i64(3)), header, on);
  b.seal(header);
  b.seal(on);
  b.switch_to(on);
}

// One loop for each Variable, one after the other.
void side_by_side(FunctionBuilder& b, int k) {
  std::vector<Variable> xs = declare(b, k);
  for (Variable x : xs) end_loop(b, begin_loop(b), x);
  return_sum(b, xs);
}

// Nested loops; the innermost reads and writes all Variables.
void nested(FunctionBuilder& b, int k) {
  std::vector<Variable> xs = declare(b, k);
  std::vector<Block> headers;
  for (int i = 0; i < k; ++i) headers.push_back(begin_loop(b));
  for (int i = 0; i < k; ++i) b.def(xs[i], b.binary(Opcode::kXor, b.use(xs[i]), b.i64(i)));
  for (int i = 0; i < k; ++i) end_loop(b, headers[k - 1 - i], xs[i]);
  return_sum(b, xs);
}

// Branches, each of which writes one Variable on one path and another one on the other path.
void webs(FunctionBuilder& b, int k) {
  std::vector<Variable> xs = declare(b, k);
  for (int i = 0; i < k; ++i) {
    Block yes = b.create_block(), no = b.create_block(), join = b.create_block();
    b.branch(b.binary(Opcode::kLtS, b.use(xs[i]), b.i64(5)), yes, no);
    for (Block way : {yes, no}) {
      b.seal(way);
      b.switch_to(way);
      b.def(xs[way == yes ? i : (i + 1) % k], b.i64(i));
      b.jump(join);
    }
    b.seal(join);
    b.switch_to(join);
  }
  return_sum(b, xs);
}

// Values that are live across loops.
void long_lives(FunctionBuilder& b, int k) {
  std::vector<Value> values;
  for (int i = 0; i < k; ++i) values.push_back(b.binary(Opcode::kMul, b.param(0), b.i64(i)));
  Variable x = b.declare(Type::kI64);
  b.def(x, b.param(0));
  for (int i = 0; i < k; ++i) end_loop(b, begin_loop(b), x);
  Value sum = b.use(x);
  for (Value v : values) sum = b.binary(Opcode::kAdd, sum, v);
  b.ret(sum);
}

jit::Function described(const Describe& describe, int k, bool* plainly = nullptr) {
  FunctionBuilder b(kSignature, "bomb");
  describe(b, k);
  Result<jit::Function> f = BuilderAccess::finish_verified(b);
  bool again = BuilderAccess::too_much(b);
  EXPECT_NE(f.ok(), again);
  if (again) {
    EXPECT_EQ(f.error().code, ErrorCode::kResourceExhausted);
    FunctionBuilder plain = BuilderAccess::begin_plain(kSignature, "bomb");
    describe(plain, k);
    f = BuilderAccess::finish_verified(plain);
    EXPECT_TRUE(f.ok()) << (f.ok() ? "" : f.error().message);
  }
  if (plainly != nullptr) *plainly = again;
  return f.ok() ? std::move(*f) : jit::Function{};
}

size_t live_members(const jit::Function& f) {
  jit::Liveness live = jit::compute_liveness(f);
  size_t members = 0;
  for (Block b : f.layout) members += live.live_in[b.index()].size();
  return members;
}

// Returns the sum of all sizes that cost time or memory later.
size_t size_of(const jit::Function& f) {
  return f.insts.size() + f.values.size() + f.edges.size() + f.pool.size() + live_members(f);
}

void expect_linear(const Describe& describe, int k) {
  bool plainly = false;
  size_t one = size_of(described(describe, k, &plainly));
  EXPECT_TRUE(plainly);
  size_t two = size_of(described(describe, 2 * k));
  EXPECT_GT(two, one);
  EXPECT_LT(two, one * 22 / 10);
}

TEST(PlainForm, is_linear_in_loops_over_variables_side_by_side) {
  expect_linear(side_by_side, 2500);
}
TEST(PlainForm, is_linear_in_nested_loops_that_write_all_variables) { expect_linear(nested, 2500); }
TEST(PlainForm, is_linear_in_webs_of_choices) { expect_linear(webs, 2500); }
TEST(PlainForm, is_linear_in_values_that_live_through_loops) { expect_linear(long_lives, 6000); }

TEST(PlainForm, is_for_bombs_only) {
  for (const Describe& d :
       {Describe(side_by_side), Describe(nested), Describe(webs), Describe(long_lives)}) {
    bool plainly = true;
    jit::Function f = described(d, 60, &plainly);
    EXPECT_FALSE(plainly);
    EXPECT_EQ(jit::find_frame_memory(f), nullptr);
  }
}

// Runs both forms of the same body, in the interpreter and as code.
TEST(PlainForm, is_the_same_body) {
  for (const Describe& d :
       {Describe(side_by_side), Describe(nested), Describe(webs), Describe(long_lives)}) {
    jit::Module module;
    for (uint32_t short_life : {0u, 64u}) {
      FunctionBuilder plain = BuilderAccess::begin_plain(kSignature, "plain", short_life);
      d(plain, 40);
      module.functions.push_back(BuilderAccess::finish(plain));
    }
    module.functions.push_back(described(d, 40));
    EXPECT_EQ(module.functions[0].cfg_hash, module.functions[2].cfg_hash);
    EXPECT_TRUE(jit::verify(module).ok());
    jit::Interpreter oracle(module, {});
    CodeMachine machine;
    BaselineModule code(machine, module, BaselineModule::Use::kToAndFro);
    for (uint64_t arg : {uint64_t{0}, uint64_t{2}, ~uint64_t{0}}) {
      const uint64_t args[] = {arg};
      uint64_t want = oracle.run(MethodId(2), args).bits;
      for (uint32_t m = 0; m < 3; ++m) {
        EXPECT_EQ(oracle.run(MethodId(m), args).bits, want);
        EXPECT_EQ(code.run(MethodId(m), {arg}).bits, want);
      }
    }
  }
}

// ---- Its instructions
// -----------------------------------------------------------------------------

constexpr const char* kMemoryText = R"(
func @words(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = frame_memory.ref 32
  v3 = load.i64 v2+24
  store.i64 v0, v2+24
  v4 = load.i64 v2+8
  v5 = load.i64 v2+24
  v6 = sub.i64 v5, v1
  v7 = add.i64 v6, v3
  v8 = add.i64 v7, v4
  return v8
}
)";

jit::Module parsed(const std::string& text) {
  auto m = jit::parse_module(text, {"test", {}});
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().message);
  return m.ok() ? std::move(*m) : jit::Module{};
}

TEST(FrameMemory, is_zero_when_a_call_begins_and_prints_as_it_is_read) {
  jit::Module module = parsed(kMemoryText);
  EXPECT_TRUE(jit::verify(module).ok());
  EXPECT_EQ(jit::to_text(parsed(jit::to_text(module))), jit::to_text(module));
  jit::Interpreter oracle(module, {});
  CodeMachine machine;
  BaselineModule code(machine, module, BaselineModule::Use::kInstrumented);
  for (uint64_t n = 1; n < 5; ++n) {
    const uint64_t args[] = {n * 100, n};
    EXPECT_EQ(oracle.run(MethodId(0), args).bits, n * 99);
    EXPECT_EQ(code.run(MethodId(0), {n * 100, n}).bits, n * 99);
  }
}

std::string problem(const std::string& from, const std::string& to) {
  std::string text = kMemoryText;
  text.replace(text.find(from), from.size(), to);
  Status s = jit::verify(parsed(text));
  return s.ok() ? "" : s.error().message;
}

TEST(FrameMemory, is_asked_for_once_in_the_entry_and_has_a_limit) {
  EXPECT_NE(problem("memory.ref 32", "memory.ref 33").find("a multiple of 8"), std::string::npos);
  EXPECT_NE(problem("memory.ref 32", "memory.ref 1048584").find("1 MiB"), std::string::npos);
  EXPECT_NE(
      problem("v3 = load.i64 v2+24", "v9 = frame_memory.ref 8\n  v3 = load.i64 v9").find("once"),
      std::string::npos);
  EXPECT_EQ(problem("memory.ref 32", "memory.ref 1024"), "");
}

TEST(FrameMemory, is_refused_by_the_optimizing_compiler) {
  jit::Module module = parsed(kMemoryText);
  jit::Module other = parsed("func @none() {\nb0:\n  return\n}\n");
  CodeMachine machine;
  OptimizedModule code(machine, other);
  auto made = jit::compile_optimized(
      {module.functions[0], MethodId(0), code.helpers(), code.resolver(), *machine.space}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
}

// ---- Limits of a compilation ------------------------------------------------------------------

// A limit that is reached after the n-th pass.
struct AfterPasses final : jit::CompileLimit {
  explicit AfterPasses(size_t most) : most(most) {}
  bool over(const char* pass) override {
    passes.push_back(pass);
    return passes.size() >= most;
  }
  size_t most;
  std::vector<std::string> passes;
};

TEST(CompileLimit, ends_a_compilation_behind_the_pass_that_met_it) {
  jit::Module module = random_module(7, {});
  CodeMachine machine;
  OptimizedModule code(machine, module);
  auto compile = [&](AfterPasses& limit) {
    uint32_t last = static_cast<uint32_t>(module.functions.size() - 1);
    return jit::compile_optimized(
        {module.functions[last], MethodId(last), code.helpers(), code.resolver(), *machine.space},
        {.limit = &limit});
  };
  AfterPasses never(SIZE_MAX);
  ASSERT_TRUE(compile(never).ok());
  EXPECT_GT(never.passes.size(), 30u);
  EXPECT_EQ(never.passes.back(), "allocate_registers");
  for (size_t n = 1; n <= never.passes.size(); ++n) {
    AfterPasses limit(n);
    auto made = compile(limit);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(limit.passes.size(), n) << "it went on";
  }
}

}  // namespace
}  // namespace uptier::test::plain_form_test
