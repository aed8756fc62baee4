// Compares the counts of inlined bodies, in the instrumented copy of optimized code, with the
// interpreter: the same counts for each body at each place where it is inlined, for every block
// that the code still observes.
#include <gtest/gtest.h>

#include "tests/support/inline_harness.h"
#include "tests/support/inlined_expected.h"

namespace uptier::test::inlined_counts_test {
namespace {

// `module` is the module as it was compiled.
std::string compare_counts(const jit::Module& module, const OptimizedModule& code,
                           const InlinedExpected& expected, InlinedTally& tally) {
  for (uint32_t m = 0; m < module.functions.size(); ++m) {
    auto blocks = [&](MethodId of) { return module.functions[of.index()].block_sites; };
    std::string wrong = compare_slab(m, *code.codes()[m], code.slabs()[m], blocks, expected, tally);
    if (!wrong.empty()) return module.functions[m].name + wrong;
    auto entry = [&](MethodId callee) { return code.entry(callee); };
    auto indirect = [&](uint32_t of, SiteId site) {
      const auto& insts = module.functions[of].insts;
      return std::ranges::any_of(insts, [&](const jit::Inst& i) {
        return i.op == Opcode::kCallIndirect && i.site == site;
      });
    };
    auto floats = [&](uint32_t of, SiteId site) {
      const jit::Function& f = module.functions[of];
      return std::ranges::any_of(f.insts, [&](const jit::Inst& i) {
        bool here = i.op == Opcode::kProbe && i.aux == site && i.args.size != 0;
        return here && is_float(f.type_of(f.args(i)[0]));
      });
    };
    wrong = compare_probes(m, *code.codes()[m], code.slabs()[m], expected, entry,
                           {indirect, floats}, tally);
    if (!wrong.empty()) return module.functions[m].name + wrong;
    for (uint32_t i = 0; i < code.plans()[m].sites.size(); ++i) {
      const jit::ProbePlan::Site& planned = code.plans()[m].sites[i];
      if (planned.offset == jit::ProbePlan::kNone) continue;
      SiteId site = module.functions[m].block_sites + 1 + i;
      bool counter = planned.kind == ProbeKind::kCounter || planned.kind == ProbeKind::kHit;
      if (counter) {
        uint64_t seen = expected.counter(m, site);
        tally.counters += seen != 0;
        if (code.slabs()[m][planned.offset / 8] == seen) continue;
        return module.functions[m].name + " counter " + std::to_string(site);
      }
      if (!planned.of_call) continue;
      auto got = targets_in(code.plans()[m], i, code.slabs()[m], entry);
      auto want = expected.targets(m, site);
      tally.targets += want.size();
      if (got != want) return module.functions[m].name + " call " + std::to_string(site);
    }
  }
  return "";
}

jit::BodyProfile random_profile(const jit::Function& f, Random& random) {
  jit::BodyProfile p;
  for (uint32_t b = 0; b < f.block_sites; ++b) {
    p.blocks.push_back(random.chance(10) ? 0 : random.next() >> (40 + random.below(10)));
  }
  return p;
}

// Runs a random module with some indirect calls that are speculated on. Returns the first
// difference.
std::string compare_random(uint64_t seed, const RandomOptions& options, InlinedTally& tally) {
  jit::Module module = random_module(seed, options);
  jit::Module changed = module;
  CodeMachine machine;
  Random random(seed ^ 0x1171);
  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    EXPECT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
  }
  auto stub = [&](MethodId m) { return machine.stubs->stub(m); };
  for (jit::Function& f : changed.functions) make_calls_indirect(f, random, 40, stub);
  std::map<std::string, jit::BodyProfile> made;
  auto profiles = [&](const jit::Function& f) {
    auto [at, fresh] = made.try_emplace(f.name);
    if (!fresh) return at->second;
    at->second = random_profile(f, random);
    for (SiteId s = f.block_sites + 1; s <= f.site_count; ++s) {
      jit::SiteTargets t{s, 100, {}};
      for (uint32_t m = 0; m < module.functions.size(); ++m) {
        const jit::Function& to = module.functions[m];
        uint64_t count = random.below(100);
        if (random.chance(60)) {
          t.targets.push_back({MethodId(m), count, stub(MethodId(m)), to.signature(), to.name});
        }
      }
      at->second.targets.push_back(t);
    }
    return at->second;
  };
  ModuleInlinees source(changed, profiles);
  OptimizedModule code(machine, changed, source, profiles, Copy::kInstrumented, 16);
  Scratch scratch;
  InlinedExpected expected([&](uint32_t m) { return code.codes()[m].get(); },
                           [&](uint32_t m) { return module.functions[m].loop_count; });
  jit::InterpretOptions watched = interpret_options(scratch);
  watched.observer = &expected;
  jit::Interpreter oracle(module, watched);
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int round = 0; round < 3; ++round) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      scratch.fill();
      expected.begin();
      Answer want = interpret(oracle, MethodId(f), args);
      scratch.fill();
      auto got = machine.run(code.entry(MethodId(f)), s, args);
      bool same = got.trap == want.trap &&
                  (want.trap != TrapCode::kNone || same_value(s.result, got.bits, want.bits));
      if (!same) return "seed " + std::to_string(seed) + " f" + std::to_string(f) + ": answer";
    }
  }
  std::string difference = compare_counts(changed, code, expected, tally);
  return difference.empty() ? "" : "seed " + std::to_string(seed) + " " + difference;
}

