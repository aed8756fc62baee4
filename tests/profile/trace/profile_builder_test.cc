#include <gtest/gtest.h>

#include "profile/base/numbers.h"
#include "profile/trace/data.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile.h"

namespace uptier::profile_builder_test {
namespace {

using profile::make_data;
using profile::make_desc;
using test::sample_events;
using test::write_trace;

using Counts = std::vector<uint64_t>;

TEST(ProfileBuilder, last_data_of_an_id_wins_and_ids_of_a_method_are_summed) {
  ProfileBuilder builder;
  for (const TraceEvent& event : sample_events()) ASSERT_TRUE(builder.add(event).ok());
  MergeReport report;
  const Profile profile = builder.profile(&report);
  ASSERT_EQ(profile.methods.size(), 2u);
  const MethodProfile* main = profile.find({0x1234, 0});
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->counts, (Counts{4 + 3, 2 + 3}));
  EXPECT_EQ(main->calls, 40u + 32u);
  EXPECT_EQ(main->sampled_calls, 4u + 3u);
  EXPECT_EQ(main->interval, 16u);
  // Intervals 16 and then 4 of one thread, 16 of the other.
  EXPECT_EQ(main->estimates, (Counts{2 * 16 + 2 * 4 + 3 * 16, 1 * 16 + 1 * 4 + 3 * 16}));
  EXPECT_EQ(main->iterations, 100u);
  EXPECT_EQ(main->bursts, 5u);
  EXPECT_EQ(main->name, "main");
  EXPECT_EQ(profile.find({0x1234, 7})->counts, (Counts{1, UINT64_MAX, 0}));
  EXPECT_EQ(report, (MergeReport{2, 1, 0, {}}));
}

TEST(ProfileBuilder, lost_data_costs_nothing_once_later_data_comes) {
  const std::vector<TraceEvent> events = sample_events();
  ProfileBuilder whole, lossy;
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_TRUE(whole.add(events[i]).ok());
    // Events 5, 6 and 11, 12 are the first flushes of ids 10 and 20.
    const bool lost = i == 5 || i == 6 || i == 11 || i == 12;
    if (lost) continue;
    ASSERT_TRUE(lossy.add(events[i]).ok());
  }
  Profile expected = whole.profile();
  // Thread 1's first counts were taken at another interval than the one known now.
  MethodProfile& main = expected.methods.at({0x1234, 0});
  main.estimates = {4 * 4 + 3 * 16, 2 * 4 + 3 * 16};
  main.weight_squares = 4 * 4 * 4 + (3 + 5) * 16 * 16;  // calls, and bursts of thread 2
  EXPECT_EQ(lossy.profile(), expected);
}

TEST(ProfileBuilder, repeated_data_changes_nothing) {
  const std::vector<TraceEvent> events = sample_events();
  ProfileBuilder once, twice;
  for (const TraceEvent& event : events) {
    ASSERT_TRUE(once.add(event).ok());
    ASSERT_TRUE(twice.add(event).ok());
    ASSERT_TRUE(twice.add(event).ok());
  }
  EXPECT_EQ(once.profile(), twice.profile());
}

TEST(ProfileBuilder, flush_takes_effect_with_its_data_only) {
  ProfileBuilder builder;
  for (const TraceEvent& event : sample_events()) ASSERT_TRUE(builder.add(event).ok());
  const Profile before = builder.profile();
  ASSERT_TRUE(builder.add(FlushEvent{10, 999, 99, 1, 2, FlushReason::kFinal}).ok());
  EXPECT_EQ(builder.profile(), before);
  ASSERT_TRUE(builder.add(make_data(10, Counts{5, 5})).ok());
  EXPECT_EQ(builder.profile().find({0x1234, 0})->calls, 999u + 32u);
}

TEST(ProfileBuilder, described_but_never_flushed_method_is_not_in_the_profile) {
  ProfileBuilder builder;
  ASSERT_TRUE(builder.add(MethodDetails{1, 2, 3, "f"}).ok());
  ASSERT_TRUE(builder.add(make_desc(1, 1, Schema::block_schema(1, 0))).ok());
  EXPECT_TRUE(builder.profile().methods.empty());
}

TEST(ProfileBuilder, ids_of_different_code_are_not_mixed) {
  ProfileBuilder builder;
  ASSERT_TRUE(builder.add(MethodDetails{1, 2, 3, "f"}).ok());
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_TRUE(builder.add(make_desc(id, 1, Schema::block_schema(1, id))).ok());
    ASSERT_TRUE(builder.add(make_data(id, Counts{id})).ok());
  }
  MergeReport report;
  const Profile profile = builder.profile(&report);
  EXPECT_EQ(profile.find({2, 3})->counts, (Counts{2}));
  EXPECT_EQ(profile.other_code.at({{2, 3}, 1}).counts, (Counts{1}));
  EXPECT_EQ(report.other_code, 1u);
}

