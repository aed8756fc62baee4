// The verifier: for every rule there is a function that breaks it, and the message says where.
#include "jit/frontend/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "jit/analysis/dominators.h"
#include "jit/frontend/parse.h"
#include "jit/ir/print.h"
#include "tests/support/golden.h"
#include "tests/support/random_ir.h"

namespace uptier::test::ir_verify_test {
namespace {

using jit::Function;
using jit::Inst;
using jit::Stage;

Function parse_one(const std::string& text) {
  auto m = jit::parse_module(text, {.file = "t"});
  EXPECT_TRUE(m.ok()) << m.error().message;
  return m ? m->functions[0] : Function{};
}

// Returns a function of (v0: i32, v1: i64, v2: f64, v3: ref) with these lines in its entry block.
std::string body(const std::string& lines) {
  return "func @f(i32, i64, f64, ref) -> i32 {\nb0(v0: i32, v1: i64, v2: f64, v3: ref):\n" + lines +
         "\n}\n";
}

std::string problems_of(const Function& f, Stage stage = Stage::kBuilt) {
  std::string out;
  for (const std::string& p : jit::find_problems(f, stage)) out += p + "\n";
  return out.empty() ? "no problem\n" : out;
}

// Errors that can be written as text.
TEST(IrVerify, names_the_rule_that_a_text_breaks) {
  const char* bodies[] = {
      // operands
      "v9 = add.i32 v0, v1\nreturn v0",
      "v9 = add.i32 v0\nreturn v0",
      "v9 = add.f64 v2, v2\nreturn v0",
      "v9 = fadd.i32 v0, v0\nreturn v0",
      "v9 = eqz.f64 v2\nreturn v0",
      "v9 = sext32.i32 v0\nreturn v0",
      "v9 = select.i64 v1, v1, v1\nreturn v0",
      "v9 = wrap.i32 v2\nreturn v0",
      "v9 = bitcast.f32 v1\nreturn v0",
      "v9 = trunc_s.i32 v0\nreturn v0",
      "v9 = load.i32 v0\nreturn v0",
      "v9 = load.i32 v3[v2]\nreturn v0",
      "v9 = load8_u.f64 v3\nreturn v0",
      "v9 = load32_u.i32 v3\nreturn v0",
      "store.i32 v2, v3\nreturn v0",
      "store.i32 v0, v3 invariant\nreturn v0",
      "return v1",
      "return",
      "branch v1, b1, b1\nb1:\nreturn v0",
      "switch v2, [b1], b1\nb1:\nreturn v0",
      "trap_if v2, unreachable\nreturn v0",
      "trap none",
      "probe block\nprobe value v0, v1\nreturn v0",
      "probe value\nprobe log\nprobe range\nreturn v0",
      "probe call_target v0\nprobe counter v1\nprobe range v3\nreturn v0",
      "probe hit tag=1\nprobe value tag=2 v0\nreturn v0",
      "probe edge\nprobe loop v0\nreturn v0",
      // calls
      "v9 = call @f(v0)\nreturn v9",
      "v9 = call @f(v0, v1, v2, v2)\nreturn v9",
      "v9 = call_indirect.(i32)->i32 v1(v0)\nreturn v9",
      "v9 = call_indirect.(f64)->i32 v3(v0)\nreturn v9",
      "v9 = call_host @h.(i32)->i32 ()\nreturn v9",
      // edges
      "jump b1\nb1(v9: i32):\nreturn v9",
      "jump b1(v1)\nb1(v9: i32):\nreturn v9",
      "branch v0, b1(v0), b1\nb1(v9: i32):\nreturn v9",
      // blocks
      "v9 = const.i32 1",
      "return v0\nv9 = const.i32 1\nreturn v9",
      "branch v0, b0(v0, v1, v2, v3), b1\nb1:\nreturn v0",
      "return v0\nb1:\nreturn v0",
      // dominance
      "v8 = add.i32 v9, v0\nv9 = const.i32 1\nreturn v8",
      "branch v0, b1, b2\nb1:\nv9 = const.i32 1\njump b2\nb2:\nreturn v9",
      "jump b1(v9)\nb1(v8: i32):\nv9 = const.i32 1\nreturn v8",
      "v9 = add.i32 v9, v0\nreturn v9",
      // observation
      "jump b1\nb1:\nv9 = const.i32 1\nloop_header\nbranch v0, b1, b2\nb2:\nreturn v9",
      "loop_header\nreturn v0",
      "guard v0, type\nreturn v0",
      "frame_state pc=1 [v0]\nstore.i32 v0, v3\nguard v0, type\nreturn v0",
      "frame_state pc=1 [v0]\ncall_host @h.() ()\nguard v0, type\nreturn v0",
      "frame_state pc=1 [v0]\njump b1\nb1:\nguard v0, type\nreturn v0",
  };
  std::string report;
  for (const char* lines : bodies) {
    std::string found = problems_of(parse_one(body(lines)));
    EXPECT_NE(found, "no problem\n") << lines;
    report += found;
  }
  expect_golden("ir_verify_text", report);
}

// Errors that cannot be written as text.
struct Damage {
  const char* what;
  void (*apply)(Function& f);
};

// A function with a loop, a switch, a load, three kinds of calls, a guard and a host probe.
constexpr const char* kSound = R"(
func @sound(i32, ref) -> i32 {
b0(v0: i32, v1: ref):
  v2 = const.i32 1
  v3 = load.i32 v1+4 traps
  probe value v3
  frame_state pc=1 [v0]
  guard v3, value
  v4 = call @sound(v3, v1)
  v5 = call_indirect.(i32)->i32 v1(v4)
  v6 = call_host @h.(i32)->i32 (v5) may_trap
  jump b1(v6)
b1(v7: i32):
  loop_header pc=2 [v7]
  v8 = sub.i32 v7, v2
  branch v8, b1(v8), b2
b2:
  switch v8, [b3, b4], b4
b3:
  return v8
b4:
  trap unreachable
}
)";

Inst& find(Function& f, Opcode op) {
  return *std::find_if(f.insts.begin(), f.insts.end(), [&](const Inst& i) { return i.op == op; });
}

TEST(IrVerify, names_the_rule_that_damage_breaks) {
  ASSERT_EQ(problems_of(parse_one(kSound)), "no problem\n");
  const Damage damages[] = {
      {"no layout", [](Function& f) { f.layout.clear(); }},
      {"block twice", [](Function& f) { f.layout.push_back(f.layout[1]); }},
      {"block out of range", [](Function& f) { f.layout[1] = Block(99); }},
      {"block not laid out", [](Function& f) { f.layout.pop_back(); }},
      {"empty block", [](Function& f) { f.blocks[2].insts.clear(); }},
      {"inst out of range", [](Function& f) { f.blocks[2].insts[0] = jit::InstId(999); }},
      {"inst twice", [](Function& f) { f.blocks[2].insts[0] = f.blocks[3].insts[0]; }},
      {"opcode", [](Function& f) { find(f, Opcode::kSub).op = static_cast<Opcode>(200); }},
      {"type", [](Function& f) { find(f, Opcode::kSub).type = static_cast<Type>(9); }},
      {"operand list", [](Function& f) { find(f, Opcode::kSub).args.at = 1u << 31; }},
      {"operand list size", [](Function& f) { find(f, Opcode::kSub).args.size = 4000; }},
      {"operand value", [](Function& f) { f.pool[find(f, Opcode::kSub).args.at] = Value(500); }},
      {"no operand", [](Function& f) { f.pool[find(f, Opcode::kSub).args.at] = Value(); }},
      {"params", [](Function& f) { f.blocks[1].params.at = 1u << 30; }},
      {"param record", [](Function& f) { f.values[0].index = 1; }},
      {"param type", [](Function& f) { f.values[0].type = Type::kNone; }},
      {"result none", [](Function& f) { find(f, Opcode::kSub).result = Value(); }},
      {"result of another",
       [](Function& f) { find(f, Opcode::kSub).result = find(f, Opcode::kLoad).result; }},
      {"result type", [](Function& f) { f.value(find(f, Opcode::kSub).result).type = Type::kF32; }},
      {"result of a store",
       [](Function& f) { find(f, Opcode::kGuard).result = find(f, Opcode::kSub).result; }},
      {"edges", [](Function& f) { find(f, Opcode::kJump).edges_at = 1000; }},
      {"edge count", [](Function& f) { find(f, Opcode::kJump).edge_count = 2; }},
      {"no edges of a switch", [](Function& f) { find(f, Opcode::kSwitch).edge_count = 0; }},
      {"edge target", [](Function& f) { f.edges[0].to = Block(77); }},
      {"edge args", [](Function& f) { f.edges[0].args.at = 1u << 31; }},
      {"edges of a load", [](Function& f) { find(f, Opcode::kLoad).edge_count = 1; }},
      {"signature", [](Function& f) { f.signature_id = SignatureId(9); }},
      {"signature of the callee", [](Function& f) { f.callees[0].signature = SignatureId(9); }},
      {"other signature of the callee",
       [](Function& f) { f.callees[0].signature = SignatureId(1); }},
      {"method of the callee", [](Function& f) { f.callees[0].method = MethodId(); }},
      {"host signature", [](Function& f) { f.host_callees[0].signature = SignatureId(9); }},
      {"callee index", [](Function& f) { find(f, Opcode::kCall).imm = 5; }},
      {"host index", [](Function& f) { find(f, Opcode::kCallHost).imm = 5; }},
      {"call signature", [](Function& f) { find(f, Opcode::kCallIndirect).aux = 5; }},
      {"call type", [](Function& f) { find(f, Opcode::kCallIndirect).type = Type::kI64; }},
      {"signature without a type", [](Function& f) { f.signatures[1].params[0] = Type::kNone; }},
      {"constant", [](Function& f) { find(f, Opcode::kConst).imm = 1ull << 32; }},
      {"offset", [](Function& f) { find(f, Opcode::kLoad).imm = 1ull << 32; }},
      {"flags", [](Function& f) { find(f, Opcode::kLoad).flags = kCallMayTrap; }},
      {"flags of an indirect call", [](Function& f) { find(f, Opcode::kCallIndirect).flags = 2; }},
      {"flags of a sum", [](Function& f) { find(f, Opcode::kSub).flags = kMemTraps; }},
      {"trap code", [](Function& f) { find(f, Opcode::kTrap).aux = 100; }},
      {"guard reason", [](Function& f) { find(f, Opcode::kGuard).aux = 100; }},
      {"loop", [](Function& f) { find(f, Opcode::kLoopHeader).aux = 7; }},
      {"pc", [](Function& f) { find(f, Opcode::kLoopHeader).imm = 1ull << 40; }},
      {"loops", [](Function& f) { f.loop_count = 2; }},
      {"probe kind", [](Function& f) { find(f, Opcode::kProbe).imm = 77; }},
      {"probe site", [](Function& f) { f.inst(f.block(f.layout[1]).insts[1]).aux = 3; }},
      {"probe site range", [](Function& f) { find(f, Opcode::kProbe).aux = 0; }},
      {"call site", [](Function& f) { find(f, Opcode::kCall).site = 0; }},
      {"site of a load", [](Function& f) { find(f, Opcode::kLoad).site = 1; }},
      {"call sites",
       [](Function& f) {
         std::swap(find(f, Opcode::kCall).site, find(f, Opcode::kCallHost).site);
       }},
      {"sites", [](Function& f) { ++f.site_count; }},
      {"block sites", [](Function& f) { ++f.block_sites; }},
      {"too many sites", [](Function& f) { f.site_count = UINT32_MAX; }},
      {"more block sites", [](Function& f) { f.block_sites = 100; }},
      {"hash", [](Function& f) { ++f.cfg_hash; }},
      {"probe not first",
       [](Function& f) {
         auto& insts = f.blocks[1].insts;
         std::swap(insts[1], insts[2]);
       }},
      {"no probe", [](Function& f) { f.blocks[2].insts.erase(f.blocks[2].insts.begin()); }},
  };
  std::string report;
  for (const Damage& d : damages) {
    Function f = parse_one(kSound);
    d.apply(f);
    std::string found = problems_of(f);
    EXPECT_NE(found, "no problem\n") << d.what;
    report += "-- " + std::string(d.what) + "\n" + found;
  }
  expect_golden("ir_verify_damage", report);
}

TEST(IrVerify, transformed_functions_may_have_holes_and_copies_of_sites) {
  Function f = parse_one(kSound);
  f.inst(f.block(f.layout[3]).insts[0]).aux = 1;
  std::swap(f.layout[2], f.layout[3]);
  f.site_count += 5;
  EXPECT_NE(problems_of(f), "no problem\n");
  EXPECT_EQ(problems_of(f, Stage::kTransformed), "no problem\n");
}

TEST(IrVerify, a_module_says_which_call_does_not_fit) {
  auto m = jit::parse_module(
      "func @f() {\nb0:\n  call @g.(i32) (v0)\n  v0 = const.i32 1\n  return\n}\n"
      "func @g() {\nb0:\n  return\n}\n");
  ASSERT_TRUE(m.ok());
  std::swap(m->functions[0].blocks[0].insts[1], m->functions[0].blocks[0].insts[2]);
  Status s = jit::verify(*m);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().message, "@f: @g is called with another signature");
}

