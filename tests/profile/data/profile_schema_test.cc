#include "profile/data/schema.h"

#include <gtest/gtest.h>

#include "tests/support/trace_samples.h"

namespace uptier::profile::profile_schema_test {
namespace {

using uptier::test::Generator;

std::string rule_of(const Schema& schema) {
  const Status status = schema.check();
  return status.ok() ? "" : status.error().message;
}

TEST(Schema, block_schema_has_one_word_for_each_site_from_1) {
  const Schema schema = Schema::block_schema(3, 0x77);
  EXPECT_EQ(schema.words(), 3u);
  EXPECT_EQ(schema.cfg_hash, 0x77u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(schema.slots[i], (Slot{SlotKind::kBlock, i + 1, i, 1}));
  }
  EXPECT_EQ(rule_of(schema), "");
}

TEST(Schema, method_without_blocks_has_an_empty_slab) {
  const Schema schema = Schema::block_schema(0, 1);
  EXPECT_EQ(schema.words(), 0u);
  EXPECT_EQ(rule_of(schema), "");
}

TEST(Schema, check_names_the_slot_and_the_rule) {
  const auto with = [](std::vector<Slot> slots) {
    Schema schema;
    schema.slots = std::move(slots);
    return rule_of(schema);
  };
  EXPECT_EQ(with({{SlotKind::kBlock, 0, 0, 1}}), "schema: slot 0: site 0 is invalid");
  EXPECT_EQ(with({{SlotKind::kBlock, 1, 1, 1}}),
            "schema: slot 0: starts at word 1, the next free one is 0");
  EXPECT_EQ(with({{SlotKind::kBlock, 1, 0, 1}, {SlotKind::kBlock, 2, 0, 1}}),
            "schema: slot 1: starts at word 0, the next free one is 1");
  EXPECT_EQ(with({{SlotKind::kBlock, 1, 0, 2}}),
            "schema: slot 0: a slot of kind block takes 1 words, not 2");
  EXPECT_EQ(with({{SlotKind::kValue, 1, 0, 1}}),
            "schema: slot 0: a slot of kind value takes 6 words, not 1");
  EXPECT_EQ(with({{SlotKind::kValue, 1, 0, 6}}),
            "schema: slot 0: a table of 0 entries at kind value");
  EXPECT_EQ(with({{SlotKind::kBlock, 1, 0, 1, 3}}),
            "schema: slot 0: a table of 3 entries at kind block");
  EXPECT_EQ(with({{SlotKind::kBlock, 1, 0, 1}, {SlotKind::kBlock, 1, 1, 1}}),
            "schema: slot 1: slots must ascend by kind and site");
  EXPECT_EQ(with({{SlotKind::kEdge, 1, 0, 1}, {SlotKind::kBlock, 2, 1, 1}}),
            "schema: slot 1: slots must ascend by kind and site");
  for (const int kind : {0, 10, 99, 255}) {
    EXPECT_EQ(with({{static_cast<SlotKind>(kind), 1, 0, 1}}),
              "schema: slot 0: kind " + std::to_string(kind) + " is not known in schema version 1");
  }
}

TEST(Schema, later_versions_and_oversized_slabs_are_refused) {
  Schema schema = Schema::block_schema(1, 0);
  schema.version = 2;
  EXPECT_EQ(schema.check().error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(Schema::block_schema(Schema::kMaxWords, 0).check().ok());
  EXPECT_EQ(Schema::block_schema(Schema::kMaxWords + 1, 0).check().error().code,
            ErrorCode::kResourceExhausted);
  Schema tables;
  tables.add(SlotKind::kValue, 1, Schema::kMaxWords / 2 - 3);
  EXPECT_EQ(tables.data_words(), Schema::kMaxWords);
  EXPECT_TRUE(tables.check().ok());
  tables.add(SlotKind::kGauge, 1);
  EXPECT_EQ(tables.check().error().code, ErrorCode::kResourceExhausted);
  tables.slots = {{SlotKind::kValue, 1, 0, 6, UINT32_MAX}};
  EXPECT_EQ(tables.check().error().code, ErrorCode::kResourceExhausted);
}

TEST(Schema, every_kind_has_its_words_and_a_name) {
  Schema schema;
  uint32_t words = 0;
  for (int number = 1; number <= 9; ++number) {
    const auto kind = static_cast<SlotKind>(number);
    EXPECT_NE(slot_kind_name(kind), "unknown");
    words += slot_words(kind);
    schema.add(kind, 1);
    EXPECT_EQ(schema.slots.back().top, has_table(kind) ? Slot::kDefaultTop : 0);
  }
  EXPECT_EQ(words, 26u);
  EXPECT_EQ(schema.words(), 26u);
  EXPECT_EQ(schema.data_words(), 26u + 4 * Slot::kDefaultTop);
  EXPECT_EQ(rule_of(schema), "");
  EXPECT_EQ(slot_words(static_cast<SlotKind>(10)), 0u);
  EXPECT_EQ(slot_kind_name(static_cast<SlotKind>(10)), "unknown");
}

TEST(Schema, find_returns_the_slot_of_a_site_or_nothing) {
  Generator generator(1);
  for (int round = 0; round < 100; ++round) {
    const Schema schema = generator.schema(0);
    for (const Slot& slot : schema.slots) EXPECT_EQ(schema.find(slot.kind, slot.site), &slot);
    EXPECT_EQ(schema.find(SlotKind::kBlock, 0), nullptr);
    EXPECT_EQ(schema.find(SlotKind::kCounter, 1u << 31), nullptr);
    EXPECT_EQ(schema.find(static_cast<SlotKind>(10), 1), nullptr);
  }
}

TEST(Schema, runs_round_trip) {
  Generator generator(2);
  for (int round = 0; round < 500; ++round) {
    const Schema schema = generator.schema(generator.count());
    const Result<Schema> back = schema_of_runs(schema.version, schema.cfg_hash, runs_of(schema),
                                               static_cast<uint32_t>(schema.data_words()));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, schema);
  }
}

TEST(Schema, block_schema_is_a_single_run) {
  EXPECT_EQ(runs_of(Schema::block_schema(1000, 0)),
            (std::vector<SlotRun>{{SlotKind::kBlock, 1, 1, 1000}}));
}

TEST(Schema, runs_that_are_split_or_do_not_fill_the_data_are_refused) {
  const auto rule = [](std::vector<SlotRun> runs, uint32_t words) {
    const Result<Schema> schema = schema_of_runs(1, 0, runs, words);
    return schema.ok() ? "" : schema.error().message;
  };
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, 1, 2}}, 2), "");
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, 1, 1}, {SlotKind::kBlock, 1, 2, 1}}, 2),
            "schema: runs are not maximal");
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, 1, 2}}, 3), "schema: runs do not fill the data");
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, 1, 2}}, 1), "schema: runs do not fill the data");
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, 1, 0}}, 0), "schema: runs do not fill the data");
  EXPECT_EQ(rule({{SlotKind::kBlock, 0, 1, UINT32_MAX}}, 0), "schema: runs do not fill the data");
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, 1, UINT32_MAX}}, UINT32_MAX),
            "schema: 4294967295 words are more than the cap");
  // Four times 2^62 words are 0 words modulo 2^64.
  const SlotRun huge{SlotKind::kBlock, 1u << 31, 1, 1u << 31};
  EXPECT_EQ(rule({huge, huge, huge, huge, {SlotKind::kBlock, 1, 1, 1}}, 1),
            "schema: runs do not fill the data");
  // Tables take words: one value slot takes six words plus two for each entry.
  EXPECT_EQ(rule({{SlotKind::kValue, 6, 1, 1, 3}}, 12), "");
  EXPECT_EQ(rule({{SlotKind::kValue, 6, 1, 1, 3}}, 11), "schema: runs do not fill the data");
  EXPECT_EQ(rule({{SlotKind::kValue, 6, 1, 1u << 31, 1u << 31}}, 12),
            "schema: runs do not fill the data");
  EXPECT_EQ(rule({{SlotKind::kValue, 5, 1, 1, 3}}, 11),
            "schema: slot 0: a slot of kind value takes 6 words, not 5");
  // The site numbers exceed 32 bits.
  EXPECT_EQ(rule({{SlotKind::kBlock, 1, UINT32_MAX, 2}}, 2), "schema: slot 1: site 0 is invalid");
}

TEST(Schema, prints_as_ranges_of_sites) {
  Schema schema = Schema::block_schema(3, 0xabc);
  schema.add(SlotKind::kCallTarget, 4, 8);
  schema.add(SlotKind::kCallTarget, 5, 8);
  schema.add(SlotKind::kCounter, 9);
  EXPECT_EQ(to_text(schema),
            "schema 1 cfg 0x0000000000000abc words 6: block 1..3 call_target 4..5 top 8 counter 9");
}

}  // namespace
}  // namespace uptier::profile::profile_schema_test
