#include "tiering/serve/reclaimer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "jit/code/code_space.h"
#include "sampler/gap.h"
#include "tiering/model/still_here.h"
#include "tiering/model/thread.h"

namespace uptier::tiering::reclaim_test {
namespace {

// A reclaimer with its own threads and versions.
class ReclaimTest : public testing::Test {
 protected:
  static constexpr uint32_t kCodeBytes = 64;

  void SetUp() override {
    options_.slab_budget = options_.ring_bytes = 1 << 12;
    auto s = jit::CodeSpace::create({.code_budget = 8u << 20, .data_bytes = 4096});
    ASSERT_TRUE(s.ok()) << s.error().message;
    space_ = std::move(*s);
  }
  void TearDown() override { versions_.clear(); }

  // Like Runtime::attach.
  AttachedThread& attach() {
    auto t = AttachedThread::create(this, options_, ++numbers_);
    EXPECT_TRUE(t.ok());
    (*t)->epoch.store(reclaimer_.epoch());
    threads_.push_back(std::move(*t));
    return *threads_.back();
  }
  void quiescent(AttachedThread& t) { t.epoch.store(reclaimer_.epoch()); }

  // Code that consists of the version's number, repeated.
  Version& make_version() {
    auto number = static_cast<uint32_t>(versions_.size()) + 1;
    auto span = space_->allocate(kCodeBytes);
    EXPECT_TRUE(span.ok()) << span.error().message;
    for (uint32_t at = 0; at < kCodeBytes; at += 4) std::memcpy(span->data() + at, &number, 4);
    EXPECT_TRUE(space_->publish(*span).ok());
    auto v = std::make_unique<Version>();
    v->code = std::make_unique<jit::Code>(std::move(*span), 0, jit::CodeTables());
    v->code_bytes = kCodeBytes;
    v->compile_ns = number;
    versions_.push_back(std::move(v));
    return *versions_.back();
  }
  // Returns how many bytes of code were freed.
  uint64_t reclaim() {
    uint64_t bytes = 0;
    for (const Version* v : reclaimer_.reclaim(threads_).versions) bytes += v->code_bytes;
    return bytes;
  }

