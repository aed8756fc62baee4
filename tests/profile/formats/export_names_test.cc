// Names in the files of other tools: unchanged, and never as a spreadsheet formula.
#include <gtest/gtest.h>

#include <fstream>

#include "profile/data/text.h"
#include "profile/formats/export.h"
#include "profile/formats/llvm_text.h"
#include "profile/formats/pprof.h"
#include "profile/formats/tsv.h"
#include "profile/upf/write.h"
#include "tests/support/tool_dir.h"
#include "uptier/profile_file.h"

namespace uptier::profile::export_names_test {
namespace {

const std::string kNames[] = {"grüße_世界", "=1+1", "+a",   "-a",  "@a",         "\tx",
                              "'quoted",    "'=1",  "''-1", "a=b", "naïve\"q\"", "x,y"};

Profile named() {
  Profile p;
  for (uint32_t i = 0; i < std::size(kNames); ++i) {
    MethodProfile m;
    m.key = {9, i};
    m.name = kNames[i];
    m.schema = Schema::block_schema(2, 5);
    m.counts.assign(2, 100 - i);  // so that the first is shown first
    m.weigh(1);
    m.calls = 3;
    p.methods.emplace(m.key, std::move(m));
  }
  return p;
}

TEST(ExportNames, formulas_are_guarded_and_come_back) {
  for (const std::string& name : kNames) {
    const std::string safe = guarded(name);
    EXPECT_EQ(unguarded(safe), name);
    EXPECT_EQ(std::string("=+-@\t\r").find(safe[0]), std::string::npos) << safe;
  }
  EXPECT_EQ(guarded("f"), "f");
  EXPECT_EQ(guarded("'f"), "'f") << "what is no formula stays as it is";
  EXPECT_EQ(guarded(""), "");
}

TEST(ExportNames, no_field_of_csv_or_rows_begins_like_a_formula) {
  for (const std::string& text : {to_csv(named()), to_tsv(named(), {})}) {
    EXPECT_EQ(text.find(",=1"), std::string::npos);
    EXPECT_EQ(text.find("\t=1"), std::string::npos);
    EXPECT_EQ(text.find(",@"), std::string::npos);
    EXPECT_EQ(text.find("\t@"), std::string::npos);
    EXPECT_NE(text.find("'=1+1"), std::string::npos) << text;
    EXPECT_NE(text.find("''=1"), std::string::npos);
  }
  Result<ProfileFile> back = profile_from_tsv(to_tsv(named(), {}));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->profile, named());
}

TEST(ExportNames, utf8_is_kept_as_written) {
  const Profile p = named();
  for (const std::string& text : {to_csv(p), to_tsv(p, {}), to_lcov(p), to_folded(p),
                                  to_llvm_text(p), to_text(p), std::string(to_pprof(p, {}))}) {
    EXPECT_NE(text.find("grüße_世界"), std::string::npos) << text.substr(0, 200);
  }
  Result<Profile> text = parse_profile(to_text(p));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, p);
  const std::vector<std::byte> file = uptier::profile_to_file(p, {});
  EXPECT_EQ(profile_from_file(file)->profile, p);
}

class ExportNamesTool : public test::ToolDir {};

TEST_F(ExportNamesTool, the_tool_keeps_names) {
  write("p.upf", named());
  for (const std::string words : {"profile show p.upf --json", "profile show p.upf",
                                  "profile export --format=json p.upf", "profile dot p.upf"}) {
    const test::RunResult r = tool(words);
    EXPECT_EQ(r.code, 0) << words << r.err;
    if (words.find("dot") != std::string::npos) continue;  // shows calls only
    EXPECT_NE(r.out.find("grüße_世界"), std::string::npos) << words << r.out.substr(0, 500);
  }
  ASSERT_EQ(tool("profile export --format=tsv p.upf > rows").code, 0);
  ASSERT_EQ(tool("profile import -o back.upf rows").code, 0);
  EXPECT_EQ(read("back.upf").profile, named());
}

}  // namespace
}  // namespace uptier::profile::export_names_test
