#include "tiering/base/stress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace uptier::tiering::stress_test {
namespace {

using Mode = StressForm::Mode;

StressPlan parse(const std::string& text) {
  auto p = StressPlan::parse(text);
  EXPECT_TRUE(p.ok()) << text << ": " << (p.ok() ? "" : p.error().message);
  return p.ok() ? *p : StressPlan();
}

std::vector<uint64_t> forced_points(const std::string& form, uint64_t upto) {
  StressForm f = parse("osr=" + form).form(StressKind::kOsr);
  std::vector<uint64_t> points;
  for (uint64_t p = 1; p <= upto; ++p) {
    if (f.forces(p)) points.push_back(p);
  }
  return points;
}

TEST(StressPlan, empty_text_forces_nothing) {
  StressPlan p = parse("");
  for (const StressForm& f : p.forms) EXPECT_EQ(f.mode, Mode::kOff);
}

TEST(StressPlan, each_kind_has_its_own_form) {
  StressPlan p = parse("osr=all,copy=at:7,guard=from:3,code=every:2,compile=random:0.25:99");
  EXPECT_EQ(p.form(StressKind::kOsr).mode, Mode::kAll);
  EXPECT_EQ(p.form(StressKind::kCopy).mode, Mode::kAt);
  EXPECT_EQ(p.form(StressKind::kCopy).n, 7u);
  EXPECT_EQ(p.form(StressKind::kGuard).mode, Mode::kFrom);
  EXPECT_EQ(p.form(StressKind::kGuard).n, 3u);
  EXPECT_EQ(p.form(StressKind::kCode).mode, Mode::kEvery);
  EXPECT_EQ(p.form(StressKind::kCode).n, 2u);
  EXPECT_EQ(p.form(StressKind::kCompile).mode, Mode::kRandom);
  EXPECT_EQ(p.form(StressKind::kCompile).probability, 0.25);
  EXPECT_EQ(p.form(StressKind::kCompile).seed, 99u);
  EXPECT_EQ(parse("guard=all").form(StressKind::kOsr).mode, Mode::kOff);
}

TEST(StressPlan, what_is_wrong_is_named_with_what_is_legal) {
  const char* const kWrong[] = {"osr",
                                "osr=",
                                "=all",
                                "all",
                                "loop=all",
                                "OSR=all",
                                "osr=ALL",
                                "osr= all",
                                "osr=all ",
                                "osr=all:1",
                                "osr=at",
                                "osr=at:",
                                "osr=at:0",
                                "osr=at:-1",
                                "osr=at:1x",
                                "osr=at:1:2",
                                "osr=every:0",
                                "osr=from:",
                                "osr=upto:3",
                                "osr=at:1.5",
                                "osr=random",
                                "osr=random:1",
                                "osr=random:2:1",
                                "osr=random:-0.1:1",
                                "osr=random:nan:1",
                                "osr=random:0.5:",
                                "osr=random:0.5:-1",
                                "osr=random:x:1",
                                "osr=random:0.5:1:2",
                                "osr=at:99999999999999999999",
                                "osr=off",
                                "osr=once:1",
                                "compile=once",
                                "osr==all"};
  for (const char* wrong : kWrong) {
    for (const std::string& text : {std::string(wrong), "copy=all," + std::string(wrong)}) {
      auto p = StressPlan::parse(text);
      ASSERT_FALSE(p.ok()) << text;
      EXPECT_EQ(p.error().code, ErrorCode::kInvalidArgument);
      const std::string& message = p.error().message;
      EXPECT_NE(message.find("\"" + std::string(wrong) + "\""), std::string::npos) << message;
      for (const char* legal :
           {"osr, copy, guard, code, compile, delay, flip, slow, values, osr_out or relay", "at:N",
            "random:P:SEED", "once"}) {
        EXPECT_NE(message.find(legal), std::string::npos) << message;
      }
    }
  }
  for (const char* text : {"osr=all,", ",osr=all", "osr=all,,copy=all", ","}) {
    EXPECT_FALSE(StressPlan::parse(text).ok()) << text;
  }
}

TEST(Stress, once_forces_each_place_the_first_time) {
  Stress s(parse("osr=once,guard=once"));
  constexpr uint64_t kWhats = 40, kWheres = 50;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t what = 0; what < kWhats; ++what) {
      for (uint64_t where = 0; where < kWheres; ++where) {
        EXPECT_EQ(s.point(StressKind::kOsr, what, where), round == 0) << what << ", " << where;
      }
    }
  }
  EXPECT_EQ(s.points(StressKind::kOsr), 3 * kWhats * kWheres);
  EXPECT_EQ(s.forced(StressKind::kOsr), kWhats * kWheres);
  EXPECT_TRUE(s.point(StressKind::kGuard, 0, 0)) << "another kind has places of its own";
}

