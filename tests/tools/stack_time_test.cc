// Time as text, as call paths, and as JSON: all equal the TimeReport.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/report_samples.h"
#include "tools/report_json.h"
#include "uptier/stack_time.h"

namespace uptier::test::stack_time_test {
namespace {

TimeReport sample() {
  TimeReport t;
  t.hz = 1000;
  t.engine = SampleEngine::kCpuTimer;
  t.samples = 10;
  t.asked_ns = 10e6;
  t.sampled_ns = 9.9e6;
  t.unattributed_ns = 0.099e6;
  t.dropped = 3;
  t.dropped_ns = 3e6;
  t.gaps = {{"no_frame", 1, 0.099e6}};
  TimeRow hot, host;
  hot.method = MethodId(4);
  hot.name = "hot;\nloop";
  hot.tier = Tier::kOptimized;
  hot.inlined = true;
  hot.samples = 7;
  hot.ns = 7e6;
  hot.share = {0.7, 0.4, 0.9};
  host.place = TimePlace::kHost;
  host.name = "[host]";
  host.samples = 3;
  host.ns = 2.9e6;
  host.share = {0.3, 0.1, 0.6};
  t.rows = {hot, host};
  t.nodes = {{0, TimePlace::kMethod, MethodId(0), "main", 0, 0},
             {0, TimePlace::kMethod, MethodId(4), "hot; loop", 7, 7e6},
             {1, TimePlace::kHost, MethodId::none(), "[host]", 3, 2.9e6}};
  return t;
}

TEST(StackTime, text_has_shares_intervals_and_losses) {
  std::string text = sample().text();
  EXPECT_NE(text.find("10 samples by cpu_timer stand for 9.9 ms, 99.00 % of the processor time"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("70.00 %   40.00 -  90.00 %"), std::string::npos) << text;
  EXPECT_NE(text.find("optimized, inlined"), std::string::npos) << text;
  EXPECT_NE(text.find("hot;?loop\n"), std::string::npos) << text;
  EXPECT_NE(text.find("(no_frame): 1"), std::string::npos) << text;
  EXPECT_NE(text.find("samples dropped, the ring was full: 3, 3.0 ms"), std::string::npos) << text;
  EXPECT_NE(sample().text(1).find("... and 1 more rows of time"), std::string::npos);
}

// Names cannot add frames or lines.
TEST(StackTime, folded_paths_are_one_line_each) {
  EXPECT_EQ(sample().folded(), "main;hot??loop 7000\nmain;hot??loop;[host] 2900\n");
}

TEST(StackTime, json_has_rows_and_nodes_and_is_absent_without_samples) {
  Report r = sample_report();
  EXPECT_FALSE(nlohmann::json::parse(tools::report_json(r)).contains("time"));
  r.time = sample();
  const nlohmann::json t = nlohmann::json::parse(tools::report_json(r))["time"];
  EXPECT_EQ(t["engine"], "cpu_timer");
  EXPECT_EQ(t["rows"][0]["tier"], "optimized");
  EXPECT_EQ(t["rows"][0]["share"], 0.7);
  EXPECT_EQ(t["rows"][1]["place"], "host");
  EXPECT_EQ(t["rows"][1]["method"], nullptr);
  EXPECT_EQ(t["nodes"][2]["parent"], 1);
  EXPECT_EQ(t["gaps"][0]["reason"], "no_frame");
  EXPECT_EQ(t["dropped"], 3);
}

}  // namespace
}  // namespace uptier::test::stack_time_test
