#include "sampler/slab_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sampler/context.h"

namespace uptier::sampler::slab_arena_test {
namespace {

SlabArena make_arena(size_t bytes) {
  auto a = SlabArena::create(bytes);
  EXPECT_TRUE(a.ok());
  return std::move(a).value();
}

TEST(SlabArena, slabs_are_zeroed_and_lie_on_cache_lines_of_their_own) {
  SlabArena arena = make_arena(1 << 20);
  uint64_t* end_before = nullptr;
  for (uint32_t words = 1; words <= 200; ++words) {
    uint64_t* slab = arena.take(words);
    ASSERT_NE(slab, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(slab) % 64, 0u) << words;
    ASSERT_GE(slab, end_before) << words;
    ASSERT_TRUE(std::all_of(slab, slab + words, [](uint64_t w) { return w == 0; })) << words;
    std::fill(slab, slab + words, UINT64_MAX);
    end_before = slab + (words + 7) / 8 * 8;
  }
}

TEST(SlabArena, spent_arena_refuses_and_a_smaller_slab_may_still_fit) {
  SlabArena arena = make_arena(4096);
  ASSERT_NE(arena.take(8 * 56), nullptr);  // takes 64 lines
  EXPECT_EQ(arena.take(65), nullptr);
  EXPECT_EQ(arena.take(UINT32_MAX), nullptr);
  uint64_t* last = arena.take(64);
  ASSERT_NE(last, nullptr);
  last[63] = 1;
  EXPECT_EQ(arena.take(1), nullptr);
}

TEST(SlabArena, size_is_rounded_up_to_pages_and_all_of_it_is_given_out) {
  SlabArena arena = make_arena(5000);
  int slabs = 0;
  while (arena.take(8) != nullptr) ++slabs;
  EXPECT_EQ(slabs, 2 * 4096 / 64);
}

TEST(SlabArena, moved_arena_goes_on_where_it_was) {
  SlabArena first = make_arena(4096);
  uint64_t* a = first.take(8);
  a[0] = 5;
  SlabArena second = std::move(first);
  uint64_t* b = second.take(8);
  EXPECT_EQ(b, a + 8);
  EXPECT_EQ(a[0], 5u);
}

TEST(SlabArena, size_that_memory_does_not_hold_is_an_error) {
  for (size_t bytes : {size_t{1} << 62, SIZE_MAX}) {
    auto a = SlabArena::create(bytes);
    ASSERT_FALSE(a.ok()) << bytes;
    EXPECT_EQ(a.error().code, ErrorCode::kResourceExhausted);
    EXPECT_NE(a.error().message.find("slab arena"), std::string::npos) << a.error().message;
  }
}

TEST(Reservation, moves_give_the_memory_to_one_owner) {
  auto made = Reservation::create(1, "test");
  ASSERT_TRUE(made.ok());
  Reservation a = std::move(*made);
  EXPECT_EQ(a.size(), 4096u);
  void* data = a.data();
  static_cast<char*>(data)[4095] = 1;
  Reservation b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): what a move leaves is the claim
  Reservation c;
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(static_cast<char*>(c.data())[4095], 1);
}

TEST(ThreadContext, states_of_methods_are_apart_and_start_as_never_seen) {
  auto memory = Reservation::create(method_offset(100), "test");
  ASSERT_TRUE(memory.ok());
  auto* context = static_cast<ThreadContext*>(memory->data());
  for (uint32_t i = 0; i < 100; ++i) {
    MethodState& s = context->method(i);
    EXPECT_EQ(reinterpret_cast<char*>(&s), static_cast<char*>(memory->data()) + method_offset(i));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(&s) % 64, 0u);
    EXPECT_EQ(s.call_gap, 0u);
    EXPECT_EQ(s.loop_gap, 0);
    s.bursts = i;
  }
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(context->method(i).bursts, i);
}

TEST(ThreadContext, exchange_makes_a_context_current_and_null_the_shared_one) {
  ThreadContext* before = current_context();
  ThreadContext mine;
  EXPECT_EQ(exchange_context(&mine), before);
  EXPECT_EQ(current_context(), &mine);
  EXPECT_EQ(exchange_context(nullptr), &mine);
  EXPECT_EQ(current_context(), &shared_context());
  exchange_context(before);
}

TEST(ThreadContext, tls_offset_leads_from_the_thread_pointer_to_the_context) {
  ThreadContext mine;
  ThreadContext* before = exchange_context(&mine);
  auto* slot = static_cast<char*>(__builtin_thread_pointer()) + context_tls_offset();
  EXPECT_EQ(*reinterpret_cast<ThreadContext**>(slot), &mine);
  exchange_context(before);
}

TEST(SlabArena, what_is_given_back_serves_slabs_of_its_size_again_and_is_zeroed) {
  SlabArena arena = make_arena(1 << 20);
  for (uint32_t words : {1u, 8u, 9u, 64u, 65u, 72u, 100u, 1000u, 4097u}) {
    uint64_t* first = arena.take(words);
    ASSERT_NE(first, nullptr);
    size_t used = arena.used();
    for (int round = 0; round < 1000; ++round) {
      std::fill(first, first + words, UINT64_MAX);
      arena.give(first, words);
      uint64_t* again = arena.take(words);
      ASSERT_EQ(again, first) << words;
      ASSERT_TRUE(std::all_of(again, again + words, [](uint64_t w) { return w == 0; })) << words;
    }
    EXPECT_EQ(arena.used(), used) << words;
  }
}

TEST(SlabArena, a_last_slab_that_is_smaller_than_its_size_is_not_given_to_larger_ones) {
  SlabArena arena = make_arena(4096);
  ASSERT_NE(arena.take(8 * 40), nullptr);
  ASSERT_NE(arena.take(8 * 6), nullptr);
  uint64_t* last = arena.take(8 * 17);  // a size class of 20 lines, where 18 are left
  ASSERT_NE(last, nullptr);
  arena.give(last, 8 * 17);
  EXPECT_EQ(arena.take(8 * 20), nullptr);
  EXPECT_NE(arena.take(8), nullptr);
}

TEST(SlabArena, others_give_back_while_the_owner_takes) {
  SlabArena arena = make_arena(1 << 20);
  constexpr int kSlabs = 64, kRounds = 20'000;
  std::array<std::atomic<uint64_t*>, kSlabs> posts = {};
  std::atomic<bool> done{false};
  std::thread giver([&] {
    while (!done) {
      for (auto& post : posts) {
        if (uint64_t* slab = post.exchange(nullptr)) arena.give(slab, 16);
      }
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    std::atomic<uint64_t*>& post = posts[static_cast<size_t>(i % kSlabs)];
    if (post.load() != nullptr) continue;
    uint64_t* slab = arena.take(16);
    ASSERT_NE(slab, nullptr);
    ASSERT_TRUE(std::all_of(slab, slab + 16, [](uint64_t w) { return w == 0; }));
    std::fill(slab, slab + 16, UINT64_MAX);
    post = slab;
  }
  done = true;
  giver.join();
}

}  // namespace
}  // namespace uptier::sampler::slab_arena_test
