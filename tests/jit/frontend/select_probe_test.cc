// Probes of the conditions of selections in loops: which are observed, that the counts are right,
// and that code without instrumentation pays nothing.
#include "jit/frontend/select_probes.h"

#include <array>

#include "jit/ir/print.h"
#include "tests/support/turn_probes.h"

namespace uptier::test::select_probe_test {
namespace {

// @chase follows one of two links, chosen by the words in memory, as often as the second argument
// says. Its second selection is only added up, so nothing waits for it, and its third is outside of
// the loop. @where increments one of two words.
constexpr const char* kText = R"(
func @chase(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.i32 0
  v3 = const.i32 1
  v4 = const.i32 56
  v5 = select.i32 v1, v1, v3
  jump b1(v5, v2, v2)
b1(v6: i32, v7: i32, v8: i32):
  loop_header
  v9 = load.i32 v0[v7]
  v10 = load.i32 v0[v7]+4
  v11 = and.i32 v9, v4
  v12 = and.i32 v10, v4
  v13 = gt_s.i32 v9, v10
  v14 = select.i32 v13, v11, v12
  v15 = select.i32 v13, v3, v6
  v16 = add.i32 v8, v15
  v17 = sub.i32 v6, v3
  branch v17, b1(v17, v14, v16), b2
b2:
  v18 = add.i32 v14, v16
  return v18
}
func @where(ref, i32, i32) -> i32 {
b0(v0: ref, v1: i32, v2: i32):
  v3 = const.i32 0
  v4 = const.i32 4
  v5 = const.i32 1
  jump b1(v1)
b1(v6: i32):
  loop_header
  v7 = and.i32 v6, v2
  v8 = select.i32 v7, v3, v4
  v9 = load.i32 v0[v8]
  v10 = add.i32 v9, v5
  store.i32 v10, v0[v8]
  v11 = sub.i32 v6, v5
  branch v11, b1(v11), b2
b2:
  v12 = load.i32 v0
  return v12
}
)";

jit::Module probed(std::string text = kText) {
  jit::Module m = parse(text);
  for (jit::Function& f : m.functions) jit::place_select_probes(f, jit::find_loop_forest(f));
  return m;
}

TEST(SelectProbes, what_a_loop_waits_for_is_observed) {
  jit::Module m = parse(kText);
  EXPECT_EQ(jit::awaited_selects(m.functions[0], jit::find_loop_forest(m.functions[0])).size(), 1u);
  EXPECT_EQ(jit::awaited_selects(m.functions[1], jit::find_loop_forest(m.functions[1])).size(), 1u);
  for (const jit::Function& f : m.functions)
    EXPECT_TRUE(jit::awaited_selects(f, jit::find_loop_forest(f), 0).empty());
}

TEST(SelectProbes, sites_come_behind_all_others_and_the_hash_stays) {
  jit::Module before = parse(kText), after = probed();
  for (size_t n = 0; n < before.functions.size(); ++n) {
    const jit::Function &a = before.functions[n], &b = after.functions[n];
    EXPECT_EQ(b.site_count, a.site_count + 1);
    EXPECT_EQ(b.block_sites, a.block_sites);
    EXPECT_EQ(b.cfg_hash, a.cfg_hash);
    EXPECT_EQ(jit::turn_sites(b), std::vector<SiteId>{b.site_count});
    EXPECT_TRUE(jit::verify(b).ok()) << jit::verify(b).error().message;
    jit::Function twice = b;
    jit::place_select_probes(twice, jit::find_loop_forest(twice));
    EXPECT_EQ(jit::to_text(twice), jit::to_text(b));
  }
  std::string text = jit::to_text(after);
  EXPECT_NE(text.find(" own turns v"), std::string::npos) << text;
  auto again = jit::parse_module(text, {"again", {}});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(jit::to_text(*again), text);
  EXPECT_TRUE(jit::verify(*again).ok());
}

TEST(SelectProbes, what_was_seen_stays_in_proportion_and_in_the_text) {
  for (auto counts : {std::array<uint64_t, 4>{900, 5, 5, 90}, {0, 0, 0, 1}, {65535, 0, 1, 2}}) {
    jit::Inst i{.op = Opcode::kSelect, .imm = jit::pack_turns(counts)};
    EXPECT_EQ(jit::turns_of(i), counts);
  }
  jit::Inst large{.op = Opcode::kSelect, .imm = jit::pack_turns({UINT64_MAX, 1, 0, 1ull << 62})};
  EXPECT_EQ(jit::turns_of(large), (std::array<uint64_t, 4>{65535, 0, 0, 1 << 14}));
  jit::Module m = probed();
  for (jit::Function& f : m.functions) {
    const jit::SelectTurns few{f.site_count, {200, 5, 5, 45}},
        enough{f.site_count, {200, 5, 5, 46}};
    jit::note_turns(f, {&few, 1});
    EXPECT_EQ(jit::to_text(f).find(" turns 200"), std::string::npos);
    jit::note_turns(f, {&enough, 1});
  }
  std::string text = jit::to_text(m);
  EXPECT_NE(text.find(" turns 200 5 5 46"), std::string::npos) << text;
  auto again = jit::parse_module(text, {"again", {}});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(jit::to_text(*again), text);
}

TEST(SelectProbes, pairs_are_counted_as_the_interpreter_sees_them) {
  jit::Module m = probed();
  Probed p(m);
  Random random(1);
  uint32_t words[64];
  for (int i = 0; i < 100; ++i) {
    for (uint32_t& w : words) w = static_cast<uint32_t>(random.below(i % 2 == 0 ? 1000 : 3));
    jit::InterpretOptions o;
    o.memory = {{reinterpret_cast<uint64_t>(words), sizeof words, true}};
    o.observer = &p.oracle;
    for (uint32_t method : {0u, 1u}) {
      std::vector<uint64_t> args{reinterpret_cast<uint64_t>(words), method == 0 ? 16u : 64u};
      if (method == 1) args.push_back(1 << random.below(6));
      uint32_t keep[64];
      std::copy(std::begin(words), std::end(words), keep);
      jit::Interpreter interpreter(m, o);
      auto want = interpreter.run(MethodId(method), args);
      ASSERT_EQ(want.kind, jit::InterpretOutcome::Kind::kReturned) << want.why;
      p.oracle.add_blocks(interpreter, m);
      std::copy(std::begin(keep), std::end(keep), words);
      ASSERT_EQ(p.compiled.run(MethodId(method), args).bits, want.bits);
    }
  }
  EXPECT_EQ(p.check(), 100u * (16 + 64));
}

TEST(SelectProbes, random_programs_count_pairs_too) {
  EXPECT_GT(pairs_of_random_programs(jit::place_select_probes), 500u);
}

// ---- Plain code pays nothing
// ---------------------------------------------------------------------

TEST(SelectProbes, plain_code_is_what_it_is_without) {
  EXPECT_GT(probes_that_plain_code_leaves_out(jit::place_select_probes, 20), 0u);
}

// The instruction budget of the probe's fast path.
TEST(SelectProbes, a_pair_costs_what_it_is_thought_to_cost) {
  jit::Module m = probed();
  CodeMachine machine;
  BaselineModule compiled(machine, m, Use::kInstrumented, planner({.host_probes = true}, false));
  EXPECT_EQ(listing_around(compiled.code(1, Copy::kInstrumented), "inc qword ptr [r11+", 7),
            R"(xor eax, eax
test r9d, r9d
setnz al
mov r11, qword ptr [rbp-0x08]
mov rdx, qword ptr [r11]
mov qword ptr [r11], rax
lea rdx, [rax+rdx*2]
)");
}

// ---- From the probe to the code -----------------------------------------------------------------

constexpr uint32_t kWords = 64;

struct Selecting : IrRuntime {
  explicit Selecting(const Options& o) : IrRuntime(parse_or_die(kText), o), scope(*runtime) {}

