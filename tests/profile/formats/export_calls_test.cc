// Calls in tables for people and for spreadsheets.
#include <gtest/gtest.h>

#include <sstream>

#include "profile/formats/export.h"
#include "tests/support/tool_dir.h"

namespace uptier::export_calls_test {
namespace {

MethodProfile method(MethodKey key, const std::string& name) {
  MethodProfile m;
  m.key = key;
  m.name = name;
  m.schema = Schema::block_schema(1, 7);
  m.counts = {1};
  m.weigh(1);
  return m;
}

std::vector<std::string> rows_of(const std::string& csv, std::string_view kind) {
  std::istringstream lines(csv);
  std::vector<std::string> rows;
  const std::string field = "," + std::string(kind) + ",";
  for (std::string line; std::getline(lines, line);) {
    if (line.find(field) != std::string::npos) rows.push_back(line.substr(0, line.size() - 1));
  }
  return rows;
}

TEST(ExportCalls, csv_has_a_row_a_call_and_two_a_first_call) {
  Profile p;
  p.methods.emplace(MethodKey{0xa1, 0}, method({0xa1, 0}, "one, two"));
  p.methods.emplace(MethodKey{0xa1, 1}, method({0xa1, 1}, "three"));
  CallProfile calls;
  calls.graph[{{0xa1, 0}, {0xa1, 1}}] = 5;
  calls.graph[{{0xa1, 0}, {0xb2, 3}}] = 7;
  calls.graph[{{0xcc, 4}, {0xa1, 0}}] = 1;
  calls.first[{0xa1, 1}] = {3, 2 * CallProfile::kOneRun};
  const std::string csv = profile::to_csv(p, calls);
  EXPECT_EQ(rows_of(csv, "call"), (std::vector<std::string>{
                                      "0x00000000000000a1,0,\"one, two\",call,,callee,"
                                      "0x00000000000000a1,1,,5",
                                      "0x00000000000000a1,0,\"one, two\",call,,callee,"
                                      "0x00000000000000b2,3,,7",
                                      "0x00000000000000cc,4,,call,,callee,"
                                      "0x00000000000000a1,0,,1",
                                  }));
  EXPECT_EQ(rows_of(csv, "first_call"), (std::vector<std::string>{
                                            "0x00000000000000a1,1,three,first_call,,positions,,,3,",
                                            "0x00000000000000a1,1,three,first_call,,runs,,,2000,",
                                        }));
}

class ExportCallsTool : public test::ToolDir {};

TEST_F(ExportCallsTool, csv_has_all_calls_of_the_file) {
  ASSERT_EQ(tool("run --profile p.upf -O workers=0 " + test::wasm_path("objects")).code, 0);
  const ProfileFile file = read("p.upf");
  ASSERT_GT(file.calls.graph.size(), 3u);
  ASSERT_GT(file.calls.first.size(), 3u);
  const std::string csv = tool("profile export p.upf --format=csv").out;
  EXPECT_EQ(rows_of(csv, "call").size(), file.calls.graph.size());
  EXPECT_EQ(rows_of(csv, "first_call").size(), 2 * file.calls.first.size());
}

}  // namespace
}  // namespace uptier::export_calls_test
