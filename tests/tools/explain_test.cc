// `uptier explain`: a method's life in sentences, from a fixed file and from a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::explain_test {
namespace {

using nlohmann::json;

// Writes lines as the jsonl tool does. Times are in microseconds after an arbitrary start.
class Lines {
 public:
  static constexpr uint64_t kGuest = 100, kWorker = 101;

  Lines& task(const std::string& name, double begun_us, double ended_us, uint64_t thread,
              const json& metadata) {
    const json event = {{"id", instance_}, {"name", name}};
    json begin = head("task", "begin", begun_us, thread);
    begin.update({{"instance", instance_}, {"event", event}, {"parent", 1}});
    if (!metadata.is_null()) begin["metadata"] = metadata;
    json end = head("task", "end", ended_us, thread);
    end.update({{"instance", instance_++}, {"event", event}, {"parent", 1}});
    text_ += begin.dump() + "\n" + end.dump() + "\n";
    return *this;
  }
  // An event of the method `sum`, which has the number 7.
  Lines& sum(const std::string& what, double at_us, json metadata, uint64_t thread = kGuest,
             double took_us = 0) {
    metadata["method"] = 7;
    metadata["sequence"] = ++sequence_;
    return task(what + " sum", at_us - took_us, at_us, thread, metadata);
  }
  Lines& graph(double at_us) {
    json j = head("graph", "at", at_us, kGuest);
    j["event"] = {{"id", 1}, {"name", "tiering"}};
    text_ += j.dump() + "\n";
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  static json head(const char* kind, const char* phase, double us, uint64_t thread) {
    return {{"ns", 5'000'000'000u + static_cast<uint64_t>(us * 1000)},
            {"thread", thread},
            {"stream", "uptier"},
            {"kind", kind},
            {"phase", phase}};
  }
  std::string text_;
  uint64_t instance_ = 2;
  uint64_t sequence_ = 0;
};

json version(uint64_t n, const char* tier, uint64_t bytes) {
  return {{"version", n}, {"tier", tier}, {"bytes", bytes}};
}
json with(json j, const json& more) {
  j.update(more);
  return j;
}

// Every kind of event of one method, with others between.
Lines whole_life() {
  const json base = version(1, "baseline", 1194), copy = version(2, "baseline", 1409),
             fast = version(3, "optimized", 2082), loop = version(4, "optimized", 640),
             last = version(5, "optimized", 1900);
  Lines f;
  f.graph(0).sum("add", 10, {{"name", "sum"}});
  f.task("add other", 11, 11, f.kGuest, {{"method", 8}, {"name", "other"}});
  f.sum("describe", 40, {{"source", "sum.c:3:1"}}, f.kGuest, 24.2)
      .sum("compile", 80, with(base, {{"inlined", 0}}), f.kGuest, 66.4)
      .sum("install", 81, base)
      .sum("first call", 82, {{"number", 3}});
  f.task("compile other", 83, 90, f.kGuest, with(version(9, "baseline", 5), {{"method", 8}}));
  f.task("pause", 85, 95, f.kWorker, nullptr);
  for (int i = 1; i <= 3; ++i) {
    f.sum("flush", 100 * i, {{"reason", "call-threshold"}, {"calls", 1024 * i}}, f.kWorker);
    f.sum("decide", 100 * i + 5, {{"action", "keep"}, {"reason", "too cold, " + std::to_string(i)}},
          f.kWorker);
  }
  f.sum("compile", 400, with(copy, {{"copy", "instrumented"}, {"inlined", 0}}), f.kWorker, 120)
      .sum("install", 401, with(copy, {{"copy", "instrumented"}}), f.kWorker)
      .sum("decide", 450, {{"action", "recompile"}, {"reason", "602 us so far"}}, f.kWorker)
      .sum("compile", 1400, with(fast, {{"inlined", 2}, {"inlined methods", "add #8"}}), f.kWorker,
           900)
      .sum("install", 1401, with(fast, {{"replaces", 1}}), f.kWorker)
      .sum("retire", 1402, base, f.kWorker)
      .sum("decide", 1403, {{"action", "specialize osr:1"}, {"reason", "a long loop"}}, f.kWorker)
      .sum("compile", 1600, with(loop, {{"loop", 1}, {"inlined", 1}}), f.kWorker, 150)
      .sum("install", 1601, with(loop, {{"loop", 1}}), f.kWorker)
      .sum("OSR in", 1650, with(loop, {{"loop", 1}, {"source", "sum.c:7"}}));
  for (int i = 0; i < 1200; ++i) {
    const double at = 1700 + i;
    f.sum("deopt", at,
          {{"version", 3},
           {"tier", "optimized"},
           {"reason", "value"},
           {"exit", 4},
           {"to", 1},
           {"source", "sum.c:9"},
           {"of inlined", "add"}});
    f.sum("OSR out", at, with(base, {{"from", 3}}));
  }
  f.sum("deopt", 2950, {{"version", 3}, {"tier", "optimized"}, {"reason", "type"}, {"exit", 6}})
      .sum("decide", 3000, {{"action", "roll_back"}, {"reason", "wrong too often"}}, f.kWorker)
      .sum("retire", 3001, fast, f.kWorker)
      .sum("reclaim", 3002, base, f.kWorker)
      .sum("move", 3010, copy, f.kWorker)
      .sum("compile dropped", 3020, {}, f.kWorker)
      .sum("compile refused", 3030, {{"reason", "no room for code"}}, f.kWorker)
      .sum("compile failed", 3040, {{"reason", "too many values"}}, f.kWorker)
      .sum("evict", 3050, {}, f.kWorker)
      .sum("retire", 3051, loop, f.kWorker)
      .sum("compile", 4000, with(last, {{"inlined", 0}}), f.kWorker, 500)
      .sum("install", 4001, last, f.kWorker)
      .sum("decide", 4100, {{"action", "ban"}, {"reason", "wrong 3 times"}}, f.kWorker);
  return f;
}

class Explain : public ToolDir {
 protected:
  // Runs `explain` on a file with this text.
  RunResult of(const std::string& words, const std::string& text) const {
    write_text("e.jsonl", text);
    return tool("explain " + words);
  }
};

TEST_F(Explain, life_is_told_in_order_with_repetitions_counted) {
  const RunResult r = of("sum e.jsonl", whole_life().text());
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.code, 0);
  expect_golden("explain_life", r.out);
  EXPECT_EQ(of("'#7' e.jsonl", whole_life().text()).out, r.out);
}

TEST_F(Explain, json_has_the_same_steps_and_the_versions) {
  const RunResult r = of("sum e.jsonl --json", whole_life().text());
  ASSERT_EQ(r.code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["name"], "sum");
  EXPECT_EQ(j["method"], 7);
  EXPECT_EQ(j["exits"], (json{{"type", 1}, {"value", 1200}}));
  EXPECT_EQ(j["versions"].size(), 5u);
  int in_service = 0;
  for (const json& v : j["versions"]) in_service += v["in_service"].get<bool>() ? 1 : 0;
  EXPECT_EQ(in_service, 2) << "the instrumented copy and the last version";
  const auto deopt =
      std::ranges::find_if(j["steps"], [](const json& s) { return s["what"] == "deopt"; });
  ASSERT_NE(deopt, j["steps"].end());
  EXPECT_EQ((*deopt)["times"], 1200);
  EXPECT_EQ((*deopt)["reason"], "value");
  EXPECT_EQ((*deopt)["ns"], 1'700'000);
  EXPECT_EQ((*deopt)["last_ns"], 2'899'000);
}

TEST_F(Explain, removed_method_and_lost_events_are_told) {
  Lines f = whole_life();
  f.sum("remove", 5000, {{"reason", "retired"}});
  f.task("events lost", 5001, 5001, f.kWorker, {{"sequence", 99}, {"lost", 12}});
  const RunResult r = of("sum e.jsonl", f.text());
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.out.find("it was removed: retired\n"), r.out.npos) << r.out;
  EXPECT_TRUE(r.out.ends_with("At the end (5.001 ms) it is removed, since 5.000 ms.\n")) << r.out;
  EXPECT_EQ(r.err,
            "uptier: e.jsonl: the runtime lost 12 events, so parts of the life may be missing\n");
}

TEST_F(Explain, unknown_names_get_the_nearest_and_shared_ones_the_numbers) {
  const std::string text = whole_life().text();
  RunResult r = of("smu e.jsonl", text);
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "uptier: e.jsonl: no events of a method smu; did you mean sum?\n");
  r = of("o e.jsonl", text);
  EXPECT_EQ(r.err, "uptier: e.jsonl: no events of a method o; these contain it: other\n");
  r = of("'#99' e.jsonl", text);
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "uptier: e.jsonl: no events of a method #99\n");
  Lines two = whole_life();
  two.task("add sum", 6000, 6000, two.kGuest, {{"method", 9}, {"name", "sum"}});
  r = of("sum e.jsonl", two.text());
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "uptier: e.jsonl: 2 methods are called sum; name one by its number: #7, #9\n");
}

