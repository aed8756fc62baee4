#include "tiering/observe/add_shares.h"

#include <gtest/gtest.h>

namespace uptier::tiering {
namespace {

constexpr uint32_t kLoop = 1;  // the word of a loop
constexpr SiteId kHeader = 3;  // its header
const jit::InlinePath kInlined{{7, MethodId(1)}};
const std::vector<jit::InlinePath> kBodies{{}, kInlined};

jit::TallyTable calling() {
  jit::TallyTable t;
  t.words = {{}, {8, 1}};
  t.shares = {{kHeader, 0, kLoop, 1, true}, {4, 0, kLoop, 0.25F, false}};
  return t;
}

// The same, with the callee inlined: its first block runs every second iteration.
jit::TallyTable inlined() {
  jit::TallyTable t = calling();
  t.shares.push_back({1, 1, kLoop, 0.5F, false});
  return t;
}

TEST(AddShares, executions_are_shares_of_counts) {
  TalliedSum sum;
  add_shares(calling(), kBodies, std::vector<double>{1, 1000}, sum);
  EXPECT_EQ(sum.find({{}, kHeader})->executions, 1000);
  EXPECT_EQ(sum.find({{}, kHeader})->exact, 1000);
  EXPECT_EQ(sum.find({{}, 4})->executions, 250);
  EXPECT_EQ(sum.find({{}, 4})->exact, 0);
  EXPECT_EQ(sum.find({{}, 4})->by_loops, 250);
}

TEST(AddShares, iterations_of_a_version_that_calls_are_not_beside_what_another_inlines) {
  for (bool calls_first : {true, false}) {
    TalliedSum sum;
    if (calls_first) add_shares(calling(), kBodies, std::vector<double>{1, 1000}, sum);
    add_shares(inlined(), kBodies, std::vector<double>{1, 10}, sum);
    if (!calls_first) add_shares(calling(), kBodies, std::vector<double>{1, 1000}, sum);
    const TalliedSum::Block* b = sum.find({kInlined, 1});
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->executions, 5);
    EXPECT_EQ(b->beside, (TalliedSum::Place{{}, kHeader}));
    EXPECT_EQ(b->beside_ran, 10);
    EXPECT_EQ(sum.find({{}, 4})->beside_ran, 1010);
  }
}

// A block at the start of a loop runs once more than the loop goes round.
TEST(AddShares, a_block_beside_itself_keeps_the_executions_that_entries_add) {
  jit::TallyTable t = calling();
  t.shares.push_back({kHeader, 0, jit::TallyTable::kEntries, 1, true});
  TalliedSum sum;
  add_shares(t, kBodies, std::vector<double>{5, 100}, sum);
  EXPECT_EQ(sum.find({{}, kHeader})->beside_ran, 105);
  EXPECT_EQ(sum.find({{}, 4})->beside_ran, 105);
}

TEST(AddShares, executions_beside_another_block_are_elsewhere) {
  jit::TallyTable other = calling();
  other.shares = {{5, 0, kLoop, 1, true}, {4, 0, kLoop, 1, false}};
  for (double first : {10.0, 1000.0}) {
    TalliedSum sum;
    add_shares(calling(), kBodies, std::vector<double>{1, first}, sum);
    add_shares(other, kBodies, std::vector<double>{1, 100}, sum);
    const TalliedSum::Block* b = sum.find({{}, 4});
    bool switches = 100 > 0.25 * first;
    EXPECT_EQ(b->beside, (TalliedSum::Place{{}, switches ? 5u : kHeader}));
    EXPECT_EQ(b->beside_ran, switches ? 100 : first);
    EXPECT_EQ(b->elsewhere, switches ? 0.25 * first : 100);
    EXPECT_EQ(b->executions, 100 + 0.25 * first);
  }
}

}  // namespace
}  // namespace uptier::tiering