TEST(Stress, once_ends_where_there_are_more_places_than_can_be_remembered) {
  Stress s(parse("osr=once"));
  for (uint64_t what = 0; what < 100'000; ++what) s.point(StressKind::kOsr, what, 0);
  EXPECT_GT(s.forced(StressKind::kOsr), 10'000u);
  EXPECT_LT(s.forced(StressKind::kOsr), 40'000u);
}

TEST(StressForm, forces_the_points_that_it_names) {
  EXPECT_EQ(forced_points("all", 4), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(forced_points("at:3", 10), (std::vector<uint64_t>{3}));
  EXPECT_EQ(forced_points("at:1", 10), (std::vector<uint64_t>{1}));
  EXPECT_EQ(forced_points("from:8", 10), (std::vector<uint64_t>{8, 9, 10}));
  EXPECT_EQ(forced_points("every:3", 10), (std::vector<uint64_t>{3, 6, 9}));
  EXPECT_EQ(forced_points("every:1", 3), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(forced_points("random:0:1", 1000), (std::vector<uint64_t>{}));
  EXPECT_EQ(forced_points("random:1:1", 1000).size(), 1000u);
  EXPECT_FALSE(StressForm().forces(1));
}

TEST(StressForm, random_repeats_with_its_seed_and_forces_its_share) {
  constexpr uint64_t kPoints = 100'000;
  for (double p : {0.01, 0.1, 0.5, 0.9}) {
    std::string form = "random:" + std::to_string(p) + ":";
    auto first = forced_points(form + "7", kPoints);
    EXPECT_EQ(first, forced_points(form + "7", kPoints));
    auto other = forced_points(form + "8", kPoints);
    EXPECT_NE(first, other);
    double sigma = std::sqrt(kPoints * p * (1 - p));
    EXPECT_NEAR(static_cast<double>(first.size()), kPoints * p, 4 * sigma) << p;
    EXPECT_NEAR(static_cast<double>(other.size()), kPoints * p, 4 * sigma) << p;
  }
}

TEST(StressForm, random_points_of_two_seeds_are_independent) {
  constexpr uint64_t kPoints = 100'000;
  StressForm a = parse("osr=random:0.5:1").form(StressKind::kOsr);
  StressForm b = parse("osr=random:0.5:2").form(StressKind::kOsr);
  for (uint64_t shift : {0u, 1u, 2u, 3u}) {
    double both = 0;
    for (uint64_t p = 1; p <= kPoints; ++p) both += a.forces(p) && b.forces(p + shift);
    EXPECT_NEAR(both / kPoints, 0.25, 4 * std::sqrt(0.25 * 0.75 / kPoints)) << shift;
  }
}

TEST(Stress, points_are_numbered_from_1_and_each_kind_for_itself) {
  Stress s(parse("osr=every:2,guard=at:1"));
  EXPECT_TRUE(s.active(StressKind::kOsr));
  EXPECT_FALSE(s.active(StressKind::kCopy));
  EXPECT_TRUE(s.active(StressKind::kGuard));
  std::vector<bool> osr;
  for (int i = 0; i < 6; ++i) osr.push_back(s.point(StressKind::kOsr));
  EXPECT_EQ(osr, (std::vector<bool>{false, true, false, true, false, true}));
  EXPECT_TRUE(s.point(StressKind::kGuard));
  EXPECT_FALSE(s.point(StressKind::kGuard));
  EXPECT_FALSE(s.point(StressKind::kCopy));
  EXPECT_EQ(s.points(StressKind::kOsr), 6u);
  EXPECT_EQ(s.forced(StressKind::kOsr), 3u);
  EXPECT_EQ(s.points(StressKind::kGuard), 2u);
  EXPECT_EQ(s.forced(StressKind::kGuard), 1u);
  EXPECT_EQ(s.points(StressKind::kCopy), 1u);
  EXPECT_EQ(s.forced(StressKind::kCopy), 0u);
  EXPECT_EQ(s.points(StressKind::kCode), 0u);
}

TEST(Stress, threads_share_the_numbers_and_none_is_lost) {
  Stress s(parse("compile=every:10"));
  auto run = [&] {
    for (int i = 0; i < 50'000; ++i) s.point(StressKind::kCompile);
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(s.points(StressKind::kCompile), 100'000u);
  EXPECT_EQ(s.forced(StressKind::kCompile), 10'000u);
}

}  // namespace
}  // namespace uptier::tiering::stress_test
