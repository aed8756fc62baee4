#include "profile/trace/events.h"

#include <gtest/gtest.h>

#include "tests/support/trace_samples.h"

namespace uptier::profile::profile_events_test {
namespace {

using uptier::test::Generator;

std::string rule(const Status& status) { return status.ok() ? "" : status.error().message; }

TEST(TraceEvents, desc_gives_two_bits_to_each_region_and_starts_with_the_method) {
  const InstrumentationDesc desc = make_desc(7, 42, Schema::block_schema(9, 0x55));
  EXPECT_EQ(desc.id, 7u);
  EXPECT_EQ(desc.version, 1u);
  // Handle, hash, sizes, one run of three regions: six regions, two bytes of shape.
  EXPECT_EQ(desc.desc.size(), 48u);
  EXPECT_EQ(desc.desc_shape, (Bytes{std::byte{2}, std::byte{0}}));
  EXPECT_EQ(region_at(desc.desc_shape, 0), Region::kMethod);
  EXPECT_EQ(handle_of(desc), 42u);
  EXPECT_EQ(desc.data_shape, Bytes(3));
}

TEST(TraceEvents, data_shape_says_where_callees_stand) {
  const InstrumentationDesc desc = make_desc(7, 42, uptier::test::kinds_schema());
  const Schema schema = uptier::test::kinds_schema();
  ASSERT_EQ(schema.words(), 26u);
  ASSERT_EQ(schema.data_words(), 36u);
  for (size_t i = 0; i < 36; ++i) {
    const bool callee = i == 26 || i == 28;
    EXPECT_EQ(region_at(desc.data_shape, i), callee ? Region::kMethod : Region::kBytes) << i;
  }
}

TEST(TraceEvents, schema_round_trips_through_a_desc) {
  Generator generator(3);
  for (int round = 0; round < 500; ++round) {
    const Schema schema = generator.schema(generator.count());
    const Result<Schema> back = schema_of(make_desc(1, 2, schema));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, schema);
  }
}

TEST(TraceEvents, any_changed_byte_of_a_desc_is_refused_or_is_another_schema) {
  const Schema schema = uptier::test::kinds_schema();
  const InstrumentationDesc good = make_desc(1, 2, schema);
  for (Bytes InstrumentationDesc::*array :
       {&InstrumentationDesc::desc_shape, &InstrumentationDesc::desc,
        &InstrumentationDesc::data_shape}) {
    for (size_t i = 0; i < (good.*array).size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        InstrumentationDesc bad = good;
        (bad.*array)[i] ^= std::byte{1} << bit;
        const Result<Schema> back = schema_of(bad);
        // If it is accepted, it means exactly the same as its encoding.
        if (back.ok()) { EXPECT_EQ(make_desc(1, handle_of(bad), *back), bad); }
      }
    }
  }
}

TEST(TraceEvents, small_desc_cannot_ask_for_a_large_schema) {
  InstrumentationDesc desc = make_desc(1, 2, Schema::block_schema(4, 0));
  store<uint32_t>(desc.desc, 16, UINT32_MAX);  // words
  store<uint32_t>(desc.desc, 36, UINT32_MAX);  // count of the run
  const Result<Schema> schema = schema_of(desc);
  ASSERT_FALSE(schema.ok());
  EXPECT_EQ(schema.error().message, "data shape does not fit 4294967295 words");
}

TEST(TraceEvents, counts_round_trip_through_data) {
  const std::vector<uint64_t> counts = {0, 1, UINT64_MAX, 1ull << 63};
  const InstrumentationData data = make_data(5, counts);
  EXPECT_EQ(data.id, 5u);
  EXPECT_EQ(data.data.size(), 32u);
  EXPECT_EQ(words_of(data), counts);
}

