#include <gtest/gtest.h>

#include <functional>

#include "profile/trace/trace_file.h"
#include "profile/trace/validate.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::trace_validate_test {
namespace {

using uptier::test::sample_events;
using uptier::test::write_trace;
using Counts = std::vector<uint64_t>;

std::string rule(ByteSpan file) {
  const Result<TraceSummary> summary = validate(file);
  return summary.ok() ? "" : summary.error().message;
}

// Returns the rule that these events break after the sample, without its offset.
std::string rule_behind_sample(std::vector<TraceEvent> events) {
  std::vector<TraceEvent> all = sample_events();
  all.insert(all.end(), events.begin(), events.end());
  const std::string message = rule(write_trace(all));
  const size_t colon = message.find(": ");
  EXPECT_TRUE(message.empty() || message.starts_with("offset ")) << message;
  return message.empty() ? message : message.substr(colon + 2);
}

InstrumentationDesc desc_of(uint64_t id) { return make_desc(id, 1, Schema::block_schema(2, 5)); }

TEST(TraceValidate, sample_is_valid_and_counted) {
  const Bytes file = write_trace(sample_events(), 4);
  const Result<TraceSummary> summary = validate(file);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(to_text(*summary),
            "events 17\nprovenances 1\nmethods 2\ntypes 1\ndescs 3\ndata 5\nflushes 5\n"
            "skipped 0\nopaque 0\ndropped 4\nbytes " +
                std::to_string(file.size()) + "\n");
}

TEST(TraceValidate, empty_trace_is_valid) { EXPECT_EQ(rule(write_trace({})), ""); }

TEST(TraceValidate, file_cut_at_any_byte_is_refused) {
  const Bytes file = write_trace(uptier::test::all_events());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string message = rule(ByteSpan(file).first(size));
    ASSERT_TRUE(message.starts_with("offset ")) << size << ": " << message;
  }
}

TEST(TraceValidate, any_flipped_byte_is_refused) {
  const Bytes file = write_trace(uptier::test::all_events());
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      Bytes bad = file;
      bad[i] ^= static_cast<std::byte>(mask);
      ASSERT_TRUE(rule(bad).starts_with("offset ")) << i;
    }
  }
}

TEST(TraceValidate, trailing_bytes_are_refused) {
  Bytes file = write_trace(sample_events());
  const std::string size = std::to_string(file.size());
  file.push_back(std::byte{0});
  EXPECT_EQ(rule(file), "offset " + size + ": trailing bytes after the end marker");
}

TEST(TraceValidate, message_names_the_offset_of_the_record) {
  // The file header takes 48 bytes.
  EXPECT_EQ(rule(write_trace({make_data(7, Counts{1})})), "offset 48: data before desc: id 7");
}

TEST(TraceValidate, data_and_flush_come_behind_their_desc) {
  EXPECT_EQ(rule_behind_sample({make_data(99, Counts{1, 2})}), "data before desc: id 99");
  EXPECT_EQ(rule_behind_sample({FlushEvent{99, 1, 1, 1, 0, FlushReason::kFinal}}),
            "flush before desc: id 99");
}

TEST(TraceValidate, handles_are_announced_before_use) {
  EXPECT_EQ(rule_behind_sample({make_desc(50, 77, Schema::block_schema(1, 0))}),
            "unknown method handle 77 in region 0");
  EXPECT_EQ(rule_behind_sample({make_desc(50, 0, Schema::block_schema(1, 0))}),
            "unknown method handle 0 in region 0");
  InstrumentationDesc typed;
  typed.id = 50;
  typed.version = 9;
  typed.desc.resize(8);
  store<uint64_t>(typed.desc, 0, 2);
  set_region(typed.desc_shape, 0, Region::kType);
  EXPECT_EQ(rule_behind_sample({typed}), "unknown type handle 2 in region 0");
  EXPECT_EQ(rule_behind_sample({BulkType{2, "u"}, typed}), "");
}

TEST(TraceValidate, handle_keeps_its_meaning) {
  EXPECT_EQ(rule_behind_sample({MethodDetails{1, 0x1234, 0, "main"}, BulkType{1, "object"}}), "");
  EXPECT_EQ(rule_behind_sample({MethodDetails{1, 0x1234, 1, "main"}}),
            "handle 1 was announced differently before");
  EXPECT_EQ(rule_behind_sample({BulkType{1, "other"}}),
            "handle 1 was announced differently before");
}

