// Log rings: the latest records are kept, and all others are counted, exactly once each.
#include "sampler/log_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace uptier::test::log_ring_test {
namespace {

using sampler::LogRecord;
using sampler::LogRing;

std::unique_ptr<LogRing> ring(uint32_t records) {
  auto r = LogRing::create(records);
  EXPECT_TRUE(r.ok());
  return std::move(*r);
}

LogRecord record(uint64_t n) { return {1, 2, 3, n, 10 * n}; }

TEST(LogRing, keeps_records_in_order) {
  auto r = ring(8);
  uint64_t lost = 0;
  for (uint64_t n = 0; n < 5; ++n) r->push(record(n), &lost);
  std::vector<LogRecord> got;
  r->read(got, 2);
  EXPECT_EQ(got.size(), 2u);
  r->read(got);
  ASSERT_EQ(got.size(), 5u);
  for (uint64_t n = 0; n < 5; ++n) EXPECT_EQ(got[n], record(n));
  EXPECT_EQ(lost, 0u);
  r->read(got);
  EXPECT_EQ(got.size(), 5u);
}

TEST(LogRing, a_peek_leaves_records_in_the_ring) {
  auto r = ring(8);
  uint64_t lost = 0;
  for (uint64_t n = 0; n < 11; ++n) r->push(record(n), &lost);
  std::vector<LogRecord> seen, got;
  r->peek(seen);
  r->peek(seen);
  r->read(got);
  ASSERT_EQ(got.size(), 8u);
  EXPECT_EQ(got.front(), record(3));
  std::vector<LogRecord> twice = got;
  twice.insert(twice.end(), got.begin(), got.end());
  EXPECT_EQ(seen, twice);
  r->peek(got);
  EXPECT_EQ(got.size(), 8u);
}

// Each record that a peek returns is one that was pushed, whole, and they ascend.
TEST(LogRing, a_peek_beside_pushes_sees_no_torn_record) {
  auto r = ring(16);
  std::atomic<bool> stop{false};
  std::thread pusher([&] {
    uint64_t lost = 0;
    for (uint64_t n = 0; !stop.load(std::memory_order_relaxed); ++n) {
      const auto small = static_cast<uint32_t>(n);
      r->push({small, small, small, n, 10 * n}, &lost);
    }
  });
  size_t seen = 0;
  while (seen < 200'000) {
    std::vector<LogRecord> got;
    r->peek(got);
    ASSERT_LE(got.size(), r->capacity());
    for (size_t i = 0; i < got.size(); ++i) {
      const LogRecord& one = got[i];
      const auto small = static_cast<uint32_t>(one.value);
      ASSERT_EQ(one, (LogRecord{small, small, small, one.value, 10 * one.value}));
      ASSERT_TRUE(i == 0 || one.value > got[i - 1].value);
    }
    seen += got.size();
  }
  stop = true;
  pusher.join();
}

TEST(LogRing, a_full_ring_keeps_the_latest_and_counts_the_others_at_their_sites) {
  auto r = ring(5);
  EXPECT_EQ(r->capacity(), 8u);
  uint64_t lost[2] = {};
  for (int round = 0; round < 10; ++round) {
    lost[0] = lost[1] = 0;
    uint64_t before = r->lost();
    for (uint64_t n = 0; n < 21; ++n) r->push(record(n), &lost[n % 2]);
    std::vector<LogRecord> got;
    r->read(got);
    ASSERT_EQ(got.size(), 8u);
    for (uint64_t n = 0; n < 8; ++n) EXPECT_EQ(got[n], record(13 + n));
    EXPECT_EQ(lost[0], 7u);  // 0, 2, ... 12
    EXPECT_EQ(lost[1], 6u);
    EXPECT_EQ(r->lost() - before, 13u);
  }
}

// A record that was read is complete and in order; each record is either read or lost.
TEST(LogRing, a_reader_that_races_with_the_writer_sees_whole_records_or_none) {
  auto r = ring(64);
  constexpr uint64_t kRecords = 400'000;
  uint64_t lost = 0;
  std::atomic<bool> done{false};
  std::vector<LogRecord> got;
  std::thread reader([&] {
    while (!done.load()) r->read(got, 7);
    r->read(got);
  });
  for (uint64_t n = 0; n < kRecords; ++n) {
    r->push({static_cast<uint32_t>(n), static_cast<uint32_t>(~n), static_cast<uint32_t>(n * 3), n,
             n * 7},
            &lost);
  }
  done = true;
  reader.join();
  EXPECT_EQ(got.size() + lost, kRecords);
  uint64_t next = 0;
  for (const LogRecord& g : got) {
    uint64_t n = g.value;
    ASSERT_EQ(g, (LogRecord{static_cast<uint32_t>(n), static_cast<uint32_t>(~n),
                            static_cast<uint32_t>(n * 3), n, n * 7}));
    ASSERT_GE(n, next);
    next = n + 1;
  }
  EXPECT_EQ(next, kRecords);
}

}  // namespace
}  // namespace uptier::test::log_ring_test