// A block after a trap is not counted, copies of a block count together, and a call that fails its
// guard does not count in the inlined body.
TEST(InlinedCounts, each_body_is_counted_where_it_is_as_the_interpreter_does) {
  corpus_raise = raise_in_context;
  InlinedTally tally;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ASSERT_EQ("", compare_random(seed, {.functions = 5, .statements = 14, .variables = 6}, tally));
  }
  EXPECT_GT(tally.bodies, 500u);
  EXPECT_GT(tally.ran, 300u);
  EXPECT_GT(tally.copies, 10u);
  EXPECT_GT(tally.targets, 300u);
  EXPECT_GT(tally.counters, 50u);
  EXPECT_GT(tally.of_bodies, 100u);
  EXPECT_GT(tally.targets_of_bodies, 30u);
  for (ProbeKind k : {ProbeKind::kValue, ProbeKind::kRange, ProbeKind::kCounter, ProbeKind::kHit,
                      ProbeKind::kGauge, ProbeKind::kLog}) {
    EXPECT_GT(tally.kinds[k], 10u) << static_cast<int>(k);
  }
  EXPECT_LT(tally.unknown, tally.words);
  EXPECT_EQ(tally.unknown_that_ran, 0u);
}

TEST(InlinedCounts, probes_of_larger_bodies_see_what_the_interpreter_does) {
  corpus_raise = raise_in_context;
  InlinedTally tally;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomOptions o{.functions = 6, .statements = 30, .variables = 8};
    ASSERT_EQ("", compare_random(seed + 50'000, o, tally));
  }
  EXPECT_GT(tally.of_bodies, 80u);
  EXPECT_GT(tally.targets_of_bodies, 30u);
}

// In unrolled recursion each level is the same method at the same site, but has words of its own.
TEST(InlinedCounts, probes_of_a_recursion_are_told_apart_by_level) {
  jit::Module module = *jit::parse_module(R"(
func @down(i32) -> i32 {
b0(v0: i32):
  probe hit
  probe counter v0
  branch v0, b1, b2
b1:
  v1 = const.i32 1
  v2 = sub.i32 v0, v1
  v3 = call @down(v2)
  v4 = add.i32 v3, v0
  return v4
b2:
  return v0
}
)");
  CodeMachine machine;
  ModuleInlinees source(module, even_profile);
  OptimizedModule code(machine, module, source, even_profile, Copy::kInstrumented, 8);
  ASSERT_FALSE(code.codes()[0]->tables().inlined.empty());
  InlinedExpected expected([&](uint32_t) { return code.codes()[0].get(); },
                           [](uint32_t) { return 0; });
  jit::InterpretOptions watched;
  watched.observer = &expected;
  jit::Interpreter oracle(module, watched);
  expected.begin();
  ASSERT_EQ(oracle.run(MethodId(0), {{100}}).bits, 5050u);
  const jit::Function& f = module.functions[0];
  ASSERT_EQ(machine.run(code.entry(MethodId(0)), f.signature(), {100}).bits, 5050u);
  InlinedTally tally;
  EXPECT_EQ(compare_counts(module, code, expected, tally), "");
  EXPECT_EQ(tally.counters, 2u);
  EXPECT_EQ(tally.of_bodies, 2 * code.codes()[0]->tables().inlined.size());
  EXPECT_LT(expected.counter(0, f.block_sites + 1), 101u) << "some levels are inlined";
}

constexpr const char* kLoops = R"(
func @pick(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  v2 = and.i32 v0, v1
  branch v2, b1, b2
b1:
  v3 = const.i32 5
  v4 = add.i32 v0, v3
  jump b3(v4)
b2:
  v5 = mul.i32 v0, v0
  jump b3(v5)
b3(v6: i32):
  return v6
}
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = call @pick(v0)
  v2 = const.i32 2
  v3 = mul.i32 v0, v2
  v4 = call @pick(v3)
  v5 = add.i32 v1, v4
  return v5
}
func @fixed() -> i32 {
b0:
  v0 = const.i32 5
  v1 = const.i32 0
  jump b1(v0, v1)
b1(v2: i32, v3: i32):
  loop_header
  v4 = call @twice(v2)
  v5 = add.i32 v3, v4
  v6 = const.i32 1
  v7 = sub.i32 v2, v6
  branch v7, b2, b3
b2:
  jump b1(v7, v5)
b3:
  return v5
}
)";

