// Decisions about values of parameters, as a table.
#include "tiering/policy/value_policy.h"

#include <gtest/gtest.h>

#include "tiering/policy/replay.h"

namespace uptier::tiering::value_policy_test {
namespace {

// A parameter that is worth a version: 96 of 100 samples, a millisecond so far, 100 us to compile.
ValueSnapshot worth_it() {
  return {.samples = 100, .seen = 96, .param = 1, .value = -8, .past_ns = 1e6, .cost_ns = 1e5};
}

TEST(ValuePolicy, values_are_specialized_on_that_are_frequent_enough_and_pay) {
  struct Row {
    const char* name;
    void (*change)(ValueSnapshot&, PolicyOptions&);
    Action action;
  };
  const Row kRows[] = {
      {"worth it", [](auto&, auto&) {}, Action::kSpecialize},
      {"rare", [](auto& v, auto&) { v.seen = 94; }, Action::kKeep},
      {"few", [](auto& v, auto&) { v.samples = v.seen = 63; }, Action::kKeep},
      {"enough", [](auto& v, auto&) { v.samples = v.seen = 64; }, Action::kSpecialize},
      {"dear", [](auto& v, auto&) { v.cost_ns = 3.4e5; }, Action::kKeep},
      {"slow baseline", [](auto& v, auto&) { v.cost_ns = 3.4e5, v.speedup = 10; },
       Action::kSpecialize},
      {"always", [](auto& v, auto& o) { v.cost_ns = 1e9, o.mode = PolicyMode::kAlways; },
       Action::kSpecialize},
      {"tried", [](auto& v, auto&) { v.retries = 2; }, Action::kSpecialize},
      {"tried too often", [](auto& v, auto&) { v.retries = 3; }, Action::kBan},
      {"nothing seen", [](auto& v, auto&) { v.samples = v.seen = 0; }, Action::kKeep},
  };
  for (const Row& row : kRows) {
    ValueSnapshot v = worth_it();
    PolicyOptions o;
    row.change(v, o);
    Decision d = decide_value(v, o);
    EXPECT_EQ(d.action, row.action) << row.name << ": " << d.reason;
    EXPECT_NE(d.reason.find("parameter 2 is -8"), std::string::npos) << d.reason;
  }
}

TEST(ValuePolicy, guards_may_miss_a_fifth) {
  EXPECT_EQ(decide_guard({1024, 0, 0}, {}).action, Action::kKeep);
  EXPECT_EQ(decide_guard({1024, 204, 0}, {}).action, Action::kKeep);
  EXPECT_EQ(decide_guard({1024, 205, 2}, {}).action, Action::kRollBack);
  EXPECT_EQ(decide_guard({1024, 205, 3}, {}).action, Action::kBan);
}

TEST(ValuePolicy, inputs_come_back_as_they_were) {
  ValueSnapshot v = worth_it(), again;
  v.past_ns = 0.1;
  ASSERT_TRUE(read_inputs(inputs_text(v), again).ok());
  EXPECT_EQ(inputs_text(again), inputs_text(v));
  EXPECT_EQ(again.value, -8);
  GuardSnapshot g{1024, 77, 1}, back;
  ASSERT_TRUE(read_inputs(inputs_text(g), back).ok());
  EXPECT_EQ(back.misses, 77u);
  EXPECT_FALSE(read_inputs("window=1 misses=2", back).ok());
}

TEST(ValuePolicy, values_inside_of_bodies_are_taken_to_be_one_or_a_range) {
  struct Row {
    SiteSnapshot seen;
    Action action;
    int64_t min, max;
  };
  const Row kRows[] = {
      {{.samples = 100, .seen = 95, .value = 7, .min = 0, .max = 900}, Action::kSpecialize, 7, 7},
      {{.samples = 63, .seen = 63, .value = 7, .min = 7, .max = 7}, Action::kKeep, 0, 0},
      {{.samples = 100, .min = 0, .max = 29}, Action::kSpecialize, 0, 63},
      {{.samples = 100, .min = 0, .max = 32}, Action::kSpecialize, 0, 127},
      {{.samples = 100, .min = -1, .max = 3}, Action::kSpecialize, -8, 7},
      {{.samples = 100, .min = -8, .max = 3}, Action::kSpecialize, -16, 15},
      {{.samples = 100, .min = 0, .max = (1 << 27) - 1}, Action::kSpecialize, 0, (1 << 28) - 1},
      {{.samples = 100, .min = 0, .max = 1 << 27}, Action::kKeep, 0, 0},
      {{.samples = 100, .min = 0, .max = 1 << 27, .wide = true},
       Action::kSpecialize,
       0,
       (1 << 29) - 1},
      {{.samples = 100, .min = INT64_MIN, .max = INT64_MAX, .wide = true}, Action::kKeep, 0, 0},
  };
  for (const Row& row : kRows) {
    SiteDecision d = decide_site(row.seen, {});
    EXPECT_EQ(d.action, row.action) << d.reason;
    EXPECT_EQ(d.min, row.min) << d.reason;
    EXPECT_EQ(d.max, row.max) << d.reason;
    SiteSnapshot again;
    ASSERT_TRUE(read_inputs(inputs_text(row.seen), again).ok());
    EXPECT_EQ(inputs_text(again), inputs_text(row.seen));
  }
}

}  // namespace
}  // namespace uptier::tiering::value_policy_test
