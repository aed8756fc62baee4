// FunctionBuilder: Variables become SSA values, with block parameters only where they are needed.
#include "uptier/builder.h"

#include <gtest/gtest.h>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/interpret.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "tests/support/golden.h"

namespace uptier::test::ir_builder_test {
namespace {

using jit::Function;
using jit::Module;

constexpr Type kI32 = Type::kI32, kI64 = Type::kI64;

// Finishes the function, checks that it is well formed, and returns it in a module.
Module finish(FunctionBuilder& b) {
  Module m;
  m.functions.push_back(BuilderAccess::finish(b));
  Status s = jit::verify(m);
  EXPECT_TRUE(s.ok()) << s.error().message << "\n" << jit::to_text(m);
  return m;
}

uint64_t run(const Module& m, std::vector<uint64_t> args) {
  jit::Interpreter i(m);
  auto o = i.run(MethodId(0), args);
  EXPECT_EQ(o.kind, jit::InterpretOutcome::Kind::kReturned) << o.why << trap_text(o.trap);
  return o.bits;
}

size_t param_count(const Function& f) {
  size_t n = 0;
  for (Block b : f.layout) n += b == f.entry() ? 0 : f.params(b).size();
  return n;
}

// while (n != 0) { total += n; n -= 1; } with `total` and `n` in Variables.
void count_down(FunctionBuilder& b, Variable n, Variable total) {
  Block header = b.create_block(), body = b.create_block(), exit = b.create_block();
  b.jump(header);
  b.switch_to(header);
  b.loop_header();
  b.branch(b.use(n), body, exit);
  b.seal(body);
  b.switch_to(body);
  b.def(total, b.binary(Opcode::kAdd, b.use(total), b.use(n)));
  b.def(n, b.binary(Opcode::kSub, b.use(n), b.i32(1)));
  b.jump(header);
  b.seal(header);
  b.seal(exit);
  b.switch_to(exit);
}

TEST(Builder, a_loop_has_a_parameter_for_each_variable_it_changes) {
  FunctionBuilder b({{kI32}, kI32}, "sum");
  Variable n = b.declare(kI32), total = b.declare(kI32);
  b.def(n, b.param(0));
  b.def(total, b.i32(0));
  count_down(b, n, total);
  b.ret(b.use(total));
  Module m = finish(b);
  EXPECT_EQ(param_count(m.functions[0]), 2u);
  EXPECT_EQ(m.functions[0].loop_count, 1u);
  EXPECT_EQ(run(m, {100}), 5050u);
}

TEST(Builder, a_variable_that_loops_only_read_needs_no_parameter) {
  FunctionBuilder b({{kI32, kI32}, kI32}, "nested");
  Variable n = b.declare(kI32), total = b.declare(kI32), kept = b.declare(kI32);
  b.def(n, b.param(0));
  b.def(total, b.i32(0));
  b.def(kept, b.param(1));
  Block header = b.create_block(), body = b.create_block(), exit = b.create_block();
  b.jump(header);
  b.switch_to(header);
  b.branch(b.use(n), body, exit);
  b.seal(body);
  b.switch_to(body);
  Variable inner = b.declare(kI32);
  b.def(inner, b.use(kept));
  count_down(b, inner, total);
  b.def(n, b.binary(Opcode::kSub, b.use(n), b.i32(1)));
  b.def(total, b.binary(Opcode::kAdd, b.use(total), b.use(kept)));
  b.jump(header);
  b.seal(header);
  b.seal(exit);
  b.switch_to(exit);
  b.ret(b.binary(Opcode::kAdd, b.use(total), b.use(kept)));
  Module m = finish(b);
  EXPECT_EQ(param_count(m.functions[0]), 4u);  // n, total; inner, total
  EXPECT_EQ(run(m, {3, 4}), 3u * (10 + 4) + 4);
}

TEST(Builder, a_join_has_a_parameter_only_where_paths_differ) {
  FunctionBuilder b({{kI32}, kI32}, "join");
  Variable x = b.declare(kI32), y = b.declare(kI32);
  b.def(x, b.i32(1));
  b.def(y, b.i32(2));
  Block yes = b.create_block(), join = b.create_block();
  b.branch(b.param(0), yes, join);
  b.seal(yes);
  b.switch_to(yes);
  b.def(x, b.i32(10));
  b.jump(join);
  b.seal(join);
  b.switch_to(join);
  b.ret(b.binary(Opcode::kAdd, b.use(x), b.use(y)));
  Module m = finish(b);
  EXPECT_EQ(param_count(m.functions[0]), 1u);
  EXPECT_EQ(run(m, {0}), 3u);
  EXPECT_EQ(run(m, {1}), 12u);
}

TEST(Builder, a_switch_joins_each_arm) {
  FunctionBuilder b({{kI32}, kI32}, "arms");
  Variable x = b.declare(kI32);
  Block arms[3] = {b.create_block(), b.create_block(), b.create_block()};
  Block join = b.create_block();
  Block cases[] = {arms[0], arms[1], arms[0]};
  b.switch_on(b.param(0), cases, arms[2]);
  for (int i = 0; i < 3; ++i) {
    b.seal(arms[i]);
    b.switch_to(arms[i]);
    b.def(x, b.i32(10 * (i + 1)));
    b.jump(join);
  }
  b.seal(join);
  b.switch_to(join);
  b.ret(b.use(x));
  Module m = finish(b);
  uint64_t expected[] = {10, 20, 10, 30, 30};
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(run(m, {i}), expected[i]);
}

TEST(Builder, a_variable_without_a_definition_is_zero) {
  for (Type t : {kI32, kI64, Type::kF32, Type::kF64, Type::kRef}) {
    FunctionBuilder b({{kI32}, t}, "zero");
    Variable x = b.declare(t);
    Block yes = b.create_block(), join = b.create_block();
    b.branch(b.param(0), yes, join);
    b.seal(yes);
    b.switch_to(yes);
    b.def(x, b.constant(t, 0x40000000));
    b.jump(join);
    b.seal(join);
    b.switch_to(join);
    b.ret(b.use(x));
    Module m = finish(b);
    EXPECT_EQ(run(m, {0}), 0u) << type_name(t);
    EXPECT_EQ(run(m, {1}), 0x40000000u) << type_name(t);
  }
}

TEST(Builder, a_variable_that_is_zero_in_a_loop_may_change_in_it) {
  FunctionBuilder b({{kI32}, kI32}, "zero_loop");
  Variable n = b.declare(kI32), total = b.declare(kI32);
  b.def(n, b.param(0));
  count_down(b, n, total);
  b.ret(b.use(total));
  EXPECT_EQ(run(finish(b), {4}), 10u);
}

// 100,000 blocks in a row, and a variable that is looked up from the far end: the walk must be
// neither recursive nor quadratic.
TEST(Builder, a_long_chain_of_blocks_is_walked_without_recursion) {
  FunctionBuilder b({{kI32}, kI32}, "chain");
  Variable x = b.declare(kI32);
  b.def(x, b.param(0));
  for (int i = 0; i < 100'000; ++i) {
    Block next = b.create_block();
    b.jump(next);
    b.seal(next);
    b.switch_to(next);
  }
  b.ret(b.use(x));
  Module m = finish(b);
  EXPECT_EQ(param_count(m.functions[0]), 0u);
  EXPECT_EQ(run(m, {42}), 42u);
}

// The same with a join at every step and a loop around everything.
TEST(Builder, a_long_chain_of_joins_leaves_no_parameters) {
  FunctionBuilder b({{kI32}, kI32}, "joins");
  Variable x = b.declare(kI32), n = b.declare(kI32);
  b.def(x, b.param(0));
  b.def(n, b.i32(2));
  Block header = b.create_block();
  b.jump(header);
  b.switch_to(header);
  for (int i = 0; i < 50'000; ++i) {
    Block yes = b.create_block(), join = b.create_block();
    b.branch(b.param(0), yes, join);
    b.seal(yes);
    b.switch_to(yes);
    b.jump(join);
    b.seal(join);
    b.switch_to(join);
  }
  Value left = b.binary(Opcode::kSub, b.use(n), b.i32(1));
  b.def(n, left);
  Block exit = b.create_block();
  b.branch(left, header, exit);
  b.seal(header);
  b.seal(exit);
  b.switch_to(exit);
  b.ret(b.use(x));
  Module m = finish(b);
  EXPECT_EQ(param_count(m.functions[0]), 1u);  // n
  EXPECT_EQ(run(m, {7}), 7u);
}

// The parameter of each loop can be removed only after those of the inner loops.
TEST(Builder, a_deep_nest_of_loops_leaves_no_parameters) {
  constexpr int kDepth = 5'000;
  FunctionBuilder b({{kI32}, kI32}, "nest");
  Variable x = b.declare(kI32);
  b.def(x, b.param(0));
  std::vector<Block> headers;
  for (int i = 0; i < kDepth; ++i) {
    headers.push_back(b.create_block());
    b.jump(headers.back());
    b.switch_to(headers.back());
    b.loop_header();
  }
  b.use(x);
  for (int i = kDepth; i-- > 0;) {
    Block exit = b.create_block();
    b.branch(b.i32(0), headers[i], exit);
    b.seal(headers[i]);
    b.seal(exit);
    b.switch_to(exit);
  }
  b.ret(b.use(x));
  Module m = finish(b);
  EXPECT_EQ(param_count(m.functions[0]), 0u);
  EXPECT_EQ(run(m, {9}), 9u);
}

TEST(Builder, unreachable_blocks_and_loops_are_dropped) {
  FunctionBuilder b({{}, kI32}, "dead");
  Variable x = b.declare(kI32);
  b.def(x, b.i32(5));
  Block dead_loop = b.create_block(), after_dead = b.create_block();
  b.ret(b.use(x));
  b.switch_to(dead_loop);
  b.loop_header();
  b.branch(b.use(x), dead_loop, after_dead);
  b.seal(dead_loop);
  b.seal(after_dead);
  b.switch_to(after_dead);
  b.ret(b.use(x));
  Module m = finish(b);
  EXPECT_EQ(m.functions[0].layout.size(), 1u);
  EXPECT_EQ(m.functions[0].loop_count, 0u);
  EXPECT_EQ(m.functions[0].site_count, 1u);
  EXPECT_EQ(run(m, {}), 5u);
}

// The cycle has no entry but its own back edge, and the variable is looked up after the seal.
TEST(Builder, looking_a_variable_up_in_an_unreachable_cycle_ends) {
  FunctionBuilder b({{}, kI32}, "cycle");
  Variable x = b.declare(kI32);
  Block first = b.create_block(), second = b.create_block(), third = b.create_block();
  b.ret(b.i32(1));
  b.switch_to(first);
  b.jump(second);
  b.seal(second);
  b.switch_to(second);
  b.branch(b.i32(1), first, third);
  b.seal(first);
  b.seal(third);
  b.switch_to(third);
  b.ret(b.use(x));
  EXPECT_EQ(run(finish(b), {}), 1u);
}

TEST(Builder, sites_are_blocks_then_calls_then_host_probes) {
  FunctionBuilder b({{kI32}, kI32}, "sites");
  EXPECT_EQ(b.probe(ProbeKind::kValue, b.param(0)), 0u);
  Value args[] = {b.param(0)};
  b.call(MethodId(0), {{kI32}, kI32}, args, "sites");
  Block next = b.create_block();
  b.jump(next);
  b.seal(next);
  b.switch_to(next);
  EXPECT_EQ(b.probe(ProbeKind::kLog, b.param(0), 7), 1u);
  EXPECT_EQ(b.probe(ProbeKind::kHit), 2u);
  b.ret(b.call(MethodId(0), {{kI32}, kI32}, args, "sites"));
  Function f = BuilderAccess::finish(b);
  ASSERT_TRUE(jit::verify(f).ok()) << jit::verify(f).error().message;
  EXPECT_EQ(f.block_sites, 2u);
  EXPECT_EQ(f.site_count, 7u);
  expect_golden("ir_sites", jit::to_text(f));
}

TEST(Builder, one_body_described_twice_has_one_hash) {
  auto describe = [](int extra_blocks) {
    FunctionBuilder b({{kI32}, kI32}, "twice");
    Variable n = b.declare(kI32), total = b.declare(kI32);
    for (int i = 0; i < extra_blocks; ++i)
      b.create_block();  // the ids of blocks differ, the body
                         // does not
    b.def(n, b.param(0));
    count_down(b, n, total);
    b.ret(b.use(total));
    return BuilderAccess::finish(b);
  };
  Function a = describe(0), c = describe(3);
  EXPECT_NE(a.cfg_hash, 0u);
  EXPECT_EQ(a.cfg_hash, c.cfg_hash);
  EXPECT_EQ(jit::to_text(a), jit::to_text(c));
}

TEST(Builder, frame_slots_of_a_loop_header_are_its_variables_there) {
  FunctionBuilder b({{kI32, Type::kF64}, kI32}, "slots");
  Variable n = b.declare(kI32), kept = b.declare(Type::kF64);
  b.def(n, b.param(0));
  b.def(kept, b.param(1));
  Block header = b.create_block(), exit = b.create_block();
  b.jump(header);
  b.switch_to(header);
  Variable slots[] = {kept, n};
  b.loop_header(9, slots);
  Value left = b.binary(Opcode::kSub, b.use(n), b.i32(1));
  b.def(n, left);
  b.branch(left, header, exit);
  b.seal(header);
  b.seal(exit);
  b.switch_to(exit);
  b.ret(b.use(n));
  expect_golden("ir_loop_slots", jit::to_text(finish(b).functions[0]));
}

// ---- Misuse -----------------------------------------------------------------------------------

using Misuse = void (*)(FunctionBuilder&);

// Returns the first error, of the builder or of the verifier.
std::string error_of(Misuse misuse) {
  FunctionBuilder b({{kI32}, kI32}, "misused");
  misuse(b);
  if (Status s = b.status(); !s) {
    EXPECT_EQ(s.error().code, ErrorCode::kInvalidArgument);
    return s.error().message;
  }
  Status s = jit::verify(BuilderAccess::finish(b));
  return s.ok() ? "none" : s.error().message;
}

TEST(Builder, misuse_is_named_with_its_place_in_every_build) {
  const std::pair<const char*, Misuse> rows[] = {
      {"there is no parameter 7", [](auto& b) { b.ret(b.param(7)); }},
      {"there is no parameter 1048576", [](auto& b) { b.param(1 << 20); }},
      {"there is no Variable 9", [](auto& b) { b.use(Variable(9)); }},
      {"there is no Variable 9", [](auto& b) { b.def(Variable(9), b.param(0)); }},
      {"the current block has not ended", [](auto& b) { b.switch_to(b.create_block()); }},
      {"there is no block 55",
       [](auto& b) {
         b.ret(b.param(0));
         b.switch_to(Block(55));
       }},
      {"block 0 has been filled already",
       [](auto& b) {
         b.ret(b.param(0));
         b.switch_to(Block(0));
       }},
      {"there is no block 99", [](auto& b) { b.jump(Block(99)); }},
      {"there is no block 99", [](auto& b) { b.seal(Block(99)); }},
      {"block 0 is sealed already", [](auto& b) { b.seal(Block(0)); }},
      {"the block has ended",
       [](auto& b) {
         b.ret(b.param(0));
         b.i32(1);
       }},
      {"the block has ended",
       [](auto& b) {
         b.ret(b.param(0));
         b.ret(b.param(0));
       }},
      {"there is no value 7", [](auto& b) { b.binary(Opcode::kAdd, Value(7), b.param(0)); }},
      {"a value is none", [](auto& b) { b.unary(Opcode::kEqz, Value()); }},
      {"there is no value 70",
       [](auto& b) {
         const Value args[] = {Value(70)};
         b.call(MethodId(0), {{kI32}, kI32}, args);
       }},
      {"Variable 0 is i32, the value is f64", [](auto& b) { b.def(b.declare(kI32), b.f64(1)); }},
      {"add is an operation of another shape: binary() makes it",
       [](auto& b) { b.unary(Opcode::kAdd, b.param(0)); }},
      {"store is an operation of another shape: store() makes it",
       [](auto& b) { b.unary(Opcode::kStore, b.param(0)); }},
      {"fill is an operation of another shape, which only the library makes",
       [](auto& b) { b.unary(Opcode::kFill, b.param(0)); }},
      {"there is no such operation",
       [](auto& b) { b.unary(static_cast<Opcode>(255), b.param(0)); }},
      {"a jump to block 1, which is sealed already",
       [](auto& b) {
         Block header = b.create_block();
         b.jump(header);
         b.seal(header);
         b.switch_to(header);
         b.branch(b.param(0), header, header);
       }},
      {"the entry block is no loop header, since nothing jumps to it: create_block(), jump to it",
       [](auto& b) { b.loop_header(); }},
      {"a loop header is sealed after its back edges",
       [](auto& b) {
         Block header = b.create_block();
         b.jump(header);
         b.seal(header);
         b.switch_to(header);
         b.loop_header();
       }},
      {"a host function without a name", [](auto& b) { b.call_host({}, {}); }},
      {"placed by the library", [](auto& b) { b.probe(ProbeKind::kBlock); }},
      {"a type that no value has", [](auto& b) { b.declare(Type::kNone); }},
  };
  for (const auto& [what, misuse] : rows) {
    EXPECT_NE(error_of(misuse).find(what), std::string::npos)
        << what << ", not: " << error_of(misuse);
  }
  EXPECT_EQ(error_of([](auto& b) {
              b.set_location(12);
              b.param(1);
              b.param(2);
            }),
            "misused: the builder was misused in block 0 at location 12: there is no parameter 1");
  // Errors that are only visible when the body is complete.
  EXPECT_NE(error_of([](auto&) {}), "none");
  EXPECT_NE(error_of([](auto& b) { b.jump(b.create_block()); }), "none");
}

TEST(Builder, goes_on_harmlessly_after_a_misuse) {
  FunctionBuilder b({{kI32}, kI32}, "misused");
  EXPECT_FALSE(b.param(3).valid());
  Variable x = b.declare(kI32), y = b.declare(kI32);
  EXPECT_NE(x, y);
  Block one = b.create_block(), two = b.create_block();
  EXPECT_NE(one, two);
  b.def(x, b.param(0));
  EXPECT_FALSE(b.use(x).valid());
  EXPECT_EQ(b.type_of(b.use(x)), Type::kNone);
  b.jump(one);
  b.switch_to(one);
  b.loop_header(1, {{x, y}});
  b.frame_state(1, {{b.use(y)}});
  b.guard(b.use(y), GuardReason::kType);
  b.branch(b.use(x), one, two);
  b.seal(one);
  b.seal(two);
  b.ret(b.use(Variable(77)));
  EXPECT_NE(b.status().error().message.find("no parameter 3"), std::string::npos);
  BuilderAccess::finish(b);
}

}  // namespace
}  // namespace uptier::test::ir_builder_test