  // Increments one of two words in each round, by a bit of the round's number: bit 6 is never set,
  // bit 0 always changes.
  void where(uint32_t bit) {
    uint32_t two[2] = {};
    uint32_t set = 0;
    for (uint32_t n = kWords - 1; n != 0; --n) set += (n & bit) != 0;
    Outcome got = call("where", {reinterpret_cast<uint64_t>(two), kWords - 1, bit});
    ASSERT_EQ(got.bits, set);
  }

  std::map<int64_t, uint64_t> pairs() const { return pairs_seen(*runtime, "where"); }

  ThreadScope scope;
};

Options watching(std::initializer_list<std::pair<const char*, std::string>> more = {}) {
  Options o = options({{"policy", "never"}, {"workers", "0"}, {"interval", "1"}});
  for (const auto& [name, value] : more) EXPECT_TRUE(o.set(name, value).ok()) << name;
  return o;
}

TEST(SelectProbes, a_profile_at_interval_1_has_every_pair) {
  Selecting r(watching({{"adaptive", "off"}}));
  for (int i = 0; i < 10; ++i) r.where(1);
  r.runtime->flush();
  // The rounds count from 63 down to 1, so the condition goes on, off, ..., on. The first value of
  // each later call pairs with the last value of the call before.
  EXPECT_EQ(r.pairs(), (std::map<int64_t, uint64_t>{{1, 311}, {2, 310}, {3, 9}}));
}

}  // namespace
}  // namespace uptier::test::select_probe_test
