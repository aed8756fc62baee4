// WantedFrames: the frames of optimized code that the worker waits for.
#include "tiering/control/wanted_frames.h"

#include <gtest/gtest.h>

#include <vector>

namespace uptier::tiering::wanted_frames_test {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

class WantedFramesTest : public testing::Test {
 protected:
  std::vector<Method*> watched_now() {
    std::vector<Method*> called;
    frames_.take_watched([&](Method& m) { called.push_back(&m); });
    return called;
  }
  std::vector<uint32_t> loops_now() {
    std::vector<uint32_t> loops;
    frames_.take_newer([&](const WantedFrames::Newer& n) { loops.push_back(n.loop); });
    return loops;
  }

  Host host_;
  Method one_{MethodId(0), 1, host_, {}}, two_{MethodId(1), 2, host_, {}};
  WantedFrames frames_;
};

TEST_F(WantedFramesTest, what_is_due_is_taken_once_and_the_rest_waits) {
  frames_.want_newer({&one_, 3, 0, 0});
  frames_.want_newer({&two_, 4, kNever, 0});
  frames_.watch(one_, kNever);
  frames_.watch(two_, 0);
  EXPECT_EQ(loops_now(), std::vector<uint32_t>{3});
  EXPECT_EQ(watched_now(), std::vector<Method*>{&two_});
  EXPECT_TRUE(loops_now().empty());
  EXPECT_TRUE(watched_now().empty());
  EXPECT_TRUE(frames_.wait());
}

TEST_F(WantedFramesTest, a_method_is_watched_once_and_the_earlier_time_holds) {
  frames_.watch(one_, kNever);
  frames_.watch(one_, 0);
  frames_.watch(one_, kNever);
  EXPECT_EQ(watched_now(), std::vector<Method*>{&one_});
  EXPECT_FALSE(frames_.wait());
}

TEST_F(WantedFramesTest, what_is_wanted_again_when_it_is_due_waits_again) {
  frames_.want_newer({&one_, 3, 0, 0});
  frames_.take_newer([&](WantedFrames::Newer n) {
    n.due_ns = kNever;
    frames_.want_newer(n);
  });
  EXPECT_TRUE(frames_.wait());
  EXPECT_TRUE(loops_now().empty());
}

TEST_F(WantedFramesTest, nobody_waits_for_methods_that_are_removed) {
  frames_.want_newer({&one_, 3, kNever, 0});
  frames_.watch(one_, kNever);
  frames_.watch(two_, kNever);
  frames_.forget(one_);
  EXPECT_TRUE(frames_.wait());
  frames_.forget(two_);
  EXPECT_FALSE(frames_.wait());
}

TEST_F(WantedFramesTest, a_method_that_is_not_watched_any_more_is_not_called) {
  frames_.watch(one_, 0);
  frames_.unwatch(one_);
  EXPECT_TRUE(watched_now().empty());
  EXPECT_FALSE(frames_.wait());
}

}  // namespace
}  // namespace uptier::tiering::wanted_frames_test