TEST(IrVerify, reports_no_more_than_the_limit) {
  std::string lines;
  for (int i = 10; i < 100; ++i) lines += "v" + std::to_string(i) + " = add.i32 v0, v1\n";
  Function f = parse_one(body(lines + "return v0"));
  EXPECT_EQ(jit::find_problems(f).size(), 20u);
  EXPECT_EQ(jit::find_problems(f, Stage::kBuilt, 3).size(), 3u);
}

// Overwrites one field of a function with a small, a huge or a random number.
void damage(Function& f, Random& r) {
  auto number = [&]() -> uint32_t {
    static const std::vector<uint32_t> edges = {0,         1, 2, 5, 255, 1u << 16, UINT32_MAX - 1,
                                                UINT32_MAX};
    return r.chance(50) ? static_cast<uint32_t>(r.below(40)) : r.pick(edges);
  };
  Inst& i = f.insts[r.below(f.insts.size())];
  switch (r.below(20)) {
    case 0: i.op = static_cast<Opcode>(number()); return;
    case 1: i.type = static_cast<Type>(r.below(9)); return;
    case 2: i.flags = static_cast<uint8_t>(number()); return;
    case 3: i.aux = number(); return;
    case 4: i.site = number(); return;
    case 5: i.result = Value(number()); return;
    case 6: i.args = {number(), number(), number()}; return;
    case 7: i.args.size = number(); return;
    case 8: i.edges_at = number(); return;
    case 9: i.edge_count = number(); return;
    case 10: i.imm = uint64_t{number()} << r.below(40); return;
    case 11: f.pool[r.below(f.pool.size())] = Value(number()); return;
    case 12: f.layout[r.below(f.layout.size())] = Block(number()); return;
    case 13: f.values[r.below(f.values.size())].type = static_cast<Type>(r.below(9)); return;
    case 14: f.values[r.below(f.values.size())].inst = jit::InstId(number()); return;
    case 15: f.blocks[r.below(f.blocks.size())].params = {number(), number(), number()}; return;
    case 16: {
      auto& insts = f.blocks[r.below(f.blocks.size())].insts;
      if (!insts.empty()) insts[r.below(insts.size())] = jit::InstId(number());
      return;
    }
    case 17:
      if (!f.edges.empty()) f.edges[r.below(f.edges.size())].to = Block(number());
      return;
    case 18: f.signature_id = SignatureId(number()); return;
    default: f.site_count = number(); return;
  }
}

