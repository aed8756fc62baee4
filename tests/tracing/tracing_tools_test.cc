// Tracing in processes: loading, the tools that ship, and refused inputs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"
#include "uptier/trace_scope.h"

namespace uptier::test::tracing_tools_test {
namespace {

const std::string kFolder = UPTIER_TRACING;
const std::string kMachine = kFolder + "/uptier_traced_machine";

class TracingTools : public ToolDir {
 protected:
  static std::string library(const std::string& name) { return kFolder + "/lib" + name + ".so"; }
  RunResult traced(const std::string& subscribers,
                   const std::string& dispatcher = library("uptier_trace_dispatcher")) const {
    return in_dir("UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" + dispatcher +
                  " UPTIER_TRACE_SUBSCRIBERS=" + subscribers + " " + kMachine);
  }
};

TEST_F(TracingTools, nothing_happens_unless_it_is_asked_for) {
  const RunResult plain = in_dir(kMachine);
  EXPECT_EQ(plain.code, 0);
  EXPECT_EQ(plain.err, "");
  const RunResult off = in_dir("UPTIER_TRACE=0 UPTIER_TRACE_DISPATCHER=/nowhere " + kMachine);
  EXPECT_EQ(off.out, plain.out);
  EXPECT_EQ(off.err, "");
}

TEST_F(TracingTools, the_tool_of_the_guide_counts_the_tasks_of_the_machine_of_the_guide) {
  const RunResult r = traced(library("uptier_traced_tool"));
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, in_dir(kMachine).out);
  EXPECT_NE(r.err.find("12 tasks have begun, 12 have ended"), r.err.npos) << r.err;
}

TEST_F(TracingTools, a_program_without_its_trace_points_tells_nothing) {
  const RunResult r =
      in_dir("UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" + library("uptier_trace_dispatcher") +
             " UPTIER_TRACE_SUBSCRIBERS=" + library("uptier_traced_tool") + " " + kFolder +
             "/uptier_untraced_machine");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, in_dir(kMachine).out);
  EXPECT_NE(r.err.find("0 tasks have begun, 0 have ended"), r.err.npos) << r.err;
}

TEST_F(TracingTools, lines_of_json_have_each_event_with_its_place) {
  const RunResult r = traced(library("uptier_trace_jsonl") + "=events.jsonl");
  EXPECT_EQ(r.err, "");
  std::ifstream in(path("events.jsonl"));
  std::map<std::string, int> kinds;
  std::map<uint64_t, int> open;
  uint64_t graph = 0;
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line);
    ++kinds[j["kind"].get<std::string>() + " " + j["phase"].get<std::string>()];
    if (j["kind"] == "graph") graph = j["event"]["id"];
    if (j["kind"] == "node") { EXPECT_EQ(j["parent"].get<uint64_t>(), graph); }
    if (j["phase"] == "begin") ++open[j["instance"].get<uint64_t>()];
    if (j["phase"] == "end") --open[j["instance"].get<uint64_t>()];
    EXPECT_EQ(j["event"]["file"], "guest.src");
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{
                       {"graph at", 1}, {"node at", 3}, {"task begin", 12}, {"task end", 12}}));
  for (const auto& [instance, count] : open) EXPECT_EQ(count, 0) << instance;
}

TEST_F(TracingTools, perfetto_gets_slices_and_marks) {
  ASSERT_EQ(traced(library("uptier_trace_perfetto") + "=t.json").err, "");
  const auto j = nlohmann::json::parse(slurp(path("t.json")));
  int slices = 0, marks = 0;
  for (const auto& e : j["traceEvents"]) {
    slices += e["ph"] == "X" ? 1 : 0;
    marks += e["ph"] == "i" ? 1 : 0;
    EXPECT_EQ(e["cat"], "machine");
  }
  EXPECT_EQ(slices, 12);
  EXPECT_EQ(marks, 4);
}

TEST_F(TracingTools, several_tools_stand_side_by_side_and_one_that_fails_breaks_none) {
  const RunResult r = traced(library("uptier_trace_counts") + "=counts,/nowhere/x.so," +
                             library("uptier_trace_jsonl") + "=lines");
  EXPECT_EQ(r.out, in_dir(kMachine).out);
  EXPECT_NE(slurp(path("counts")).find("task"), std::string::npos);
  EXPECT_NE(slurp(path("lines")).find("\"task\""), std::string::npos);
  EXPECT_NE(r.err.find("/nowhere/x.so is not loaded: "), r.err.npos) << r.err;
  EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
}

