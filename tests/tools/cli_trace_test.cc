// `uptier trace` on files that are no traces, and on parts of traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "profile/trace/data.h"
#include "profile/trace/events.h"
#include "profile/trace/trace_file.h"
#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::cli_trace_test {
namespace {

constexpr size_t kEndMarker = 48;  // size of a trace's last record

class CliTrace : public ToolDir {
 protected:
  // Writes a trace to `t`; returns its bytes.
  std::string make_trace() const {
    EXPECT_EQ(tool("run --policy=never --trace t " + wasm_path("mix")).code, 0);
    return slurp(path("t"));
  }
};

TEST_F(CliTrace, what_is_no_trace_is_refused_however_short) {
  for (const std::string& bytes : {std::string("hello world\n"), std::string("x"),
                                   std::string("IIDC"), std::string("IIDB\0\0\0\0", 8),
                                   std::string("a text that is longer than a chunk's header\n")}) {
    write_text("garbage", bytes);
    for (const char* words : {"profile garbage", "profile --json garbage", "dump garbage",
                              "validate garbage", "overlap garbage garbage"}) {
      const RunResult r = tool(std::string("trace ") + words);
      EXPECT_EQ(r.code, 3) << words << ": " << bytes;
      EXPECT_EQ(r.out, "") << words << ": " << bytes;
      EXPECT_EQ(r.err.substr(0, 26), "uptier: garbage: offset 0:") << words << r.err;
      const bool rule = r.err.find("the magic is not IIDB") != std::string::npos ||
                        r.err.find("does not start with a file header") != std::string::npos;
      EXPECT_TRUE(rule) << words << r.err;
    }
  }
}

TEST_F(CliTrace, cut_trace_is_read_up_to_its_end_with_a_warning) {
  const std::string whole = make_trace();
  ASSERT_GT(whole.size(), 2000u);
  // The cuts include one in the first chunk's header, and one in a later header.
  for (const size_t size : {size_t{0}, size_t{3}, size_t{12}, size_t{20}, size_t{1000},
                            whole.size() - 40, whole.size() - 1}) {
    write_text("cut", whole.substr(0, size));
    const RunResult r = tool("trace profile cut");
    EXPECT_EQ(r.code, 0) << size << r.err;
    EXPECT_EQ(r.err, "uptier: cut: the trace ends early; the profile has the part before\n");
  }
}

TEST_F(CliTrace, text_behind_whole_records_is_no_cut) {
  std::string bytes = make_trace();
  bytes.resize(bytes.size() - kEndMarker);
  write_text("t", bytes + "hello world\n");
  const RunResult r = tool("trace profile t");
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("uptier: t: offset " + std::to_string(bytes.size()) + ": the magic"),
            std::string::npos)
      << r.err;
}

