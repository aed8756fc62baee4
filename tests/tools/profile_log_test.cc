// uptier profile log, and show --data.
#include <nlohmann/json.hpp>

#include "profile/upf/gathered.h"
#include "profile/upf/text_log.h"
#include "tests/support/tool_dir.h"

namespace uptier::profile_log_test {
namespace {

using profile::TextLog;
using test::RunResult;

constexpr uint64_t kTime = 1'700'000'000'000'000'000;  // 2023-11-14 22:13:20 UTC

class ProfileLog : public test::ToolDir {
 protected:
  void SetUp() override {
    list_.copy(profile::gathered_header(1));
    const auto real = [](double d) { return std::bit_cast<uint64_t>(d); };
    add({"0x00000000000000aa@read",
         3,
         "got {u} of {} at {x}, \"{f}\"",
         {{kTime + 5, 2, {7, ~uint64_t{0}, 255, real(0.25)}},
          {kTime + 1, 1, {8, 1, 0, real(-2)}}}});
    add({"0x00000000000000bb@=sum", 4, "=done", {{kTime + 3, 1, {}}}});
    write();
  }
  void add(const TextLog& log) { profile::append_text_log(log, list_); }
  void write() const {
    std::string bytes;
    for (const Piece& p : list_.pieces()) {
      bytes.append(static_cast<const char*>(p.data), p.bytes);
    }
    write_text("p.upf", bytes);
  }

  GatherList list_;
};

TEST_F(ProfileLog, lines_come_in_the_order_of_their_times) {
  const RunResult r = tool("profile log p.upf");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out,
            "2023-11-14T22:13:20.000000001Z thread 1 read: got 8 of 1 at 0x0, \"-2\"\n"
            "2023-11-14T22:13:20.000000003Z thread 1 =sum: =done\n"
            "2023-11-14T22:13:20.000000005Z thread 2 read: got 7 of -1 at 0xff, \"0.25\"\n");
}

TEST_F(ProfileLog, json_has_an_object_in_each_line) {
  const RunResult r = tool("profile log --json p.upf");
  EXPECT_EQ(r.code, 0) << r.err;
  std::istringstream in(r.out);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2]["time_ns"], kTime + 5);
  EXPECT_EQ(lines[2]["thread"], 2);
  EXPECT_EQ(lines[2]["method"], "read");
  EXPECT_EQ(lines[2]["hash"], "0x00000000000000aa");
  EXPECT_EQ(lines[2]["site"], 3);
  EXPECT_EQ(lines[2]["format"], "got {u} of {} at {x}, \"{f}\"");
  EXPECT_EQ(lines[2]["arguments"], nlohmann::json::parse("[7, -1, 255, 0.25]"));
  EXPECT_EQ(lines[2]["text"], "got 7 of -1 at 0xff, \"0.25\"");
}

TEST_F(ProfileLog, csv_quotes_texts_and_guards_formulas) {
  const RunResult r = tool("profile log --csv p.upf");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(
      r.out,
      "time_ns,time,thread,method,hash,site,text\n"
      "1700000000000000001,2023-11-14T22:13:20.000000001Z,1,\"read\",\"0x00000000000000aa\",3,"
      "\"got 8 of 1 at 0x0, \"\"-2\"\"\"\n"
      "1700000000000000003,2023-11-14T22:13:20.000000003Z,1,\"'=sum\",\"0x00000000000000bb\",4,"
      "\"'=done\"\n"
      "1700000000000000005,2023-11-14T22:13:20.000000005Z,2,\"read\",\"0x00000000000000aa\",3,"
      "\"got 7 of -1 at 0xff, \"\"0.25\"\"\"\n");
}

TEST_F(ProfileLog, a_log_that_lies_is_named_and_the_others_are_shown) {
  const std::vector<std::byte> bad(20, std::byte{1});
  const GatheredInstrument one{profile::kTextLogType,
                               profile::kTextLogStage,
                               "0xcc@bad",
                               "log#9",
                               "{\"format\":\"{}\"}",
                               bad};
  list_.instruments({&one, 1});
  write();
  const RunResult r = tool("profile log p.upf");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(std::ranges::count(r.out, '\n'), 3);
  EXPECT_NE(r.err.find("p.upf: log 0xcc@bad log#9: byte 0: 16843009 arguments for a format with 1"),
            std::string::npos)
      << r.err;
}

TEST_F(ProfileLog, merges_have_the_lines_of_all_runs_once) {
  ASSERT_EQ(tool("profile merge -o m.upf p.upf p.upf").code, 0);
  EXPECT_EQ(tool("profile log m.upf").out, tool("profile log p.upf").out);
}

TEST_F(ProfileLog, data_is_listed) {
  list_.user_data("my.table", "{}", std::as_bytes(std::span("four", 4)));
  write();
  const RunResult r = tool("profile show --data p.upf");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("my.table"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("0x00000000000000bb@=sum log#4"), std::string::npos) << r.out;
  const nlohmann::json j = nlohmann::json::parse(tool("profile show --data --json p.upf").out);
  ASSERT_EQ(j["instruments"].size(), 2u);
  EXPECT_EQ(j["instruments"][0]["type"], "iree.instrument.log");
  EXPECT_EQ(j["instruments"][1]["bytes"], 16);
  ASSERT_EQ(j["user_data"].size(), 1u);
  EXPECT_EQ(j["user_data"][0]["type"], "my.table");
  EXPECT_EQ(j["user_data"][0]["bytes"], 4);
}

// From a request on the command line to the lines of a saved profile.
TEST_F(ProfileLog, a_run_logs_where_it_is_asked_to) {
  const std::string module = test::wasm_path("mix");
  const std::string words = "run -O interval=1 --policy=never '--log-at=_start=begins' ";
  const RunResult printed = tool(words + module);
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_EQ(printed.out, test::expected_output("mix"));
  EXPECT_NE(printed.err.find(": begins\n"), std::string::npos) << printed.err;
  ASSERT_EQ(tool(words + "--profile run.upf " + module).code, 0);
  const RunResult saved = tool("profile log --json run.upf");
  EXPECT_NE(saved.out.find("\"method\":\"_start\""), std::string::npos) << saved.out;
  EXPECT_NE(saved.out.find("\"text\":\"begins\""), std::string::npos) << saved.out;
  const RunResult wrong = tool("run '--log-at=nobody=x' " + module);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("it names no function of the module"), std::string::npos) << wrong.err;
}

TEST_F(ProfileLog, a_file_without_logs_prints_nothing) {
  write_text("empty.upf", "");
  EXPECT_EQ(tool("profile log --json empty.upf").out, "");
  EXPECT_EQ(tool("profile log --json --csv p.upf").code, 2);
}

}  // namespace
}  // namespace uptier::profile_log_test
