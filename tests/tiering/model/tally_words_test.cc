#include "tiering/model/tally_words.h"

#include <gtest/gtest.h>

namespace uptier::tiering {
namespace {

class TallyWordsTest : public testing::Test {
 protected:
  AttachedThread& attach() {
    auto t = AttachedThread::create(this, {}, threads.next_number(), nullptr);
    EXPECT_TRUE(t.ok());
    threads.make_room();
    threads.add(std::move(*t));
    return *threads.all().back();
  }

  Threads threads{16};
  TallyWords words{threads};
};

TEST_F(TallyWordsTest, a_word_is_the_sum_over_threads) {
  sampler::ThreadContext& a = attach().context();
  sampler::ThreadContext& b = attach().context();
  uint32_t w = *words.take(2);
  a.tally(w) += 5;
  b.tally(w) += 7;
  b.tally(w + 1) += 1;
  EXPECT_EQ(words.count(w), 12u);
  EXPECT_EQ(words.count(w + 1), 1u);
}

TEST_F(TallyWordsTest, what_a_thread_has_counted_stays_when_it_goes) {
  AttachedThread& t = attach();
  uint32_t w = *words.take(1);
  t.context().tally(w) = 9;
  words.keep(t.context());
  EXPECT_EQ(t.context().tally(w), 0u);
  threads.remove(t);
  EXPECT_EQ(words.count(w), 9u);
}

TEST_F(TallyWordsTest, a_word_that_is_given_out_again_begins_at_0) {
  sampler::ThreadContext& a = attach().context();
  uint32_t w = *words.take(3);
  a.tally(w + 2) = 100;
  words.give(w, 3);
  EXPECT_EQ(*words.take(3), w) << "runs of the same length are used again";
  EXPECT_EQ(words.count(w + 2), 0u);
  a.tally(w + 2) += 4;
  EXPECT_EQ(words.count(w + 2), 4u);
}

TEST_F(TallyWordsTest, refuses_when_all_are_given_out) {
  EXPECT_TRUE(words.take(sampler::kTallyWords - 1));
  EXPECT_FALSE(words.take(2));
  EXPECT_EQ(words.refused(), 1u);
  EXPECT_TRUE(words.take(1));
}

}  // namespace
}  // namespace uptier::tiering
