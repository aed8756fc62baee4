// LLVM's sample profile with pseudo-probes: each line as expected, and as llvm-profdata reads it.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "profile/base/md5.h"
#include "profile/formats/csspgo.h"
#include "profile/formats/probe_names.h"
#include "tests/support/tool_dir.h"

namespace uptier::profile::export_csspgo_test {
namespace {

constexpr const char* kTool = "llvm-profdata-22";

MethodProfile method(MethodKey key, const std::string& name, std::vector<uint64_t> blocks,
                     uint64_t hash) {
  MethodProfile m;
  m.key = key;
  m.name = name;
  m.schema = Schema::block_schema(static_cast<uint32_t>(blocks.size()), hash);
  m.counts = std::move(blocks);
  m.weigh(1);
  return m;
}

// Estimates differ from counts, so that a mistake between the two shows.
Profile some_profile() {
  Profile p;
  MethodProfile main = method({1, 0}, "main", {3, 20, 0}, 99);
  main.schema.add(SlotKind::kCallTarget, 5);
  main.counts.push_back(4);
  main.estimates.push_back(0);
  main.tables[{SlotKind::kCallTarget, 5}] = {{{1, 1}, {1, 0}}, {{2, 7}, {9, 0}}, {{2, 8}, {1, 0}}};
  main.weigh(10);
  p.methods.emplace(main.key, main);
  p.methods.emplace(MethodKey{1, 1}, method({1, 1}, "9 lives", {6}, uint64_t{0xf} << 60));
  p.methods.emplace(MethodKey{2, 7}, method({2, 7}, "same", {7}, 7));
  p.methods.emplace(MethodKey{3, 1}, method({3, 1}, "same", {8, 9}, 0));

  InlinedBody outer;
  outer.code = {99, 7};
  outer.blocks[1] = {2, 200, 1};
  p.inlined[{{1, 0}, {{6, {2, 7}}}}] = outer;
  InlinedBody inner;
  inner.code = {99, 7, 5};
  inner.blocks[1] = {4, 400, 1};
  inner.blocks[2] = {0, 0, 1};
  InlinedSite call;
  call.counts = {1};
  call.estimates = {100};
  call.table[{1, 1}] = {2, 300};
  call.samples = 1;
  inner.sites[{SlotKind::kCallTarget, 4}] = call;
  p.inlined[{{1, 0}, {{6, {2, 7}}, {3, {1, 1}}}}] = inner;
  return p;
}

const std::string kSame2 = "<0x0000000000000002>:same", kSame3 = "<0x0000000000000003>:same";

std::string expected() {
  return "main:1380:30\n"
         " 1: 30\n"
         " 2: 200\n"
         " 3: 0\n"
         " 5: 150 " +
         kSame2 +
         ":90 <0x0000000000000002>:function_8:10 _9_lives:10\n"
         " 6: " +
         kSame2 +
         ":1000\n"
         "  1: 200\n"
         "  3: _9_lives:800\n"
         "   1: 400\n"
         "   2: 0\n"
         "   4: 400 _9_lives:300\n"
         "   !CFGChecksum: 5\n"
         "  !CFGChecksum: 7\n"
         " !CFGChecksum: 99\n"
         "_9_lives:6:6\n"
         " 1: 6\n"
         " !CFGChecksum: 17293822569102704640\n" +
         kSame2 + ":7:7\n 1: 7\n !CFGChecksum: 7\n" + kSame3 +
         ":17:8\n 1: 8\n 2: 9\n !CFGChecksum: 0\n";
}

TEST(Md5, is_that_of_the_rfc) {
  const auto text = [](std::string_view of) {
    std::string out;
    for (const uint8_t byte : md5(of)) {
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
    return out;
  };
  EXPECT_EQ(text(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(text("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(
      text("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
      "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, names_functions_as_llvm_does) {
  EXPECT_EQ(name_guid("<stdin>:foo2"), 837061429793323041u);
  EXPECT_EQ(name_guid("mid"), 4395024877212874786u);
}

TEST(ProbeNames, are_different_for_different_methods) {
  Profile p;
  const std::string names[] = {
      "same", "same", "<0x0000000000000001>:same", "[same", "_same", "", "#", "9", "!"};
  for (uint32_t i = 0; i < std::size(names); ++i) {
    p.methods.emplace(MethodKey{1, i}, method({1, i}, names[i], {1}, 1));
  }
  const std::string module = "<0x0000000000000001>:";
  const std::map<MethodKey, std::string> expected = {
      {{1, 0}, module + "same:0"},  {{1, 1}, module + "same:1"},
      {{1, 2}, module + "same"},    {{1, 3}, module + "_same"},
      {{1, 4}, module + "_same:4"}, {{1, 5}, module + "function_5"},
      {{1, 6}, module + "_"},       {{1, 7}, "_9"},
      {{1, 8}, module + "_:8"}};
  EXPECT_EQ(probe_names(p), expected);
}

TEST(ExportCsspgo, has_a_line_for_each_site_that_is_known) {
  EXPECT_EQ(to_csspgo(some_profile()), expected());
  EXPECT_EQ(to_csspgo({}), "");
}

TEST(ExportCsspgo, sums_stop_at_the_greatest_number) {
  Profile p;
  p.methods.emplace(MethodKey{1, 0}, method({1, 0}, "f", {UINT64_MAX, 2}, 0));
  EXPECT_EQ(to_csspgo(p),
            "f:18446744073709551615:18446744073709551615\n 1: 18446744073709551615\n 2: 2\n "
            "!CFGChecksum: 0\n");
}

class ExportCsspgoTool : public test::ToolDir {
 protected:
  bool installed() const { return in_dir(std::string("command -v ") + kTool).code == 0; }
  // Returns a text as llvm-profdata writes it after it has read it, once as text and once from
  // its binary form. Functions in the order of their totals.
  std::string through_llvm(const std::string& file) const {
    const std::string merge = std::string(kTool) + " merge --sample ";
    const test::RunResult text = in_dir(merge + "--text " + file + " -o -");
    EXPECT_EQ(text.code, 0) << text.err;
    const test::RunResult binary = in_dir(merge + "--extbinary " + file + " -o " + file +
                                          ".bin && " + merge + "--text " + file + ".bin -o -");
    EXPECT_EQ(binary.code, 0) << binary.err;
    EXPECT_EQ(binary.out, text.out);
    return text.out;
  }
};

// Returns the records of a text, in the order of their first lines.
std::multiset<std::string> records(const std::string& text) {
  std::multiset<std::string> out;
  std::string record;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.front() != ' ' && !record.empty()) out.insert(std::exchange(record, ""));
    record += line + "\n";
  }
  if (!record.empty()) out.insert(record);
  return out;
}

TEST_F(ExportCsspgoTool, llvm_reads_every_line) {
  if (!installed()) GTEST_SKIP() << "SKIPPED: " << kTool << " is not installed";
  std::ofstream(path("p.txt")) << to_csspgo(some_profile());
  EXPECT_EQ(records(through_llvm("p.txt")), records(expected()));
}

TEST_F(ExportCsspgoTool, llvm_reads_the_profile_of_a_run) {
  if (!installed()) GTEST_SKIP() << "SKIPPED: " << kTool << " is not installed";
  run("mix", "p.upf");
  ASSERT_EQ(tool("profile export p.upf --format=csspgo -o p.txt").code, 0);
  const std::string written = in_dir("cat p.txt").out;
  EXPECT_GT(records(written).size(), 5u);
  EXPECT_EQ(records(through_llvm("p.txt")), records(written));
}

}  // namespace
}  // namespace uptier::profile::export_csspgo_test