struct Loops {
  Loops() : module(*jit::parse_module(kLoops)) {}
  uint32_t index(const char* name) const { return module.find(name).index(); }

  jit::Module module;
  CodeMachine machine;
  ModuleInlinees source{module, even_profile};
  OptimizedModule code{machine, module, source, even_profile, Copy::kInstrumented};
};

// Returns the count of a block of the body at `path`; fails if the same block has two counts.
uint64_t counted(const Loops& l, const char* root, const jit::InlinePath& path, SiteId site) {
  const jit::Code& c = *l.code.codes()[l.index(root)];
  std::optional<uint64_t> count;
  for (const jit::InlinedCount& i : c.tables().inlined_counts) {
    if (i.site != site || jit::path_of(c, i.body) != path) continue;
    EXPECT_FALSE(count.has_value());
    count = l.code.slabs()[l.index(root)][i.offset / 8];
  }
  return count.value_or(UINT64_MAX);
}

// The loop runs five rounds and is unrolled, so the code has five copies of every body.
TEST(InlinedCounts, copies_of_an_unrolled_loop_count_together) {
  Loops l;
  MethodId pick = l.module.find("pick"), twice = l.module.find("twice");
  const Signature& s = l.module.functions[l.index("fixed")].signature();
  auto call_of = [&](const char* f, size_t n) {
    std::vector<SiteId> sites;
    const jit::Function& function = l.module.functions[l.index(f)];
    for (Block b : function.layout) {
      for (jit::InstId i : function.block(b).insts) {
        if (function.inst(i).op == Opcode::kCall) sites.push_back(function.inst(i).site);
      }
    }
    return sites[n];
  };
  auto r = l.machine.run(l.code.entry(l.module.find("fixed")), s, {});
  ASSERT_EQ(r.trap, TrapCode::kNone);
  jit::InlinePath outer{{call_of("fixed", 0), twice}};
  jit::InlinePath first = outer, second = outer;
  first.push_back({call_of("twice", 0), pick});
  second.push_back({call_of("twice", 1), pick});
  EXPECT_EQ(counted(l, "fixed", outer, 1), 5u);
  // The arguments are 5, 4, 3, 2, 1: three are odd; the doubled arguments never are.
  EXPECT_EQ(counted(l, "fixed", first, 1), 5u);
  EXPECT_EQ(counted(l, "fixed", second, 1), 5u);
  auto known = [&](const jit::InlinePath& p, SiteId site, uint64_t want) {
    uint64_t got = counted(l, "fixed", p, site);
    // Constants decide the branch: a block is either removed and unknown, or present with the right
    // count.
    EXPECT_TRUE(got == want || got == UINT64_MAX) << site << ": " << got;
  };
  known(first, 2, 3);
  known(first, 3, 2);
  known(second, 2, 0);
  known(second, 3, 5);
  // None of the executions was a real call.
  EXPECT_EQ(l.code.slabs()[pick.index()], (std::vector<uint64_t>(4)));
}