TEST(TraceValidate, desc_keeps_its_meaning) {
  EXPECT_EQ(rule_behind_sample({desc_of(50), desc_of(50)}), "");
  EXPECT_EQ(rule_behind_sample({desc_of(50), make_desc(50, 1, Schema::block_schema(2, 6))}),
            "id 50 was described differently before");
}

TEST(TraceValidate, desc_starts_with_a_handle) {
  InstrumentationDesc desc = desc_of(50);
  desc.desc_shape[0] = std::byte{0};
  EXPECT_EQ(rule_behind_sample({desc}),
            "the first region of a desc is not a type or method handle");
  desc.desc.clear();
  desc.desc_shape.clear();
  EXPECT_EQ(rule_behind_sample({desc}),
            "the first region of a desc is not a type or method handle");
}

TEST(TraceValidate, bad_shapes_are_refused) {
  InstrumentationDesc desc = desc_of(50);
  desc.desc_shape.push_back({});
  EXPECT_EQ(rule_behind_sample({desc}), "desc: a shape of 3 bytes does not fit 6 regions");
  desc = desc_of(50);
  desc.desc_shape[0] |= std::byte{0x0c};
  EXPECT_EQ(rule_behind_sample({desc}), "desc: region 1 has the reserved shape 11");
  desc = desc_of(50);
  desc.desc_shape[1] |= std::byte{0x40};
  EXPECT_EQ(rule_behind_sample({desc}), "desc: shape padding is not zero");
  desc = desc_of(50);
  desc.desc.pop_back();
  EXPECT_EQ(rule_behind_sample({desc}), "desc: a length of 47 is not a multiple of 8");
  desc = desc_of(50);
  desc.data_shape[0] = std::byte{3};
  EXPECT_EQ(rule_behind_sample({desc}), "data shape: region 0 has the reserved shape 11");
  desc = desc_of(50);
  desc.data_shape[0] = std::byte{0x20};
  EXPECT_EQ(rule_behind_sample({desc}), "shapes differ from those of a schema");
  desc = desc_of(50);
  desc.data_shape.push_back({});
  EXPECT_EQ(rule_behind_sample({desc}), "data shape does not fit 2 words");
}

TEST(TraceValidate, data_has_the_size_of_its_shape) {
  EXPECT_EQ(rule_behind_sample({desc_of(50), make_data(50, Counts{1, 2})}), "");
  EXPECT_EQ(rule_behind_sample({desc_of(50), make_data(50, Counts{1})}),
            "data of id 50 has 8 bytes, its data shape asks for 16");
  EXPECT_EQ(rule_behind_sample({desc_of(50), make_data(50, Counts{1, 2, 3})}),
            "data of id 50 has 24 bytes, its data shape asks for 16");
  InstrumentationData odd = make_data(50, Counts{1, 2});
  odd.data.pop_back();
  EXPECT_EQ(rule_behind_sample({desc_of(50), odd}),
            "data of id 50 has 15 bytes, its data shape asks for 16");
}

TEST(TraceValidate, data_of_a_later_version_is_checked_by_its_shape) {
  InstrumentationDesc later = desc_of(50);
  later.version = 3;
  later.data_shape = {std::byte{0x08}};  // bytes, method handle, and up to two more regions
  const auto data = [](Counts words) { return make_data(50, words); };
  EXPECT_EQ(rule_behind_sample({later, data({9, 1}), data({9, 0}), data({3, 2})}), "");
  EXPECT_EQ(rule_behind_sample({later, data({9, 5})}), "unknown method handle 5 in region 1");
  EXPECT_EQ(rule_behind_sample({later, data({9})}), "data of id 50: shape padding is not zero");
  EXPECT_EQ(rule_behind_sample({later, data({9, 1}), data({9, 1, 7})}),
            "data of id 50 has 24 bytes, its data shape asks for 16");
  EXPECT_EQ(rule_behind_sample({later, data({1, 1, 1, 1, 1})}),
            "data of id 50: a shape of 1 bytes does not fit 5 regions");
}

