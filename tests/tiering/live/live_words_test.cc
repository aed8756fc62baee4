// The text on the socket: what is written is read again, and what is wrong is refused.
#include "tiering/live/live_words.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace uptier::test::live_words_test {
namespace {

using tiering::answer_of;
using tiering::read_greeting;
using tiering::read_live_time;
using tiering::refusal_of;

LiveTime sample() {
  LiveTime t{4711, 2, 100, 4, 5, 6, 7, 8, 9, UINT64_MAX, {}};
  LiveRow hot, host;
  hot.method = MethodId(3, 2);
  hot.key = {0xfedcba9876543210, 12};
  hot.name = "a name of several words";
  hot.tier = Tier::kOptimized;
  hot.copy = Copy::kInstrumented;
  hot.osr = hot.inlined = true;
  hot.samples = 9;
  hot.ns = 1234567890123;
  hot.serves = Tier::kBaseline;
  hot.state = CompileState::kRemoved;
  host.place = TimePlace::kOutside;
  host.name = "[outside]";
  t.rows = {hot, host, LiveRow{}};
  return t;
}

// The parts of a whole answer.
std::string_view greeting_of(std::string_view answer) {
  return answer.substr(0, answer.find('\n'));
}
std::string_view body_of(std::string_view answer) { return answer.substr(answer.find('\n') + 1); }

TEST(LiveWords, come_back_as_they_were) {
  const std::string answer = answer_of(sample());
  const Result<uint64_t> bytes = read_greeting(greeting_of(answer));
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(*bytes, body_of(answer).size());
  const Result<LiveTime> back = read_live_time(body_of(answer));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, sample());
}

TEST(LiveWords, names_cannot_add_lines_or_steer_a_terminal) {
  LiveTime t = sample();
  t.rows.resize(1);
  t.rows[0].name = "a\nrow 0\x1b[2J\x7f\r\t";
  const Result<LiveTime> back = read_live_time(body_of(answer_of(t)));
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->rows.size(), 1u);
  EXPECT_EQ(back->rows[0].name, "a?row 0?[2J???");
  // Nor can they if the other side is hostile.
  const Result<LiveTime> hostile =
      read_live_time("process 1 0 0 0 0 0 0 0 0 0\nrow 0 0 0 0 0 0 0 0 0 0 0 0 \x1b[2J\n");
  ASSERT_TRUE(hostile.ok()) << hostile.error().message;
  EXPECT_EQ(hostile->rows[0].name, "?[2J");
  const Result<uint64_t> refused = read_greeting("error \x1b[2Jno");
  EXPECT_EQ(refused.error().message, "refused: ?[2Jno");
}

TEST(LiveWords, what_is_wrong_is_refused_with_its_line) {
  const std::string process = "process 1 2 3 4 5 5 6 7 8 9\n",
                    row = "row 0 0 0 0 0 0 0 0 0 0 0 0 x\n";
  ASSERT_TRUE(read_live_time(process + row).ok());
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {"process 0 2 3 4 5 5 6 7 8 9\n", "empty"},
      {"process 1 2 3 4 5 5 6 7 8\n", "line 1"},
      {"process 1 2 3 4 5 5 6 7 8 9 10\n", "line 1"},
      {"process 1 2 3 4 5 5 6 7 8 -9\n", "line 1"},
      {"process 1 2 3 4 5 5 6 7 8 18446744073709551616\n", "line 1"},
      {"process 1 2 3 4 5 5 6 7 8 9", "line 1"},
      {row, "line 1"},
      {process + process, "line 2"},
      {process + row + "row 5 0 0 0 0 0 0 0 0 0 0 0 x\n", "line 3"},
      {process + "row 0 0 0 0 3 0 0 0 0 0 0 0 x\n", "line 2"},
      {process + "row 0 0 0 0 0 2 0 0 0 0 0 0 x\n", "line 2"},
      {process + "row 0 0 0 0 0 0 2 0 0 0 0 0 x\n", "line 2"},
      {process + "row 0 0 0 0 0 0 0 0 0 0 3 0 x\n", "line 2"},
      {process + "row 0 0 0 0 0 0 0 0 0 0 0 6 x\n", "line 2"},
      {process + "row 0 4294967296 0 0 0 0 0 0 0 0 0 0 x\n", "line 2"},
      {process + "row 0 0 0 0 0 0 0 0 0 0 0 0\n", "line 2"},
      {process + row + "row 0 0", "line 3"},
  };
  for (const auto& [text, words] : cases) {
    const Result<LiveTime> t = read_live_time(text);
    ASSERT_FALSE(t.ok()) << text;
    EXPECT_EQ(t.error().code, ErrorCode::kCorruptInput);
    EXPECT_NE(t.error().message.find(words), std::string::npos) << text << t.error().message;
  }
}

TEST(LiveWords, greetings_of_others_are_refused) {
  EXPECT_EQ(*read_greeting("uptier-live 1 0"), 0u);
  for (const char* line : {"", "HTTP/1.1 400", "uptier-live", "uptier-live 1", "uptier-live 1 x",
                           "uptier-live 1 5 ", "uptier-live 1 99999999999"}) {
    ASSERT_FALSE(read_greeting(line).ok()) << line;
    EXPECT_EQ(read_greeting(line).error().code, ErrorCode::kCorruptInput) << line;
  }
  const Result<uint64_t> newer = read_greeting("uptier-live 2 whatever");
  EXPECT_EQ(newer.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(newer.error().message.find("version 2"), std::string::npos);
  const std::string refusal = refusal_of("too\nmany");
  EXPECT_EQ(refusal, "error too?many\n");
  EXPECT_EQ(read_greeting(greeting_of(refusal)).error().message, "refused: too?many");
}

// Damage is refused or read as other numbers; it never crashes the reader.
TEST(LiveWords, damaged_answers_end_in_an_error_or_a_reading) {
  const std::string whole = answer_of(sample());
  const std::string_view body = body_of(whole);
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text(body);
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    text.resize(random.below(4) == 0 ? random.below(text.size()) : text.size());
    refused += read_live_time(text).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 5'000);
  EXPECT_LT(refused, 20'000);
}

}  // namespace
}  // namespace uptier::test::live_words_test
