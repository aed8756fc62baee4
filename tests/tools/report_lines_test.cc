// The source lines of the HTML report: the numbers of `profile show --lines`, and texts only of files
// that the user has asked for.
#include <nlohmann/json.hpp>

#include "tests/support/tool_dir.h"

namespace uptier::report_lines_test {
namespace {

using nlohmann::json;

class ReportLines : public test::ToolDir {
 protected:
  void SetUp() override {
    ASSERT_EQ(tool("run --tier=instrumented --profile p.upf " + module()).code, 0);
  }
  static std::string module() {
    return std::string(UPTIER_SOURCE_DIR) + "/tests/fuzz/corpus/dwarf/plain5.wasm";
  }
  json lines_of(const std::string& words) const {
    const test::RunResult r = tool("report p.upf -o - " + words);
    EXPECT_EQ(r.code, 0) << r.err;
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    const size_t at = r.out.find(open) + open.size();
    return json::parse(r.out.substr(at, r.out.find("</script>", at) - at), nullptr, false)["lines"];
  }
};

TEST_F(ReportLines, are_those_of_profile_show) {
  const json lines = lines_of("--module " + module());
  ASSERT_TRUE(lines["files"].is_array());
  std::map<std::pair<std::string, uint32_t>, uint64_t> page, shown;
  for (const json& f : lines["files"]) {
    for (const json& l : f["lines"]) page[{f["name"], l[0]}] = l[1];
  }
  const json table = json::parse(tool("profile show p.upf --lines --json --module " + module()).out,
                                 nullptr, false);
  for (const json& l : table["lines"]) shown[{l["file"], l["line"]}] = l["executions"];
  EXPECT_GT(page.size(), 5u);
  EXPECT_EQ(page, shown);
}

TEST_F(ReportLines, need_a_module_with_lines) {
  EXPECT_TRUE(lines_of("").is_null());
  const std::string why = lines_of("--module " + test::wasm_path("nbody"))["none"];
  EXPECT_NE(why.find("nbody.wasm"), std::string::npos) << why;
}

// The module names the files, so texts are on the page only if the user says so.
TEST_F(ReportLines, texts_are_there_only_if_asked_for) {
  for (const json& f : lines_of("--module " + module())["files"]) {
    EXPECT_FALSE(f.contains("text"));
    EXPECT_NE(std::string(f["missing"]).find("--sources"), std::string::npos);
  }
  // The same module with its sources in a folder of the test.
  std::string bytes = test::slurp(module());
  size_t replaced = 0;
  for (size_t at = 0; (at = bytes.find("/src", at)) != std::string::npos; ++replaced) {
    bytes.replace(at, 4, "srcs");
  }
  ASSERT_GT(replaced, 0u);
  write_text("m.wasm", bytes);
  const std::string file = "srcs/lines.c";
  std::filesystem::create_directories(path("srcs"));
  write_text(file, "one\n</script>two\n");
  const json asked = lines_of("--module m.wasm --sources");
  EXPECT_EQ(asked["files"][0]["name"], file);
  EXPECT_EQ(asked["files"][0]["text"], json({"one", "</script>two"}));
  std::filesystem::remove(path(file));
  std::filesystem::create_directory(path(file));
  const json folder = lines_of("--module m.wasm --sources");
  EXPECT_FALSE(folder["files"][0].contains("text"));
  EXPECT_NE(std::string(folder["files"][0]["missing"]).find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace uptier::report_lines_test
