// A guest thread's ring: order, losses at their place in it, and one reader concurrent with the
// writer.
#include "tiering/events/guest_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace uptier::test::guest_ring_test {
namespace {

using tiering::GuestRing;

Event left(uint64_t count) {
  Event e;
  e.kind = EventKind::kLeft;
  e.count = count;
  return e;
}

std::vector<Event> drained(GuestRing& ring, uint64_t upto = UINT64_MAX, size_t most = 10'000) {
  std::vector<Event> out;
  ring.drain(upto, most, [&](const Event& e) { out.push_back(e); });
  return out;
}

TEST(GuestRing, gives_records_in_order_with_the_thread_the_number_it_saw_and_its_own_count) {
  GuestRing ring(7, 70);
  EXPECT_TRUE(ring.push(left(10), 3));
  EXPECT_FALSE(ring.push(left(11), 4));  // false: the drainer was already woken
  std::vector<Event> got = drained(ring);
  ASSERT_EQ(got.size(), 2u);
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].count, 10 + i);
    EXPECT_EQ(got[i].thread, 7u);
    EXPECT_EQ(got[i].native_thread, 70u);
    EXPECT_EQ(got[i].sequence, 3 + i);
    EXPECT_EQ(got[i].thread_sequence, 1 + i);
  }
  EXPECT_TRUE(ring.empty());
  EXPECT_TRUE(ring.push(left(12), 4));
}

TEST(GuestRing, full_ring_leaves_one_loss_record_in_its_place) {
  GuestRing ring(1, 70);
  for (uint64_t i = 0; i < GuestRing::kRecords + 10; ++i) ring.push(left(i), 5 + i);
  std::vector<Event> got = drained(ring);
  ring.push(left(999), 1000);
  std::vector<Event> next = drained(ring);
  ASSERT_EQ(got.size(), GuestRing::kRecords + 1);
  for (uint64_t i = 0; i < GuestRing::kRecords; ++i) EXPECT_EQ(got[i].count, i);
  EXPECT_EQ(got.back().kind, EventKind::kLost);
  EXPECT_EQ(got.back().count, 10u);
  EXPECT_EQ(got.back().sequence, 5 + GuestRing::kRecords);
  EXPECT_EQ(got.back().thread_sequence, GuestRing::kRecords + 1);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].thread_sequence, GuestRing::kRecords + 11);
}

TEST(GuestRing, takes_nothing_after_a_loss_until_it_is_empty) {
  GuestRing ring(1, 70);
  for (uint64_t i = 0; i <= GuestRing::kRecords; ++i) ring.push(left(i), 1);
  EXPECT_EQ(drained(ring, UINT64_MAX, 100).size(), 100u);
  ring.push(left(0), 1);  // there is room, but the record must come after the loss
  std::vector<Event> got = drained(ring);
  ASSERT_EQ(got.size(), GuestRing::kRecords - 100 + 1);
  EXPECT_EQ(got.back().kind, EventKind::kLost);
  EXPECT_EQ(got.back().count, 2u);
}

TEST(GuestRing, keeps_what_saw_a_later_number) {
  GuestRing ring(1, 70);
  ring.push(left(1), 5);
  ring.push(left(2), 6);
  std::vector<uint64_t> early;
  bool more = ring.drain(5, 10, [&](const Event& e) { early.push_back(e.count); });
  EXPECT_TRUE(more);
  EXPECT_EQ(early, std::vector<uint64_t>{1});
  EXPECT_EQ(drained(ring, 6).size(), 1u);
}

TEST(GuestRing, accounts_for_every_record_while_two_threads_work) {
  constexpr uint64_t kPushed = 300'000;
  GuestRing ring(1, 70);
  std::thread writer([&] {
    for (uint64_t i = 1; i <= kPushed; ++i) {
      ring.push(left(i), i);
      if (i % 200 == 0) std::this_thread::yield();
    }
  });
  uint64_t next = 1, losses = 0, records = 0;
  auto take = [&](const Event& e) {
    ASSERT_EQ(e.thread_sequence, next);
    bool lost = e.kind == EventKind::kLost;
    if (!lost) { ASSERT_EQ(e.count, next); }
    ++(lost ? losses : records);
    next += lost ? e.count : 1;
  };
  for (int i = 0; next <= kPushed && !HasFatalFailure(); ++i) {
    ring.drain(UINT64_MAX, 1 + i % 300, take);
    if (i % 7 == 0) std::this_thread::yield();
  }
  writer.join();
  EXPECT_EQ(next, kPushed + 1);
  EXPECT_GT(losses, 0u);       // otherwise the test has covered no losses,
  EXPECT_GT(records, 1'000u);  // or no records; a busy machine drains few
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace uptier::test::guest_ring_test