// Whatever a Function contains, verifying and printing it are safe, and a verified function can be
// interpreted.
TEST(IrVerify, is_safe_on_random_damage_and_what_it_accepts_runs) {
  Scratch scratch;
  uint64_t accepted = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random r(seed);
    jit::Module m = random_module(seed % 20, {.functions = 1, .statements = 8, .guards = true});
    for (size_t n = r.below(3) + 1; n > 0; --n) damage(m.functions[0], r);
    for (Stage stage : {Stage::kBuilt, Stage::kTransformed}) {
      jit::to_text(m.functions[0]);
      if (!jit::verify(m, stage).ok()) continue;
      ++accepted;
      jit::InterpretOptions options = interpret_options(scratch);
      options.step_limit = 10'000;
      options.depth_limit = 100;
      jit::Interpreter interpreter(m, options);
      interpreter.run(MethodId(0), random_arguments(m.functions[0].signature(), scratch, r));
    }
  }
  EXPECT_GT(accepted, 100u);
}

// Tests whether `a` is on every path from the entry to `b`: whether `b` is unreachable when `a` is
// removed.
bool dominates_slowly(const Function& f, Block a, Block b) {
  if (a == b) return true;
  std::vector<bool> seen(f.blocks.size());
  std::vector<Block> work;
  if (f.entry() != a) work.push_back(f.entry());
  while (!work.empty()) {
    Block x = work.back();
    work.pop_back();
    if (seen[x.index()]) continue;
    seen[x.index()] = true;
    for (const jit::Edge& e : f.successors(x)) {
      if (e.to != a) work.push_back(e.to);
    }
  }
  return !seen[b.index()];
}

