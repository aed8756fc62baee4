// turn_probes.h: laws of all probes that count how conditions turn out, whichever instructions they
// observe.
#pragma once

#include <map>
#include <string>

#include "jit/analysis/loop_forest.h"
#include "tests/support/runtime_host.h"
#include "tests/support/site_probe.h"

namespace uptier::test {

// Places the probes of one function.
using PlaceTurns = void (*)(jit::Function& f, const jit::LoopForest& forest);

// Compares the counts of random programs with the interpreter. Returns the number of pairs counted.
inline uint64_t pairs_of_random_programs(PlaceTurns place) {
  uint64_t pairs = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    jit::Module m = random_module(seed, {.functions = 2, .statements = 150, .hosts = false});
    for (jit::Function& f : m.functions) {
      place(f, jit::find_loop_forest(f));
      EXPECT_TRUE(jit::verify(f).ok()) << jit::verify(f).error().message;
    }
    Probed p(m);
    Scratch scratch;
    uint32_t last = static_cast<uint32_t>(m.functions.size() - 1);
    Random random(seed);
    auto args = random_arguments(m.functions[last].signature(), scratch, random);
    jit::InterpretOptions o;
    o.memory = {{scratch.base(), Scratch::kSize, true}};
    o.observer = &p.oracle;
    scratch.fill();
    jit::Interpreter interpreter(m, o);
    auto want = interpreter.run(MethodId(last), args);
    p.oracle.add_blocks(interpreter, m);
    scratch.fill();
    Ran got = p.compiled.run(MethodId(last), args);
    EXPECT_EQ(got.trap, want.trap) << "seed " << seed;
    p.check();
    for (const auto& [site, seen] : p.oracle.last_turn) pairs += p.oracle.values[site].size();
  }
  return pairs;
}

// Checks that plain code of random bodies is the same with and without the probes. Returns the
// number of probes.
inline size_t probes_that_plain_code_leaves_out(PlaceTurns place, uint64_t seeds) {
  size_t probes = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    jit::Module without = random_module(seed, {.functions = 1, .hosts = false});
    jit::Module with = without;
    for (jit::Function& f : with.functions) place(f, jit::find_loop_forest(f));
    probes += jit::turn_sites(with.functions[0]).size();
    CodeMachine a, b;
    BaselineModule x(a, with, Use::kPlain, planner(everything()));
    BaselineModule y(b, without, Use::kPlain, planner(everything()));
    const jit::Code &p = x.code(0, Copy::kPlain), &q = y.code(0, Copy::kPlain);
    EXPECT_EQ(p.tables(), q.tables()) << "seed " << seed;
    EXPECT_EQ(disassemble(p.base(), p.size()).size(), disassemble(q.base(), q.size()).size());
  }
  return probes;
}

// Returns, from a profile, how often each pair was seen at the last site of a method.
inline std::map<int64_t, uint64_t> pairs_seen(const Runtime& runtime, const std::string& method) {
  std::map<int64_t, uint64_t> counts;
  const Profile p = runtime.profile();
  for (const auto& [key, m] : p.methods) {
    if (m.name != method) continue;
    const Table* table = m.table(SlotKind::kValue, m.schema.slots.back().site);
    if (table == nullptr) continue;
    for (const auto& [k, e] : *table) counts[static_cast<int64_t>(k.value)] = e.count;
  }
  return counts;
}

}  // namespace uptier::test
