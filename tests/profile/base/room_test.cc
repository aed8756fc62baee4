// make_room(): a vector that grows step by step is copied seldom.
#include "profile/base/room.h"

#include <gtest/gtest.h>

namespace uptier::test::room_test {
namespace {

TEST(Room, there_is_as_much_as_was_asked_for) {
  std::vector<int> v;
  make_room(v, 0);
  EXPECT_EQ(v.capacity(), 0u);
  make_room(v, 5);
  EXPECT_GE(v.capacity(), 5u);
  v.resize(v.capacity());
  make_room(v, 100);
  EXPECT_GE(v.capacity() - v.size(), 100u);
}

TEST(Room, ten_thousand_steps_move_the_elements_a_few_times) {
  std::vector<int> v;
  int moves = 0;
  for (int i = 0; i < 10'000; ++i) {
    const int* before = v.data();
    make_room(v, 1);
    v.push_back(i);
    moves += v.data() != before;
  }
  EXPECT_LE(moves, 15);
}

}  // namespace
}  // namespace uptier::test::room_test
