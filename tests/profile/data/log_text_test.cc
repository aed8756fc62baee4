// Formats of log lines, and lines from records.
#include "uptier/log_text.h"

#include <gtest/gtest.h>

#include <bit>

namespace uptier::log_text_test {
namespace {

std::string refusal(std::string_view format) {
  const Result<std::string> r = log_placeholders(format);
  return r.ok() ? "accepted: " + *r : r.error().message;
}

TEST(LogText, placeholders_have_four_kinds) {
  EXPECT_EQ(*log_placeholders("a {} b {u} c {x}{f} {{}}"), "duxf");
  EXPECT_EQ(*log_placeholders(""), "");
  const uint64_t arguments[] = {~uint64_t{0}, ~uint64_t{0}, 255, std::bit_cast<uint64_t>(0.5)};
  EXPECT_EQ(log_text("a {} b {u} c {x}{f} {{}}", arguments),
            "a -1 b 18446744073709551615 c 0xff0.5 {}");
  EXPECT_EQ(log_text("{} {}", std::span(arguments).first(1)), "-1 ?");
  EXPECT_EQ(log_text("100 %s", {}), "100 %s");
}

TEST(LogText, a_refusal_says_where_and_why) {
  EXPECT_EQ(refusal("ab {s}"),
            "log format, character 3: a placeholder is {}, {u}, {x} or {f}; write {{ for a brace");
  EXPECT_EQ(refusal("ab }"), "log format, character 3: a } without a {; write }} for a brace");
  EXPECT_EQ(refusal("{"),
            "log format, character 0: a placeholder is {}, {u}, {x} or {f}; write {{ for a brace");
  EXPECT_EQ(refusal("{}{}{}{}{}{}{}{}"), "accepted: dddddddd");
  EXPECT_EQ(refusal("{}{}{}{}{}{}{}{}{u}"), "log format, character 16: more than 8 placeholders");
  EXPECT_EQ(refusal(std::string_view("a\0b", 3)), "log format, character 1: a zero byte");
  EXPECT_NE(refusal(std::string(5000, 'x')).find("at most 4096 bytes"), std::string::npos);
}

constexpr LogFormat kPair{1u << 31 | 3 << 8 | 2 << 4}, kNone{1u << 31 | 4 << 8};

LogRecord record(uint32_t thread, uint32_t tag, uint64_t value, uint64_t cycles = 0) {
  return {MethodId(5), 9, tag, value, cycles, thread};
}

TEST(LogText, records_of_one_thread_make_a_line) {
  const LogRecord records[] = {record(1, kPair.tag, 10, 100),
                               record(2, kPair.tag, 30, 50),
                               record(1, 7, 99),  // the host's own tag
                               record(1, kPair.tag + 1, 11),
                               record(2, kPair.tag + 1, 31),
                               record(1, kNone.tag, 0, 200)};
  uint64_t incomplete = 77;
  const std::vector<LogLine> lines = log_lines(records, &incomplete);
  EXPECT_EQ(incomplete, 0u);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], (LogLine{MethodId(5), 9, 1, 100, kPair, {10, 11}}));
  EXPECT_EQ(lines[1], (LogLine{MethodId(5), 9, 2, 50, kPair, {30, 31}}));
  EXPECT_EQ(lines[2], (LogLine{MethodId(5), 9, 1, 200, kNone, {}}));
}

// A ring overwrites its oldest records, so the first line may have lost its beginning.
TEST(LogText, lines_that_lack_a_record_are_counted_and_left_out) {
  const LogRecord records[] = {record(1, kPair.tag + 1, 11),  // the beginning is lost
                               record(1, kPair.tag, 20),      // the end is lost
                               record(1, kPair.tag, 30), record(1, kPair.tag + 1, 31),
                               record(1, kPair.tag, 40)};  // the end is not here yet
  uint64_t incomplete = 0;
  const std::vector<LogLine> lines = log_lines(records, &incomplete);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].arguments, (std::vector<uint64_t>{30, 31}));
  EXPECT_EQ(incomplete, 3u);
}

TEST(LogText, tags_that_no_format_can_have_are_left_out) {
  const uint32_t front = 1u << 31 | 3 << 8;
  const LogRecord records[] = {record(1, front | 9 << 4, 1), record(1, front | 2 << 4 | 2, 1),
                               record(1, front | 15, 1), record(1, 4'000'000'003, 1)};
  uint64_t incomplete = 0;
  EXPECT_TRUE(log_lines(records, &incomplete).empty());
  EXPECT_EQ(incomplete, 0u);
}

}  // namespace
}  // namespace uptier::log_text_test