TEST(TraceEvents, shape_must_fit_its_array) {
  EXPECT_EQ(rule(check_shape(Bytes(1), 32)), "");
  EXPECT_EQ(rule(check_shape(Bytes(0), 0)), "");
  EXPECT_EQ(rule(check_shape(Bytes(1), 12)), "a length of 12 is not a multiple of 8");
  EXPECT_EQ(rule(check_shape(Bytes(1), 40)), "a shape of 1 bytes does not fit 5 regions");
  EXPECT_EQ(rule(check_shape(Bytes(2), 32)), "a shape of 2 bytes does not fit 4 regions");
  EXPECT_EQ(rule(check_shape(Bytes{std::byte{0x0c}}, 16)), "region 1 has the reserved shape 11");
  EXPECT_EQ(rule(check_shape(Bytes{std::byte{0x10}}, 16)), "shape padding is not zero");
}

TEST(TraceEvents, set_region_writes_what_region_at_reads) {
  Bytes shape;
  const Region regions[] = {Region::kMethod, Region::kBytes, Region::kType, Region::kReserved,
                            Region::kType};
  for (size_t i = 0; i < std::size(regions); ++i) set_region(shape, i, regions[i]);
  for (size_t i = 0; i < std::size(regions); ++i) EXPECT_EQ(region_at(shape, i), regions[i]);
  set_region(shape, 3, Region::kBytes);
  EXPECT_EQ(region_at(shape, 3), Region::kBytes);
  EXPECT_EQ(shape.size(), 2u);
}

TEST(TraceEvents, every_event_round_trips_with_and_without_padding) {
  for (const TraceEvent& event : uptier::test::all_events()) {
    Bytes payload;
    encode(event, payload);
    EXPECT_EQ(payload.size() % 8, 0u);
    for (int padding = 0; padding < 2; ++padding) {
      const Result<TraceEvent> back = decode(kind_of(event), payload);
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(*back, event);
      payload.resize(payload.size() + 8);
    }
  }
}

TEST(TraceEvents, payload_cut_anywhere_is_refused) {
  for (const TraceEvent& event : uptier::test::all_events()) {
    Bytes payload;
    encode(event, payload);
    for (size_t size = 0; size < payload.size(); ++size) {
      EXPECT_FALSE(decode(kind_of(event), ByteSpan(payload).first(size)).ok()) << size;
    }
  }
}

TEST(TraceEvents, accepted_payload_means_exactly_what_it_says) {
  // Every bit flip of a payload is refused, or decodes to an event that encodes to the same bytes.
  for (const TraceEvent& event : uptier::test::all_events()) {
    Bytes payload;
    encode(event, payload);
    for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
      Bytes bad = payload;
      bad[bit / 8] ^= std::byte{1} << (bit % 8);
      const Result<TraceEvent> back = decode(kind_of(event), bad);
      if (!back.ok()) continue;
      Bytes again;
      encode(*back, again);
      again.resize(bad.size());
      EXPECT_EQ(again, bad);
    }
  }
}

TEST(TraceEvents, broken_fields_are_named) {
  const auto rule_for = [](RecordKind kind, const TraceEvent& event, size_t at, uint32_t value) {
    Bytes payload;
    encode(event, payload);
    store<uint32_t>(payload, at, value);
    const Result<TraceEvent> back = decode(kind, payload);
    return back.ok() ? "" : back.error().message;
  };
  const FlushEvent flush{1, 2, 3, 4, 5, FlushReason::kFinal, 6, 7, 8};
  EXPECT_EQ(rule_for(RecordKind::kFlush, flush, 36, 9), "flush reason 9 is unknown");
  const MethodDetails method{1, 2, 3, "abc"};
  EXPECT_EQ(rule_for(RecordKind::kMethodDetails, method, 0, 0), "handle 0 is invalid");
  EXPECT_EQ(rule_for(RecordKind::kMethodDetails, method, 20, 1), "a reserved field is not zero");
  EXPECT_EQ(rule_for(RecordKind::kMethodDetails, method, 24, 999),
            "a field reaches past the record, or padding is not zero");
  EXPECT_EQ(rule_for(RecordKind::kEnd, method, 0, 1), "the record is not an event");
}

}  // namespace
}  // namespace uptier::profile::profile_events_test
