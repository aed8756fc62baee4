#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile.h"

namespace uptier::profile_text_test {
namespace {

using test::Generator;

std::string rule(std::string_view text) {
  const Result<Profile> profile = parse_profile(text);
  return profile.ok() ? "" : profile.error().message;
}

TEST(ProfileText, round_trips_to_an_equal_profile_and_equal_text) {
  Generator generator(31);
  for (int round = 0; round < 1000; ++round) {
    const Profile profile = generator.profile();
    const std::string text = to_text(profile);
    const Result<Profile> back = parse_profile(text);
    ASSERT_TRUE(back.ok()) << back.error().message << "\n" << text;
    ASSERT_EQ(*back, profile) << text;
    ASSERT_EQ(to_text(*back), text);
  }
}

TEST(ProfileText, golden) {
  ProfileBuilder builder;
  for (const TraceEvent& event : test::sample_events()) ASSERT_TRUE(builder.add(event).ok());
  test::expect_golden("profile_text", to_text(builder.profile()));
}

TEST(ProfileText, golden_of_every_kind) {
  ProfileBuilder builder;
  for (const TraceEvent& event : test::kinds_events()) ASSERT_TRUE(builder.add(event).ok());
  test::expect_golden("profile_text_kinds", to_text(builder.profile()));
}

TEST(ProfileText, example_of_the_header_is_read) {
  const Result<Profile> profile = parse_profile(
      "uptier-profile 1\nmethod 0x00000000000000a1 7 \"fib\" {  # module key, function index, "
      "name\n"
      "calls 1024 sampled 64 iterations 90 bursts 5 interval 16 cfg 0x0123456789abcdef\n"
      "block 1 64 ~1024 block 2 3\n"
      "call_target 3 top 16 other 2 ~32 {\n 0x00000000000000a1:4 40 ~640\n }\n"
      "value 4 top 16 count 3 sum -10 min -7 max 4 other 0 {\n -7 2 # value, count\n 4 1\n }\n"
      "loop 1 entries 9 iterations 99 timed 2 timed_iterations 20 cycles 500\n"
      "  exclusive_cycles 500 squares 130000\n"
      "log 5 events 2 lost 0\ncounter 6 12\nrange 7 count 2 sum 30 min 10 max 20\ngauge 8 77\n}");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  const MethodProfile& fib = *profile->find({0xa1, 7});
  EXPECT_EQ(fib.iterations, 90u);
  EXPECT_EQ(fib.bursts, 5u);
  EXPECT_EQ(fib.estimate(SlotKind::kBlock, 1)->total, 1024);
  EXPECT_EQ(fib.estimate(SlotKind::kBlock, 2)->total, 3);
  EXPECT_EQ(*fib.table(SlotKind::kCallTarget, 3), (Table{{{0xa1, 4}, {40, 640}}}));
  EXPECT_EQ(*fib.table(SlotKind::kValue, 4),
            (Table{{{0, 4}, {1, 1}}, {{0, -uint64_t{7}}, {2, 2}}}));
  EXPECT_EQ(fib.words(SlotKind::kValue, 4)[slot_word::kSumHigh], UINT64_MAX);
  EXPECT_EQ(fib.words(SlotKind::kLoop, 1)[slot_word::kLoopSquares], 130000u);
  EXPECT_EQ(fib.words(SlotKind::kRange, 7)[slot_word::kMax], 20u);
}

TEST(ProfileText, greatest_and_least_numbers_round_trip) {
  const std::string text =
      "uptier-profile 1\nmethod 1 2 \"\" { cfg 0\n"
      "range 1 count 18446744073709551615 sum -170141183460469231731687303715884105728 "
      "min -9223372036854775808 max 9223372036854775807\n"
      "range 2 count 1 sum 170141183460469231731687303715884105727 ~-5 min 0 max 0 }";
  const Result<Profile> profile = parse_profile(text);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(*parse_profile(to_text(*profile)), *profile);
  const MethodProfile& method = profile->methods.begin()->second;
  EXPECT_EQ(method.words(SlotKind::kRange, 1)[slot_word::kMin], 1ull << 63);
  EXPECT_EQ(method.words(SlotKind::kRange, 1)[slot_word::kSumHigh], 1ull << 63);
}

TEST(ProfileText, errors_inside_slots_name_line_column_and_rule) {
  const std::string head = "uptier-profile 1\nmethod 1 2 \"f\" {\n  cfg 0\n";
  EXPECT_EQ(rule(head + "  value 1 2"), "profile 4:11: expected count");
  EXPECT_EQ(rule(head + "  value 1 count 2 sum -1 min 0 max 0 {"), "profile 4:38: expected other");
  EXPECT_EQ(rule(head + "  log 1 events 2 }"), "profile 4:18: expected lost");
  EXPECT_EQ(rule(head + "  block 1 count 2"),
            "profile 4:11: expected a number from 0 to " + std::to_string(UINT64_MAX));
  EXPECT_EQ(rule(head + "  range 1 count 1 sum 1 min 9223372036854775808 max 0"),
            "profile 4:29: expected a number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(rule(head + "  block 1 2 ~x"),
            "profile 4:14: expected a number from 0 to " + std::to_string(UINT64_MAX));
  EXPECT_EQ(rule(head + "  gauge 1 2 ~3"),
            "profile 4:13: expected calls, sampled, iterations, bursts, interval, "
            "weight_squares, guessed, "
            "time, behind, cfg, a slot kind or }");
  EXPECT_EQ(rule(head + "  block 1 2 { 1 2 }"), "profile 4:13: a slot of this kind has no table");
  EXPECT_EQ(rule(head + "  call_target 1 other 0 { 7 1 }"),
            "profile 4:27: expected a method, module key:function index");
  EXPECT_EQ(rule(head + "  call_target 1 other 0 { 1:4294967296 1 }"),
            "profile 4:27: expected a method, module key:function index");
  EXPECT_EQ(rule(head + "  call_target 1 other 0 { 1:1 1 1:1 2 }"),
            "profile 4:33: an entry stands twice");
  EXPECT_EQ(rule(head + "  call_target 1 other 0 { 1:1 0 }"),
            "profile 4:27: an entry without a count");
  EXPECT_EQ(rule(head + "  call_target 1 other 0 { 1:1 1"), "profile 4:32: expected }");
  EXPECT_EQ(rule(head + "  call_target 1 top 0 other 0 }"),
            "profile 2:1: schema: slot 0: a table of 0 entries at kind call_target");
  EXPECT_EQ(rule(head + "  call_target 1 top 4294967295 other 0 }"),
            "profile 2:1: schema: 8589934591 words of data are more than the cap of 1048576");
}

TEST(ProfileText, people_may_write_comments_any_order_and_any_spacing) {
  const Result<Profile> profile = parse_profile(
      "# hand made\r\nuptier-profile 1 # version\n"
      "method 0xa1 7 \"fib # \\\"x\\\" \\x0a\"{block 2 5 block 1 0x10\n\tcfg 255 # hash\n}"
      "method 1 1 \"\" { cfg 0 }");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->methods.size(), 2u);
  const MethodProfile* fib = profile->find({0xa1, 7});
  ASSERT_NE(fib, nullptr);
  EXPECT_EQ(fib->name, "fib # \"x\" \n");
  EXPECT_EQ(fib->schema, Schema::block_schema(2, 255));
  EXPECT_EQ(fib->counts, (std::vector<uint64_t>{16, 5}));
  EXPECT_EQ(fib->calls, 0u);
}

TEST(ProfileText, errors_name_line_column_and_rule) {
  const std::string head = "uptier-profile 1\nmethod 1 2 \"f\" {\n  cfg 0\n";
  EXPECT_EQ(rule(""), "profile 1:1: expected uptier-profile");
  EXPECT_EQ(rule("uptier-profile 2"), "profile 1:16: only version 1 is known");
  EXPECT_EQ(rule("uptier-profile x"),
            "profile 1:16: expected a number from 0 to " + std::to_string(UINT64_MAX));
  EXPECT_EQ(rule("uptier-profile 1\n  routine"), "profile 2:3: expected method");
  EXPECT_EQ(rule("uptier-profile 1 method 1 4294967296 \"f\""),
            "profile 1:27: expected a number from 0 to 4294967295");
  EXPECT_EQ(rule("uptier-profile 1 method 1 2 f"),
            "profile 1:29: expected a name in double quotes");
  EXPECT_EQ(rule("uptier-profile 1 method 1 2 \"f\n\""),
            "profile 1:29: expected a name in double quotes");
  EXPECT_EQ(rule("uptier-profile 1 method 1 2 \"\\q\""),
            "profile 1:29: escapes are \\\", \\\\ and \\xNN");
  EXPECT_EQ(rule("uptier-profile 1 method 1 2 \"f\" { }"),
            "profile 1:18: the method has no cfg hash");
  EXPECT_EQ(rule(head), "profile 4:1: expected }");
  EXPECT_EQ(rule(head + "  cfg 0"), "profile 4:3: a field stands twice");
  EXPECT_EQ(rule(head + "  blok 1 2"),
            "profile 4:3: expected calls, sampled, iterations, bursts, interval, "
            "weight_squares, guessed, "
            "time, behind, cfg, a "
            "slot kind or }");
  EXPECT_EQ(rule(head + "  block 1 18446744073709551616"),
            "profile 4:11: expected a number from 0 to " + std::to_string(UINT64_MAX));
  for (const char* number : {"100000000000000000000", "0x1ffffffffffffffff", "0x", "-1", "1x"}) {
    EXPECT_EQ(rule(head + "  block 1 " + number),
              "profile 4:11: expected a number from 0 to " + std::to_string(UINT64_MAX));
  }
  EXPECT_EQ(rule(head + "  block 1 2\n  block 1 3"), "profile 5:3: a site stands twice");
  EXPECT_EQ(rule(head + "  block 0 2\n}"), "profile 2:1: schema: slot 0: site 0 is invalid");
  EXPECT_EQ(rule(head + "}\nmethod 1 2 \"g\" { cfg 0 }"), "profile 5:1: a method stands twice");
  EXPECT_EQ(rule(head + "}\nmethod 1 2 \"g\" { cfg 1 }"), "") << "of other code";
  EXPECT_EQ(rule(head + "\"calls"),
            "profile 4:1: expected calls, sampled, iterations, bursts, interval, "
            "weight_squares, guessed, "
            "time, behind, cfg, a "
            "slot kind or }");
}

TEST(ProfileText, text_cut_or_damaged_anywhere_is_refused_or_a_valid_profile) {
  Generator generator(32);
  std::string text = to_text(generator.profile());
  while (text.size() < 200) text = to_text(generator.profile());
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<Profile> cut = parse_profile(std::string_view(text).substr(0, size));
    if (cut.ok()) { EXPECT_EQ(*parse_profile(to_text(*cut)), *cut); }
    std::string damaged = text;
    damaged[size] = static_cast<char>(generator.below(256));
    const Result<Profile> parsed = parse_profile(damaged);
    if (parsed.ok()) { EXPECT_EQ(*parse_profile(to_text(*parsed)), *parsed); }
  }
}

TEST(ProfileText, malformed_method_becomes_a_comment) {
  Profile profile;
  MethodProfile method;
  method.name = "two\nlines";
  method.counts = {1};
  profile.methods.emplace(method.key, method);
  EXPECT_EQ(to_text(profile),
            "uptier-profile 1\n\n# left out: profile of two lines: 1 counts for 0 words\n");
}

}  // namespace
}  // namespace uptier::profile_text_test
