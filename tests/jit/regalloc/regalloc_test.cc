// The register allocator: its checker detects damage, parallel moves are ordered, and high pressure
// works.
#include <map>

#include "jit/opt/optimize.h"
#include "jit/regalloc/allocation.h"
#include "jit/regalloc/parallel_move.h"
#include "jit/x64/emit.h"
#include "jit/x64/lower.h"
#include "tests/support/golden.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::regalloc_test {
namespace {

using jit::x64::Allocation;
using jit::x64::Location;
using jit::x64::MachineFunction;
using jit::x64::Move;

struct Allocated {
  MachineFunction machine;
  Allocation allocation;
};

Allocated allocate(jit::Function f) {
  jit::Optimized o = jit::optimize(f, {});
  Allocated a;
  a.machine = jit::x64::lower({f, o.loops, o.frequencies, false, {}, true});
  a.allocation = jit::machine::allocate_registers(a.machine);
  return a;
}

TEST(RegallocChecker, accepts_what_the_allocator_makes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const jit::Function& f : random_module(seed).functions) {
      Allocated a = allocate(f);
      ASSERT_EQ("", jit::machine::check_allocation(a.machine, a.allocation)) << "seed " << seed;
    }
  }
}

// Without most moves, some instruction reads a wrong value. The rest are redundant: they bring a
// value to where an older copy of it already is, or back to a register that nothing reads.
TEST(RegallocChecker, misses_a_move_that_is_not_made) {
  size_t moves = 0, seen = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Allocated a = allocate(random_module(seed).functions.back());
    for (size_t n = 0; n < a.allocation.moves.size(); n += 3) {
      Allocation damaged = a.allocation;
      damaged.moves.erase(damaged.moves.begin() + static_cast<ptrdiff_t>(n));
      ++moves;
      seen += !jit::machine::check_allocation(a.machine, damaged).empty();
    }
  }
  EXPECT_GT(moves, 100u);
  EXPECT_GE(seen, moves * 80 / 100);
}

TEST(RegallocChecker, sees_an_operand_in_the_wrong_register) {
  size_t operands = 0, seen = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Allocated a = allocate(random_module(seed).functions.back());
    for (size_t n = 0; n < a.machine.operands.size(); n += 7) {
      MachineFunction damaged = a.machine;
      jit::machine::Operand& o = damaged.operands[n];
      if (o.role == jit::machine::Role::kDef || !o.at.is_reg() || !o.fixed.is_none()) continue;
      bool gp = jit::machine::class_of(o.at.index()) == jit::machine::RegClass::kGeneral;
      o.at = Location::reg(gp ? jit::machine::kGeneralScratch : jit::machine::kFloatScratch);
      ++operands;
      seen += !jit::machine::check_allocation(damaged, a.allocation).empty();
    }
  }
  EXPECT_GT(operands, 50u);
  EXPECT_EQ(seen, operands);
}

// ---- Parallel moves
// ------------------------------------------------------------------------------

std::map<uint32_t, uint32_t> run_moves(const std::vector<Move>& moves, bool at_once) {
  std::map<uint32_t, uint32_t> state, before;
  auto read = [](std::map<uint32_t, uint32_t>& s, Location l) {
    auto [it, fresh] = s.try_emplace(l.bits(), l.bits());
    return it->second;
  };
  for (const Move& m : moves) {
    uint32_t value = read(at_once ? before : state, m.from);
    state[m.to.bits()] = value;
  }
  return state;
}

TEST(RegallocMoves, any_moves_at_once_have_an_order) {
  Random r(1);
  for (int round = 0; round < 3000; ++round) {
    auto place = [&](size_t n) {
      if (n < 6) return Location::reg(static_cast<unsigned>(n));
      if (n < 10) return Location::reg(static_cast<unsigned>(n + 10));
      return Location::slot(static_cast<unsigned>(n - 10));
    };
    std::vector<Move> moves;
    for (size_t to = 0; to < 14; ++to) {
      if (r.chance(40)) continue;
      Location from =
          r.chance(10) ? Location::constant(static_cast<unsigned>(r.below(3))) : place(r.below(14));
      moves.push_back({0, 0, from, place(to)});
    }
    auto want = run_moves(moves, true);
    auto got = run_moves(jit::machine::sequentialize(moves), false);
    for (const Move& m : moves) {
      ASSERT_EQ(want[m.to.bits()], got.contains(m.to.bits()) ? got[m.to.bits()] : m.to.bits());
    }
  }
}

// ---- Pressure -----------------------------------------------------------------------------------

