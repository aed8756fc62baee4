#include "sampler/snapshot_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sampler/gap.h"

namespace uptier::sampler::snapshot_ring_test {
namespace {

constexpr size_t kRing = 4096;

std::unique_ptr<SnapshotRing> make_ring(size_t bytes = kRing) {
  auto r = SnapshotRing::create(bytes);
  EXPECT_TRUE(r.ok());
  return std::move(r).value();
}

size_t record_bytes(size_t words) { return sizeof(Note) + 8 * words; }

// The contents of a record follow from its number, so that a reader can check it.
struct Sample {
  Note note;
  std::vector<uint64_t> words;
};
Sample make_sample(uint64_t number, size_t words) {
  uint64_t state = number;
  Sample s;
  s.note.kind = static_cast<NoteKind>(1 + number % 6);
  s.note.method = static_cast<uint32_t>(next_random(state));
  s.note.loop = static_cast<uint32_t>(next_random(state));
  s.note.calls = number;
  s.note.sampled_calls = next_random(state);
  s.note.iterations = next_random(state);
  s.note.bursts = next_random(state);
  s.note.rate = next_random(state);
  s.words.resize(words);
  for (uint64_t& w : s.words) w = next_random(state);
  return s;
}
bool push(SnapshotRing& ring, uint64_t number, size_t words) {
  Sample s = make_sample(number, words);
  return ring.push(s.note, s.words);
}

// Describes the error of the oldest record, which should be `number`; empty if there is none.
std::string wrong_with_front(SnapshotRing& ring, uint64_t number) {
  const Note* n = ring.front();
  if (n == nullptr) return "there is none";
  if (n->calls != number) return "it is record " + std::to_string(n->calls);
  if (n->bytes != record_bytes(n->words)) return "its length is wrong";
  Sample s = make_sample(number, n->words);
  bool same = n->kind == s.note.kind && n->method == s.note.method && n->loop == s.note.loop &&
              n->sampled_calls == s.note.sampled_calls && n->iterations == s.note.iterations &&
              n->bursts == s.note.bursts && n->rate == s.note.rate;
  if (!same) return "its note has changed";
  std::span<const uint64_t> words = ring.words(*n);
  if (!std::equal(words.begin(), words.end(), s.words.begin(), s.words.end())) {
    return "its words have changed";
  }
  return "";
}

// Moves the position of the next record to `offset`; the ring must be empty.
void advance_to(SnapshotRing& ring, size_t offset) {
  if (offset < sizeof(Note)) return;
  ASSERT_TRUE(push(ring, 1, (offset - sizeof(Note)) / 8));
  ASSERT_NE(ring.front(), nullptr);
  ring.pop();
  ASSERT_EQ(ring.front(), nullptr);
}

TEST(SnapshotRing, fresh_ring_is_empty) { EXPECT_EQ(make_ring()->front(), nullptr); }

TEST(SnapshotRing, records_come_out_in_order_and_whole) {
  auto ring = make_ring();
  for (uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(push(*ring, n, n));
  for (uint64_t n = 0; n < 20; ++n) {
    ASSERT_EQ(wrong_with_front(*ring, n), "") << n;
    ASSERT_EQ(wrong_with_front(*ring, n), "") << "looking does not take, record " << n;
    ring->pop();
  }
  EXPECT_EQ(ring->front(), nullptr);
}

TEST(SnapshotRing, wraps_with_fillers_of_every_size) {
  constexpr size_t kWords = 40;
  std::set<size_t> fillers;
  for (size_t offset = sizeof(Note); offset <= kRing; offset += 8) {
    auto ring = make_ring();
    advance_to(*ring, offset);
    if (kRing - offset < record_bytes(kWords)) fillers.insert(kRing - offset);
    ASSERT_TRUE(push(*ring, 7, kWords)) << "at " << offset;
    ASSERT_TRUE(push(*ring, 8, 3)) << "at " << offset;
    ASSERT_EQ(wrong_with_front(*ring, 7), "") << "at " << offset;
    ring->pop();
    ASSERT_EQ(wrong_with_front(*ring, 8), "") << "at " << offset;
    ring->pop();
    ASSERT_EQ(ring->front(), nullptr);
  }
  EXPECT_EQ(fillers.size(), record_bytes(kWords) / 8) << "0, 8, 16, ... bytes";
}

TEST(SnapshotRing, full_ring_refuses_and_nothing_is_lost) {
  auto ring = make_ring();
  uint64_t pushed = 0;
  while (push(*ring, pushed, 0)) ++pushed;
  EXPECT_EQ(pushed, kRing / record_bytes(0)) << "64 bytes each, so the ring is filled to the byte";
  EXPECT_FALSE(push(*ring, pushed, 0));
  EXPECT_EQ(wrong_with_front(*ring, 0), "");
  ring->pop();
  EXPECT_TRUE(push(*ring, pushed, 0)) << "one place is free";
  EXPECT_FALSE(push(*ring, pushed + 1, 0));
  for (uint64_t n = 1; n <= pushed; ++n) {
    ASSERT_EQ(wrong_with_front(*ring, n), "") << n;
    ring->pop();
  }
  EXPECT_EQ(ring->front(), nullptr);
}

TEST(SnapshotRing, agrees_with_a_queue_over_random_sizes) {
  auto ring = make_ring();
  std::deque<size_t> queue;  // sizes of the records in the ring
  uint64_t random = 3, first = 0, next = 0, refused = 0;
  for (int step = 0; step < 200'000; ++step) {
    if (next_random(random) % 2 == 0) {
      size_t words = next_random(random) % 60;
      if (push(*ring, next, words)) {
        queue.push_back(record_bytes(words));
        ++next;
      } else {
        ++refused;
        size_t used = 0;
        for (size_t bytes : queue) used += bytes;
        // Fillers take less than the record that did not fit before the end; there are 2 of them at
        // most.
        ASSERT_GT(used + 3 * record_bytes(60), kRing) << "there was room";
      }
    } else if (!queue.empty()) {
      ASSERT_EQ(wrong_with_front(*ring, first), "") << first;
      ring->pop();
      queue.pop_front();
      ++first;
    } else {
      ASSERT_EQ(ring->front(), nullptr);
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(next, 50'000u);
}

TEST(SnapshotRing, record_as_large_as_the_ring_fits_and_a_larger_one_never_does) {
  auto ring = make_ring();
  constexpr size_t kAll = (kRing - sizeof(Note)) / 8;
  EXPECT_FALSE(push(*ring, 1, kAll + 1));
  EXPECT_FALSE(push(*ring, 1, 10 * kAll));
  EXPECT_EQ(ring->front(), nullptr);
  EXPECT_TRUE(push(*ring, 2, kAll));
  EXPECT_FALSE(push(*ring, 3, 0));
  EXPECT_EQ(wrong_with_front(*ring, 2), "");
  ring->pop();
  EXPECT_FALSE(push(*ring, 4, kAll + 1));
  EXPECT_EQ(ring->front(), nullptr);
  EXPECT_TRUE(push(*ring, 5, 0)) << "a refusal leaves the ring usable";
  EXPECT_EQ(wrong_with_front(*ring, 5), "");
}

TEST(SnapshotRing, record_that_is_not_larger_than_the_ring_fits_once_all_is_read) {
  for (size_t words : {200u, 249u, 250u, 300u, 400u, 504u}) {
    for (size_t offset = sizeof(Note); offset < kRing; offset += 56) {
      auto ring = make_ring();
      advance_to(*ring, offset / 8 * 8);
      // The first attempt may be refused; then the consumer finds nothing, and the next attempt
      // succeeds.
      bool held = push(*ring, 9, words);
      if (!held) {
        ASSERT_EQ(ring->front(), nullptr);
        held = push(*ring, 9, words);
      }
      ASSERT_TRUE(held) << words << " words at " << offset;
      ASSERT_EQ(wrong_with_front(*ring, 9), "");
    }
  }
}

TEST(SnapshotRing, record_that_waits_for_the_whole_ring_loses_none_before_it) {
  auto ring = make_ring();
  constexpr size_t kLarge = 400;
  uint64_t next = 0;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(push(*ring, next++, i));
  EXPECT_FALSE(push(*ring, 1000, kLarge));
  while (push(*ring, next, 2)) ++next;
  EXPECT_FALSE(push(*ring, 1000, kLarge));
  for (uint64_t n = 0; n < next; ++n) {
    ASSERT_EQ(wrong_with_front(*ring, n), "") << n;
    ring->pop();
  }
  ASSERT_EQ(ring->front(), nullptr);
  if (!push(*ring, 1000, kLarge)) {
    ASSERT_EQ(ring->front(), nullptr);
    ASSERT_TRUE(push(*ring, 1000, kLarge));
  }
  EXPECT_EQ(wrong_with_front(*ring, 1000), "");
}

TEST(SnapshotRing, size_is_rounded_up_to_a_power_of_two) {
  struct Row {
    size_t bytes, holds;
  };
  for (Row row : {Row{1, 4096}, Row{4096, 4096}, Row{4097, 8192}, Row{100'000, 131'072}}) {
    auto ring = make_ring(row.bytes);
    uint64_t pushed = 0;
    while (push(*ring, pushed, 1)) ++pushed;
    EXPECT_EQ(pushed, row.holds / record_bytes(1)) << row.bytes;
  }
}

TEST(SnapshotRing, size_that_memory_does_not_hold_is_an_error) {
  auto r = SnapshotRing::create(size_t{1} << 62);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(r.error().message.find("ring"), std::string::npos) << r.error().message;
}

TEST(SnapshotRing, one_thread_pushes_and_another_takes_a_million_records) {
  constexpr uint64_t kRecords = 1'000'000;
  auto ring = make_ring();
  uint64_t refused = 0;
  std::thread producer([&] {
    for (uint64_t n = 0; n < kRecords; ++n) {
      while (!push(*ring, n, n % 8)) {
        ++refused;
        std::this_thread::yield();
      }
    }
  });
  std::string wrong;
  for (uint64_t n = 0; n < kRecords; ++n) {
    while (ring->front() == nullptr) std::this_thread::yield();
    if (wrong.empty()) wrong = wrong_with_front(*ring, n);
    ring->pop();
  }
  producer.join();
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(ring->front(), nullptr);
  EXPECT_GT(refused, 0u) << "the ring was never full";
}

}  // namespace
}  // namespace uptier::sampler::snapshot_ring_test
