// Ids of inlined bodies in a trace: their format, and that no method's profile includes them.
#include <gtest/gtest.h>

#include "profile/trace/dump.h"
#include "profile/trace/validate.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::inlined_trace_test {
namespace {

Schema two_blocks() {
  Schema s;
  s.cfg_hash = 0x55;
  s.add(SlotKind::kBlock, 1);
  s.add(SlotKind::kBlock, 3);
  return s;
}

const std::vector<InlinedStep> kPath = {{5, 2}, {9, 3}};

TEST(InlinedTrace, place_round_trips_through_a_desc) {
  const InstrumentationDesc desc = make_inlined_desc(7, 1, kPath, two_blocks());
  EXPECT_EQ(desc.version, kInlinedDescVersion);
  EXPECT_EQ(handle_of(desc), 3u);
  const Result<Schema> schema = schema_of(desc);
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_EQ(*schema, two_blocks());
  const InlinedPlace place = place_of(desc);
  EXPECT_EQ(place.root, 1u);
  ASSERT_EQ(place.path.size(), 2u);
  EXPECT_EQ(place.path[0].site, 5u);
  EXPECT_EQ(place.path[0].callee, 2u);
  EXPECT_EQ(place.path[1].site, 9u);
  EXPECT_EQ(place.path[1].callee, 3u);
  EXPECT_EQ(place_of(make_desc(7, 1, two_blocks())).root, 0u);
}

TEST(InlinedTrace, any_changed_byte_of_a_desc_is_refused_or_is_another_place) {
  const InstrumentationDesc good = make_inlined_desc(7, 1, kPath, two_blocks());
  for (Bytes InstrumentationDesc::*array :
       {&InstrumentationDesc::desc_shape, &InstrumentationDesc::desc,
        &InstrumentationDesc::data_shape}) {
    for (size_t i = 0; i < (good.*array).size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        InstrumentationDesc bad = good;
        (bad.*array)[i] ^= std::byte{1} << bit;
        const Result<Schema> back = schema_of(bad);
        if (!back.ok()) continue;
        const InlinedPlace place = place_of(bad);
        EXPECT_EQ(make_inlined_desc(7, place.root, place.path, *back), bad) << i;
      }
    }
  }
  for (size_t size = 0; size < good.desc.size(); ++size) {
    InstrumentationDesc cut = good;
    cut.desc.resize(size);
    EXPECT_FALSE(schema_of(cut).ok()) << size;
  }
}

std::vector<TraceEvent> sample() {
  return {
      MethodDetails{1, 0xa, 10, "root"},
      MethodDetails{2, 0xa, 11, "middle"},
      MethodDetails{3, 0xa, 12, "leaf"},
      make_inlined_desc(7, 1, kPath, two_blocks()),
      FlushEvent{.id = 7, .calls = 900, .sampled_calls = 64, .flush_index = 1, .interval = 16},
      make_data(7, std::vector<uint64_t>{64, 40}),
      FlushEvent{.id = 7, .calls = 1800, .sampled_calls = 128, .flush_index = 2, .interval = 10},
      make_data(7, std::vector<uint64_t>{128, 50})};
}

Profile profile_of(const std::vector<TraceEvent>& events) {
  ProfileBuilder builder;
  for (const TraceEvent& e : events) EXPECT_TRUE(builder.add(e).ok());
  EXPECT_EQ(builder.skipped(), 0u);
  return builder.profile();
}

const InlinedKey kKey{{0xa, 10}, {{5, {0xa, 11}}, {9, {0xa, 12}}}};

TEST(InlinedTrace, no_profile_of_a_method_holds_what_ran_inlined) {
  TraceLaws laws;
  for (const TraceEvent& e : sample()) ASSERT_TRUE(laws.check(e).ok());
  EXPECT_TRUE(laws.check_end().ok());
  EXPECT_EQ(laws.summary().opaque, 0u);
  const Profile p = profile_of(sample());
  EXPECT_TRUE(p.methods.empty());
  ASSERT_EQ(p.inlined.size(), 1u);
  const auto& [key, body] = *p.inlined.begin();
  EXPECT_EQ(key, kKey);
  // Block 2 is unknown. So is the code of the root and the middle method, which were not described.
  const InlinedBody expected{
      {0, 0, 0x55}, {{1, {128, 64 * 16 + 64 * 10, 128}}, {3, {50, 40 * 16 + 10 * 10, 128}}}};
  EXPECT_EQ(body, expected);
  EXPECT_TRUE(body.check(key).ok());
}

// Copies count different blocks, each under its own id; the samples of a block are those of its own
// copy.
TEST(InlinedTrace, ids_of_one_place_are_summed) {
  std::vector<TraceEvent> events = sample();
  Schema other;
  other.cfg_hash = 0x55;
  other.add(SlotKind::kBlock, 3);
  other.add(SlotKind::kBlock, 4);
  events.push_back(make_desc(20, 1, Schema::block_schema(1, 0x77)));
  events.push_back(make_inlined_desc(8, 1, kPath, other));
  events.push_back(FlushEvent{.id = 8, .calls = 1800, .sampled_calls = 10, .interval = 2});
  events.push_back(make_data(8, std::vector<uint64_t>{5, 0}));
  const InlinedBody expected{{0x77, 0, 0x55},
                             {{1, {128, 1664, 128}}, {3, {55, 750, 138}}, {4, {0, 0, 10}}}};
  EXPECT_EQ(profile_of(events).inlined.at(kKey), expected);
}

TEST(InlinedTrace, a_place_prints_in_dumps_and_in_the_text_of_profiles) {
  EventPrinter printer;
  std::string text;
  for (const TraceEvent& e : sample()) text += printer.print(e);
  EXPECT_NE(text.find("desc d1 method m3 inlined in m1 at 5 m2 at 9 m3 "), std::string::npos)
      << text;
  const Profile p = profile_of(sample());
  EXPECT_NE(to_text(p).find("  block 3 50 ~740 samples 128\n"), std::string::npos) << to_text(p);
  EXPECT_EQ(*parse_profile(to_text(p)), p);
}

TEST(InlinedTrace, what_was_not_announced_is_refused) {
  for (size_t gone = 0; gone < 3; ++gone) {
    std::vector<TraceEvent> events = sample();
    events.erase(events.begin() + static_cast<ptrdiff_t>(gone));
    ProfileBuilder builder;
    bool refused = false;
    for (const TraceEvent& e : events) refused |= !builder.add(e).ok();
    EXPECT_TRUE(refused) << gone;
    TraceLaws laws;
    bool broken = false;
    for (const TraceEvent& e : events) broken |= !laws.check(e).ok();
    EXPECT_TRUE(broken) << gone;
  }
}

}  // namespace
}  // namespace uptier::profile::inlined_trace_test