// A function with `n` values of each type that are live across a loop, with or without a call in
// it.
jit::Module pressure(int n, bool calls) {
  jit::Module m;
  Signature s{{Type::kI64, Type::kF64, Type::kI32}, Type::kF64};
  FunctionBuilder b(s, "pressure");
  std::vector<Variable> ints, floats;
  for (int i = 0; i < n; ++i) {
    ints.push_back(b.declare(Type::kI64));
    floats.push_back(b.declare(Type::kF64));
    b.def(ints[i], b.binary(Opcode::kMul, b.param(0), b.i64(2 * i + 3)));
    b.def(floats[i], b.binary(Opcode::kFMul, b.param(1), b.f64(i + 0.5)));
  }
  Variable left = b.declare(Type::kI32);
  b.def(left, b.param(2));
  Block head = b.create_block(), done = b.create_block();
  b.jump(head);
  b.switch_to(head);
  b.loop_header();
  for (int i = 0; i < n; ++i) {
    int k = (7 * i + 1) % n;
    b.def(ints[i], b.binary(Opcode::kXor, b.use(ints[i]), b.use(ints[k])));
    b.def(floats[i], b.binary(Opcode::kFAdd, b.use(floats[i]), b.use(floats[k])));
  }
  if (calls) {
    const HostFunction& add3 = corpus_hosts()[0];
    Value args[] = {b.use(ints[0]), b.use(ints[1]), b.use(ints[n - 1])};
    b.def(ints[0], b.call_host(add3, args));
  }
  b.def(left, b.binary(Opcode::kSub, b.use(left), b.i32(1)));
  b.branch(b.use(left), head, done);
  b.seal(head);
  b.seal(done);
  b.switch_to(done);
  Value sum = b.f64(0);
  for (int i = 0; i < n; ++i) {
    sum = b.binary(Opcode::kFAdd, sum, b.use(floats[i]));
    sum = b.binary(Opcode::kFAdd, sum, b.convert(Opcode::kConvertS, Type::kF64, b.use(ints[i])));
  }
  b.ret(sum);
  m.functions.push_back(BuilderAccess::finish(b));
  return m;
}

TEST(RegallocPressure, many_values_live_over_loops_and_calls) {
  for (int n : {4, 13, 14, 16, 30, 60}) {
    for (bool calls : {false, true}) {
      jit::Module m = pressure(n, calls);
      ASSERT_TRUE(jit::verify(m).ok());
      Scratch scratch;
      jit::Interpreter oracle(m, interpret_options(scratch));
      CodeMachine machine;
      OptimizedModule code(machine, m);
      for (uint64_t trips : {1, 2, 9}) {
        std::vector<uint64_t> args = {0x123456789abcdef, std::bit_cast<uint64_t>(1.25), trips};
        Answer want = interpret(oracle, MethodId(0), args);
        auto got = machine.run(code.entry(MethodId(0)), m.functions[0].signature(), args);
        EXPECT_EQ(got.trap, TrapCode::kNone);
        EXPECT_EQ(got.bits, want.bits) << n << " values, " << trips << " trips";
      }
    }
  }
}

TEST(RegallocPressure, values_that_fit_are_not_spilled) {
  EXPECT_EQ(allocate(pressure(4, false).functions[0]).allocation.slots, 0u);
  EXPECT_GT(allocate(pressure(30, false).functions[0]).allocation.slots, 20u);
}

// Values with disjoint live ranges share their slots.
TEST(RegallocPressure, slots_are_shared) {
  FunctionBuilder b({{Type::kI64}, Type::kI64}, "phases");
  Value carry = b.param(0);
  for (int phase = 0; phase < 8; ++phase) {
    std::vector<Value> values;
    for (int i = 0; i < 30; ++i) values.push_back(b.binary(Opcode::kMul, carry, b.i64(i + 7)));
    Value again = b.i64(1);
    for (int round = 0; round < 2; ++round) {
      for (Value v : values) again = b.binary(Opcode::kXor, again, v);
      again = b.binary(Opcode::kMul, again, b.i64(31));
    }
    carry = again;
  }
  b.ret(carry);
  uint32_t slots = allocate(BuilderAccess::finish(b)).allocation.slots;
  EXPECT_GT(slots, 10u);
  EXPECT_LT(slots, 40u);
}

// ---- Code ---------------------------------------------------------------------------------------