TEST_F(CliTrace, dump_says_what_is_wrong_on_stderr_alone) {
  const std::string whole = make_trace();
  const RunResult good = tool("trace dump t");
  EXPECT_EQ(good.code, 0);
  EXPECT_EQ(good.err, "");
  EXPECT_NE(good.out.find("\nend events "), std::string::npos);
  write_text("cut", whole.substr(0, whole.size() / 2));
  const RunResult cut = tool("trace dump cut");
  EXPECT_EQ(cut.code, 3);
  ASSERT_GT(cut.out.size(), 100u);
  EXPECT_EQ(good.out.substr(0, cut.out.size()), cut.out) << "events and nothing else";
  EXPECT_NE(cut.err.find("uptier: cut: offset "), std::string::npos) << cut.err;
  std::string flipped = whole;
  flipped[flipped.size() - kEndMarker - 1] ^= 1;  // the content of the record before the end
  write_text("bad", flipped);
  const RunResult bad = tool("trace dump bad");
  EXPECT_EQ(bad.code, 3);
  EXPECT_EQ(good.out.substr(0, bad.out.size()), bad.out);
  EXPECT_NE(bad.err.find("checksum"), std::string::npos) << bad.err;
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

uint64_t count_of(const std::vector<nlohmann::json>& lines, std::string_view event) {
  return static_cast<uint64_t>(
      std::ranges::count_if(lines, [&](const auto& j) { return j["event"] == event; }));
}

TEST_F(CliTrace, dump_as_json_has_every_event) {
  const std::string whole = make_trace();
  const RunResult r = tool("trace dump --json t");
  ASSERT_EQ(r.code, 0) << r.err;
  const std::vector<nlohmann::json> lines = json_lines(r.out);
  const auto all = nlohmann::json::parse(tool("trace validate --json t").out);
  EXPECT_EQ(count_of(lines, "method"), all["methods"]);
  EXPECT_EQ(count_of(lines, "desc"), all["descs"]);
  EXPECT_EQ(count_of(lines, "data"), all["data"]);
  EXPECT_EQ(count_of(lines, "flush"), all["flushes"]);
  EXPECT_GT(count_of(lines, "flush"), 0u);
  EXPECT_EQ(lines.back()["event"], "end");
  EXPECT_EQ(lines.back()["complete"], true);
  EXPECT_EQ(lines.back()["events"], all["events"]);
  uint64_t counted = 0;
  for (const auto& j : lines) {
    if (j["event"] != "data") continue;
    ASSERT_TRUE(j.contains("slots")) << j;
    for (const auto& slot : j["slots"]) {
      for (uint64_t n : slot["words"]) counted += n;
    }
  }
  EXPECT_GT(counted, 0u);
  write_text("cut", whole.substr(0, whole.size() / 2));
  const RunResult cut = tool("trace dump --json cut");
  EXPECT_EQ(cut.code, 3);
  EXPECT_EQ(json_lines(cut.out).back()["complete"], false);
}

// The call that causes a flush has counted nothing yet, so it is not among the flush's samples.
TEST_F(CliTrace, a_flush_says_as_many_sampled_calls_as_its_data_hold) {
  ASSERT_EQ(tool("run --interval=1 --policy=never --trace t " + wasm_path("mix")).code, 0);
  const std::string bytes = slurp(path("t"));
  profile::TraceReader reader(std::as_bytes(std::span(bytes)));
  std::map<uint64_t, Schema> schemas;
  FlushEvent flush;
  size_t looked_at = 0;
  while (reader.next()) {
    if (const auto* desc = std::get_if<InstrumentationDesc>(&reader.event())) {
      schemas[desc->id] = *profile::schema_of(*desc);
    } else if (const auto* now = std::get_if<FlushEvent>(&reader.event())) {
      flush = *now;
    } else if (const auto* data = std::get_if<InstrumentationData>(&reader.event())) {
      const Slot* entry = schemas.at(data->id).find(SlotKind::kBlock, 1);
      const bool at_call = entry != nullptr && flush.reason == FlushReason::kCalls;
      if (!at_call || schemas.at(data->id).slots.size() < 3) continue;
      EXPECT_EQ(profile::words_of(*data)[entry->word], flush.sampled_calls) << flush.calls;
      ++looked_at;
    }
  }
  EXPECT_EQ(reader.state(), profile::TraceReader::State::kComplete);
  EXPECT_GT(looked_at, 10u);
}

TEST_F(CliTrace, damage_in_the_middle_costs_what_is_damaged) {
  const std::string whole = make_trace();
  std::string bad = whole;
  bad[bad.size() / 2] ^= 0x55;
  write_text("bad", bad);
  const RunResult good = tool("trace profile t"), read = tool("trace profile bad");
  EXPECT_EQ(read.code, 3) << read.err;
  EXPECT_NE(read.err.find("uptier: bad: offset "), std::string::npos) << read.err;
  EXPECT_GT(read.out.size(), good.out.size() / 2);
  EXPECT_EQ(tool("trace validate bad").code, 3);
  EXPECT_EQ(tool("profile check bad").code, 3);
  EXPECT_EQ(tool("profile check t").code, 0);
}

}  // namespace
}  // namespace uptier::test::cli_trace_test
