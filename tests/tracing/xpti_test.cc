// The bridge to XPTI: what a dispatcher of each generation is told, and which libraries are refused.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::xpti_test {
namespace {

const std::string kFolder = UPTIER_TRACING;
const std::string kDispatcher = kFolder + "/libuptier_xpti_dispatcher.so";

// Replaces the instances, which are numbers that only have to be equal in a pair, by 1, 2, ...
std::string numbered(const std::string& text) {
  std::istringstream in(text);
  std::map<std::string, int> instances = {{"0", 0}};
  std::string out;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word[6];
    for (std::string& w : word) words >> w;
    if (word[0] == "notify") {
      const auto at = instances.emplace(word[5], static_cast<int>(instances.size())).first;
      std::string rest;
      std::getline(words, rest);
      line = "notify " + word[1] + " " + word[2] + " " + word[3] + " " + word[4] + " i" +
             std::to_string(at->second) + rest;
    }
    out += line + "\n";
  }
  return out;
}

class XptiBridge : public ToolDir {
 protected:
  RunResult traced(const std::string& variables, const std::string& argument = "",
                   const std::string& program = kFolder + "/uptier_xpti_program") const {
    return in_dir("XPTI_TEST_OUT=calls UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" + kFolder +
                  "/libuptier_trace_dispatcher.so UPTIER_TRACE_SUBSCRIBERS=" + kFolder +
                  "/libuptier_trace_xpti.so" + argument + " " + variables + " " + program);
  }
  std::string calls(const std::string& variables = "") const {
    const RunResult r = traced("XPTI_FRAMEWORK_DISPATCHER=" + kDispatcher + " " + variables);
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.code, 0);
    return numbered(slurp(path("calls")));
  }
};

// The numbers of types are those of XPTI: begin 2 * kind, end 2 * kind + 1, a tool's own 256 * tool + 128.
constexpr const char* kAll = R"(framework begin
initialize machine 3 1 3.1
register machine 1
event 1 plan #1
notify 1 2 0 1 i0
event 2 step (guest.src:7)
metadata 2 size = -7
metadata 2 tier = a "fast" one
notify 1 10 1 2 i1
notify 1 11 1 2 i1
notify 1 10 1 2 i2
notify 1 11 1 2 i2
event 3 twin #3
notify 1 16 0 3 i0
event 4 twin #4
notify 1 16 0 4 i0
notify 1 24 0 0 i3 called
notify 1 25 0 0 i3
notify 1 28 0 0 i4 open(7)
notify 1 29 0 0 i4 open(7) = 7
user db 0 384
user db 1 385
notify 1 384 0 2 i5
notify 1 385 0 2 i5
user db 2 386
user db 3 387
notify 1 386 0 2 i6
notify 1 387 0 2 i6
user net 0 640
user net 1 641
notify 1 640 0 2 i7
notify 1 641 0 2 i7
finalize machine
framework end
)";

TEST_F(XptiBridge, dispatcher_of_the_new_generation_gets_every_event) { EXPECT_EQ(calls(), kAll); }

TEST_F(XptiBridge, one_of_the_old_generation_gets_the_same_in_its_numbers) {
  std::string expected = kAll;
  expected.replace(expected.find("notify 1 29"), 11, "notify 1 31");
  const size_t metadata = expected.find("metadata 2");
  expected.erase(metadata, expected.find("notify", metadata) - metadata);  // it has none
  EXPECT_EQ(calls("XPTI_TEST_PAYLOAD=old"), expected);
}

TEST_F(XptiBridge, kinds_that_nobody_wants_are_not_passed_on) {
  EXPECT_EQ(calls("XPTI_TEST_TYPES=11,386"), R"(framework begin
initialize machine 3 1 3.1
register machine 1
event 1 plan #1
event 2 step (guest.src:7)
metadata 2 size = -7
metadata 2 tier = a "fast" one
notify 1 10 1 2 i1
notify 1 11 1 2 i1
notify 1 10 1 2 i2
notify 1 11 1 2 i2
user db 0 384
user db 1 385
user db 2 386
user db 3 387
notify 1 386 0 2 i3
notify 1 387 0 2 i3
user net 0 640
user net 1 641
finalize machine
framework end
)");
}

TEST_F(XptiBridge, argument_names_the_dispatcher_too) {
  const RunResult r = traced("XPTI_FRAMEWORK_DISPATCHER=/nowhere", "=" + kDispatcher);
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(numbered(slurp(path("calls"))), kAll);
}

TEST_F(XptiBridge, other_libraries_are_refused_with_the_reason) {
  const auto refused = [&](const std::string& variables, const std::string& why) {
    const RunResult r = traced(variables);
    EXPECT_EQ(r.code, 0) << why;
    EXPECT_NE(r.err.find(why), r.err.npos) << why << "\n" << r.err;
    EXPECT_FALSE(std::filesystem::exists(path("calls")));
  };
  const std::string variable = "XPTI_FRAMEWORK_DISPATCHER=";
  refused("", "XPTI_FRAMEWORK_DISPATCHER names no library");
  refused(variable + "xpti.so", "xpti.so is not loaded: the path is not absolute");
  refused(variable + "/nowhere/xpti.so", "/nowhere/xpti.so is not loaded: ");
  refused(variable + kFolder + "/libuptier_trace_counts.so",
          "it is no XPTI dispatcher, xptiCheckTraceEnabled is missing");
  write_text("d.so", slurp(kDispatcher));
  ASSERT_EQ(::chmod(path("d.so").c_str(), 0777), 0);
  refused(variable + path("d.so"), "others may write to the file");
}

TEST_F(XptiBridge, dispatcher_that_makes_no_events_is_told_of_once_and_gets_the_rest) {
  const RunResult r = traced("XPTI_TEST_DEAF=1 XPTI_FRAMEWORK_DISPATCHER=" + kDispatcher);
  EXPECT_NE(r.err.find("the XPTI dispatcher makes no event of plan #1"), r.err.npos) << r.err;
  EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
  EXPECT_NE(slurp(path("calls")).find("notify 1 10 0 0 "), std::string::npos);
}

// The runtime's own stream, with a worker: every begin has its end.
TEST_F(XptiBridge, run_of_a_program_is_passed_on_whole) {
  const RunResult r = traced("XPTI_FRAMEWORK_DISPATCHER=" + kDispatcher, "",
                             UPTIER_TOOL " run " + wasm_path("mix"));
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_EQ(r.err, "");
  std::istringstream in(slurp(path("calls")));
  std::set<uint64_t> open;
  std::set<std::string> names;
  uint64_t pairs = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string verb;
    uint64_t stream, type, parent, event, instance;
    words >> verb;
    if (verb == "event") {
      EXPECT_TRUE(names.insert(line.substr(line.find(' ', 6))).second) << line;
    }
    if (verb != "notify") continue;
    words >> stream >> type >> parent >> event >> instance;
    if (instance == 0) continue;
    if ((type & 1) == 0) { EXPECT_TRUE(open.insert(instance).second) << line; }
    if ((type & 1) == 1) pairs += open.erase(instance);
  }
  EXPECT_EQ(open.size(), 0u);
  EXPECT_GT(pairs, 100u);
  EXPECT_GT(names.size(), 50u);
}

}  // namespace
}  // namespace uptier::test::xpti_test
