// Tables of `uptier top`: differences of readings, in order.
#include "tools/top_rows.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/top_print.h"

namespace uptier::test::top_rows_test {
namespace {

using nlohmann::json;
using tools::TopRows;
using tools::TopTable;

LiveRow row(uint32_t method, uint64_t samples, Tier tier = Tier::kBaseline) {
  LiveRow r;
  r.method = MethodId(method);
  r.key = {7, method};
  r.name = "m" + std::to_string(method);
  r.tier = tier;
  r.samples = samples;
  r.ns = samples * 1000;
  return r;
}

LiveTime reading(uint64_t age, std::vector<LiveRow> rows) {
  LiveTime t;
  t.process = 4711;
  t.age_ns = age;
  t.hz = 100;
  for (const LiveRow& r : rows) {
    t.samples += r.samples;
    t.sampled_ns += r.ns;
  }
  t.squares = t.samples;  // each sample stands for a microsecond
  t.asked_ns = 2 * t.sampled_ns;
  t.dropped = age;
  t.rows = std::move(rows);
  return t;
}

std::vector<std::string> names(const TopTable& t) {
  std::vector<std::string> all;
  for (const tools::TopRow& r : t.rows) all.push_back(r.method.name);
  return all;
}

TEST(TopRows, the_first_table_counts_from_the_beginning) {
  const TopTable t = TopRows().next(reading(5, {row(1, 10), row(2, 30), row(3, 0)}));
  EXPECT_EQ(names(t), (std::vector<std::string>{"m2", "m1"}));
  EXPECT_EQ(t.sums.samples, 40u);
  EXPECT_EQ(t.rows[0].sums.samples, 30u);
  EXPECT_EQ(t.rows[0].sums.all_samples, 30u);
  EXPECT_EQ(t.asked_ns, 80'000u);
}

TEST(TopRows, later_tables_have_only_what_was_sampled_since) {
  TopRows rows;
  rows.next(reading(5, {row(1, 10), row(2, 30)}));
  const TopTable t = rows.next(reading(8, {row(2, 30), row(1, 14), row(9, 1)}));
  EXPECT_EQ(names(t), (std::vector<std::string>{"m1", "m9"}));
  EXPECT_EQ(t.ns, 3u);
  EXPECT_EQ(t.dropped, 3u);
  EXPECT_EQ(t.sums.samples, 5u);
  EXPECT_EQ(t.sums.all_samples, 45u);
  EXPECT_EQ(t.rows[0].sums.samples, 4u);
  EXPECT_EQ(t.rows[0].sums.all_samples, 14u);
  EXPECT_TRUE(rows.next(reading(9, {row(2, 30), row(1, 14), row(9, 1)})).rows.empty());
}

TEST(TopRows, kinds_of_code_add_up_to_their_method) {
  TopRows rows;
  rows.next(reading(1, {row(1, 50)}));
  LiveRow at_loop = row(1, 3, Tier::kOptimized), inlined = row(1, 9, Tier::kOptimized);
  at_loop.osr = inlined.inlined = true;
  at_loop.state = inlined.state = CompileState::kWaiting;
  const TopTable t = rows.next(reading(2, {row(1, 51), at_loop, inlined}));
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_EQ(t.rows[0].sums.samples, 13u);
  EXPECT_EQ(t.rows[0].sums.all_samples, 63u);
  ASSERT_EQ(t.rows[0].code.size(), 3u);
  EXPECT_TRUE(t.rows[0].code[0].inlined);
  EXPECT_TRUE(t.rows[0].code[1].osr);
  const std::string text = tools::top_text(t, 0);
  EXPECT_NE(
      text.find(
          "100.00 %   77.19 - 100.00 %       13  100.00 %        63  optimized, inlined         "
          "waiting  m1\n"),
      std::string::npos)
      << text;
}

TEST(TopRows, the_text_says_how_many_rows_it_leaves_out) {
  const TopTable t = TopRows().next(reading(5, {row(1, 10), row(2, 30), row(3, 5)}));
  const std::string text = tools::top_text(t, 1);
  EXPECT_NE(text.find("m2\n... and 2 more rows\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("m1"), std::string::npos) << text;
  LiveTime off = reading(5, {});
  off.hz = 0;
  EXPECT_NE(tools::top_text(TopRows().next(off), 0).find("sample_hz"), std::string::npos);
}

TEST(TopRows, json_is_one_line_with_the_same_numbers) {
  LiveRow place = row(0, 60);
  place.place = TimePlace::kHost;
  place.name = "[host]";
  LiveRow odd = row(1, 20);
  odd.name = "\xff\"odd\"";
  odd.state = CompileState::kFailed;
  odd.serves = Tier::kOptimized;
  const std::string line = tools::top_line(TopRows().next(reading(5, {place, odd})), 0);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const json j = json::parse(line);
  EXPECT_EQ(j["process"], 4711);
  EXPECT_EQ(j["samples"], 80);
  EXPECT_EQ(j["rows"], 2);
  EXPECT_EQ(j["methods"][0]["place"], "host");
  EXPECT_EQ(j["methods"][0]["share"], 0.75);
  EXPECT_NEAR(j["methods"][0]["low"], 0.6451, 1e-4);  // Wilson's interval of 60 in 80
  EXPECT_NEAR(j["methods"][0]["high"], 0.8319, 1e-4);
  EXPECT_FALSE(j["methods"][0].contains("tier"));
  EXPECT_EQ(j["methods"][1]["tier"], "baseline");
  EXPECT_EQ(j["methods"][1]["calls_run"], "optimized");
  EXPECT_EQ(j["methods"][1]["state"], "failed");
  EXPECT_EQ(j["methods"][1]["name"], "\xEF\xBF\xBD\"odd\"");
  EXPECT_EQ(j["methods"][1]["code"][0]["samples"], 20);
}

}  // namespace
}  // namespace uptier::test::top_rows_test