// Random graphs, with irreducible ones and unreachable blocks.
TEST(Dominators, agree_with_the_definition) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random r(seed);
    size_t count = r.below(12) + 1;
    std::string text = "func @f(i32) {\nb0(v0: i32):\n";
    for (size_t b = 0; b < count; ++b) {
      if (b != 0) text += "b" + std::to_string(b) + ":\n";
      auto target = [&] { return "b" + std::to_string(1 + r.below(count)); };
      text += r.chance(70) ? "  branch v0, " + target() + ", " + target() + "\n"
                           : "  jump " + target() + "\n";
    }
    Function f = parse_one(text + "b" + std::to_string(count) + ":\n  return\n}\n");
    jit::Dominators d = jit::compute_dominators(f);
    // The second argument forces the other algorithm, which is used for graphs with too long walks.
    jit::Dominators other = jit::compute_dominators(f, 0);
    EXPECT_EQ(d.idom, other.idom);
    EXPECT_EQ(d.enter, other.enter);
    EXPECT_EQ(d.leave, other.leave);
    for (Block a : f.layout) {
      for (Block b : f.layout) {
        if (!d.reachable(a) || !d.reachable(b)) continue;
        ASSERT_EQ(d.dominates(a, b), dominates_slowly(f, a, b)) << "seed " << seed;
      }
    }
  }
}

