#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/report_samples.h"
#include "tools/report_json.h"

namespace uptier::tools::report_json_test {
namespace {

using nlohmann::json;

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

using Keys = std::set<std::string>;

TEST(ReportJson, has_every_field_of_the_report) {
  const json j = json::parse(report_json(test::sample_report()));
  EXPECT_EQ(keys(j), (Keys{"methods_registered", "code_bytes_in_service", "code_bytes_freed",
                           "probe_bytes", "compile_ns_total", "compile_rate_ns", "overhead_share",
                           "methods", "decisions", "losses", "stress"}));
  EXPECT_EQ(keys(j["methods"][0]),
            (Keys{"method",   "name",        "module_key",    "function_index",  "hash",
                  "tier",     "calls",       "sampled_calls", "loop_iterations", "bursts",
                  "flushes",  "osr_entries", "left",          "left_for_host",   "observing",
                  "interval", "error_bound", "dual_error",    "sites",           "exits",
                  "versions", "last_error",  "osr_outs",      "behind"}));
  EXPECT_EQ(keys(j["methods"][0]["versions"][0]),
            (Keys{"version", "tier", "copy", "osr_loop", "code_bytes", "probe_bytes", "compile_ns",
                  "retired", "freed"}));
  EXPECT_EQ(keys(j["decisions"][0]),
            (Keys{"sequence", "method", "method_name", "action", "reason", "calls", "samples",
                  "loop_iterations", "priority", "inputs"}));
  EXPECT_EQ(
      keys(j["losses"]),
      (Keys{
          "samples_without_copy", "slabs_refused",     "flushes_delayed",     "requests_dropped",
          "compiles_failed",      "code_refused",      "evictions",           "trace_events_lost",
          "log_records",          "loops_full",        "loops_stale",         "loops_spoiled",
          "polls_refused",        "methods_forgotten", "decisions_forgotten", "versions_forgotten",
          "traps_lost",           "calls_unattached",  "keys_shared",         "unstable_bodies",
          "code_names_lost",      "flushes_lost",      "stack_samples"}));
}

TEST(ReportJson, totals_losses_and_stress_are_those_of_the_report) {
  const json j = json::parse(report_json(test::sample_report()));
  EXPECT_EQ(j["methods_registered"], 5);
  EXPECT_EQ(j["code_bytes_in_service"], 7112);
  EXPECT_EQ(j["code_bytes_freed"], 4096);
  EXPECT_EQ(j["probe_bytes"], 512);
  EXPECT_EQ(j["compile_ns_total"], 2'510'000);
  EXPECT_EQ(j["compile_rate_ns"], 412.5);
  EXPECT_EQ(j["losses"], (json{{"samples_without_copy", 1},
                               {"slabs_refused", 2},
                               {"flushes_delayed", 3},
                               {"requests_dropped", 4},
                               {"compiles_failed", 5},
                               {"code_refused", 6},
                               {"evictions", 8},
                               {"trace_events_lost", 7},
                               {"log_records", 9},
                               {"loops_full", 10},
                               {"loops_stale", 11},
                               {"loops_spoiled", 12},
                               {"polls_refused", 13},
                               {"methods_forgotten", 14},
                               {"decisions_forgotten", 15},
                               {"versions_forgotten", 16},
                               {"calls_unattached", 18},
                               {"keys_shared", 19},
                               {"unstable_bodies", 20},
                               {"code_names_lost", 21},
                               {"flushes_lost", 22},
                               {"stack_samples", 23},
                               {"traps_lost", 17}}));
  EXPECT_EQ(j["stress"], (json{{"osr", {{"points", 20}, {"forced", 1}}},
                               {"guard", {{"points", 22}, {"forced", 3}}}}));
}

TEST(ReportJson, methods_and_versions_are_those_of_the_report) {
  const json j = json::parse(report_json(test::sample_report()));
  ASSERT_EQ(j["methods"].size(), 3u);
  const json& main = j["methods"][0];
  EXPECT_EQ(main["method"], 0);
  EXPECT_EQ(main["name"], "main");
  EXPECT_EQ(main["module_key"], 0xfedcba9876543210);
  EXPECT_EQ(main["function_index"], 40);
  EXPECT_EQ(main["tier"], tier_name(Tier::kBaseline));
  EXPECT_EQ(main["calls"], 1);
  EXPECT_EQ(main["loop_iterations"], 123'456'789'012);
  EXPECT_EQ(main["bursts"], 77);
  EXPECT_EQ(main["flushes"], 9);
  EXPECT_EQ(main["osr_entries"], 2);
  EXPECT_EQ(main["last_error"], "");
  EXPECT_EQ(j["methods"][1]["sampled_calls"], 125'000);
  EXPECT_EQ(j["methods"][2]["last_error"], test::sample_report().methods[2].last_error);
  EXPECT_EQ(j["methods"][2]["versions"], json::array());
  EXPECT_EQ(main["versions"][1], (json{{"version", 12},
                                       {"tier", tier_name(Tier::kBaseline)},
                                       {"copy", copy_name(Copy::kInstrumented)},
                                       {"osr_loop", nullptr},
                                       {"code_bytes", 5000},
                                       {"probe_bytes", 320},
                                       {"compile_ns", 1'000'000},
                                       {"retired", true},
                                       {"freed", false}}));
  EXPECT_EQ(main["versions"][2]["osr_loop"], 3);
  EXPECT_EQ(main["versions"][2]["tier"], tier_name(Tier::kOptimized));
}

TEST(ReportJson, what_probes_saw_and_how_a_method_is_observed) {
  const json j = json::parse(report_json(test::sample_report()));
  const json& main = j["methods"][0];
  EXPECT_EQ(main["observing"], "learning");
  EXPECT_EQ(main["interval"], 64);
  EXPECT_EQ(main["error_bound"], 0.031);
  EXPECT_EQ(main["dual_error"], nullptr);
  EXPECT_EQ(j["methods"][1]["interval"], nullptr);
  EXPECT_EQ(j["methods"][1]["dual_error"], 0.0123);
  EXPECT_EQ(j["overhead_share"], 0.0087);
  ASSERT_EQ(main["sites"].size(), 6u);
  EXPECT_EQ(main["sites"][0], json::parse(R"({"kind": "call_target", "site": 12, "estimate": 1000.0,
      "top": [{"name": "leaf", "estimate": 750.0, "share": 0.75},
              {"name": "main", "estimate": 200.0, "share": 0.2}]})"));
  EXPECT_EQ(main["sites"][1]["top"][0]["value"], -7);
  EXPECT_EQ(main["sites"][1]["min"], -7);
  EXPECT_EQ(main["sites"][1]["max"], 12);
  EXPECT_EQ(main["sites"][2]["lost"], 3);
  EXPECT_EQ(main["sites"][3]["max"], 1);
  EXPECT_EQ(main["sites"][4]["estimate"], 20);
  EXPECT_EQ(main["sites"][5], (json{{"kind", "gauge"}, {"site", 18}, {"value", 99}}));
}

TEST(ReportJson, decisions_are_those_of_the_report) {
  const json j = json::parse(report_json(test::sample_report()));
  ASSERT_EQ(j["decisions"].size(), 3u);
  EXPECT_EQ(j["decisions"][1], (json{{"sequence", 2},
                                     {"method", 1},
                                     {"method_name", "hot"},
                                     {"action", "specialize"},
                                     {"reason", "400 us so far, compile 250 us, 4 samples"},
                                     {"calls", 64},
                                     {"samples", 4},
                                     {"loop_iterations", 0},
                                     {"priority", 16'666.5},
                                     {"inputs", "tier=1"}}));
  EXPECT_EQ(j["decisions"][2]["loop_iterations"], 8192);
}

TEST(ReportJson, empty_report_has_empty_lists) {
  const json j = json::parse(report_json(Report()));
  EXPECT_EQ(j["methods"], json::array());
  EXPECT_EQ(j["decisions"], json::array());
  EXPECT_EQ(j["methods_registered"], 0);
}

TEST(ReportJson, extreme_numbers_and_names_of_any_bytes_are_still_json) {
  Report r = test::sample_report();
  r.methods[0].name = "quote \" backslash \\ newline \n zero ";
  r.methods[0].name += '\0';
  r.methods[1].name = "not utf-8: \xff\xc3";
  r.methods[0].calls = UINT64_MAX;
  r.methods[0].method = MethodId::none();
  r.decisions[0].reason = "\x80";
  const std::string text = report_json(r);
  const json j = json::parse(text);
  EXPECT_EQ(j["methods"][0]["name"], r.methods[0].name);
  EXPECT_TRUE(j["methods"][1]["name"].get<std::string>().starts_with("not utf-8: "));
  EXPECT_EQ(j["methods"][0]["calls"], UINT64_MAX);
  EXPECT_EQ(j["methods"][0]["method"], nullptr);
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace uptier::tools::report_json_test