TEST_F(Explain, names_cannot_steer_a_terminal) {
  Lines f = whole_life();
  f.task("add \x1b[2J", 6000, 6000, f.kGuest, {{"method", 9}, {"name", "\x1b[2J"}});
  const RunResult r = of("'#9' e.jsonl", f.text());
  EXPECT_TRUE(r.out.starts_with("?[2J, method #9, ")) << r.out;
}

TEST_F(Explain, other_files_are_refused_and_a_torn_one_is_read_up_to_its_end) {
  const std::string text = whole_life().text();
  const auto refused = [&](const std::string& contents, const std::string& why) {
    const RunResult r = of("sum e.jsonl", contents);
    EXPECT_EQ(r.code, 3) << contents;
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(r.err.starts_with("uptier: e.jsonl: " + why)) << r.err;
    EXPECT_NE(r.err.find("`uptier run --events FILE.jsonl`"), r.err.npos) << r.err;
  };
  refused("", "it has no events of the stream uptier");
  refused("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n",
          "it is a trace for ui.perfetto.dev");
  refused("\n" + text, "line 1 is not an event");
  refused(text + "{\"ns\":1}\n" + text,
          "line " + std::to_string(std::ranges::count(text, '\n') + 1) + " is not an event");
  refused("[1,2]\n", "line 1 is not an event");
  refused("{\"ns\":-1,\"stream\":7}\n", "line 1 is not an event");
  EXPECT_EQ(tool("explain sum nowhere.jsonl").code, 1);
  EXPECT_EQ(tool("explain sum").code, 2);
  const RunResult torn = of("sum e.jsonl", text.substr(0, text.size() - 20));
  EXPECT_EQ(torn.code, 0);
  EXPECT_EQ(torn.err, "uptier: e.jsonl: the last line is incomplete and was left out\n");
  EXPECT_NE(torn.out.find("gave a guess up for good"), torn.out.npos);
  EXPECT_EQ(in_dir("cat e.jsonl | " UPTIER_TOOL " explain sum -").out, torn.out);
}

