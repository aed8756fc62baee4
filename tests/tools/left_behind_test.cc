// No frame stays for long in baseline code of a method that has been optimized: a test over all
// example programs. Time is counted in iterations and taken from the log of decisions, with rates
// that are assumed (1 ns per instruction) and compilations at the flush that asks for them, so that
// no clock has a part in it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/support/program_runs.h"

namespace uptier::test::left_behind_test {
namespace {

using nlohmann::json;

constexpr double kLongestNs = 50e6;

std::map<std::string, double> inputs_of(const json& decision) {
  std::map<std::string, double> inputs;
  std::istringstream words(decision["inputs"].get<std::string>());
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string value = word.substr(equals + 1);
    if (value != "-") inputs[word.substr(0, equals)] = std::stod(value);
  }
  return inputs;
}

// What was known of a method when its first optimized version was made.
struct Optimized {
  double iterations = 0;
  double ns_per_round = 0;
};

std::map<uint64_t, Optimized> first_versions(const json& report) {
  std::map<uint64_t, Optimized> first;
  for (const json& d : report["decisions"]) {
    std::string action = d["action"];
    if (!action.starts_with("specialize") && !action.starts_with("recompile")) continue;
    std::map<std::string, double> in = inputs_of(d);
    double rounds = in["iterations"] + in["calls"];
    double work = std::max(in["sampled_work"] / in["sampled_share"], 1.0);
    first.try_emplace(d["method"].get<uint64_t>(),
                      Optimized{in["iterations"], rounds > 0 ? work / rounds : 0});
  }
  return first;
}

class LeftBehind : public testing::TestWithParam<Program> {};

TEST_P(LeftBehind, no_frame_runs_for_50_ms_in_code_older_than_the_best) {
  RunResult r =
      run_tool("run --report=json -O workers=0 -O measure_rates=off " + wasm_path(GetParam().name));
  ASSERT_EQ(r.code, 0) << r.err.substr(0, 2000);
  json report = json::parse(r.err, nullptr, false);
  ASSERT_TRUE(report.is_object()) << r.err.substr(0, 2000);
  std::map<uint64_t, Optimized> first = first_versions(report);
  EXPECT_FALSE(first.empty()) << "nothing was optimized";
  for (const json& m : report["methods"]) {
    auto at = first.find(m["method"].get<uint64_t>());
    if (at == first.end()) continue;
    double rounds = m["loop_iterations"].get<double>() - at->second.iterations;
    EXPECT_LE(rounds * at->second.ns_per_round, kLongestNs)
        << m["name"] << ": " << rounds << " iterations in baseline code since it was optimized";
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, LeftBehind, testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace uptier::test::left_behind_test
