// Places: when the slot of a removed method may be reused.
#include "tiering/model/places.h"

#include <gtest/gtest.h>

namespace uptier::tiering::places_test {
namespace {

class PlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(methods_.reserve(8));
    for (uint32_t i = 0; i < 4; ++i) {
      methods_.put(std::make_unique<Method>(MethodId(i), i + 1, host_, MethodInfo()));
    }
  }
  Method& method(uint32_t i) { return methods_.at(i); }
  // Removes the method, in the state that it has once no thread can hold it any more.
  void remove(uint32_t i) {
    method(i).removed = true;
    method(i).host_use = HostUse::kOver;
    methods_.take_out(method(i));
    places_.note_removed(method(i));
  }
  Version& add_version(uint32_t of, std::vector<uint32_t> refers_to) {
    method(of).versions.push_back(std::make_unique<Version>());
    Version& v = *method(of).versions.back();
    v.method = MethodId(of);
    v.refers_to = std::move(refers_to);
    return v;
  }
  Places::Set to_free(size_t kept) {
    Places::Set places = places_.candidates(kept);
    places_.keep_what_code_means(places);
    return places;
  }

  Host host_;
  MethodTable methods_;
  Places places_{methods_};
};

TEST_F(PlacesTest, the_latest_removals_keep_their_places) {
  remove(2);
  remove(0);
  remove(3);
  EXPECT_EQ(to_free(1), (Places::Set{true, false, true, false}));
  EXPECT_EQ(to_free(0), (Places::Set{true, false, true, true}));
  EXPECT_EQ(to_free(3), (Places::Set{false, false, false, false}));
}

TEST_F(PlacesTest, places_are_given_away_in_the_order_in_which_they_were_removed) {
  remove(2);
  remove(0);
  EXPECT_EQ(places_.take(), std::nullopt);
  places_.free(to_free(0));
  EXPECT_EQ(places_.removed(), 0u);
  EXPECT_EQ(places_.take(), 2u);
  EXPECT_EQ(places_.take(), 0u);
  EXPECT_EQ(places_.take(), std::nullopt);
}

TEST_F(PlacesTest, code_that_is_not_freed_keeps_what_it_means) {
  remove(0);
  remove(1);
  Version& v = add_version(3, {1});
  EXPECT_TRUE(means_one_of(v, {false, true, false, false}));
  EXPECT_EQ(to_free(0), (Places::Set{true, false, false, false}));
  v.freed = true;
  EXPECT_FALSE(means_one_of(v, {false, true, false, false}));
  EXPECT_EQ(to_free(0), (Places::Set{true, true, false, false}));
}

TEST_F(PlacesTest, own_code_that_is_not_freed_keeps_the_place) {
  remove(0);
  Version& v = add_version(0, {});
  EXPECT_FALSE(places_.candidates(0)[0]);
  v.freed = true;
  EXPECT_TRUE(places_.candidates(0)[0]);
}

TEST_F(PlacesTest, a_method_that_threads_or_its_host_may_use_keeps_its_place) {
  remove(0);
  remove(1);
  method(0).looked_at = true;
  method(1).host_use = HostUse::kTold;
  EXPECT_EQ(to_free(0), (Places::Set{false, false, false, false}));
}

TEST_F(PlacesTest, what_is_removed_while_somebody_looks_keeps_its_place) {
  remove(0);
  Places::Look look, later;
  places_.begin_look(look);
  remove(1);
  EXPECT_FALSE(places_.removed_meanwhile(method(0)));
  EXPECT_TRUE(places_.removed_meanwhile(method(1)));
  places_.begin_look(later);
  EXPECT_EQ(to_free(0), (Places::Set{true, false, false, false}));
  places_.end_look(look);
  EXPECT_FALSE(places_.removed_meanwhile(method(1)));
  EXPECT_EQ(to_free(0), (Places::Set{true, true, false, false}));
  places_.end_look(later);
  // A Look can be used again; its old links have no effect.
  Places::Look other;
  places_.begin_look(look);
  places_.begin_look(other);
  places_.end_look(other);
  places_.end_look(look);
  places_.begin_look(look);
  places_.begin_look(other);
  places_.end_look(look);
  places_.end_look(other);
  EXPECT_FALSE(places_.removed_meanwhile(method(1)));
  places_.begin_look(other);
  remove(2);
  EXPECT_TRUE(places_.removed_meanwhile(method(2)));
  places_.end_look(other);
}

TEST_F(PlacesTest, while_there_are_fresh_places_others_are_looked_for_now_and_then) {
  EXPECT_EQ(places_.looks_for_more(false, 0), std::nullopt);  // nothing was removed
  remove(0);
  EXPECT_EQ(places_.looks_for_more(true, 1), std::nullopt);  // not more than are kept
  EXPECT_EQ(places_.looks_for_more(true, 0), 0u);
  places_.looked_for_more();
  EXPECT_EQ(places_.looks_for_more(true, 0), std::nullopt);
  EXPECT_EQ(places_.looks_for_more(false, 9), 0u);  // no fresh slot is left, so at most half of the
                                                    // removed ones are kept
  for (uint64_t n = 1; n < Places::kLeastRemovals; ++n) places_.note_removed(method(1));
  EXPECT_EQ(places_.looks_for_more(true, 0), std::nullopt);
  places_.note_removed(method(1));
  EXPECT_EQ(places_.looks_for_more(true, 0), 0u);
}

}  // namespace
}  // namespace uptier::tiering::places_test
