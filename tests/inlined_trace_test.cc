// Ids of inlined bodies in a trace: their format, and that no method's profile holds them.
#include <gtest/gtest.h>

#include "profile/trace/dump.h"
#include "profile/trace/validate.h"
#include "tests/trace_samples.h"
#include "uptier/inlined.h"

namespace uptier::profile {
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

TEST(InlinedTrace, no_profile_of_a_method_holds_what_ran_inlined) {
  TraceLaws laws;
  ProfileBuilder methods;
  InlinedBuilder bodies;
  for (const TraceEvent& e : sample()) {
    ASSERT_TRUE(laws.check(e).ok());
    ASSERT_TRUE(methods.add(e).ok());
    ASSERT_TRUE(bodies.add(e).ok());
  }
  EXPECT_TRUE(laws.check_end().ok());
  EXPECT_EQ(laws.summary().opaque, 0u);
  EXPECT_TRUE(methods.profile().methods.empty());
  EXPECT_EQ(methods.skipped(), 0u);
  ASSERT_EQ(bodies.profiles().size(), 1u);
  const InlinedProfile p = bodies.profiles()[0];
  EXPECT_EQ(p.root, (MethodKey{0xa, 10}));
  ASSERT_EQ(p.path.size(), 2u);
  EXPECT_EQ(p.path[0], (InlinedCall{5, {0xa, 11}}));
  EXPECT_EQ(p.path[1], (InlinedCall{9, {0xa, 12}}));
  EXPECT_EQ(p.profile.name, "leaf");
  EXPECT_EQ(p.profile.counts, (std::vector<uint64_t>{128, 50}));
  EXPECT_EQ(p.profile.estimates, (std::vector<uint64_t>{64 * 16 + 64 * 10, 40 * 16 + 10 * 10}));
  EXPECT_EQ(p.profile.sampled_calls, 128u);
  EXPECT_EQ(p.profile.count(SlotKind::kBlock, 2), std::nullopt);  // unknown, not zero
  EXPECT_TRUE(p.profile.check().ok());
}

TEST(InlinedTrace, a_place_prints_in_dumps_and_as_comments) {
  EventPrinter printer;
  std::string text;
  for (const TraceEvent& e : sample()) text += printer.print(e);
  EXPECT_NE(text.find("desc d1 method m3 inlined in m1 at 5 m2 at 9 m3 "), std::string::npos)
      << text;
  InlinedBuilder bodies;
  for (const TraceEvent& e : sample()) ASSERT_TRUE(bodies.add(e).ok());
  const std::string comments = to_text(bodies.profiles(), Profile{});
  EXPECT_EQ(comments,
            "# inlined in function 10 at 5 function 11 at 9 leaf: 128 samples\n"
            "#   block 1 128 ~1664\n"
            "#   block 3 50 ~740\n");
  EXPECT_TRUE(parse_profile("uptier-profile 1\n" + comments).ok());
}

TEST(InlinedTrace, what_was_not_announced_is_refused) {
  for (size_t gone = 0; gone < 3; ++gone) {
    std::vector<TraceEvent> events = sample();
    events.erase(events.begin() + static_cast<ptrdiff_t>(gone));
    InlinedBuilder bodies;
    bool refused = false;
    for (const TraceEvent& e : events) refused |= !bodies.add(e).ok();
    EXPECT_TRUE(refused) << gone;
    TraceLaws laws;
    bool broken = false;
    for (const TraceEvent& e : events) broken |= !laws.check(e).ok();
    EXPECT_TRUE(broken) << gone;
  }
}

}  // namespace
}  // namespace uptier::profile
