// StackRing: records come out unchanged and in order, and records that do not fit are counted.
#include "sampler/stack_ring.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sampler/gap.h"

namespace uptier::test::stack_ring_test {
namespace {

using sampler::SampleGap;
using sampler::SampleLeaf;
using sampler::StackRecord;
using sampler::StackRing;

StackRecord record(uint64_t seed) {
  StackRecord r;
  r.leaf = static_cast<SampleLeaf>(seed % sampler::kSampleLeaves);
  r.gap = static_cast<SampleGap>(seed % sampler::kSampleGaps);
  r.weight_ns = sampler::next_random(seed);
  r.cycles = sampler::next_random(seed);
  uint64_t frames = sampler::next_random(seed) % (StackRecord::kMostFrames + 1);
  while (r.count < frames) {
    uint64_t pc = sampler::next_random(seed);
    EXPECT_TRUE(r.push(pc, sampler::next_random(seed)));
  }
  return r;
}

bool same(const StackRecord& a, const StackRecord& b) {
  return a.leaf == b.leaf && a.gap == b.gap && a.count == b.count && a.weight_ns == b.weight_ns &&
         a.cycles == b.cycles &&
         std::equal(a.frames.begin(), a.frames.begin() + a.count, b.frames.begin());
}

TEST(StackRing, records_come_out_as_they_went_in) {
  auto ring = StackRing::create(1 << 14);
  ASSERT_TRUE(ring.ok());
  uint64_t in = 0, out = 0;
  for (int round = 0; round < 2000; ++round) {
    for (int i = 0; i < 1 + round % 3; ++i) {
      if ((*ring)->push(record(in))) ++in;
    }
    StackRecord got;
    while (out + round % 5 < in && (*ring)->pop(got)) {
      ASSERT_TRUE(same(got, record(out))) << out;
      ++out;
    }
  }
  EXPECT_GT(out, 1000u);  // the ring wrapped around many times
  EXPECT_EQ((*ring)->dropped(), 0u);
}

TEST(StackRing, full_ring_drops_the_new_record_and_counts_it) {
  auto ring = StackRing::create(1 << 12);
  ASSERT_TRUE(ring.ok());
  StackRecord r;
  r.weight_ns = 7;
  while (r.push(r.count, 0) && r.count < 97) {}  // 97 frames and 3 words: 5 records in 512 words
  for (int i = 0; i < 8; ++i) EXPECT_EQ((*ring)->push(r), i < 5);
  EXPECT_EQ((*ring)->dropped(), 3u);
  EXPECT_EQ((*ring)->dropped_ns(), 21u);
  StackRecord got;
  int read = 0;
  while ((*ring)->pop(got)) ++read;
  EXPECT_EQ(read, 5);
  EXPECT_TRUE((*ring)->push(r));
}

TEST(StackRecord, a_frame_keeps_address_and_serial) {
  StackRecord r;
  ASSERT_TRUE(r.push(0x7f12'3456'789a, 0x1'8001));
  EXPECT_EQ(StackRecord::pc_of(r.frames[0]), 0x7f12'3456'789au);
  EXPECT_TRUE(StackRecord::is_of(r.frames[0], 0x8001));
  EXPECT_FALSE(StackRecord::is_of(r.frames[0], 0x8002));
  while (r.push(1, 1)) {}
  EXPECT_EQ(r.count, StackRecord::kMostFrames);
}

}  // namespace
}  // namespace uptier::test::stack_ring_test
