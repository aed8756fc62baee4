// The limit on the words of an instrumented copy for inlined bodies. Beyond it, whole bodies lose
// their words, the ones inlined last first.
#include <gtest/gtest.h>

#include "jit/frontend/parse.h"
#include "jit/probes/inlined_counts.h"

namespace uptier::jit::inlined_words_test {
namespace {

class Words {
 public:
  Words() {
    Result<Module> m = parse_module("func @f(i32) -> i32 {\nb0(v0: i32):\n  return v0\n}\n", {});
    EXPECT_TRUE(m.ok());
    f_ = std::move(m->functions[0]);
  }
  // Adds a probe of a body at the start of the function.
  void probe(uint32_t body, ProbeKind kind, SiteId site) {
    Inst i;
    i.op = Opcode::kProbe;
    i.aux = site;
    i.body = body;
    i.imm = static_cast<uint64_t>(kind);
    f_.insts.push_back(i);
    auto& block = f_.block(f_.entry()).insts;
    block.insert(block.begin(), InstId(static_cast<uint32_t>(f_.insts.size() - 1)));
  }
  void blocks(uint32_t body, SiteId count) {
    for (SiteId s = 1; s <= count; ++s) probe(body, ProbeKind::kBlock, s);
  }
  void hits(uint32_t body, SiteId count) {
    for (SiteId s = 1; s <= count; ++s) probe(body, ProbeKind::kHit, 100'000 + s);
  }
  std::vector<InlinedCount> counts() const { return place_inlined_counts(f_, 64); }
  std::vector<InlinedProbe> probes() const {
    return place_inlined_probes(f_, {.host_probes = true}, counts(), 64);
  }

 private:
  Function f_;
};

TEST(InlinedWords, all_blocks_up_to_the_bound_are_counted_and_no_more) {
  Words w;
  w.blocks(1, 1000);
  w.blocks(2, 24);
  std::vector<InlinedCount> counts = w.counts();
  ASSERT_EQ(counts.size(), kMostInlinedCounts);
  EXPECT_EQ(counts.front().offset, 64u);
  EXPECT_EQ(counts.back().offset, 64u + 8 * (kMostInlinedCounts - 1));
  // With one block more, its whole body loses its words, and so do the bodies inlined later.
  w.probe(2, ProbeKind::kBlock, 25);
  w.blocks(3, 1);
  counts = w.counts();
  ASSERT_EQ(counts.size(), 1000u);
  EXPECT_EQ(counts.back().body, 1u);
  // Copies of a block share its word.
  w.blocks(1, 1000);
  EXPECT_EQ(w.counts().size(), 1000u);
}

TEST(InlinedWords, probes_up_to_the_bound_have_words_and_no_more) {
  Words w;
  for (uint32_t body : {1, 2, 3}) w.blocks(body, 1);
  w.hits(1, 2000);
  w.hits(2, 48);
  std::vector<InlinedProbe> probes = w.probes();
  ASSERT_EQ(probes.size(), kMostInlinedProbeWords);
  EXPECT_EQ(probes.back().offset, 64u + 8 * (kMostInlinedProbeWords - 1));
  w.hits(2, 49);
  w.hits(3, 1);
  probes = w.probes();
  ASSERT_EQ(probes.size(), 2000u);
  EXPECT_EQ(probes.back().body, 1u);
}

TEST(InlinedWords, probes_of_a_body_whose_blocks_are_not_counted_have_none) {
  Words w;
  w.blocks(1, 1);
  w.hits(1, 1);
  w.hits(2, 1);
  ASSERT_EQ(w.probes().size(), 1u);
  EXPECT_EQ(w.probes()[0].body, 1u);
}

}  // namespace
}  // namespace uptier::jit::inlined_words_test