TEST(TraceValidate, snapshots_do_not_fall) {
  EXPECT_EQ(rule_behind_sample({make_data(10, Counts{4, 2})}), "");
  EXPECT_EQ(rule_behind_sample({make_data(10, Counts{9, 1})}),
            "word 1 of id 10 falls between two snapshots");
  // Unless it was flushed when no frame ran.
  const FlushEvent loops{10, 41, 5, 1, 3, FlushReason::kLoops},
      demand{10, 41, 5, 1, 3, FlushReason::kDemand}, end{10, 41, 5, 1, 3, FlushReason::kFinal};
  EXPECT_EQ(rule_behind_sample({loops, make_data(10, Counts{9, 1})}),
            "word 1 of id 10 falls between two snapshots");
  EXPECT_EQ(rule_behind_sample({demand, make_data(10, Counts{9, 1})}), "");
  EXPECT_EQ(rule_behind_sample({end, make_data(10, Counts{9, 1})}), "");
  EXPECT_EQ(rule_behind_sample({end, make_data(10, Counts{9, 1}), make_data(10, Counts{9, 0})}),
            "word 1 of id 10 falls between two snapshots");
  EXPECT_EQ(rule_behind_sample({FlushEvent{10, 39, 4, 1, 2, FlushReason::kFinal}}),
            "calls of id 10 fall");
  EXPECT_EQ(rule_behind_sample({FlushEvent{10, 40, 3, 1, 2, FlushReason::kFinal}}),
            "sampled calls of id 10 fall");
  EXPECT_EQ(rule_behind_sample({FlushEvent{11, 32, 3, 2, 2, FlushReason::kFinal, 1, 99, 5}}),
            "iterations of id 11 fall");
  EXPECT_EQ(rule_behind_sample({FlushEvent{11, 32, 3, 2, 2, FlushReason::kFinal, 1, 100, 4}}),
            "bursts of id 11 fall");
  EXPECT_EQ(rule_behind_sample({FlushEvent{10, 41, 4, 1, 1, FlushReason::kFinal}}),
            "flush index 1 of id 10 does not rise");
}

// Appends the data after the sample and the description of all kinds; `change` edits the last
// words.
std::string rule_of_kinds(const std::function<void(Counts&)>& change) {
  std::vector<TraceEvent> events = uptier::test::kinds_events();
  Counts words = words_of(std::get<InstrumentationData>(events.back()));
  change(words);
  events.push_back(make_data(30, words));
  return rule_behind_sample(events);
}

TEST(TraceValidate, every_kind_may_change_as_its_rule_says) {
  EXPECT_EQ(rule_of_kinds([](Counts&) {}), "");
  // Sums of values, min, max and gauges may decrease; entries may move to `other` and back.
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[4] -= 5; }), "");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[6] -= 5; }), "");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[25] = 0; }), "");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[2] += 3, w[28] = w[29] = 0; }), "");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[2] = 0, w[29] += 4; }), "");
}

TEST(TraceValidate, no_count_of_any_kind_falls) {
  const std::string behind = " of id 30 falls between two snapshots";
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[0]--; }), "word 0" + behind);
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[3]--; }), "word 3" + behind);
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[13]--; }), "word 13" + behind);
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[2]--; }), "table of call_target 2" + behind);
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[29]--; }), "table of call_target 2" + behind);
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[8]--; }), "table of value 3" + behind);
}

TEST(TraceValidate, tables_hold_announced_callees_and_whole_pairs) {
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[26] = 77; }), "unknown method handle 77 in region 26");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[26] = 0; }),
            "data of id 30: region 26: a count without a method handle");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[27] = 0; }),
            "data of id 30: region 26: a key without a count");
  EXPECT_EQ(rule_of_kinds([](Counts& w) { w[35] = 0; }),
            "data of id 30: region 34: a key without a count");
}

TEST(TraceValidate, flush_is_followed_by_its_data) {
  const FlushEvent flush{10, 50, 5, 1, 2, FlushReason::kCalls};
  EXPECT_EQ(rule_behind_sample({flush, make_data(10, Counts{5, 5})}), "");
  const std::string broken = "a flush of id 10 without data after it";
  EXPECT_EQ(rule_behind_sample({flush}), broken);
  EXPECT_EQ(rule_behind_sample({flush, make_data(11, Counts{5, 5})}), broken);
  EXPECT_EQ(rule_behind_sample({flush, BulkType{9, "t"}, make_data(10, Counts{5, 5})}), broken);
}

TEST(TraceValidate, extreme_and_contradictory_counts_are_legal) {
  const uint64_t max = UINT64_MAX;
  EXPECT_EQ(rule_behind_sample({desc_of(50), FlushEvent{50, 0, max, 1, 0, FlushReason::kLoops},
                                make_data(50, Counts{0, max})}),
            "");
}

}  // namespace
}  // namespace uptier::profile::trace_validate_test
