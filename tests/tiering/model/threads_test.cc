// Counts of attached threads, and of threads that have ended.
#include "tiering/model/threads.h"
#include "tiering/base/clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tiering/model/method.h"

namespace uptier::tiering::threads_test {
namespace {

constexpr uint64_t kKept = 4;  // log records kept of ended threads

class ThreadsTest : public testing::Test {
 protected:
  ThreadsTest() {
    options_.slab_budget = options_.ring_bytes = 1 << 12;
    options_.log_records = kKept;
  }
  std::unique_ptr<AttachedThread> make() {
    auto t = AttachedThread::create(this, options_, threads_.next_number());
    EXPECT_TRUE(t.ok());
    return std::move(*t);
  }
  AttachedThread& attach() {
    threads_.add(make());
    return *threads_.all().back();
  }
  void log(AttachedThread& t, uint64_t value) {
    t.log().push({.method = 3, .site = 1, .value = value}, &lost_);
  }
  std::vector<uint64_t> values() {
    std::vector<uint64_t> values;
    for (const LogRecord& r : threads_.read_log()) values.push_back(r.value);
    return values;
  }
  LossReport losses() const {
    LossReport l;
    threads_.add_losses(l);
    return l;
  }

  Options options_;
  Threads threads_{kKept};
  uint64_t lost_ = 0;
};

using Values = std::vector<uint64_t>;

TEST_F(ThreadsTest, numbers_begin_at_one_and_are_not_used_again) {
  AttachedThread& first = attach();
  EXPECT_EQ(first.number(), 1u);
  threads_.remove(first);
  EXPECT_TRUE(threads_.empty());
  EXPECT_EQ(attach().number(), 2u);
}

TEST_F(ThreadsTest, the_thread_that_goes_is_the_one_that_was_named) {
  attach();
  AttachedThread& second = attach();
  attach();
  threads_.remove(second);
  ASSERT_EQ(threads_.size(), 2u);
  EXPECT_EQ(threads_.all()[0]->number(), 1u);
  EXPECT_EQ(threads_.all()[1]->number(), 3u);
}

TEST_F(ThreadsTest, losses_are_counted_once_while_a_thread_is_there_and_afterwards) {
  AttachedThread &goes = attach(), &stays = attach();
  goes.samples_without_copy = 1;
  goes.slabs_refused = 20;
  goes.flushes_delayed = 300;
  goes.context().traps_lost = 4000;
  stays.samples_without_copy = 50000;
  for (uint64_t i = 0; i < kKept + 2; ++i) log(goes, i);
  LossReport before = losses();
  EXPECT_EQ(before.samples_without_copy, 50001u);
  EXPECT_EQ(before.slabs_refused, 20u);
  EXPECT_EQ(before.flushes_delayed, 300u);
  EXPECT_EQ(before.traps_lost, 4000u);
  EXPECT_EQ(before.log_records, 2u);
  threads_.remove(goes);
  LossReport after = losses();
  EXPECT_EQ(after.samples_without_copy, before.samples_without_copy);
  EXPECT_EQ(after.slabs_refused, before.slabs_refused);
  EXPECT_EQ(after.flushes_delayed, before.flushes_delayed);
  EXPECT_EQ(after.traps_lost, before.traps_lost);
  EXPECT_EQ(after.log_records, before.log_records);
}

TEST_F(ThreadsTest, records_are_read_once_those_of_gone_threads_first) {
  AttachedThread &stays = attach(), &goes = attach();
  log(stays, 10);
  log(goes, 20);
  log(goes, 21);
  threads_.remove(goes);
  std::vector<LogRecord> all = threads_.read_log();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].value, 20u);
  EXPECT_EQ(all[0].thread, 2u);
  EXPECT_EQ(all[0].method, MethodId(3));
  EXPECT_EQ(all[1].value, 21u);
  EXPECT_EQ(all[2].value, 10u);
  EXPECT_EQ(all[2].thread, 1u);
  EXPECT_EQ(values(), Values{});
}

TEST_F(ThreadsTest, what_is_kept_of_a_thread_that_stays_is_not_read_twice) {
  AttachedThread& t = attach();
  log(t, 1);
  threads_.keep_log(t);
  log(t, 2);
  EXPECT_EQ(values(), (Values{1, 2}));
}

TEST_F(ThreadsTest, of_gone_threads_the_latest_records_are_kept_and_the_others_counted_as_lost) {
  for (uint64_t i = 0; i < 3; ++i) {
    AttachedThread& t = attach();
    log(t, 2 * i);
    log(t, 2 * i + 1);
    threads_.remove(t);
  }
  EXPECT_EQ(losses().log_records, 2u);
  EXPECT_EQ(values(), (Values{2, 3, 4, 5}));
}

TEST_F(ThreadsTest, time_is_that_of_threads_while_they_are_attached) {
  auto work = [] {
    uint64_t start = thread_cpu_ns();
    while (thread_cpu_ns() - start < 5'000'000) {}
  };
  auto t = make();
  work();
  threads_.add(std::move(t));
  EXPECT_LT(threads_.lived_ns(), 5'000'000u) << "it was not attached before";
  work();
  uint64_t first = threads_.lived_ns();
  EXPECT_GE(first, 5'000'000u);
  threads_.remove(*threads_.all().front());
  uint64_t gone = threads_.lived_ns();
  EXPECT_GE(gone, first);
  work();
  EXPECT_EQ(threads_.lived_ns(), gone);
}

}  // namespace
}  // namespace uptier::tiering::threads_test