  Options options_;
  std::unique_ptr<jit::CodeSpace> space_;
  std::vector<std::unique_ptr<Version>> versions_;
  std::vector<std::unique_ptr<AttachedThread>> threads_;
  Events events_;
  Reclaimer reclaimer_{events_};
  uint32_t numbers_ = 0;
};

TEST_F(ReclaimTest, code_is_free_at_once_where_no_thread_is_attached) {
  Version& v = make_version();
  EXPECT_EQ(reclaim(), 0u) << "it is in service";
  EXPECT_FALSE(reclaimer_.has_limbo());
  reclaimer_.retire(v);
  EXPECT_TRUE(v.retired);
  EXPECT_TRUE(reclaimer_.has_limbo());
  EXPECT_NE(v.code, nullptr);
  uint64_t in_service = space_->bytes_in_service();
  EXPECT_EQ(reclaim(), kCodeBytes);
  EXPECT_EQ(v.code, nullptr);
  EXPECT_LT(space_->bytes_in_service(), in_service);
  EXPECT_FALSE(reclaimer_.has_limbo());
  EXPECT_EQ(reclaim(), 0u) << "once";
}

TEST_F(ReclaimTest, every_attached_thread_has_to_be_quiescent_first) {
  AttachedThread &a = attach(), &b = attach();
  Version& v = make_version();
  reclaimer_.retire(v);
  EXPECT_EQ(reclaim(), 0u);
  quiescent(a);
  EXPECT_EQ(reclaim(), 0u);
  quiescent(a);
  EXPECT_EQ(reclaim(), 0u) << "twice the same thread is not two threads";
  EXPECT_NE(v.code, nullptr);
  quiescent(b);
  EXPECT_EQ(reclaim(), kCodeBytes);
  EXPECT_EQ(v.code, nullptr);
}

TEST_F(ReclaimTest, quiescence_before_the_retirement_does_not_count) {
  AttachedThread& t = attach();
  Version& v = make_version();
  quiescent(t);
  reclaimer_.retire(v);
  EXPECT_EQ(reclaim(), 0u);
  quiescent(t);
  EXPECT_EQ(reclaim(), kCodeBytes);
}

TEST_F(ReclaimTest, thread_that_comes_later_holds_nothing) {
  Version& v = make_version();
  reclaimer_.retire(v);
  attach();
  EXPECT_EQ(reclaim(), kCodeBytes);
}

TEST_F(ReclaimTest, thread_that_goes_holds_nothing_any_more) {
  attach();
  Version& v = make_version();
  reclaimer_.retire(v);
  EXPECT_EQ(reclaim(), 0u);
  threads_.clear();
  EXPECT_EQ(reclaim(), kCodeBytes);
}

TEST_F(ReclaimTest, older_code_is_freed_while_newer_waits) {
  AttachedThread& t = attach();
  Version &first = make_version(), &second = make_version(), &third = make_version();
  reclaimer_.retire(first);
  reclaimer_.retire(second);
  quiescent(t);
  reclaimer_.retire(third);
  EXPECT_EQ(reclaim(), 2 * kCodeBytes);
  EXPECT_EQ(first.code, nullptr);
  EXPECT_EQ(second.code, nullptr);
  EXPECT_NE(third.code, nullptr);
  EXPECT_TRUE(reclaimer_.has_limbo());
}

TEST_F(ReclaimTest, each_retirement_is_an_epoch_of_its_own) {
  uint64_t before = reclaimer_.epoch();
  for (uint64_t n = 1; n <= 5; ++n) {
    reclaimer_.retire(make_version());
    EXPECT_EQ(reclaimer_.epoch(), before + n);
  }
}

// Compares with a simple slow algorithm: for each retired version, the set of threads that may
// still run it.
TEST_F(ReclaimTest, agrees_with_sets_of_threads_over_random_events) {
  struct Item {
    Version* version;
    std::set<uint32_t> holders;
  };
  std::vector<Item> limbo;
  uint64_t random = 12;
  auto draw = [&](size_t below) { return sampler::next_random(random) % below; };
  int freed = 0, kept = 0;
  for (int step = 0; step < 3000; ++step) {
    switch (draw(6)) {
      case 0:
        if (threads_.size() < 5) attach();
        break;
      case 1:
        if (threads_.empty()) break;
        {
          size_t i = draw(threads_.size());
          for (Item& item : limbo) item.holders.erase(threads_[i]->number());
          threads_.erase(threads_.begin() + static_cast<ptrdiff_t>(i));
        }
        break;
      case 2: {
        Item item{&make_version(), {}};
        for (const auto& t : threads_) item.holders.insert(t->number());
        reclaimer_.retire(*item.version);
        limbo.push_back(std::move(item));
        break;
      }
      case 3:
        reclaim();
        std::erase_if(limbo, [&](const Item& item) {
          EXPECT_EQ(item.version->code == nullptr, item.holders.empty()) << "step " << step;
          (item.holders.empty() ? freed : kept)++;
          return item.holders.empty();
        });
        EXPECT_EQ(reclaimer_.has_limbo(), !limbo.empty());
        break;
      default:
        if (threads_.empty()) break;
        AttachedThread& t = *threads_[draw(threads_.size())];
        quiescent(t);
        for (Item& item : limbo) item.holders.erase(t.number());
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(freed, 100);
  EXPECT_GT(kept, 100);
}

// Addresses of methods on the thread's stack mean nothing, but pins do.
TEST_F(ReclaimTest, thread_that_waits_keeps_the_methods_that_it_has_pinned) {
  Host host;
  Method first{MethodId(0), 1, host, {}}, second{MethodId(1), 2, host, {}};
  AttachedThread& t = attach();
  reclaimer_.leave(first);
  reclaimer_.leave(second);
  EXPECT_TRUE(reclaimer_.reclaim(threads_).methods.empty()) << "it may have found them in service";
  {
    MethodPin outer(&t.stacks.current().pins, first), inner(&t.stacks.current().pins, second);
    StillHere still(&t);
    EXPECT_TRUE(reclaimer_.reclaim(threads_).methods.empty());
    reclaimer_.pass_if_unneeded(t);
    EXPECT_LT(t.epoch, reclaimer_.epoch());
  }
  EXPECT_TRUE(reclaimer_.reclaim(threads_).methods.empty()) << "it runs again";
  MethodPin pin(&t.stacks.current().pins, second);
  StillHere still(&t);
  EXPECT_EQ(reclaimer_.reclaim(threads_).methods, std::vector<Method*>{&first});
  EXPECT_TRUE(reclaimer_.has_limbo());
}

// The thread has left a stack on which a slow path waits.
TEST_F(ReclaimTest, pins_of_suspended_stacks_count) {
  Host host;
  Method method{MethodId(0), 1, host, {}};
  AttachedThread& t = attach();
  NativeStack& own = t.stacks.current();
  alignas(16) static char memory[1 << 12];
  auto low = reinterpret_cast<uintptr_t>(memory);
  NativeStack& other = t.stacks.add(std::make_unique<NativeStack>(&t, low, low + sizeof memory));
  auto pin = std::make_optional<MethodPin>(&own.pins, method);
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  t.stacks.change(other, here, t.context());
  EXPECT_EQ(t.stacks.current().pins.innermost, nullptr);
  reclaimer_.leave(method);
  t.enter_blocked(memory + sizeof memory);
  EXPECT_TRUE(reclaimer_.reclaim(threads_).methods.empty());
  pin.reset();
  EXPECT_EQ(reclaimer_.reclaim(threads_).methods, std::vector<Method*>{&method});
  t.leave_blocked();
  t.stacks.change(own, low + sizeof memory - 8, t.context());
}

TEST_F(ReclaimTest, threads_read_code_while_it_is_replaced_and_freed) {
  constexpr int kRounds = 2000, kReaders = 2;
  std::atomic<const Version*> cell{&make_version()};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0}, reads{0};
  for (int i = 0; i < kReaders; ++i) attach();
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      while (!stop.load(std::memory_order_relaxed)) {
        const Version* v = cell.load(std::memory_order_acquire);
        for (uint32_t at = 0; at < kCodeBytes; at += 4) {
          uint32_t number;
          std::memcpy(&number, v->code->base() + at, 4);
          wrong += number != v->compile_ns;
        }
        reads.fetch_add(1, std::memory_order_relaxed);
        quiescent(*threads_[static_cast<size_t>(i)]);
      }
    });
  }
  uint64_t freed = 0;
  for (int round = 0; round < kRounds; ++round) {
    Version* old = versions_.back().get();
    cell.store(&make_version(), std::memory_order_release);
    reclaimer_.retire(*old);
    freed += reclaim();
    if (round % 16 == 0) std::this_thread::yield();
  }
  // The readers go on until everything retired is free.
  while (reclaimer_.has_limbo()) {
    freed += reclaim();
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(reads, 0u);
  EXPECT_EQ(freed, uint64_t{kRounds} * kCodeBytes);
}

}  // namespace
}  // namespace uptier::tiering::reclaim_test