TEST_F(Explain, run_of_an_example_is_told_from_the_first_event_to_the_last) {
  const RunResult ran = tool("run --events e.jsonl " + wasm_path("mix"));
  ASSERT_EQ(ran.out, expected_output("mix"));
  const RunResult r = tool("explain sort e.jsonl");
  ASSERT_EQ(r.code, 0) << r.err;
  size_t at = 0;
  for (const char* part :
       {"it was added\n", "its host described it in ", " bytes of baseline code\n", "version ",
        " came into service\n", "it was called for the first time", "its counts were read ",
        "\nAt the end (", "\nIt was compiled "}) {
    const size_t next = r.out.find(part, at);
    ASSERT_NE(next, r.out.npos) << part << "\n" << r.out;
    at = next;
  }
  const RunResult as_json = tool("explain sort e.jsonl --json");
  const json j = json::parse(as_json.out);
  uint64_t before = 0;
  for (const json& s : j["steps"]) {
    EXPECT_GE(s["ns"].get<uint64_t>(), before) << s;
    before = s["ns"];
  }
  EXPECT_GE(j["steps"].size(), 6u);
}

// Guards that fail on request: frames leave optimized code and go on in other code.
TEST_F(Explain, exits_of_a_run_are_counted_by_reason) {
  const RunResult ran =
      tool("run --policy=always -O workers=0 --stress=guard=every:50 --events e.jsonl " +
           wasm_path("mix"));
  ASSERT_EQ(ran.out, expected_output("mix"));
  const json j = json::parse(tool("explain sort e.jsonl --json").out);
  std::map<std::string, uint64_t> exits;
  for (const json& s : j["steps"]) {
    if (s["what"] != "deopt") continue;
    EXPECT_FALSE(s["reason"].get<std::string>().empty()) << s;
    exits[s["reason"]] += s.value("times", 1);
  }
  EXPECT_FALSE(exits.empty());
  EXPECT_EQ(j["exits"], json(exits));
}

}  // namespace
}  // namespace uptier::test::explain_test
