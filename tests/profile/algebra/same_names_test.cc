#include "profile/algebra/same_names.h"

#include <gtest/gtest.h>

#include "tests/support/trace_samples.h"

namespace uptier::profile::same_names_test {
namespace {

void add(Profile& p, uint64_t module, uint32_t function, const std::string& name, uint64_t code) {
  MethodProfile m;
  m.key = {module, function};
  m.name = name;
  m.schema = Schema::block_schema(1, code);
  m.counts = {10};
  m.weigh(1);
  p.methods.emplace(m.key, std::move(m));
}

TEST(SameNames, methods_of_another_module_are_found_by_name) {
  Profile from, to;
  add(to, 1, 0, "main", 5);
  add(to, 1, 1, "twice", 6);
  add(to, 1, 2, "twice", 7);
  add(to, 1, 3, "func[3]", 8);
  add(to, 1, 4, "func[4]", 9);
  add(to, 3, 0, "host", 1);
  add(from, 2, 4, "main", 99);     // its code changed
  add(from, 2, 1, "twice", 6);     // two there
  add(from, 2, 3, "func[3]", 8);   // no name, the same code
  add(from, 2, 5, "func[4]", 10);  // no name, other code
  add(from, 3, 0, "host", 1);      // the same key
  add(from, 2, 6, "fresh", 1);
  const NewKeys expected = {{{2, 4}, {1, 0}}, {{2, 3}, {1, 3}}};
  EXPECT_EQ(same_names(from, to), expected);
  EXPECT_TRUE(same_names(to, to).empty());
}

TEST(SameNames, renamed_methods_are_renamed_everywhere) {
  Profile p;
  add(p, 2, 4, "main", 5);
  add(p, 2, 5, "other", 6);
  p.methods.at({2, 4}).schema.add(SlotKind::kCallTarget, 3);
  p.methods.at({2, 4}).counts.push_back(0);
  p.methods.at({2, 4}).estimates.push_back(0);
  p.methods.at({2, 4}).tables[{SlotKind::kCallTarget, 3}][{2, 5}] = {7, 70};
  InlinedBody body;
  body.code = {5, 6};
  body.blocks[1] = {1, 2, 3};
  p.inlined[{{2, 4}, {{1, {2, 5}}}}] = body;
  TimeProfile t;
  t.add({{TimePlace::kMethod, {2, 4}}, {TimePlace::kMethod, {2, 5}}, {TimePlace::kHost, {}}}, 3,
        300);
  t.asked_ns = 400;
  t.squares = 9;
  const NewKeys keys = {{{2, 4}, {1, 0}}, {{2, 5}, {1, 1}}};
  rename_methods(p, keys);
  rename_methods(t, keys);
  ASSERT_NE(p.find({1, 0}), nullptr);
  EXPECT_EQ(p.find({1, 0})->key, (MethodKey{1, 0}));
  EXPECT_EQ(p.find({1, 0})->name, "main");
  EXPECT_EQ(p.find({1, 0})->table(SlotKind::kCallTarget, 3)->begin()->first, (TableKey{1, 1}));
  EXPECT_EQ(p.methods.size(), 2u);
  EXPECT_EQ(p.inlined.begin()->first, (InlinedKey{{1, 0}, {{1, {1, 1}}}}));
  TimeProfile expected;
  expected.add({{TimePlace::kMethod, {1, 0}}, {TimePlace::kMethod, {1, 1}}, {TimePlace::kHost, {}}},
               3, 300);
  expected.asked_ns = 400;
  expected.squares = 9;
  EXPECT_EQ(t, expected);
}

TEST(SameNames, no_new_keys_change_nothing) {
  test::Generator generator(5);
  for (int round = 0; round < 50; ++round) {
    Profile p = generator.profile();
    p.other_code.clear();
    const Profile before = p;
    rename_methods(p, {});
    ASSERT_EQ(p, before);
  }
}

}  // namespace
}  // namespace uptier::profile::same_names_test
