// The HTML report without a browser: its data equals the profile, and no text of a profile can
// escape its element. tests/checks/report.py opens the report in a browser.
#include "tools/report_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/program_runs.h"

namespace uptier::tools::report_page_test {
namespace {

using nlohmann::json;

MethodProfile method(uint32_t index, const std::string& name, std::vector<uint64_t> blocks) {
  MethodProfile m;
  m.key = {0xa1, index};
  m.name = name;
  m.schema = Schema::block_schema(static_cast<uint32_t>(blocks.size()), 7);
  m.counts = std::move(blocks);
  m.calls = index;
  m.weigh(2);
  return m;
}

ReportSource source_of(const std::vector<MethodProfile>& methods) {
  ReportSource s;
  s.name = "p.upf";
  for (const MethodProfile& m : methods) s.file.profile.methods.emplace(m.key, m);
  return s;
}

// Returns the JSON of an element of the page.
json element(const std::string& page, const std::string& id) {
  const std::string open = "<script type=\"application/json\" id=\"" + id + "\">";
  const size_t at = page.find(open);
  if (at == std::string::npos) return nullptr;
  const size_t end = page.find("</script>", at);
  return json::parse(page.substr(at + open.size(), end - at - open.size()), nullptr, false);
}

std::string page_of(const ReportSource& source) {
  return report_page(report_data(source, nullptr, 0));
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(ReportPage, names_cannot_end_the_element_that_they_stand_in) {
  const std::string usual = page_of(source_of({method(1, "f", {1})}));
  for (const char* name : {"</script><script>alert(1)</script>", "<!--<script>", "</SCRIPT >",
                           "\"><img src=x>", "{{style}}", "\xff\xfe</script>", "a\nb\\u003c"}) {
    ReportSource source = source_of({method(1, name, {1})});
    source.name = name;
    source.against_name = name;
    source.against = source.file.profile;
    source.timeline.methods = {{{0xb2, 9}, name}};
    source.timeline.decisions = {{1, 0, 1, 1, 1, name, name}};
    source.file.warnings = {name};
    source.file.info.host = name;
    const std::string page = page_of(source);
    for (const char* mark : {"<script", "</script", "<!--", "<img", "<style", "</style"}) {
      EXPECT_EQ(count(page, mark), count(usual, mark)) << name << " " << mark;
    }
    const json data = element(page, "data");
    ASSERT_TRUE(data.is_object()) << name;
    // Bytes that are not UTF-8 are replaced; everything else comes back.
    if (name[0] == '\xff') continue;
    EXPECT_EQ(data["methods"]["name"][0], name);
    EXPECT_EQ(data["timeline"]["decisions"][0][6], name);
  }
}

TEST(ReportPage, asks_for_nothing_from_elsewhere) {
  std::string page = page_of(source_of({method(1, "f", {1})}));
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  // A saved SVG names its XML namespace, which is never loaded.
  const std::string_view name = "xmlns=\"http://www.w3.org/2000/svg\"";
  for (size_t at; (at = page.find(name)) != std::string::npos;) page.erase(at, name.size());
  for (const char* what : {"http://", "https://", "@import", "src=", "href=", "url("}) {
    EXPECT_EQ(count(page, what), 0u) << what;
  }
}

TEST(ReportPage, holds_what_the_profile_holds) {
  std::vector<MethodProfile> methods;
  for (uint32_t i = 0; i < 300; ++i) methods.push_back(method(i, "f" + std::to_string(i), {i, 5}));
  const std::string page = page_of(source_of(methods));
  const json data = element(page, "data");
  ASSERT_EQ(data["methods"]["name"].size(), 300u);
  EXPECT_EQ(data["methods"]["calls"][299], 299);
  EXPECT_EQ(data["methods"]["executions"][299], 2 * (299 + 5));
  EXPECT_EQ(data["summary"]["blocks"], 600);
  EXPECT_EQ(element(page, "part-0").size(), kPartRows);
  const json rest = element(page, "part-1");
  ASSERT_EQ(rest.size(), 300 - kPartRows);
  // kind, site, count, estimate, and the interval if the estimate is not exact.
  EXPECT_EQ(rest[299 - kPartRows]["sites"][0][0], 1);
  EXPECT_EQ(rest[299 - kPartRows]["sites"][0][2], 299);
  EXPECT_EQ(rest[299 - kPartRows]["sites"][0][3], 598);
  EXPECT_TRUE(element(page, "part-2").is_null());
}

TEST(ReportPage, methods_have_the_time_that_samples_gave_them) {
  ReportSource source = source_of({method(1, "main", {1}), method(2, "leaf", {1})});
  const PathFrame main{TimePlace::kMethod, {0xa1, 1}}, leaf{TimePlace::kMethod, {0xa1, 2}};
  source.file.calls.time.add({main}, 1, 100);
  source.file.calls.time.add({main, leaf}, 1, 300);
  const json data = element(page_of(source), "data");
  EXPECT_EQ(data["sampled_ns"], 400);
  EXPECT_EQ(data["methods"]["ns"], (json{100, 300}));
  EXPECT_EQ(data["methods"]["total_ns"], (json{400, 300}));
  EXPECT_EQ(element(page_of(source_of({method(1, "f", {1})})), "data")["sampled_ns"], 0);
}

TEST(ReportPage, tables_of_targets_and_values_name_methods_and_other_mass) {
  MethodProfile caller = method(1, "caller", {10});
  caller.schema.add(SlotKind::kCallTarget, 2, 4);
  caller.schema.add(SlotKind::kValue, 3, 4);
  caller.counts = {10, 3, 8, 40, 0, 2, 9, 1};
  caller.tables[{SlotKind::kCallTarget, 2}] = {{{0xa1, 5}, {7, 0}}, {{0xb2, 6}, {2, 0}}};
  caller.tables[{SlotKind::kValue, 3}] = {{{0, static_cast<uint64_t>(-5)}, {7, 0}}};
  caller.weigh(1);
  ASSERT_TRUE(caller.check().ok()) << caller.check().error().message;
  const std::string page = page_of(source_of({caller, method(5, "callee", {7})}));
  const json sites = element(page, "part-0")[0]["sites"];
  EXPECT_EQ(sites[1], json::parse(R"([3,2,12,3,[[1,7],["function 6",2]]])"));
  EXPECT_EQ(sites[2], json::parse(R"([4,3,8,1,"2","9",5.0,[["-5",7]]])"));
  // The indices of call sites, for the flame graph.
  EXPECT_EQ(element(page, "data")["calls"], json::parse("[[0,0,1,7]]"));
}

TEST(ReportPage, timed_loops_nest_by_the_next_one_that_has_cycles) {
  MethodProfile m = method(1, "f", {10});
  for (SiteId loop : {1, 2, 3}) m.schema.add(SlotKind::kLoop, loop);
  // entries, iterations, timed, timed iterations, cycles, exclusive, squares
  m.counts = {10, 1, 9, 1, 9, 900, 900, 810000, 0,   9,   81,    0, 0,
              0,  0, 0, 0, 9, 81,  9,   81,     500, 500, 30000, 0};
  m.weigh(1);
  ASSERT_TRUE(m.check().ok()) << m.check().error().message;
  ReportSource source = source_of({m});
  source.timeline.length_ns = 1;
  source.timeline.methods = {{m.key, "f"}};
  source.timeline.loops = {{0, 1, 0, 0x20}, {0, 2, 1, 0x30}, {0, 3, 2, 0x40}};
  const json loops = element(page_of(source), "data")["loops"];
  ASSERT_EQ(loops.size(), 2u);  // the middle one was never timed
  EXPECT_EQ(loops[0][1], 1);
  EXPECT_EQ(loops[0][2], 0);
  EXPECT_EQ(loops[1][1], 3);
  EXPECT_EQ(loops[1][2], 1);
  EXPECT_EQ(loops[1][3], 0x40);
  EXPECT_EQ(element(page_of(source), "data")["methods"]["cycles"][0], 900);
}

TEST(ReportPage, tool_writes_it_with_the_module_and_another_profile) {
  char dir[] = "/tmp/uptier-report-XXXXXX";
  const std::string base = mkdtemp(dir);
  for (const char* seed : {"1", "2"}) {
    const test::RunResult r =
        test::run_tool("run --profile " + base + "/" + seed + ".upf -O seed=" + seed + " " +
                       test::wasm_path("objects"));
    ASSERT_EQ(r.code, 0) << r.err;
  }
  const test::RunResult r = test::run_tool("report " + base + "/1.upf -o - --against " + base +
                                           "/2.upf --module " + test::wasm_path("objects"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json data = element(r.out, "data");
  for (const char* key : {"has_module", "overlap", "calls", "methods"}) {
    ASSERT_TRUE(data.contains(key)) << key;
  }
  EXPECT_EQ(data["has_module"], true);
  // The overlap of two short runs depends on when code was ready; the page and the tool must give
  // the same number.
  const test::RunResult told =
      test::run_tool("profile overlap " + base + "/1.upf " + base + "/2.upf");
  ASSERT_EQ(told.out.find("overlap "), 0u) << told.out;
  EXPECT_NEAR(data["overlap"]["value"], std::stod(told.out.substr(8)), 1e-6);
  EXPECT_GT(data["calls"].size(), 5u);
  const auto& names = data["methods"]["name"];
  const size_t row = static_cast<size_t>(std::ranges::find(names, "move_all") - names.begin());
  ASSERT_LT(row, names.size());
  const json detail = element(r.out, "part-0")[row];
  for (const char* key : {"edges", "ir", "code"})
    ASSERT_TRUE(detail.contains(key)) << key << detail;
  // Its three blocks and the edges 1 -> 2, 2 -> 2, 2 -> 3.
  EXPECT_EQ(detail["edges"], json::parse("[[1,2],[2,2],[2,3]]"));
  ASSERT_EQ(detail["ir"].size(), 5u) << detail["ir"];  // head, blocks, closing brace
  EXPECT_EQ(detail["ir"][2][0], 2);
  EXPECT_NE(detail["ir"][2][1].get<std::string>().find("loop_header"), std::string::npos);
  EXPECT_GE(detail["code"].size(), 3u);
  // The usual error codes of the tool.
  EXPECT_EQ(test::run_tool("report " + base + "/none.upf").code, 1);
  EXPECT_EQ(test::run_tool("report " + test::wasm_path("objects")).code, 3);
  EXPECT_EQ(test::run_tool("report " + base + "/1.upf --module " + base + "/2.upf").code, 3);
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace uptier::tools::report_page_test
