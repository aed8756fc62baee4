// Live ranges of vregs, compared with the live-in sets of blocks computed by definition.
#include "jit/regalloc/live_ranges.h"

#include <gtest/gtest.h>

#include <set>

#include "jit/frontend/parse.h"
#include "jit/opt/optimize.h"
#include "jit/x64/lower.h"
#include "tests/support/random_ir.h"

namespace uptier::test::live_ranges_test {
namespace {

using jit::x64::MachineFunction;
using jit::x64::MBlock;
using jit::x64::Role;
using jit::x64::Vreg;

MachineFunction lowered(jit::Function f, std::span<const uint64_t> counts = {}) {
  jit::Optimized o = jit::optimize(f, {.counts = counts});
  return jit::x64::lower({f, o.loops, o.frequencies, false, {}, true});
}

// live-in(b) = the vregs used in b before any definition there, and those that the successors need;
// iterated until nothing changes. Parameters are defined at the start.
std::vector<std::set<uint32_t>> slow_live_in(const MachineFunction& m) {
  std::vector<std::set<uint32_t>> in(m.blocks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = m.blocks.size(); b-- > 0;) {
      const MBlock& block = m.blocks[b];
      std::set<uint32_t> live;
      auto edges = m.edges_of(m.terminator(block));
      for (const auto& e : edges) live.insert(in[e.to].begin(), in[e.to].end());
      for (uint32_t k = 0; edges.size() == 1 && k < m.blocks[edges[0].to].params; ++k) {
        Vreg v = m.edge_args[edges[0].args_at + k].vreg;
        if (v.valid()) live.insert(v.index());
      }
      for (uint32_t n = block.end; n-- > block.begin;) {
        std::span operands(m.operands.data() + m.insts[n].operands_at, m.insts[n].count());
        for (const auto& o : operands) {
          if (o.vreg.valid() && o.role == Role::kDef) live.erase(o.vreg.index());
        }
        for (const auto& o : operands) {
          if (o.vreg.valid() && o.role != Role::kDef) live.insert(o.vreg.index());
        }
      }
      for (Vreg p : m.params_of(block)) live.erase(p.index());
      changed |= live != in[b];
      in[b] = std::move(live);
    }
  }
  return in;
}

// Returns the live-in sets of the blocks according to the ranges, without parameters.
std::vector<std::set<uint32_t>> ranged_live_in(const MachineFunction& m) {
  jit::machine::LiveRanges live = jit::machine::find_live_ranges(m);
  std::vector<std::set<uint32_t>> in(m.blocks.size());
  for (uint32_t v = 0; v < m.vregs.size(); ++v) {
    for (const jit::machine::Range& r : live.ranges_of(v)) {
      auto before = [](const MBlock& b, uint32_t pos) { return 2 * b.begin < pos; };
      auto b = std::lower_bound(m.blocks.begin(), m.blocks.end(), r.from, before);
      for (; b != m.blocks.end() && 2 * b->begin < r.to; ++b) in[b - m.blocks.begin()].insert(v);
    }
  }
  for (size_t b = 0; b < m.blocks.size(); ++b) {
    for (Vreg p : m.params_of(m.blocks[b])) in[b].erase(p.index());
  }
  return in;
}

// Blocks that are never executed: they are laid out last, and use values from everywhere.
std::string rare_ways(uint32_t count) {
  std::string text =
      "func @rare(i64) -> i64 {\nb0(v0: i64):\n  probe block 1\n  v1 = const.i64 77\n";
  auto value = [](uint32_t v) { return "v" + std::to_string(v); };
  auto block = [](uint32_t b) { return "b" + std::to_string(b); };
  uint32_t sum = 0, next = 2;
  for (uint32_t n = 0; n < count; ++n) {
    std::string x = value(sum), is = value(next), y = value(next + 1), after = value(next + 2);
    std::string way = block(2 * n + 1), join = block(2 * n + 2);
    text += "  " + is + " = eq.i64 " + x + ", v1\n";
    text += "  branch " + is + ", " + way + ", " + join + "(" + x + ")\n" + way + ":\n";
    text += "  probe block " + std::to_string(2 * n + 2) + "\n";
    text += "  " + y + " = mul.i64 " + x + ", " + x + "\n  jump " + join + "(" + y + ")\n";
    text += join + "(" + after + ": i64):\n  probe block " + std::to_string(2 * n + 3) + "\n";
    text += "  " + value(next + 3) + " = add.i64 " + after + ", v1\n";
    sum = next + 3;
    next += 4;
  }
  return text + "  return " + value(sum) + "\n}\n";
}

TEST(LiveRanges, are_those_of_the_definition) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const jit::Function& f : random_module(seed).functions) {
      MachineFunction m = lowered(f);
      ASSERT_EQ(slow_live_in(m), ranged_live_in(m)) << "seed " << seed;
    }
  }
}

TEST(LiveRanges, do_not_span_what_lies_before_a_rare_way) {
  auto module = jit::parse_module(rare_ways(2'500), {.file = "test"});
  ASSERT_TRUE(module.ok()) << module.error().message;
  std::vector<uint64_t> counts(module->functions[0].block_sites, 1'000);
  for (size_t way = 1; way < counts.size(); way += 2) counts[way] = 0;
  MachineFunction m = lowered(module->functions[0], counts);
  ASSERT_TRUE(m.blocks.back().cold);
  EXPECT_TRUE(slow_live_in(m) == ranged_live_in(m));
}

}  // namespace
}  // namespace uptier::test::live_ranges_test