// Knows the counts of one body at one place.
class OnePlace : public jit::InlineeSource {
 public:
  OnePlace(const jit::Module& m, jit::InlinePath path, jit::InlinedBlocks blocks)
      : all_(m, even_profile), path_(std::move(path)), blocks_(std::move(blocks)) {}
  const jit::Inlinee* find(MethodId m) override { return all_.find(m); }
  const jit::InlinedBlocks* find_blocks(const jit::InlinePath& p) override {
    return p == path_ ? &blocks_ : nullptr;
  }

 private:
  ModuleInlinees all_;
  jit::InlinePath path_;
  jit::InlinedBlocks blocks_;
};

// The counts of a body at its place take precedence over its method's counts everywhere.
TEST(InlinedCounts, code_is_made_from_what_a_body_does_in_its_place) {
  jit::Module m = *jit::parse_module(kLoops);
  CodeMachine machine;
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
  MethodId pick = m.find("pick"), twice = m.find("twice");
  const jit::Function& f = m.functions[twice.index()];
  // Block 2 ran in three of four calls; block 3 is unknown.
  OnePlace source(m, {{f.block_sites + 2, pick}}, {{8, 6, 0, 8}, {true, true, false, true}});
  std::vector<std::vector<float>> made_from;
  std::vector<uint64_t> blocks(f.block_sites, 100);
  OptimizedModule code(machine, m, source, even_profile, Copy::kPlain);
  auto made = CodeMachine::take(jit::compile_optimized(
      {f, twice, code.helpers(), code.resolver(), *machine.space},
      {.block_counts = blocks, .inlinees = &source, .inlined_blocks = &made_from}));
  ASSERT_EQ(made_from.size(), made->tables().inlined.size());
  ASSERT_EQ(made_from.size(), 2u);
  for (uint32_t b = 1; b <= 2; ++b) {
    bool there = jit::path_of(*made, b)[0].site == f.block_sites + 2;
    EXPECT_EQ(made_from[b - 1], there ? (std::vector<float>{100, 75, 100, 100})
                                      : (std::vector<float>{100, 100, 100, 100}));
  }
  // Plain code counts nothing.
  EXPECT_TRUE(made->tables().inlined_counts.empty());
}

// A method with a loop, of more than 40 instructions (kMostLooping) and less than 120, and two callers.
std::string with_large_loop() {
  std::string body;
  int v = 10;
  for (int n = 0; n < 22; ++n, v += 2) {
    const std::string before = n == 0 ? "v4" : "v" + std::to_string(v - 1);
    body += "  v" + std::to_string(v) + " = mul.i32 " + before + ", v3\n  v" +
            std::to_string(v + 1) + " = xor.i32 v" + std::to_string(v) + ", v0\n";
  }
  const std::string last = "v" + std::to_string(v - 1);
  return R"(
func @work(i32) -> i32 {
b0(v0: i32):
  jump b1(v0, v0)
b1(v3: i32, v4: i32):
)" + body +
         R"(  v1 = const.i32 1
  v2 = sub.i32 v3, v1
  branch v2, b1(v2, )" +
         last + "), b2(" + last + R"()
b2(v5: i32):
  return v5
}
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = call @work(v0)
  v2 = call @work(v1)
  v3 = add.i32 v1, v2
  return v3
}
)";
}

