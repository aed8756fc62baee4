// pprof: bytes as in the encoding's own examples, and numbers as `go tool pprof` reads them.
#include "profile/formats/pprof.h"

#include <sstream>

#include "profile/formats/protobuf.h"
#include "tests/support/tool_dir.h"

namespace uptier::export_pprof_test {
namespace {

// Source: protobuf.dev/programming-guides/encoding.
TEST(ExportPprof, protobuf_is_that_of_its_documentation) {
  profile::ProtoWriter w;
  w.number(1, 150);
  EXPECT_EQ(w.text(), "\x08\x96\x01");
  profile::ProtoWriter text;
  text.bytes(2, "testing");
  EXPECT_EQ(text.text(), "\x12\x07testing");
  profile::ProtoWriter packed;
  packed.numbers(6, {{3, 270, 86942}});
  EXPECT_EQ(packed.text(), "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
  profile::ProtoWriter none;
  none.number(1, 0);
  none.numbers(2, {});
  EXPECT_EQ(none.text(), "");
  profile::ProtoWriter greatest;
  greatest.number(1, UINT64_MAX);
  EXPECT_EQ(greatest.text(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

class PprofTool : public test::ToolDir {
 protected:
  // Returns the sum of each column over all samples, as -raw prints them.
  std::vector<double> totals(const std::string& file) const {
    const test::RunResult r = in_dir("go tool pprof -raw " + file);
    EXPECT_EQ(r.code, 0) << r.err;
    std::istringstream lines(r.out);
    std::vector<double> sums;
    bool samples = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "Locations") break;
      const size_t colon = line.find(':');
      if (samples && colon != std::string::npos) {
        std::istringstream words(line.substr(0, colon));
        double n = 0;
        for (size_t i = 0; words >> n; ++i) {
          if (sums.size() <= i) sums.push_back(0);
          sums[i] += n;
        }
      }
      samples = samples || line == "Samples:";
    }
    return sums;
  }
};

TEST_F(PprofTool, go_tool_pprof_has_the_profiles_numbers) {
  if (!installed("go")) {
    GTEST_SKIP() << "SKIPPED: go is not installed, pprof's form was not read";
  }
  run("objects", "p.upf", "--interval=1 --policy=never -O loops=on");
  ASSERT_EQ(tool("profile export p.upf --format=pprof -o p.pb").code, 0);
  double executions = 0, calls = 0, samples = 0, cycles = 0;
  std::string hottest;
  double most = 0;
  for (const auto& [key, m] : read("p.upf").profile.methods) {
    double own = 0;
    for (const Slot& slot : m.schema.slots) {
      if (slot.kind == SlotKind::kBlock) own += static_cast<double>(m.estimates[slot.word]);
      const bool timed = slot.kind == SlotKind::kLoop && m.counts[slot.word + 4] != 0;
      if (!timed) continue;
      cycles += m.loop_cycles(slot.site)->total * static_cast<double>(m.estimates[slot.word + 5]) /
                static_cast<double>(m.estimates[slot.word + 4]);
    }
    if (own > most) hottest = m.name;
    most = std::max(most, own);
    executions += own;
    calls += static_cast<double>(m.calls);
    samples += static_cast<double>(m.sampled_calls + m.bursts);
  }
  const std::vector<double> sums = totals("p.pb");
  ASSERT_EQ(sums.size(), 4u);
  EXPECT_EQ(sums[0], executions);
  EXPECT_EQ(sums[1], calls);
  EXPECT_EQ(sums[2], samples);
  EXPECT_GT(cycles, 0);
  EXPECT_NEAR(sums[3], cycles, 1e-6 * cycles + 100);  // each loop is rounded once

  test::RunResult r = in_dir("go tool pprof -top -sample_index=executions p.pb");
  ASSERT_EQ(r.code, 0) << r.err;
  const size_t first = r.out.find("cum%\n");
  ASSERT_NE(first, std::string::npos) << r.out;
  const std::string line = r.out.substr(first + 5, r.out.find('\n', first + 5) - first - 5);
  EXPECT_TRUE(line.ends_with(" " + hottest)) << line << " / " << hottest;
  // Loops are inside their methods, blocks are lines.
  r = in_dir("go tool pprof -top -cum -sample_index=cycles p.pb");
  EXPECT_NE(r.out.find("Type: cycles"), std::string::npos);
  EXPECT_NE(r.out.find(" loop 1 (inline)"), std::string::npos) << r.out;
  r = in_dir("go tool pprof -top -lines -sample_index=executions p.pb");
  EXPECT_NE(r.out.find(hottest + " uptier/"), std::string::npos) << r.out;
  // Compressed with gzip, the usual form.
  ASSERT_EQ(in_dir("gzip -k p.pb").code, 0);
  EXPECT_EQ(totals("p.pb.gz"), sums);
}

TEST_F(PprofTool, go_tool_pprof_takes_whatever_counts_there_are) {
  if (!installed("go")) {
    GTEST_SKIP() << "SKIPPED: go is not installed, pprof's form was not read";
  }
  Profile p;
  MethodProfile m;
  m.name = "odd \"name\"\n\xff";
  m.schema = Schema::block_schema(2, 1);
  m.counts = {UINT64_MAX, 3};
  m.weigh(1);
  m.calls = 7;
  p.methods.emplace(m.key, m);
  MethodProfile empty;
  empty.key = {1, 2};
  empty.calls = 5;
  p.methods.emplace(empty.key, empty);
  write("odd.upf", p);
  ASSERT_EQ(tool("profile export odd.upf --format=pprof -o odd.pb").code, 0);
  const std::vector<double> sums = totals("odd.pb");
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0], static_cast<double>(INT64_MAX) + 3);
  EXPECT_EQ(sums[1], 12);
}

}  // namespace
}  // namespace uptier::export_pprof_test
