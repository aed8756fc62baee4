// Counts that follow from others are exact after the last flush, although frames were inside when
// earlier ones were taken.
#include <gtest/gtest.h>

#include "tests/support/workshop.h"
#include "uptier/profile.h"

namespace uptier::test::settled_counts_test {
namespace {

// Returns the counts of a method's slots of a kind, in the order of sites.
std::vector<uint64_t> counts_of(const Profile& p, std::string_view name, SlotKind kind) {
  std::vector<uint64_t> counts;
  for (const auto& [key, m] : p.methods) {
    if (m.name != name) continue;
    for (const Slot& s : m.schema.slots) {
      if (s.kind == kind) counts.push_back(m.counts[s.word]);
    }
  }
  return counts;
}

// entry -> head or end; head -> body or end; body -> head. Its only call enters the loop, whose
// flushes are taken while the frame is inside.
TEST(SettledCounts, an_edge_that_was_never_taken_counts_nothing_after_the_end) {
  for (const char* flow : {"edges", "blocks"}) {
    Workshop shop(options(
        {{"tier", "instrumented"}, {"flow", flow}, {"workers", "0"}, {"loop_flush_first", "8"}}));
    const MethodId sum = shop.add("sum", kOne, [](FunctionBuilder& b) {
      Block some = b.create_block(), none = b.create_block();
      b.branch(b.binary(Opcode::kNe, b.param(0), b.i64(0)), some, none);
      b.seal(some);
      b.seal(none);
      b.switch_to(none);
      b.ret(b.i64(7));
      b.switch_to(some);
      loop_down(b, b.param(0), b.i64(0),
                [&](Value s, Value x) { return b.binary(Opcode::kAdd, s, x); });
    });
    ThreadScope scope(*shop.runtime);
    EXPECT_EQ(shop.call(sum, {1000}).bits, 500500u);
    shop.runtime->flush();
    const Profile p = shop.runtime->profile();
    EXPECT_EQ(counts_of(p, "sum", SlotKind::kBlock),
              (std::vector<uint64_t>{1, 0, 1, 1001, 1000, 1}))
        << flow;
    if (std::string_view(flow) == "blocks") continue;
    EXPECT_EQ(counts_of(p, "sum", SlotKind::kEdge),
              (std::vector<uint64_t>{1, 0, 1, 1000, 1, 1000}));
  }
}

}  // namespace
}  // namespace uptier::test::settled_counts_test
