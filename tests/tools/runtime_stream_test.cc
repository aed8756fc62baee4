// `uptier run --events`: the runtime's activities, as the stream `uptier`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::runtime_stream_test {
namespace {

using RuntimeStreamTest = ToolDir;
using nlohmann::json;

// Returns the first words of a task's name, which tell the activity.
std::string verb_of(const std::string& name) {
  for (const char* verb : {"first call", "OSR in", "OSR out", "compile failed", "compile refused",
                           "compile dropped"}) {
    if (name.starts_with(verb)) return verb;
  }
  return name.substr(0, name.find(' '));
}

// Returns the numbers in "add #3, mul #7".
std::set<uint64_t> numbers_in(const std::string& text) {
  std::set<uint64_t> all;
  for (size_t at = text.find(" #"); at != text.npos; at = text.find(" #", at + 1)) {
    all.insert(std::stoull(text.substr(at + 2)));
  }
  return all;
}

TEST_F(RuntimeStreamTest, tasks_have_times_threads_and_the_ids_of_method_and_version) {
  const RunResult r = in_dir(UPTIER_TOOL " run --events e.jsonl " + wasm_path("mix"));
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_EQ(r.err, "");
  std::ifstream in(path("e.jsonl"));
  std::map<std::string, int> tasks;
  std::map<uint64_t, json> open;
  std::map<uint64_t, std::set<std::string>> lives;  // by version
  std::set<uint64_t> threads;
  std::set<std::string> parts;
  uint64_t nodes = 0, graphs = 0, longest = 0;
  for (std::string line; std::getline(in, line);) {
    const json j = json::parse(line);
    if (j["stream"] != "uptier") continue;
    graphs += j["kind"] == "graph";
    nodes += j["kind"] == "node";
    if (j["kind"] != "task") continue;
    if (j["phase"] == "begin") {
      const json m = j.value("metadata", json::object());  // pauses and parts have none
      const std::string name = j["event"]["name"], verb = verb_of(name);
      if (m.empty() && verb != "pause") parts.insert(name);
      if (!m.empty() || verb == "pause") ++tasks[verb];
      if (m.contains("version")) lives[m["version"]].insert(verb);
      if (!m.empty()) { EXPECT_GT(m["sequence"], 0u) << line; }
      threads.insert(j["thread"].get<uint64_t>());
      open[j["instance"]] = j;
      continue;
    }
    const json begun = open[j["instance"]];
    open.erase(j["instance"].get<uint64_t>());
    EXPECT_EQ(begun["event"]["id"], j["event"]["id"]);
    EXPECT_EQ(begun["thread"], j["thread"]);
    const uint64_t ns = j["ns"].get<uint64_t>() - begun["ns"].get<uint64_t>();
    const bool compiles = j["event"]["name"].get<std::string>().starts_with("compile ");
    if (!compiles) continue;
    EXPECT_GT(ns, 0u) << line;
    longest = std::max(longest, ns);
  }
  EXPECT_EQ(graphs, 1u);
  for (const char* verb :
       {"add", "describe", "compile", "install", "first call", "flush", "decide"}) {
    EXPECT_GT(tasks[verb], 0) << verb;
  }
  EXPECT_EQ(tasks["compile"], static_cast<int>(nodes));
  for (const char* part : {"build", "verify", "baseline compiler", "inline_calls", "licm",
                           "allocate_registers", "emit"}) {
    EXPECT_TRUE(parts.contains(part)) << part;
  }
  EXPECT_GE(threads.size(), 2u) << "the worker's, and the guest's";
  EXPECT_GT(longest, 1000u);
  EXPECT_LT(longest, 60'000'000'000u);
  for (const auto& [version, verbs] : lives) {
    EXPECT_EQ(verbs.count("compile"), 1u) << version;
    EXPECT_EQ(verbs.count("install"), 1u) << version;
  }
  EXPECT_EQ(open.size(), 0u);
}

TEST_F(RuntimeStreamTest, perfetto_has_slices_with_the_same_ids) {
  const RunResult r = in_dir(UPTIER_TOOL " run --events e.json " + wasm_path("mix"));
  EXPECT_EQ(r.out, expected_output("mix"));
  const json j = json::parse(slurp(path("e.json")));
  uint64_t slices = 0;
  for (const json& e : j["traceEvents"]) {
    const bool compiles = e["cat"] == "uptier" && e["ph"] == "X" &&
                          e["name"].get<std::string>().starts_with("compile ");
    if (!compiles) continue;
    ++slices;
    EXPECT_GT(e["dur"].get<double>(), 0);
    EXPECT_TRUE(e["args"]["metadata"].contains("version")) << e;
    EXPECT_TRUE(e["args"]["metadata"].contains("tier")) << e;
  }
  EXPECT_GT(slices, 0u);
}

// An entry is an "OSR out" if and only if the frame came from code of a known version, also if both
// happen to one version.
TEST_F(RuntimeStreamTest, frames_that_leave_and_enter_code_are_told_apart) {
  const RunResult r =
      in_dir(UPTIER_TOOL " run --stress=osr=every:3,osr_out=every:5 --events e.jsonl " +
             wasm_path("phases"));
  EXPECT_EQ(r.out, expected_output("phases"));
  std::ifstream in(path("e.jsonl"));
  std::map<std::string, int> tasks;
  std::map<uint64_t, std::string> tiers;  // by version
  for (std::string line; std::getline(in, line);) {
    const json j = json::parse(line);
    if (j["stream"] != "uptier" || j["kind"] != "task" || j["phase"] != "begin") continue;
    const std::string verb = verb_of(j["event"]["name"]);
    const json m = j.value("metadata", json::object());
    if (verb == "install") tiers[m["version"]] = m["tier"];
    if (m.contains("replaces")) {
      EXPECT_EQ(verb, "install");
      EXPECT_TRUE(tiers.contains(m["replaces"])) << line;
      ++tasks["replaces"];
    }
    if (!verb.starts_with("OSR") && verb != "deopt") continue;
    ++tasks[verb];
    EXPECT_EQ(m.contains("from"), verb == "OSR out") << line;
    EXPECT_EQ(m.contains("exit"), verb == "deopt") << line;
    if (verb == "deopt") { EXPECT_EQ(tiers[m["to"]], "baseline") << line; }
  }
  for (const char* what : {"OSR in", "OSR out", "deopt", "replaces"})
    EXPECT_GT(tasks[what], 0) << what;
}

// An edge is a dependence: its source has ended when its target begins.
TEST_F(RuntimeStreamTest, edges_lead_from_requests_to_compilations_to_installs_to_entries) {
  struct Task {
    std::string verb;
    uint64_t method = 0, begun_ns = 0, ended_ns = 0;
    std::set<uint64_t> inlined = {};
  };
  std::map<std::string, int> edges;
  int installs = 0;
  for (const std::string program : {"mix", "phases"}) {
    const std::string stress = program == "mix" ? "" : "--stress=osr=every:3,osr_out=every:5 ";
    const RunResult r =
        in_dir(UPTIER_TOOL " run " + stress + "--events e.jsonl " + wasm_path(program));
    EXPECT_EQ(r.out, expected_output(program));
    std::ifstream in(path("e.jsonl"));
    std::map<uint64_t, Task> last;  // by construct
    for (std::string line; std::getline(in, line);) {
      const json j = json::parse(line);
      if (j["stream"] != "uptier") continue;
      if (j["kind"] == "task" && j["phase"] == "begin") {
        const std::string verb = verb_of(j["event"]["name"]);
        installs += verb == "install";
        const json m = j.value("metadata", json::object());
        last[j["event"]["id"]] = {verb, m.value("method", 0u), j["ns"], 0,
                                  numbers_in(m.value("inlined methods", ""))};
      } else if (j["kind"] == "task") {
        last[j["event"]["id"]].ended_ns = j["ns"];
      } else if (j["kind"] == "edge") {
        const Task from = last[j["parent"]], to = last[j["event"]["id"]];
        ++edges[from.verb + " " + j["text"].get<std::string>() + " " + to.verb];
        const bool inlined = j["text"] == "inlined into";
        if (!inlined) { EXPECT_EQ(from.method, to.method) << line; }
        if (inlined) { EXPECT_TRUE(to.inlined.contains(from.method)) << line; }
        EXPECT_LE(from.ended_ns, to.begun_ns) << line;
      }
    }
  }
  EXPECT_EQ(edges.size(), 5u);
  EXPECT_GT(edges["describe inlined into compile"], 0);
  EXPECT_GT(edges["decide requested compile"], 0);
  EXPECT_EQ(edges["compile made install"], installs);
  EXPECT_GT(edges["install waits for OSR in"], 0);
  EXPECT_GT(edges["install waits for OSR out"], 0);
}

TEST_F(RuntimeStreamTest, file_of_events_on_a_full_disk_is_a_failure_but_not_the_programs) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "SKIPPED: there is no /dev/full here";
  const RunResult r = in_dir(UPTIER_TOOL " run --events /dev/full " + wasm_path("mix"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_NE(r.err.find("uptier: the trace /dev/full is cut short: "), r.err.npos) << r.err;
}

}  // namespace
}  // namespace uptier::test::runtime_stream_test
