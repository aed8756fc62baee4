#include <gtest/gtest.h>

#include "tests/golden.h"
#include "tests/trace_samples.h"
#include "uptier/profile.h"

namespace uptier {
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
  EXPECT_EQ(
      rule(head + "  blok 1 2"),
      "profile 4:3: expected calls, sampled, iterations, bursts, interval, cfg, a slot kind or }");
  EXPECT_EQ(rule(head + "  block 1 18446744073709551616"),
            "profile 4:11: expected a number from 0 to " + std::to_string(UINT64_MAX));
  for (const char* number : {"100000000000000000000", "0x1ffffffffffffffff", "0x", "-1", "1x"}) {
    EXPECT_EQ(rule(head + "  block 1 " + number),
              "profile 4:11: expected a number from 0 to " + std::to_string(UINT64_MAX));
  }
  EXPECT_EQ(rule(head + "  block 1 2\n  block 1 3"), "profile 5:3: a site stands twice");
  EXPECT_EQ(rule(head + "  block 0 2\n}"), "profile 2:1: schema: slot 0: site 0 is invalid");
  EXPECT_EQ(rule(head + "}\nmethod 1 2 \"g\" { cfg 1 }"), "profile 5:1: a method stands twice");
  EXPECT_EQ(
      rule(head + "\"calls"),
      "profile 4:1: expected calls, sampled, iterations, bursts, interval, cfg, a slot kind or }");
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
}  // namespace uptier
