#include "profile/trace/data.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profile/base/numbers.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::profile_data_test {
namespace {

using uptier::test::Generator;
using Words = std::vector<uint64_t>;

// Returns handles 1, 2, ... for the methods that Generator::table makes.
uint64_t handle_of(const MethodKey& key) { return 1 + key.module_key * 4 + key.function_index; }
std::optional<MethodKey> method_of(uint64_t handle) {
  if (handle == 0 || handle > 8) return std::nullopt;
  return MethodKey{(handle - 1) / 4, static_cast<uint32_t>((handle - 1) % 4)};
}

Schema one_slot(SlotKind kind, uint32_t top) {
  Schema schema;
  schema.add(kind, 5, top);
  return schema;
}

Table table_of(std::vector<std::pair<TableKey, uint64_t>> counts) {
  Table table;
  for (const auto& [key, count] : counts) table[key] = {count, 0};
  return table;
}

std::string rule(const Schema& schema, const Words& words) {
  const Result<Observed> observed = observed_of(schema, words, method_of);
  return observed.ok() ? "" : observed.error().message;
}

TEST(ProfileData, what_fits_round_trips) {
  Generator generator(41);
  for (int round = 0; round < 1000; ++round) {
    const Schema schema = generator.schema(1);
    const MethodProfile method = generator.method({}, schema);
    Observed expected{method.counts, {}, {}};
    for (const Slot& slot : schema.slots) {
      Table table = generator.table(slot.kind, slot.top);
      for (auto& [key, entry] : table) entry.estimate = 0;
      if (!table.empty()) expected.tables[{slot.kind, slot.site}] = table;
      const bool extremes = slot.kind == SlotKind::kValue || slot.kind == SlotKind::kRange;
      if (!extremes || expected.counts[slot.word] != 0) continue;
      expected.counts[slot.word + slot_word::kMin] = 0;
      expected.counts[slot.word + slot_word::kMax] = 0;
    }
    const Words words = data_words(schema, method.counts, expected.tables, handle_of);
    ASSERT_EQ(words.size(), schema.data_words());
    const Result<Observed> back = observed_of(schema, words, method_of);
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(*back, expected);
  }
}

TEST(ProfileData, greatest_entries_come_first_and_the_rest_is_other) {
  const Schema schema = one_slot(SlotKind::kCallTarget, 2);
  const Tables tables = {{{SlotKind::kCallTarget, 5},
                          table_of({{{0, 0}, 4}, {{0, 1}, 9}, {{0, 2}, 9}, {{0, 3}, 10}})}};
  EXPECT_EQ(data_words(schema, Words{100}, tables, handle_of), (Words{113, 4, 10, 2, 9}));
}

TEST(ProfileData, callee_without_a_handle_is_other_and_takes_no_room) {
  const Schema schema = one_slot(SlotKind::kCallTarget, 2);
  const Tables tables = {
      {{SlotKind::kCallTarget, 5}, table_of({{{0, 0}, 4}, {{0, 1}, 9}, {{0, 2}, 2}})}};
  const auto some = [](const MethodKey& key) {
    return key.function_index == 1 ? 0 : handle_of(key);
  };
  EXPECT_EQ(data_words(schema, Words{0}, tables, some), (Words{9, 1, 4, 3, 2}));
}

TEST(ProfileData, value_zero_is_an_entry_and_an_empty_pair_is_none) {
  const Schema schema = one_slot(SlotKind::kValue, 2);
  const Tables tables = {{{SlotKind::kValue, 5}, table_of({{{0, 0}, 3}})}};
  const Words words = data_words(schema, Words{3, 0, 0, 0, 0, 0}, tables, handle_of);
  EXPECT_EQ(words, (Words{3, 0, 0, 0, 0, 0, 0, 3, 0, 0}));
  EXPECT_EQ(observed_of(schema, words, method_of)->tables, tables);
}

TEST(ProfileData, tables_of_several_slots_stand_in_slot_order) {
  Schema schema;
  schema.add(SlotKind::kCallTarget, 1, 1);
  schema.add(SlotKind::kCallTarget, 2, 2);
  const Tables tables = {{{SlotKind::kCallTarget, 2}, table_of({{{1, 3}, 7}})}};
  EXPECT_EQ(data_words(schema, Words{1, 2}, tables, handle_of), (Words{1, 2, 0, 0, 8, 7, 0, 0}));
}

TEST(ProfileData, bad_pairs_are_refused_by_region) {
  const Schema callee = one_slot(SlotKind::kCallTarget, 2), value = one_slot(SlotKind::kValue, 1);
  EXPECT_EQ(rule(callee, {0, 1, 5, 8, 1}), "");
  EXPECT_EQ(rule(callee, {0, 0, 0, 8, 1}), "");
  EXPECT_EQ(rule(callee, {0, 1, 5, 9, 1}), "region 3: unknown method handle 9");
  EXPECT_EQ(rule(callee, {0, 0, 5, 0, 0}), "region 1: a count without a method handle");
  EXPECT_EQ(rule(callee, {0, 3, 0, 0, 0}), "region 1: a key without a count");
  EXPECT_EQ(rule(value, {0, 0, 0, 0, 0, 0, 3, 0}), "region 6: a key without a count");
  EXPECT_EQ(rule(callee, {0, 1, 5}), "3 words of data, not 5");
  EXPECT_EQ(rule(callee, {}), "0 words of data, not 5");
}

TEST(ProfileData, pairs_of_one_method_are_summed) {
  const Schema schema = one_slot(SlotKind::kCallTarget, 2);
  const auto same = [](uint64_t) { return MethodKey{7, 7}; };
  const Result<Observed> observed = observed_of(schema, Words{0, 1, 5, 2, 6}, same);
  EXPECT_EQ(observed->tables.begin()->second, table_of({{{7, 7}, 11}}));
}

TEST(ProfileData, truncation_keeps_the_total_and_overstates_nobody) {
  Generator generator(42);
  for (int round = 0; round < 500; ++round) {
    const uint32_t top = 1 + static_cast<uint32_t>(generator.below(3));
    const Schema schema = one_slot(SlotKind::kCallTarget, top);
    Table table;
    uint64_t total = generator.below(50);
    const Words counts = {total};
    for (uint64_t i = 0; i < 8; ++i) total += table[{i / 4, i % 4}].count = generator.below(9);
    const Words words =
        data_words(schema, counts, {{{SlotKind::kCallTarget, 5}, table}}, handle_of);
    uint64_t sum = words[0], least = UINT64_MAX;
    for (uint32_t i = 0; i < top; ++i) {
      const uint64_t handle = words[1 + 2 * i], count = words[2 + 2 * i];
      sum += count;
      least = std::min(least, count);
      const MethodKey key = method_of(handle).value_or(MethodKey{});
      if (handle != 0) { ASSERT_EQ(count, (table[{key.module_key, key.function_index}].count)); }
    }
    ASSERT_EQ(sum, total);
    const auto greater = [least](const auto& item) { return item.second.count > least; };
    ASSERT_LE(static_cast<uint32_t>(std::ranges::count_if(table, greater)), top);
  }
}

TEST(Numbers, wide_numbers_print_parse_and_scale_exactly) {
  EXPECT_EQ(to_text(kMaxWide), "170141183460469231731687303715884105727");
  EXPECT_EQ(to_text(kMinWide), "-170141183460469231731687303715884105728");
  for (const Wide value : {Wide{0}, Wide{-1}, Wide{INT64_MIN}, kMaxWide, kMinWide}) {
    EXPECT_TRUE(parse_signed(to_text(value), kMinWide, kMaxWide) == value);
    uint64_t words[2];
    store_wide(words, value);
    EXPECT_TRUE(load_wide(words) == value);
  }
  EXPECT_FALSE(parse_signed("170141183460469231731687303715884105728", kMinWide, kMaxWide));
  EXPECT_FALSE(parse_signed("-170141183460469231731687303715884105729", kMinWide, kMaxWide));
  EXPECT_FALSE(parse_signed("-", kMinWide, kMaxWide));
  EXPECT_FALSE(parse_signed("--1", kMinWide, kMaxWide));
  uint64_t saturated = 0;
  EXPECT_TRUE(mul_div(Wide{-7}, 3, 2, saturated) == -10);
  EXPECT_TRUE(mul_div(kMaxWide, UINT64_MAX, UINT64_MAX, saturated) == kMaxWide);
  EXPECT_TRUE(mul_div(kMaxWide / 4, 4, 1, saturated) == kMaxWide - 3);
  EXPECT_EQ(saturated, 0u);
  EXPECT_TRUE(mul_div(kMaxWide, 2, 1, saturated) == kMaxWide);
  EXPECT_TRUE(mul_div(-kMaxWide, UINT64_MAX, 1, saturated) == -kMaxWide);
  EXPECT_EQ(saturated, 2u);
}

}  // namespace
}  // namespace uptier::profile::profile_data_test
