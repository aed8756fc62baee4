#include "jit/analysis/frame_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "jit/frontend/parse.h"
#include "tests/support/random_ir.h"

namespace uptier::jit::frame_layout_test {
namespace {

Function parse(const std::string& text) {
  auto m = parse_module(text, {"test", {}});
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().message);
  return m->functions[0];
}

FrameLayout lay_out(const Function& f) { return layout_frame(f, compute_liveness(f)); }

bool is_constant(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  return i.valid() && f.inst(i).op == Opcode::kConst;
}

// Fails if two of the values, which are all needed at the same time, share a slot.
void expect_apart(const Function& f, const FrameLayout& frame, const std::set<uint32_t>& needed,
                  const std::string& where) {
  std::map<int32_t, uint32_t> taken;
  for (uint32_t v : needed) {
    if (is_constant(f, Value(v)) || frame.slot[v] == 0) continue;
    auto [it, fresh] = taken.emplace(frame.slot[v], v);
    ASSERT_TRUE(fresh) << where << ": v" << v << " and v" << it->second << " share a slot";
  }
}

// Walks every block backwards with the exact set of values that are needed later, and checks it at
// each step.
void expect_no_overlap(const Function& f, const FrameLayout& frame, const std::string& where) {
  Liveness l = compute_liveness(f);
  for (Block b : f.layout) {
    std::set<uint32_t> live;
    for (const Edge& e : f.successors(b)) {
      for (Value v : l.live_in[e.to.index()]) live.insert(v.index());
    }
    expect_apart(f, frame, live, where);
    for (const Edge& e : f.successors(b)) {
      for (Value v : f.list(e.args)) live.insert(v.index());
    }
    const auto& insts = f.block(b).insts;
    for (auto i = insts.rbegin(); i != insts.rend(); ++i) {
      expect_apart(f, frame, live, where);
      if (Value r = f.inst(*i).result; r.valid()) live.erase(r.index());
      for (Value v : f.args(f.inst(*i))) live.insert(v.index());
    }
    // All parameters are written on entry, unused ones too.
    for (Value p : f.params(b)) live.insert(p.index());
    expect_apart(f, frame, live, where);
  }
}

TEST(FrameLayout, gives_slots_to_what_crosses_a_block_boundary_and_nothing_else) {
  Function f = parse(R"(
func @f(i32, i64) -> i64 {
b0(v0: i32, v1: i64):
  v2 = const.i64 7
  v3 = add.i64 v1, v2
  v4 = mul.i64 v3, v3
  branch v0, b1, b2
b1:
  return v3
b2:
  v5 = add.i64 v4, v2
  return v5
}
)");
  FrameLayout frame = lay_out(f);
  EXPECT_NE(frame.slot[0], 0);  // parameters have slots even if they are used in their block only
  EXPECT_NE(frame.slot[1], 0);
  EXPECT_EQ(frame.slot[2], 0);  // a constant is materialized again at each use
  EXPECT_NE(frame.slot[3], 0);
  EXPECT_NE(frame.slot[4], 0);
  EXPECT_EQ(frame.slot[5], 0);  // used in its block only
  EXPECT_EQ(frame.size % 16, 0u);
  for (int32_t s : frame.slot) {
    if (s == 0) continue;
    EXPECT_EQ(s % 8, 0);
    EXPECT_LT(s, kSlabSlot);
    EXPECT_GE(s, -static_cast<int32_t>(frame.size));
  }
}

TEST(FrameLayout, shares_slots_between_lifetimes_that_do_not_meet) {
  std::string text = "func @f(i64) -> i64 {\nb0(v0: i64):\n  jump b1(v0)\n";
  for (int b = 1; b <= 50; ++b) {
    text += "b" + std::to_string(b) + "(v" + std::to_string(b) + ": i64):\n  jump b" +
            std::to_string(b + 1) + "(v" + std::to_string(b) + ")\n";
  }
  text += "b51(v51: i64):\n  return v51\n}\n";
  EXPECT_LE(lay_out(parse(text)).size, 32u);
}

TEST(FrameLayout, keeps_unused_parameters_apart_from_the_others) {
  Function f = parse(R"(
func @f(i64) -> i64 {
b0(v0: i64):
  jump b1(v0, v0)
b1(v1: i64, v2: i64):
  return v2
}
)");
  FrameLayout frame = lay_out(f);
  EXPECT_NE(frame.slot[1], frame.slot[2]);
}

TEST(FrameLayout, never_lets_values_overlap_in_random_programs) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (const Function& f : test::random_module(seed).functions) {
      expect_no_overlap(f, lay_out(f), "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FrameLayout, does_not_depend_on_probes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (Function f : test::random_module(seed).functions) {
      FrameLayout with = lay_out(f);
      for (BlockData& b : f.blocks) {
        std::erase_if(b.insts, [&](InstId i) {
          return f.inst(i).op == Opcode::kProbe && f.inst(i).args.size == 0;
        });
      }
      FrameLayout without = lay_out(f);
      EXPECT_EQ(with.slot, without.slot);
      EXPECT_EQ(with.size, without.size);
    }
  }
}

}  // namespace
}  // namespace uptier::jit::frame_layout_test