// Where its loop goes round often, a body spends its time there, and is not inlined. That depends on the place.
TEST(InlinedCounts, whether_a_loop_goes_round_often_is_asked_of_the_place) {
  auto parsed = jit::parse_module(with_large_loop());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const jit::Module m = std::move(*parsed);
  CodeMachine machine;
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
  const MethodId work = m.find("work"), twice = m.find("twice");
  const uint32_t second = m.functions[twice.index()].block_sites + 2;
  // Everywhere else the loop goes round ten times.
  class Often : public OnePlace {
   public:
    using OnePlace::OnePlace;
    const jit::Inlinee* find(MethodId id) override {
      often_ = *OnePlace::find(id);
      if (often_.profile.blocks.size() == 3) often_.profile.blocks = {1000, 10'000, 1000};
      return &often_;
    }

   private:
    jit::Inlinee often_;
  } source(m, {{second, work}}, {{64, 64, 64}, {true, true, true}});
  std::vector<uint64_t> blocks(m.functions[twice.index()].block_sites, 1000);
  OptimizedModule code(machine, m, source, even_profile, Copy::kPlain);
  auto made = CodeMachine::take(jit::compile_optimized(
      {m.functions[twice.index()], twice, code.helpers(), code.resolver(), *machine.space},
      {.block_counts = blocks, .inlinees = &source}));
  ASSERT_EQ(made->tables().inlined.size(), 1u);
  EXPECT_EQ(made->tables().inlined[0].site, second);
}

// Claims that the call in `apply` reaches one method everywhere, and another one at one place.
class OtherTarget : public jit::InlineeSource {
 public:
  OtherTarget(const jit::Module& m, jit::SiteTargets everywhere, jit::InlinePath path,
              jit::SiteTargets here)
      : all_(m,
             [everywhere](const jit::Function& f) {
               jit::BodyProfile p = even_profile(f);
               if (f.name == "apply") p.targets = {everywhere};
               return p;
             }),
        path_(std::move(path)),
        here_{std::move(here)} {}
  const jit::Inlinee* find(MethodId m) override { return all_.find(m); }
  const std::vector<jit::SiteTargets>* find_targets(const jit::InlinePath& p) override {
    return p == path_ ? &here_ : nullptr;
  }

 private:
  ModuleInlinees all_;
  jit::InlinePath path_;
  std::vector<jit::SiteTargets> here_;
};

TEST(InlinedCounts, a_body_guesses_what_its_call_reaches_in_its_place) {
  jit::Module m = *jit::parse_module(R"(
func @one(i32) -> i32 {
b0(v0: i32):
  return v0
}
func @two(i32) -> i32 {
b0(v0: i32):
  v1 = add.i32 v0, v0
  return v1
}
func @apply(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call_indirect.(i32)->i32 v0(v1)
  return v2
}
func @root(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call @apply(v0, v1)
  return v2
}
)");
  CodeMachine machine;
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
  auto reaches = [&](const char* name) {
    MethodId to = m.find(name);
    const jit::Function& f = m.functions[to.index()];
    return jit::SiteTargets{2, 10, {{to, 10, machine.stubs->stub(to), f.signature(), name}}};
  };
  OptimizedModule code(machine, m);
  for (bool here : {false, true}) {
    jit::InlinePath path{{2, m.find("apply")}};
    if (!here) path[0].site = 7;
    OtherTarget source(m, reaches("one"), path, reaches("two"));
    std::vector<uint64_t> blocks{1000};
    auto made = CodeMachine::take(jit::compile_optimized(
        {m.functions[3], MethodId(3), code.helpers(), code.resolver(), *machine.space},
        {.block_counts = blocks, .inlinees = &source}));
    ASSERT_EQ(made->tables().inlined.size(), 2u);
    EXPECT_EQ(made->tables().inlined[1].method, m.find(here ? "two" : "one"));
  }
}

}  // namespace
}  // namespace uptier::test::inlined_counts_test
