#include "jit/analysis/liveness.h"

#include <gtest/gtest.h>

#include <set>

#include "jit/frontend/parse.h"
#include "tests/support/random_ir.h"

namespace uptier::jit::liveness_test {
namespace {

Function parse(const std::string& text) {
  auto m = parse_module(text, {"test", {}});
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().message);
  return m->functions[0];
}

// Liveness by its definition: live-in(b) = the values used in b before any definition there, and
// the values that the successors need; iterated until nothing changes.
std::vector<std::set<uint32_t>> slow_liveness(const Function& f) {
  std::vector<std::set<uint32_t>> in(f.blocks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (Block b : f.layout) {
      std::set<uint32_t> live;
      for (const Edge& e : f.successors(b)) {
        live.insert(in[e.to.index()].begin(), in[e.to.index()].end());
        for (Value v : f.list(e.args)) live.insert(v.index());
      }
      const auto& insts = f.block(b).insts;
      for (auto i = insts.rbegin(); i != insts.rend(); ++i) {
        if (Value r = f.inst(*i).result; r.valid()) live.erase(r.index());
        for (Value v : f.args(f.inst(*i))) live.insert(v.index());
      }
      for (Value p : f.params(b)) live.erase(p.index());
      changed |= live != in[b.index()];
      in[b.index()] = live;
    }
  }
  return in;
}

std::vector<uint32_t> live_into(const Liveness& l, uint32_t block) {
  std::vector<uint32_t> out;
  for (Value v : l.live_in[block]) out.push_back(v.index());
  return out;
}

TEST(Liveness, reaches_around_a_loop) {
  Function f = parse(R"(
func @f(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  jump b1(v0)
b1(v2: i32):
  branch v2, b2, b3
b2:
  v3 = sub.i32 v2, v1
  jump b1(v3)
b3:
  return v2
}
)");
  Liveness l = compute_liveness(f);
  EXPECT_EQ(live_into(l, f.layout[0].index()), (std::vector<uint32_t>{}));
  EXPECT_EQ(live_into(l, f.layout[1].index()), (std::vector<uint32_t>{1}));
  EXPECT_EQ(live_into(l, f.layout[2].index()), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(live_into(l, f.layout[3].index()), (std::vector<uint32_t>{2}));
}

TEST(Liveness, equals_its_definition_on_random_programs) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (const Function& f : test::random_module(seed).functions) {
      auto expected = slow_liveness(f);
      Liveness l = compute_liveness(f);
      for (Block b : f.layout) {
        auto got = live_into(l, b.index());
        ASSERT_TRUE(std::is_sorted(got.begin(), got.end()));
        ASSERT_EQ(std::set<uint32_t>(got.begin(), got.end()), expected[b.index()])
            << "seed " << seed << " block " << b.index();
        ASSERT_EQ(got.size(), expected[b.index()].size());
      }
    }
  }
}

}  // namespace
}  // namespace uptier::jit::liveness_test
