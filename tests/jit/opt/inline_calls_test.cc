// Inlining and guarded devirtualization: the functions they produce, and that they change no
// answer.
#include "jit/opt/inline_calls.h"

#include <fstream>

#include "jit/opt/optimize.h"
#include "jit/opt/passes.h"
#include "test_paths.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/inline_harness.h"

namespace uptier::test::inline_calls_test {
namespace {

jit::Module read_module(const std::string& name) {
  auto path = std::filesystem::path(UPTIER_SOURCE_DIR) / "tests" / "opt" / (name + ".uir");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  auto module = jit::parse_module(text.str(), {name, corpus_hosts()});
  EXPECT_TRUE(module.ok()) << module.error().message;
  return module.ok() ? std::move(*module) : jit::Module{};
}

// Returns the module with calls inlined in every function, and with the profile's findings noted.
jit::Module inlined(const jit::Module& module, const ModuleInlinees::Profiles& profiles) {
  ModuleInlinees source(module, profiles);
  jit::Module out = module;
  for (uint32_t i = 0; i < out.functions.size(); ++i) {
    jit::Function& f = out.functions[i];
    EXPECT_TRUE(jit::verify(f).ok()) << jit::verify(f).error().message;
    jit::BodyProfile seen = profiles(f);
    jit::strip_patchpoints(f);
    jit::inline_calls(f, {MethodId(i), seen.blocks, seen.targets, &source});
    jit::remove_unreachable(f);
    Status s = jit::verify(f, jit::Stage::kTransformed);
    EXPECT_TRUE(s.ok()) << s.error().message;
  }
  return out;
}

void expect_round_trip(const jit::Module& m) {
  std::string text = jit::to_text(m);
  auto again = jit::parse_module(text, {"again", corpus_hosts()});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(text, jit::to_text(*again));
  for (size_t i = 0; i < m.functions.size(); ++i) {
    EXPECT_EQ(m.functions[i].inlined, again->functions[i].inlined);
    EXPECT_TRUE(jit::verify(again->functions[i], jit::Stage::kTransformed).ok());
  }
}

TEST(InlineCalls, bodies_take_the_place_of_calls_as_the_golden_shows) {
  jit::Module m = inlined(read_module("inline_calls"), even_profile);
  expect_golden("opt_inline_calls", jit::to_text(m));
  expect_round_trip(m);
}

TEST(InlineCalls, without_a_profile_only_small_leaves_are_inlined) {
  auto nothing = [](const jit::Function&) { return jit::BodyProfile{}; };
  jit::Module m = inlined(read_module("inline_calls"), nothing);
  for (const jit::Function& f : m.functions) {
    for (const jit::InlinedBody& b : f.inlined) EXPECT_LE(b.site_count, 4u) << b.name;
  }
  EXPECT_EQ(2u, m.functions[m.find("loop").index()].inlined.size());
}

TEST(InlineCalls, a_call_that_was_never_seen_to_run_stays_a_call) {
  auto never = [](const jit::Function& f) {
    jit::BodyProfile p = even_profile(f);
    if (f.name == "nested") p.blocks = {0};
    return p;
  };
  jit::Module m = inlined(read_module("inline_calls"), never);
  EXPECT_TRUE(m.functions[m.find("nested").index()].inlined.empty());
}

// IR text has no stubs; any distinct numbers will do.
const void* made_up_entry(MethodId m) {
  return reinterpret_cast<const void*>(uintptr_t{0x1000} * (m.index() + 1));
}

jit::BodyProfile seen_targets(const jit::Module& m, const jit::Function& f) {
  jit::BodyProfile p = even_profile(f);
  auto target = [&](const char* name, uint64_t count) {
    MethodId id = m.find(name);
    return jit::TargetShare{id, count, made_up_entry(id), m.functions[id.index()].signature(),
                            name};
  };
  if (f.name == "caller") p.targets = {{2, 1000, {target("one", 500), target("two", 333)}}};
  if (f.name == "context") p.targets = {{2, 1000, {target("field", 990)}}};
  return p;
}

TEST(InlineCalls, targets_are_asked_for_as_the_golden_shows) {
  jit::Module before = read_module("devirtualize");
  jit::Module m = inlined(before, [&](const jit::Function& f) { return seen_targets(before, f); });
  expect_golden("opt_devirtualize", jit::to_text(m));
  expect_round_trip(m);
}

// Returns how many of two targets are guarded for, if they were seen `one` and `two` times in 1000
// executions.
size_t asked_for(uint64_t one, uint64_t two) {
  jit::Module before = read_module("devirtualize");
  jit::Module m = inlined(before, [&](const jit::Function& f) {
    jit::BodyProfile p = seen_targets(before, f);
    if (f.name != "caller") return p;
    p.targets[0].targets[0].count = one;
    p.targets[0].targets[1].count = two;
    return p;
  });
  return m.functions[before.find("caller").index()].inlined.size();
}

TEST(InlineCalls, a_rare_target_is_asked_for_where_little_else_is_left) {
  EXPECT_EQ(2u, asked_for(950, 50));
  EXPECT_EQ(2u, asked_for(970, 20));
  EXPECT_EQ(1u, asked_for(985, 15)) << "too rare";
  EXPECT_EQ(1u, asked_for(700, 40)) << "of what is left an eighth";
}

// A profile may name a target with another signature or without an entry, or give a count that is
// too large.
TEST(InlineCalls, targets_that_cannot_be_are_not_asked_for) {
  jit::Module before = read_module("devirtualize");
  jit::Module m = inlined(before, [&](const jit::Function& f) {
    jit::BodyProfile p = even_profile(f);
    MethodId field = before.find("field"), one = before.find("one");
    const auto& signature = before.functions[field.index()].signature();
    if (f.name == "caller") {
      p.targets = {{2,
                    10,
                    {{field, UINT64_MAX, made_up_entry(field), signature, "field"},
                     {one, 9, nullptr, before.functions[one.index()].signature(), "one"}}}};
    }
    return p;
  });
  EXPECT_TRUE(m.functions[before.find("caller").index()].inlined.empty());
  EXPECT_EQ(1u, m.functions[before.find("caller").index()].layout.size());
}

TEST(InlineCalls, broken_inlined_bodies_are_found_by_the_verifier) {
  jit::Module m = inlined(read_module("inline_calls"), even_profile);
  jit::Function f = m.functions[m.find("nested").index()];
  ASSERT_FALSE(f.inlined.empty());
  auto broken = [](jit::Function g) { return !jit::verify(g, jit::Stage::kTransformed).ok(); };
  EXPECT_FALSE(broken(f));
  jit::Function late = f;
  late.inlined[0].parent = 1;
  EXPECT_TRUE(broken(late));
  jit::Function site = f;
  site.inlined[0].site = 99;
  EXPECT_TRUE(broken(site));
  jit::Function gone = f;
  gone.inlined.clear();
  EXPECT_TRUE(broken(gone));
}

// ---- Random programs --------------------------------------------------------------------------

jit::BodyProfile random_profile(const jit::Function& f, Random& random) {
  jit::BodyProfile p;
  if (random.chance(10)) return p;
  for (uint32_t b = 0; b < f.block_sites; ++b) {
    p.blocks.push_back(random.chance(20) ? 0 : random.next() >> (40 + random.below(10)));
  }
  return p;
}

struct Compared {
  std::string difference;
  size_t bodies = 0;
};

// Compares the IR after inlining with the IR as built, both in the interpreter.
Compared compare_ir(uint64_t seed, const RandomOptions& options) {
  Compared c;
  jit::Module module = random_module(seed, options);
  Random random(seed ^ 0xca11);
  std::map<std::string, jit::BodyProfile> made;
  auto profiles = [&](const jit::Function& f) {
    auto [at, fresh] = made.try_emplace(f.name);
    if (fresh) at->second = random_profile(f, random);
    return at->second;
  };
  jit::Module after = inlined(module, profiles);
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  jit::Interpreter subject(after, interpret_options(scratch));
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    c.bodies += after.functions[f].inlined.size();
    std::vector<uint64_t> args = random_arguments(module.functions[f].signature(), scratch, random);
    scratch.fill();
    Answer want = interpret(oracle, MethodId(f), args);
    std::string bytes = scratch.bytes();
    scratch.fill();
    Answer got = interpret(subject, MethodId(f), args);
    Type t = module.functions[f].signature().result;
    bool same = got.trap == want.trap && bytes == scratch.bytes() &&
                (want.trap != TrapCode::kNone || same_value(t, got.bits, want.bits));
    if (!same) c.difference = "seed " + std::to_string(seed) + " f" + std::to_string(f);
  }
  // A block that runs inlined counts for its own function.
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    auto want = oracle.site_counts(MethodId(f)), got = subject.site_counts(MethodId(f));
    for (uint32_t b = 0; b < module.functions[f].block_sites; ++b) {
      uint64_t w = b < want.size() ? want[b] : 0, g = b < got.size() ? got[b] : 0;
      if (w != g) c.difference = "counts of seed " + std::to_string(seed);
    }
  }
  return c;
}

