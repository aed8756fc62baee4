#include "tools/profile_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/trace_samples.h"

namespace uptier::tools {
namespace {

using nlohmann::json;

// The sites of the trace that has every kind, by kind.
std::map<std::string, json> kinds() {
  const Result<TraceProfile> trace = profile_from_trace(test::write_trace(test::kinds_events()));
  const json j = json::parse(profile_json(trace->profile));
  std::map<std::string, json> sites;
  for (const json& site : j["methods"][0]["sites"]) sites[site["kind"]] = site;
  return sites;
}

TEST(ProfileJson, method_has_every_field) {
  const Result<TraceProfile> trace = profile_from_trace(test::write_trace(test::kinds_events(), 3));
  const json j = json::parse(profile_json(*trace));
  EXPECT_EQ(j["truncated"], false);
  EXPECT_EQ(j["skipped"], 0);
  EXPECT_EQ(j["lost"], 3);
  json method = j["methods"][0];
  method.erase("sites");
  EXPECT_EQ(method, json::parse(R"({"module_key": 4660, "function_index": 0, "name": "main",
    "calls": 40, "sampled_calls": 16, "iterations": 180, "bursts": 18, "interval": null,
    "cfg_hash": 52428})"));
}

TEST(ProfileJson, counts_come_raw_and_estimated_with_their_interval) {
  const auto sites = kinds();
  EXPECT_EQ(sites.size(), 9u);
  for (const char* kind : {"block", "edge", "counter"}) {
    const json& site = sites.at(kind);
    EXPECT_LT(site["count"].get<double>(), site["estimate"].get<double>()) << kind;
    EXPECT_LT(site["low"].get<double>(), site["estimate"].get<double>()) << kind;
    EXPECT_GT(site["high"].get<double>(), site["estimate"].get<double>()) << kind;
  }
  EXPECT_EQ(sites.at("block")["count"], 16);
  EXPECT_EQ(sites.at("block")["estimate"], 40);
  EXPECT_EQ(sites.at("log")["events"]["count"], 9);
  EXPECT_EQ(sites.at("log")["lost"]["estimate"], 5);
}

TEST(ProfileJson, tables_name_their_keys) {
  const auto sites = kinds();
  const json& callees = sites.at("call_target");
  EXPECT_EQ(callees["other"]["count"], 4);
  EXPECT_EQ(callees["top"], 2);
  ASSERT_EQ(callees["table"].size(), 2u);
  EXPECT_EQ(callees["table"][1]["module_key"], 0x1234);
  EXPECT_EQ(callees["table"][1]["function_index"], 7);
  EXPECT_EQ(callees["table"][1]["count"], 9);
  EXPECT_EQ(callees["table"][1]["estimate"], 21);
  const json& values = sites.at("value");
  ASSERT_EQ(values["table"].size(), 3u);
  EXPECT_EQ(values["table"][2]["value"], -9);
  EXPECT_EQ(values["sum"], "-9");
  EXPECT_EQ(values["mean"], -1);
  EXPECT_EQ(values["min"], -9);
  EXPECT_EQ(values["max"], 4);
}

TEST(ProfileJson, ranges_gauges_and_loops_have_their_own_words) {
  const auto sites = kinds();
  EXPECT_EQ(sites.at("gauge"), (json{{"kind", "gauge"}, {"site", 7}, {"value", 70}}));
  EXPECT_EQ(sites.at("range")["sum"], "35");
  EXPECT_EQ(sites.at("range")["min"], 5);
  const json& loop = sites.at("loop");
  EXPECT_EQ(loop["entries"]["estimate"], 20);
  EXPECT_EQ(loop["squares"], "130000");
  EXPECT_EQ(loop["total_cycles"]["estimate"], 250 * 20);
  EXPECT_LT(loop["total_cycles"]["low"].get<double>(), 5000);
}

TEST(ProfileJson, what_is_not_known_is_null) {
  MethodProfile method;
  method.schema.add(SlotKind::kLoop, 1);
  method.schema.add(SlotKind::kRange, 1);
  method.counts = {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  method.weigh(1);
  Profile profile;
  profile.methods.emplace(method.key, method);
  const json sites = json::parse(profile_json(profile))["methods"][0]["sites"];
  EXPECT_EQ(sites[0]["total_cycles"], nullptr);
  EXPECT_EQ(sites[1]["min"], nullptr);
  EXPECT_EQ(sites[1]["max"], nullptr);
  EXPECT_EQ(sites[1]["mean"], nullptr);
}

TEST(ProfileJson, any_profile_is_valid_json_and_malformed_methods_are_left_out) {
  test::Generator generator(71);
  for (int round = 0; round < 100; ++round) {
    Profile profile = generator.profile();
    const json j = json::parse(profile_json(profile), nullptr, false);
    ASSERT_TRUE(j.is_object());
    ASSERT_EQ(j["methods"].size(), profile.methods.size());
    if (profile.methods.empty()) continue;
    profile.methods.begin()->second.counts.push_back(1);
    ASSERT_EQ(json::parse(profile_json(profile))["methods"].size(), profile.methods.size() - 1);
  }
}

}  // namespace
}  // namespace uptier::tools