// The inner loop of a sum over memory: no move, no spill, one jump per round.
TEST(OptCode, a_loop_over_memory_is_tight) {
  const char* text = R"(
func @sum(ref, i32, i32) -> i32 {
b0(v0: ref, v1: i32, v2: i32):
  v3 = const.i32 0
  v4 = load.ref v0+16 invariant
  jump b1(v1, v2, v3)
b1(v5: i32, v6: i32, v7: i32):
  loop_header
  v8 = load.i32 v4[v5]+8 traps
  v9 = add.i32 v7, v8
  v10 = const.i32 4
  v11 = add.i32 v5, v10
  v12 = const.i32 1
  v13 = sub.i32 v6, v12
  branch v13, b1(v11, v13, v9), b2
b2:
  return v9
}
)";
  auto module = jit::parse_module(text, {"sum", {}});
  ASSERT_TRUE(module.ok()) << module.error().message;
  CodeMachine machine;
  OptimizedModule code(machine, *module);
  const jit::Code& c = *code.codes()[0];
  expect_golden("opt_listing_sum", disassemble(c.base(), c.size()));
}

// A test after the operation that set the flags may be omitted, but not if another path joins
// between them.
TEST(OptCode, flags_do_not_cross_a_join) {
  const std::string masks = "v2 = and.i32 v0, v3\n", multiplies = "v2 = mul.i32 v0, v3\n";
  for (bool swap : {false, true}) {
    std::string first = swap ? multiplies : masks, second = swap ? masks : multiplies;
    std::string text =
        "func @join(i32, i32) -> i32 {\nb0(v0: i32, v1: i32):\n  v3 = const.i32 6\n"
        "  branch v1, b1, b2\nb1:\n  " +
        first + "  jump b3(v2)\nb2:\n  ";
    text += std::string(second).replace(0, 2, "v4") +
            "  jump b3(v4)\nb3(v5: i32):\n  branch v5, b4, b5\nb4:\n  return v3\nb5:\n  v6 = "
            "add.i32 v5, v0\n  return v6\n}\n";
    auto module = jit::parse_module(text, {"join", {}});
    ASSERT_TRUE(module.ok()) << module.error().message;
    Scratch scratch;
    jit::Interpreter oracle(*module, interpret_options(scratch));
    CodeMachine machine;
    OptimizedModule code(machine, *module);
    for (uint64_t n = 0; n < 32; ++n) {
      std::vector<uint64_t> args = {n / 2, n % 2};
      auto got = machine.run(code.entry(MethodId(0)), module->functions[0].signature(), args);
      EXPECT_EQ(static_cast<uint32_t>(got.bits), interpret(oracle, MethodId(0), args).bits) << n;
    }
  }
}

// Probes are rows of a table: the bytes are the same without them.
TEST(OptCode, probes_cost_no_bytes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    jit::Module with = random_module(seed), without = with;
    for (jit::Function& f : without.functions) {
      for (Block b : f.layout) {
        std::erase_if(f.block(b).insts,
                      [&](jit::InstId i) { return f.inst(i).op == Opcode::kProbe; });
      }
    }
    CodeMachine first, second;
    OptimizedModule a(first, with), b(second, without);
    for (size_t n = 0; n < a.codes().size(); ++n) {
      EXPECT_EQ(disassemble(a.codes()[n]->base(), a.codes()[n]->size()),
                disassemble(b.codes()[n]->base(), b.codes()[n]->size()));
      EXPECT_FALSE(a.codes()[n]->tables().probes.empty());
    }
  }
}

// Trap rows claim memory accesses, divisions and ud2, each at the start of an instruction.
TEST(OptCode, trap_rows_are_sorted_and_inside) {
  CodeMachine machine;
  jit::Module m = random_module(3);
  OptimizedModule code(machine, m);
  for (const auto& c : code.codes()) {
    const auto& rows = c->tables().traps;
    for (size_t n = 0; n < rows.size(); ++n) {
      ASSERT_LT(rows[n].offset, c->size());
      if (n > 0) { ASSERT_LT(rows[n - 1].offset, rows[n].offset); }
    }
  }
}

TEST(OptCode, a_large_function_compiles_and_answers) {
  corpus_raise = raise_in_context;
  jit::Module m = random_module(11, {.functions = 1, .statements = 1500, .depth = 4});
  size_t insts = 0;
  for (Block b : m.functions[0].layout) insts += m.functions[0].block(b).insts.size();
  EXPECT_GT(insts, 5000u);
  Scratch scratch;
  jit::Interpreter oracle(m, interpret_options(scratch));
  CodeMachine machine;
  OptimizedModule code(machine, m);
  const Signature& s = m.functions[0].signature();
  Random r(1);
  std::vector<uint64_t> args = random_arguments(s, scratch, r);
  Answer want = interpret(oracle, MethodId(0), args);
  scratch.fill();
  auto got = machine.run(code.entry(MethodId(0)), s, args);
  EXPECT_EQ(got.trap, want.trap);
  bool same = want.trap != TrapCode::kNone || same_value(s.result, got.bits, want.bits);
  EXPECT_TRUE(same);
}

}  // namespace
}  // namespace uptier::test::regalloc_test