TEST(InlineCalls, inlined_random_programs_answer_as_before) {
  corpus_raise = raise_in_context;
  size_t bodies = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Compared c = compare_ir(seed, {.functions = 5, .statements = 14, .variables = 6});
    ASSERT_EQ("", c.difference);
    bodies += c.bodies;
  }
  EXPECT_GT(bodies, 200u);
}

// Compares the machine code of a random module, with some indirect calls, with the interpreter.
Compared compare_code(uint64_t seed, const RandomOptions& options, Copy copy = Copy::kPlain) {
  Compared c;
  jit::Module module = random_module(seed, options);
  jit::Module changed = module;
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  CodeMachine machine;
  Random random(seed ^ 0x5eed);
  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    EXPECT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
  }
  auto stub = [&](MethodId m) { return machine.stubs->stub(m); };
  for (jit::Function& f : changed.functions) make_calls_indirect(f, random, 40, stub);
  auto guess = [&](uint32_t m, uint64_t count) {
    const jit::Function& f = module.functions[m];
    return jit::TargetShare{MethodId(m), count, stub(MethodId(m)), f.signature(), f.name};
  };
  std::map<std::string, jit::BodyProfile> made;
  auto profiles = [&](const jit::Function& f) {
    auto [at, fresh] = made.try_emplace(f.name);
    if (!fresh) return at->second;
    at->second = random_profile(f, random);
    for (SiteId s = f.block_sites + 1; s <= f.site_count; ++s) {
      jit::SiteTargets t{s, 100, {}};
      for (uint32_t m = 0; m < module.functions.size(); ++m) {
        if (random.chance(60)) t.targets.push_back(guess(m, random.below(100)));
      }
      at->second.targets.push_back(t);
    }
    return at->second;
  };
  ModuleInlinees source(changed, profiles);
  OptimizedModule code(machine, changed, source, profiles, copy);
  for (const auto& made_code : code.codes()) c.bodies += made_code->tables().inlined.size();
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int round = 0; round < 3; ++round) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      Expected want = expected_of(oracle, MethodId(f), args, scratch);
      std::string what = difference(want, s.result, scratch,
                                    [&] { return machine.run(code.entry(MethodId(f)), s, args); });
      if (!what.empty()) {
        c.difference = "seed " + std::to_string(seed) + " f" + std::to_string(f) + ": " + what;
      }
    }
  }
  return c;
}

TEST(InlineCalls, code_of_random_programs_answers_as_the_interpreter_does) {
  corpus_raise = raise_in_context;
  size_t bodies = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Compared c = compare_code(seed, {.functions = 5, .statements = 14, .variables = 6});
    ASSERT_EQ("", c.difference);
    bodies += c.bodies;
  }
  EXPECT_GT(bodies, 200u);
}

TEST(InlineCalls, instrumented_copies_of_random_programs_answer_too) {
  corpus_raise = raise_in_context;
  for (uint64_t seed = 1000; seed <= 1040; ++seed) {
    Compared c =
        compare_code(seed, {.functions = 4, .statements = 20, .variables = 6}, Copy::kInstrumented);
    ASSERT_EQ("", c.difference);
  }
}

}  // namespace
}  // namespace uptier::test::inline_calls_test