// Two threads: one took samples of its 100 calls, the other none of its 300.
TEST(ProfileBuilder, threads_without_a_sample_are_taken_for_those_of_the_others) {
  for (const char* gap : {"random", "exact"}) {
    ProfileBuilder builder;
    ASSERT_TRUE(builder.add(Provenance{"e", 16, gap, ""}).ok());
    ASSERT_TRUE(builder.add(MethodDetails{1, 2, 3, "f"}).ok());
    const std::vector<profile::Draw> draws = {profile::Draw::kCall, profile::Draw::kCall};
    for (uint64_t id = 1; id <= 2; ++id) {
      ASSERT_TRUE(builder.add(make_desc(id, 1, Schema::block_schema(2, 0), draws)).ok());
      FlushEvent flush{id, id == 1 ? 100u : 300u, id == 1 ? 10u : 0u, id, 1};
      flush.interval = 10;
      flush.burst = 32;
      flush.exact_totals = true;
      ASSERT_TRUE(builder.add(flush).ok());
      ASSERT_TRUE(builder.add(make_data(id, id == 1 ? Counts{10, 5} : Counts{0, 0})).ok());
    }
    const Profile profile = builder.profile();
    const MethodProfile& m = *profile.find({2, 3});
    EXPECT_EQ(m.calls, 400u) << gap;
    EXPECT_EQ(m.estimates, (Counts{400, 200})) << gap;
    EXPECT_EQ(m.weight_squares, 10u * 40 * 40) << gap;
  }
}

TEST(ProfileBuilder, first_calls_are_those_of_the_trace) {
  ProfileBuilder builder;
  ASSERT_TRUE(builder.add(MethodDetails{1, 2, 3, "f"}).ok());
  EXPECT_FALSE(builder.add(FirstCallEvent{9, 0}).ok());
  ASSERT_TRUE(builder.add(FirstCallEvent{1, 7}).ok());
  EXPECT_EQ(builder.first_calls(), (std::map<MethodKey, uint64_t>{{{2, 3}, 7}}));
}

TEST(ProfileBuilder, events_out_of_order_are_refused_and_change_nothing) {
  ProfileBuilder builder;
  for (const TraceEvent& event : sample_events()) ASSERT_TRUE(builder.add(event).ok());
  const Profile before = builder.profile();
  InstrumentationDesc headless = make_desc(50, 1, Schema::block_schema(1, 0));
  headless.desc_shape[0] = std::byte{0};
  const std::pair<TraceEvent, std::string> bad[] = {
      {make_data(99, Counts{1}), "data before desc: id 99"},
      {FlushEvent{99, 1, 1, 1, 0, FlushReason::kFinal}, "flush before desc: id 99"},
      {make_desc(50, 77, Schema::block_schema(1, 0)), "unknown method handle 77"},
      {make_desc(10, 1, Schema::block_schema(1, 0)), "id 10 was described differently before"},
      {MethodDetails{1, 0, 0, "other"}, "handle 1 was announced differently before"},
      {MethodDetails{}, "handle 0 is invalid"},
      {make_data(10, Counts{1}), "data of id 10 has another length than its data shape"},
      {headless, "the first region of a desc is not a type or method handle"},
  };
  for (const auto& [event, rule] : bad) {
    const Status status = builder.add(event);
    ASSERT_FALSE(status.ok()) << rule;
    EXPECT_EQ(status.error().message, rule);
  }
  EXPECT_EQ(builder.profile(), before);
}

TEST(ProfileBuilder, data_of_a_later_version_is_skipped_and_counted) {
  ProfileBuilder builder;
  ASSERT_TRUE(builder.add(MethodDetails{1, 2, 3, "f"}).ok());
  InstrumentationDesc later = make_desc(1, 1, Schema::block_schema(1, 0));
  later.version = 3;
  ASSERT_TRUE(builder.add(later).ok());
  ASSERT_TRUE(builder.add(make_data(1, Counts{1, 2, 3})).ok());
  EXPECT_EQ(builder.skipped(), 2u);
  EXPECT_TRUE(builder.profile().methods.empty());
}