TEST_F(TracingTools, libraries_from_places_that_others_may_write_to_are_refused) {
  const std::string good = slurp(library("uptier_trace_dispatcher"));
  const auto refused = [&](const std::string& at, const std::string& why) {
    const RunResult r = traced("", at);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out, in_dir(kMachine).out);
    EXPECT_NE(r.err.find(why), r.err.npos) << at << "\n" << r.err;
  };
  write_text("d.so", good);
  ASSERT_EQ(chmod(path("d.so").c_str(), 0755), 0);
  EXPECT_EQ(traced("", path("d.so")).err, "");
  ASSERT_EQ(chmod(path("d.so").c_str(), 0775), 0);
  refused(path("d.so"), "others may write to the file");
  ASSERT_EQ(chmod(path("d.so").c_str(), 0755), 0);
  ASSERT_EQ(symlink(path("d.so").c_str(), path("link.so").c_str()), 0);
  refused(path("link.so"), "not plain");
  refused("d.so", "not absolute");
  ASSERT_EQ(chmod(dir_.c_str(), 0777), 0);
  refused(path("d.so"), "others may write to its folder");
  ASSERT_EQ(chmod(dir_.c_str(), 0700), 0);
  write_text("no.so", "no library");
  ASSERT_EQ(chmod(path("no.so").c_str(), 0644), 0);
  refused(path("no.so"), "is not loaded");
  refused(library("uptier_trace_counts"), "it is no dispatcher");
  EXPECT_NE(traced(library("uptier_trace_dispatcher")).err.find("it is no subscriber"),
            std::string::npos);
}

TEST_F(TracingTools, a_full_disk_is_told_by_the_number_of_events_lost_and_by_finish) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "SKIPPED: there is no /dev/full here";
  const std::string jsonl = library("uptier_trace_jsonl");
  EXPECT_EQ(traced(jsonl + "=all.jsonl").code, 0);
  const std::string all = slurp(path("all.jsonl"));
  const std::string n = std::to_string(std::ranges::count(all, '\n'));
  const RunResult full = traced(jsonl + "=/dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("/dev/full is cut short: " + n + " of " + n + " events are lost: "),
            std::string::npos)
      << full.err;
  for (const char* tool : {"uptier_trace_perfetto", "uptier_trace_counts"}) {
    const RunResult r = traced(library(tool) + "=/dev/full");
    EXPECT_EQ(r.code, 1) << tool;
    EXPECT_NE(r.err.find("/dev/full is cut short: "), std::string::npos) << tool << r.err;
  }
}

// The machine's trace takes more than 4096 bytes, which is the limit for the file.
TEST_F(TracingTools, events_before_the_disk_was_full_are_kept) {
  const std::string jsonl = library("uptier_trace_jsonl");
  traced(jsonl + "=all.jsonl");
  const std::string all = slurp(path("all.jsonl"));
  ASSERT_GT(all.size(), 4096u);
  const RunResult r = in_dir("trap '' XFSZ; ulimit -f 8; UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" +
                             library("uptier_trace_dispatcher") +
                             " UPTIER_TRACE_SUBSCRIBERS=" + jsonl + "=cut.jsonl " + kMachine);
  EXPECT_EQ(r.code, 1);
  const std::string cut = slurp(path("cut.jsonl"));
  const auto kept = std::ranges::count(cut, '\n'), n = std::ranges::count(all, '\n');
  EXPECT_GT(kept, 0);
  EXPECT_NE(r.err.find(std::to_string(n - kept) + " of " + std::to_string(n) + " events are lost"),
            std::string::npos)
      << r.err;
}

TEST(TracePoints, sleep_without_a_dispatcher_and_build_no_arguments) {
  uptier_trace_stream* s = uptier_trace->stream("nobody", 1, 0);
  int built = 0;
  UPTIER_TRACE_NOTIFY(s, UPTIER_TRACE_SIGNAL, nullptr, nullptr, (++built, nullptr));
  const uint64_t i = UPTIER_TRACE_ENTER(s, UPTIER_TRACE_TASK, nullptr, nullptr, (++built, nullptr));
  UPTIER_TRACE_LEAVE(s, UPTIER_TRACE_TASK, nullptr, nullptr, i, (++built, nullptr));
  static TracePoint point("scope");
  TraceScope scope(s, UPTIER_TRACE_FUNCTION, point);
  EXPECT_EQ(built, 0);
  EXPECT_EQ(scope.instance(), 0u);
  EXPECT_EQ(point.event(), nullptr);
  // Each function of the table exists, and does nothing.
  EXPECT_EQ(uptier_trace->string("x"), 0u);
  EXPECT_EQ(uptier_trace->subscribe(s, UPTIER_TRACE_TASK, nullptr, nullptr), 0);
  EXPECT_EQ(uptier_trace->user_kind("a", "b"), 0u);
}

}  // namespace
}  // namespace uptier::test::tracing_tools_test