// A chain of `k` branches, then `k` blocks that both ends of the chain lead to: for each of these
// blocks, the walk from the end goes up the whole chain.
TEST(Dominators, are_found_where_walks_would_be_too_long) {
  constexpr uint32_t k = 3000;
  auto block = [](uint32_t n) { return "b" + std::to_string(n); };
  std::string ends;
  for (uint32_t i = 0; i < k; ++i) ends += (i == 0 ? "[" : ", ") + block(k + 1 + i);
  std::string text = "func @f(i32) {\nb0(v0: i32):\n  switch v0, " + ends + "], b1\n";
  for (uint32_t i = 1; i < k; ++i) {
    text += block(i) + ":\n  branch v0, " + block(i + 1) + ", " + block(2 * k + 1) + "\n";
  }
  text += block(k) + ":\n  switch v0, " + ends + "], " + block(2 * k + 1) + "\n";
  for (uint32_t i = 0; i <= k; ++i) text += block(k + 1 + i) + ":\n  return\n";
  Function f = parse_one(text + "}\n");
  for (const jit::Dominators& d : {jit::compute_dominators(f), jit::compute_dominators(f, 0)}) {
    auto above = [&](uint32_t n) { return d.idom[f.layout[n].index()]; };
    for (uint32_t i = 1; i <= k; ++i) EXPECT_EQ(above(i), f.layout[i - 1]);
    for (uint32_t i = 0; i < k; ++i) EXPECT_EQ(above(k + 1 + i), f.layout[0]);
    EXPECT_EQ(above(2 * k + 1), f.layout[1]);
  }
}

}  // namespace
}  // namespace uptier::test::ir_verify_test