TEST(ProfileBuilder, every_kind_is_collected_and_weighted) {
  ProfileBuilder builder;
  for (const TraceEvent& event : test::kinds_events()) ASSERT_TRUE(builder.add(event).ok());
  const Profile profile = builder.profile();
  const MethodProfile& main = *profile.find({0x1234, 0});
  EXPECT_EQ(main.iterations, 180u);
  EXPECT_EQ(main.bursts, 18u);
  EXPECT_EQ(main.estimates[0], 8u + 8 * 4);
  const Table& callees = *main.table(SlotKind::kCallTarget, 2);
  EXPECT_EQ(callees, (Table{{{0x1234, 0}, {3, 1 + 2 * 4}}, {{0x1234, 7}, {9, 5 + 4 * 4}}}));
  EXPECT_EQ(main.estimates[2], 2u + 2 * 4);
  const Table& values = *main.table(SlotKind::kValue, 3);
  EXPECT_EQ(values.at({0, 0}), (TableEntry{2, 8}));
  EXPECT_EQ(values.at({0, 1}), (TableEntry{5, 3 + 2 * 4}));
  EXPECT_EQ(main.words(SlotKind::kGauge, 7)[0], 70u);
}

TEST(ProfileBuilder, data_with_a_handle_that_was_not_announced_is_refused) {
  ProfileBuilder builder;
  for (const TraceEvent& event : test::kinds_events()) ASSERT_TRUE(builder.add(event).ok());
  const Profile before = builder.profile();
  Counts words = profile::words_of(std::get<InstrumentationData>(test::kinds_events().back()));
  words[26] = 99;
  const Status status = builder.add(make_data(30, words));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "data of id 30: region 26: unknown method handle 99");
  EXPECT_EQ(builder.profile(), before);
}

TEST(ProfileBuilder, random_profiles_round_trip_through_a_trace) {
  test::Generator generator(61);
  for (int round = 0; round < 200; ++round) {
    MethodProfile method = generator.method({1, 2}, generator.schema(1));
    // Reduces the profile to the contents of a trace: tables as large as their slots, and extremes
    // of observed values only.
    Profile expected;
    expected.methods.emplace(method.key, method);
    for (const Slot& slot : method.schema.slots) {
      const bool extremes = slot.kind == SlotKind::kValue || slot.kind == SlotKind::kRange;
      if (extremes) method.counts[slot.word] |= 1;
      auto at = method.tables.find({slot.kind, slot.site});
      while (at != method.tables.end() && at->second.size() > slot.top) {
        at->second.erase(at->second.begin());
      }
    }
    test::time_every_loop(method);
    method.interval = 3;
    method.guessed_calls = 0;  // traces hold observed calls only
    method.weigh(3);
    uint64_t samples = method.sampled_calls;
    profile::add_saturating(samples, method.bursts);
    method.weight_squares = profile::mul_saturating(samples, 3 * 3);
    expected.methods.at(method.key) = method;
    std::vector<TraceEvent> events = {Provenance{"", 3, "", ""},
                                      MethodDetails{9, 1, 2, method.name}};
    const auto handle_of = [&events](const MethodKey& key) -> uint64_t {
      const uint64_t handle = 10 + key.module_key * 4 + key.function_index;
      events.push_back(MethodDetails{handle, key.module_key, key.function_index, "callee"});
      return handle;
    };
    const Counts words =
        profile::data_words(method.schema, method.counts, method.tables, handle_of);
    events.push_back(make_desc(5, 9, method.schema));
    events.push_back(FlushEvent{5, method.calls, method.sampled_calls, 1, 0, FlushReason::kFinal, 3,
                                method.iterations, method.bursts});
    events.push_back(make_data(5, words));
    const Result<TraceProfile> read = profile_from_trace(write_trace(events));
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read->profile, expected);
  }
}

TEST(ProfileFromTrace, equals_the_profile_of_its_events) {
  ProfileBuilder builder;
  for (const TraceEvent& event : sample_events()) ASSERT_TRUE(builder.add(event).ok());
  const Result<TraceProfile> read = profile_from_trace(write_trace(sample_events(), 3));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->profile, builder.profile());
  EXPECT_FALSE(read->truncated);
  EXPECT_EQ(read->lost, 3u);
  EXPECT_EQ(read->skipped, 0u);
}

TEST(ProfileFromTrace, truncated_file_gives_the_counts_that_reached_it) {
  const profile::Bytes file = write_trace(sample_events());
  const Result<TraceProfile> read =
      profile_from_trace(profile::ByteSpan(file).first(file.size() - 100));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read->truncated);
  EXPECT_EQ(read->profile.find({0x1234, 7})->counts, (Counts{1, 1000, 0}));
}

TEST(ProfileFromTrace, corrupt_file_is_refused_with_offset_and_rule) {
  profile::Bytes file = write_trace(sample_events());
  file[40] ^= std::byte{1};
  const Result<TraceProfile> read = profile_from_trace(file);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "offset 0: the content checksum is wrong");
}

}  // namespace
}  // namespace uptier::profile_builder_test
